package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/api"
)

func TestU263_every_variable_metric_code_and_field_that_a_page_names_exists(t *testing.T) {
	t.Parallel()
	holds(t, checkWords)
}

func TestU263_words_that_nothing_in_the_code_knows_are_found(t *testing.T) {
	t.Parallel()
	planted{
		{"`FF_STORE`, `FF_API_KEY_FILE`, `FF_EXECUTION_ID`, `ff_http_requests_total`, `execution_not_active`, `lease_epoch`, `FF_NAME`", ""},
		{"`ff_http_request_seconds_bucket`", ""},
		{"`FF_STOER`", "FF_STOER"},
		{"```text\nFF_LISTEM=127.0.0.1:1\n```\n", "FF_LISTEM"},
		{"`ff_no_such_total`", "ff_no_such_total"},
		{"```text\nrate(ff_made_up_total[5m])\n```\n", "ff_made_up_total"},
		{"`execution_not_acitve`", "execution_not_acitve"},
		{"| Code | Meaning |\n|---|---|\n| `lease_epoch` | a field, not a code |\n", "lease_epoch is no code"},
		{"`/problems/no_such_code`", "no_such_code is no code"},
		{"`TestU4_the_openapi_document_changes_only_on_purpose`", ""},
		{"`TestU4_the_moon_is_made_of_cheese`", "there is no test TestU4_the_moon"},
	}.finds(t, checkWords)
}

var (
	word     = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+`)
	snake    = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)+$`)
	variable = regexp.MustCompile(`\bFF_[A-Z_]+[A-Z]\b`)
	metric   = regexp.MustCompile(`\bff_[a-z_]+[a-z]\b`)
	problem  = regexp.MustCompile(`/problems/([a-z_]+)`)
	testName = regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]*_\w+`)
	ending   = regexp.MustCompile(`_(bucket|sum|count)$`)

	testHead = regexp.MustCompile(`func (Test\w+)\(`)
)

// placeholders stand for names that do not exist.
var placeholders = []string{"FF_NAME", "FF_NAME_FILE"}

// literals are the words in texts of the product's code, in its SQL and in the OpenAPI document: names of fields, codes, reasons, variables,
// metrics, columns.
var literals = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, name := range files(".go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tools/") || strings.HasPrefix(name, "bench/peers/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			continue // it is being written: the build tells
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				for _, w := range word.FindAllString(text.Value, -1) {
					all[w] = true
				}
			}
			return true
		})
	}
	for _, name := range append(files(".sql"), "internal/server/testdata/openapi.json") { // names of payload fields are put together in code
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			panic(err)
		}
		for _, w := range word.FindAllString(string(text), -1) {
			all[w] = true
		}
	}
	return all
})

// testFunctions are the names of all tests.
var testFunctions = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, text := range sources() {
		for _, m := range testHead.FindAllStringSubmatch(text, -1) {
			all[m[1]] = true
		}
	}
	return all
})

// settings are the variables that the generated page lists.
var settings = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, p := range pages() {
		if p.name == settingsPage {
			for _, name := range variable.FindAllString(p.text, -1) {
				all[name] = true
			}
		}
	}
	return all
})

// isCode reports whether a word is in the table of codes.
func isCode(name string) bool {
	return slices.ContainsFunc(api.Codes(), func(info api.CodeInfo) bool { return info.Code == name })
}

// checkWords leaves decisions alone: they also speak of what was not done.
func checkWords(p page) (faults []string) {
	if strings.HasPrefix(p.name, "docs/adr/") {
		return nil
	}
	wrong := func(format string, args ...any) { faults = append(faults, p.name+": "+fmt.Sprintf(format, args...)) }
	for _, name := range variable.FindAllString(p.text, -1) {
		if !settings()[name] && !literals()[name] && !slices.Contains(placeholders, name) {
			wrong("there is no variable %s", name)
		}
	}
	for _, name := range metric.FindAllString(p.text, -1) {
		if !literals()[name] && !literals()[ending.ReplaceAllString(name, "")] {
			wrong("there is no metric %s", name)
		}
	}
	for _, m := range problem.FindAllStringSubmatch(p.text, -1) {
		if !isCode(m[1]) {
			wrong("%s is no code", m[1])
		}
	}
	for _, m := range code.FindAllString(p.prose, -1) {
		if name := strings.Trim(m, "`"); snake.MatchString(name) && !metric.MatchString(name) && !literals()[name] {
			wrong("nothing in the code is called %s", name)
		}
	}
	for _, name := range testName.FindAllString(p.prose, -1) {
		if !testFunctions()[name] {
			wrong("there is no test %s", name)
		}
	}
	return append(faults, wrongCodes(p)...)
}

// wrongCodes looks at the first column of tables that are headed Code.
func wrongCodes(p page) (faults []string) {
	inside := false
	for line := range strings.Lines(p.prose) {
		cells := strings.Split(line, "|")
		switch {
		case len(cells) < 3:
			inside = false
		case strings.TrimSpace(cells[1]) == "Code":
			inside = true
		case inside:
			for _, m := range code.FindAllString(cells[1], -1) {
				if name := strings.Trim(m, "`"); !isCode(name) {
					faults = append(faults, fmt.Sprintf("%s: %s is no code", p.name, name))
				}
			}
		}
	}
	return faults
}
