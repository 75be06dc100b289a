package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/hint"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Words that only one kind of reader knows.
var (
	wordsOfHTTP    = regexp.MustCompile("/v1/|/readyz|Idempotency-Key|FlowFabric-[A-Z]|Authorization|Retry-After|If-Match|`|current\\.")
	wordsOfCommand = regexp.MustCompile(`(^|\s)--[a-z]|\bFF_[A-Z]|\bflowfabric [a-z]`)
	wordsOfGo      = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z][a-z]+\b|\b[A-Z][a-z]+\.[A-Z]`)
	argument       = regexp.MustCompile(`\b[a-z]+(_[a-z]+)+\b`)
)

// onlyOver are the codes that only one kind of reader meets.
var onlyOver = map[string]string{
	"method_not_allowed": "HTTP", "route_not_found": "HTTP", "unsupported_media_type": "HTTP", "already_satisfied": "Go",
}

func TestU157_the_advice_for_every_code_is_in_the_words_of_its_reader(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	for _, info := range api.Codes() {
		if onlyOver[info.Code] != "" {
			continue
		}
		for reader, c := range map[string]struct {
			text    string
			foreign []*regexp.Regexp
		}{
			"HTTP":    {hint.Plain(info.Advice), []*regexp.Regexp{wordsOfCommand, wordsOfGo}},
			"Go":      {hint.Go(info.Advice), []*regexp.Regexp{wordsOfHTTP, wordsOfCommand, argument}},
			"command": {hint.Command(info.Advice, none, none), []*regexp.Regexp{wordsOfHTTP, wordsOfGo}},
		} {
			for _, words := range c.foreign {
				if found := words.FindString(c.text); found != "" && found != "FlowFabric" {
					t.Errorf("%s, for a reader of %s: %q has %q", info.Code, reader, c.text, found)
				}
			}
		}
	}
}

func TestU157_routes_in_hints_are_those_of_the_table(t *testing.T) {
	t.Parallel()
	routes := map[string]*wire.Operation{}
	for _, o := range wire.Operations() {
		routes[o.Method+" "+o.Path] = o
	}
	for route, words := range hint.Routes() {
		o := routes[route]
		if o == nil {
			t.Errorf("%s is no route", route)
			continue
		}
		if words[0] != o.Go || words[1] != "flowfabric "+o.Command {
			t.Errorf("%s is %q and %q, in the table %q and %q", route, words[0], words[1], o.Go, o.Command)
		}
	}
}

// told are hints in words of the command line that are right for every reader: only a program on the host of the store can do it.
var told = []string{
	"flowfabric migrate up", "flowfabric version", "use a flowfabric that", "flowfabric backup FILE --store", "flowfabric api-keys create --role admin --name me",
}

// hinted are functions whose argument at an index is a hint.
var hinted = map[string]int{"WithHint": 0, "hint": 0, "At": 1}

func TestU157_hints_mark_what_differs_between_readers(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{"cmd", "bench", "tools", "test", "examples", ".git"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, text := range hintsIn(file) {
			seen++
			unmarked := regexp.MustCompile("`[^`]*`").ReplaceAllString(text, "")
			for _, command := range told {
				unmarked = strings.ReplaceAll(unmarked, command, "")
			}
			for _, words := range []*regexp.Regexp{wordsOfHTTP, wordsOfCommand} {
				if found := words.FindString(unmarked); found != "" {
					t.Errorf("%s: %q has %q: write it in backquotes, see internal/hint", path, text, found)
				}
			}
		}
		return nil
	})
	if err != nil || seen < 150 {
		t.Errorf("%d hints, %v", seen, err)
	}
}

// hintsIn returns the literals of a file that are hints.
func hintsIn(file *ast.File) (all []string) {
	literal := func(e ast.Expr) {
		if text, ok := e.(*ast.BasicLit); ok && text.Kind == token.STRING {
			if value, err := strconv.Unquote(text.Value); err == nil {
				all = append(all, value)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok {
				if at, known := hinted[called.Sel.Name]; known && at < len(n.Args) {
					literal(n.Args[at])
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Hint" {
				literal(n.Value)
			}
		}
		return true
	})
	return all
}
