package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A small module in which bugs are planted.
const (
	code = `package sum

func Sum(a, b int) int {
	return a + b
}

func Wait(stop chan bool) { <-stop }
`
	tests = `package sum

import "testing"

func TestSum(t *testing.T) {
	if Sum(2, 2) != 4 || Sum(2, 3) != 5 {
		t.Error("wrong")
	}
}

func TestWait(t *testing.T) {
	stop := make(chan bool, 1)
	stop <- true
	Wait(stop)
}

func TestBroken(t *testing.T) { t.Error("always") }
`
)

// module writes the module.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module sum\n\ngo 1.26\n", "sum.go": code, "sum_test.go": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestACheckThatDoesNotEndCatchesNothing(t *testing.T) {
	t.Parallel()
	m := &mutant{Name: "hangs", What: "it hangs", Package: ".", Tests: "TestWait", changes: []change{{"sum.go", "<-stop", "for {\n\t}"}}}
	r := run{root: module(t), limit: 50 * time.Millisecond, clean: map[string]string{checkOf(m): ""}}
	res, err := r.one(t.Context(), m, t.TempDir())
	if err != nil || res.Outcome != tooSlow {
		t.Errorf("%+v %v", res, err)
	}
}

func TestWhatBecomesOfABug(t *testing.T) {
	t.Parallel()
	dir := module(t)
	cases := []struct{ name, tests, before, after, want string }{
		{"caught", "TestSum", "a + b", "a - b", caught},
		{"another function", "TestWait", "a + b", "a - b", survived},
		{"does not compile", "TestSum", "a + b", "a + c", unplanted},
		{"not in the tree", "TestSum", "a * b", "a - b", unplanted},
		{"twice in the tree", "TestSum", "func ", "func  ", unplanted},
		{"no such test", "TestMissing", "a + b", "a - b", unclean},
		{"fails without the bug", "TestBroken", "a + b", "a - b", unclean},
	}
	var mutants []*mutant
	for _, c := range cases {
		mutants = append(mutants, &mutant{Name: c.name, What: c.name, Package: ".", Tests: "^" + c.tests + "$", changes: []change{{"sum.go", c.before, c.after}}})
	}
	r := run{root: dir, limit: time.Hour}
	var out bytes.Buffer
	results, err := r.all(t.Context(), mutants, &out)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if results[i].Outcome != c.want {
			t.Errorf("%s: %s, want %s: %s", c.name, results[i].Outcome, c.want, results[i].Why)
		}
	}
	if results[0].By != "TestSum" {
		t.Errorf("caught by %q", results[0].By)
	}
	if missed := summary(&out, results); missed != len(cases)-1 || !strings.Contains(out.String(), "1 caught, 6 not") {
		t.Errorf("%d missed:\n%s", missed, out.String())
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "sum.go")); string(text) != code {
		t.Errorf("the tree was changed:\n%s", text)
	}
}

func TestABugIsReadFromItsFile(t *testing.T) {
	t.Parallel()
	m, err := parse("name", "what: it adds\npackage: ./sum\ntests: TestSum\nrace: yes\n\n-- file sum.go --\na + b\n-- with --\na - b\n-- file more.go --\none\n-- with --\n")
	if err != nil {
		t.Fatal(err)
	}
	if m.What != "it adds" || m.Package != "./sum" || m.Tests != "TestSum" || !m.Race || m.Server {
		t.Errorf("%+v", m)
	}
	if len(m.changes) != 2 || m.changes[0] != (change{"sum.go", "a + b", "a - b"}) || m.changes[1] != (change{"more.go", "one", ""}) {
		t.Errorf("%+v", m.changes)
	}
	for what, text := range map[string]string{
		"an unknown key":     "what: a\npackage: b\ntests: c\ncolour: red\n-- file f --\na\n-- with --\nb\n",
		"no change":          "what: a\npackage: b\ntests: c\n",
		"no new text":        "what: a\npackage: b\ntests: c\n-- file f --\na\n",
		"no check":           "what: a\n-- file f --\na\n-- with --\nb\n",
		"nothing to replace": "what: a\npackage: b\ntests: c\n-- file f --\n\n-- with --\nb\n",
	} {
		if _, err := parse("name", text); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}
