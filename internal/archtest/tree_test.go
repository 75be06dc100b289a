package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module is the import path of the root package.
const module = "github.com/flowfabric/flowfabric"

// source is a text file of the tree. Path is relative to the root, with slashes.
type source struct {
	path string
	text string
	fset *token.FileSet
	file *ast.File // nil unless it is a Go file
}

func (s source) dir() string    { return path.Dir(s.path) }
func (s source) isTest() bool   { return strings.HasSuffix(s.path, "_test.go") }
func (s source) isGo() bool     { return s.file != nil }
func (s source) isSQL() bool    { return strings.HasSuffix(s.path, ".sql") }
func (s source) isMain() bool   { return s.file.Name.Name == "main" }
func (s source) foreign() bool  { return under(s.path, "tools") || under(s.path, "bench/peers") } // a module of its own
func (s source) line(n int) int { return s.fset.Position(token.Pos(n)).Line }

// at names the place of a node for a finding.
func (s source) at(n ast.Node) string { return fmt.Sprintf("%s:%d", s.path, s.line(int(n.Pos()))) }

// under reports whether name is dir or lies below it.
func under(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// underAny reports whether name lies in one of the directories.
func underAny(name string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return under(name, dir) })
}

// goFile parses an in-memory example.
func goFile(t *testing.T, name, text string) source {
	t.Helper()
	s, err := parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(name, text string) (source, error) {
	s := source{path: name, text: text}
	if !strings.HasSuffix(name, ".go") {
		return s, nil
	}
	s.fset = token.NewFileSet()
	file, err := parser.ParseFile(s.fset, name, text, parser.ParseComments)
	s.file = file
	return s, err
}

// tree reads the whole source tree once.
var tree = sync.OnceValues(func() ([]source, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	var all []source
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "node_modules", "testdata", "dist"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || strings.HasSuffix(name, ".sum") || d.Name() == ".git" { // in a worktree a file
			return nil
		}
		s, err := readSource(root, name)
		if err == nil && s.text != "" {
			all = append(all, s)
		}
		return err
	})
	return all, err
})

// readSource reads one file; binary files come back without text.
func readSource(root, name string) (source, error) {
	text, err := os.ReadFile(name)
	if err != nil || slices.Contains(text, 0) {
		return source{}, err
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return source{}, err
	}
	return parse(filepath.ToSlash(rel), string(text))
}

// findRoot walks up from this package to the directory of go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("no go.mod above %s", dir)
		}
		dir = filepath.Dir(dir)
	}
}

// checker finds what breaks a convention.
type checker func(all []source) []string

// holds fails the test with every finding of the checker in the tree, and with the reason of the rule.
func holds(t *testing.T, check checker, reason string) {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d files read: the tree is not where it is looked for", len(all))
	}
	for _, finding := range check(all) {
		t.Errorf("%s\n\twhy: %s", finding, reason)
	}
}

// example is a small tree in which a checker must find a number of faults.
type example struct {
	name  string
	files map[string]string // path -> text
	want  []string          // a part of each finding, in order of path
}

// finds runs a checker over examples.
func finds(t *testing.T, check checker, examples []example) {
	t.Helper()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			var all []source
			for name, text := range e.files {
				all = append(all, goFile(t, name, text))
			}
			slices.SortFunc(all, func(a, b source) int { return strings.Compare(a.path, b.path) })
			got := check(all)
			if len(got) != len(e.want) {
				t.Fatalf("found %d faults, want %d: %q", len(got), len(e.want), got)
			}
			for i, part := range e.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("finding %d is %q, want it to name %q", i, got[i], part)
				}
			}
		})
	}
}
