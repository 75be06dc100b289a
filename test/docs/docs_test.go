package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// block is a fenced block of a page.
type block struct {
	page, language, text string
}

var (
	fence   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	target  = regexp.MustCompile(`(?m)^([a-z]+):`)
)

func TestU263_every_block_of_go_is_code_that_compiles(t *testing.T) {
	t.Parallel()
	compiled := files(t, ".go")
	for _, b := range blocks(t) {
		if b.language != "go" {
			continue
		}
		if !slices.ContainsFunc(compiled, func(file string) bool { return strings.Contains(read(t, file), b.text) }) {
			t.Errorf("%s has a block of Go that stands in no compiled file:\n%s", b.page, b.text)
		}
	}
}

func TestU263_every_block_is_checked_or_is_text(t *testing.T) {
	t.Parallel()
	for _, b := range blocks(t) {
		if !slices.Contains([]string{"go", "sh", "text"}, b.language) {
			t.Errorf("%s has a block of %q: go and sh are checked, anything else is text", b.page, b.language)
		}
	}
}

func TestU263_every_command_names_what_exists(t *testing.T) {
	t.Parallel()
	var targets []string
	for _, m := range target.FindAllStringSubmatch(read(t, filepath.Join(root, "Makefile")), -1) {
		targets = append(targets, m[1])
	}
	for _, b := range blocks(t) {
		if b.language != "sh" {
			continue
		}
		for line := range strings.Lines(b.text) {
			if problem := checkCommand(strings.Fields(line), targets); problem != "" {
				t.Errorf("%s: %s: %s", b.page, strings.TrimSpace(line), problem)
			}
		}
	}
}

func TestU263_every_link_inside_the_tree_leads_somewhere(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			} else if m[2] != "" && !slices.Contains(anchors(read(t, to)), m[2]) {
				t.Errorf("%s links to %s%s, which has no such heading", page, m[1], m[2])
			}
		}
	}
}

func TestCommandsThatDoNotExistAreFound(t *testing.T) {
	t.Parallel()
	targets := []string{"test"}
	for _, good := range []string{"make test", "go run ./examples/hello", "go test ./internal/core"} {
		if problem := checkCommand(strings.Fields(good), targets); problem != "" {
			t.Errorf("%s: %s", good, problem)
		}
	}
	for _, bad := range []string{"make coffee", "go run ./examples/goodbye", "flowfabric dev"} {
		if checkCommand(strings.Fields(bad), targets) == "" {
			t.Errorf("%s was let through", bad)
		}
	}
}

func TestAnchorsAreThoseOfHeadings(t *testing.T) {
	t.Parallel()
	if got := anchors("# A page\n## What is `stored`, and why?\n"); !slices.Equal(got, []string{"#a-page", "#what-is-stored-and-why"}) {
		t.Error(got)
	}
}

// checkCommand tells what is wrong with a command of a page, "" if nothing.
func checkCommand(words []string, targets []string) string {
	switch {
	case len(words) == 0:
		return ""
	case words[0] == "make" && len(words) > 1:
		if !slices.Contains(targets, words[1]) {
			return "the Makefile has no such target"
		}
		return ""
	case words[0] == "go":
		for _, word := range words {
			if !strings.HasPrefix(word, "./") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(word, "/..."))); err != nil {
				return word + " does not exist"
			}
		}
		return ""
	default:
		return "only make and go are known to exist"
	}
}

// anchors lists what links may end in, as hosts of Markdown make them.
func anchors(page string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		id := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		all = append(all, "#"+id)
	}
	return all
}

func blocks(t *testing.T) []block {
	t.Helper()
	var all []block
	for _, page := range pages(t) {
		for _, m := range fence.FindAllStringSubmatch(read(t, page), -1) {
			all = append(all, block{page: page, language: m[1], text: m[2]})
		}
	}
	if len(all) < 5 {
		t.Fatalf("only %d blocks found: the pages are not where they are looked for", len(all))
	}
	return all
}

func pages(t *testing.T) []string {
	t.Helper()
	return files(t, ".md")
}

// files lists the files of the tree with that ending.
func files(t *testing.T, ending string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules", "testdata"}, d.Name()):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ending):
			all = append(all, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
