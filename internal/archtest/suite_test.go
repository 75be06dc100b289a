package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

func TestNoTestSleeps(t *testing.T) {
	t.Parallel()
	holds(t, checkSleep, "a sleep is too short on a busy machine and too long on an idle one: wait for the event, turn the clock, or use testing/synctest")
}

func TestNoTestSkipsItself(t *testing.T) {
	t.Parallel()
	holds(t, checkSkip, "a skip is not a pass: what a test needs is started by the test run")
}

func TestTestsRunInParallel(t *testing.T) {
	t.Parallel()
	holds(t, checkParallel, "t.Parallel() comes first in every test: the suite is fast, and shared state shows")
}

func TestSleepsAndSkipsAreFound(t *testing.T) {
	t.Parallel()
	const sleep = "import \"time\"\nfunc f() { time.Sleep(1) }\n"
	finds(t, checkSleep, []example{
		{name: "virtual time, and code that is no test", files: map[string]string{
			"a/a_test.go": "package a\nimport \"testing/synctest\"\n" + sleep, "a/a.go": "package a\n" + sleep,
		}},
		{name: "a sleep", files: map[string]string{"a/a_test.go": "package a\n" + sleep}, want: []string{"a/a_test.go:3"}},
	})
	skip := func(name string) string {
		return "package a\nimport \"testing\"\nfunc TestX(t *testing.T) { t." + name + "() }\n"
	}
	finds(t, checkSkip, []example{
		{name: "no skip", files: map[string]string{"a/a_test.go": skip("Parallel"), "a/b.go": "package a\nfunc f(s scanner) { s.Skip() }\n"}},
		{name: "every kind of skip", files: map[string]string{"a/a_test.go": skip("Skip"), "a/b_test.go": skip("Skipf"), "a/c_test.go": skip("SkipNow"), "a/d.go": skip("Skip")}, want: []string{"a/a_test.go:3", "a/b_test.go:3", "a/c_test.go:3", "a/d.go:3"}},
	})
}

func TestTestsThatAreNotParallelAreFound(t *testing.T) {
	t.Parallel()
	test := func(body string) string {
		return "package a\nimport \"testing\"\nfunc TestX(t *testing.T) { " + body + " }\n"
	}
	finds(t, checkParallel, []example{
		{name: "first, or impossible", files: map[string]string{
			"a/a_test.go": test("t.Parallel(); f()"), "a/b_test.go": test(`f(); t.Setenv("A", "b")`), "a/c_test.go": test(`t.Chdir("x")`),
			"a/d_test.go":    test(`testing.AllocsPerRun(1, f)`),
			"a/main_test.go": "package a\nimport \"testing\"\nfunc TestMain(m *testing.M) { m.Run() }\n",
		}},
		{name: "late or never", files: map[string]string{"a/a_test.go": test("f(); t.Parallel()"), "a/b_test.go": test("")}, want: []string{"TestX", "TestX"}},
	})
}

func checkSleep(all []source) []string {
	var found []string
	for _, s := range all {
		if s.isGo() && s.isTest() && importName(s, "testing/synctest") == "" {
			found = append(found, uses(s, "time", "Sleep")...)
		}
	}
	return found
}

func checkSkip(all []source) []string {
	var found []string
	for _, s := range all {
		if !s.isGo() || importName(s, "testing") == "" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				found = append(found, s.at(sel)+": a test skips itself")
			}
			return true
		})
	}
	return found
}

func checkParallel(all []source) []string {
	var found []string
	for _, s := range all {
		if !s.isGo() || !s.isTest() {
			continue
		}
		for _, decl := range s.file.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if ok && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test") && d.Name.Name != "TestMain" && !parallel(d) {
				found = append(found, s.at(d)+": "+d.Name.Name+" does not begin with t.Parallel()")
			}
		}
	}
	return found
}

// parallel reports whether a test begins with t.Parallel, or does what Go forbids in parallel tests.
func parallel(d *ast.FuncDecl) bool {
	if len(d.Body.List) > 0 && calls(d.Body.List[0], "Parallel") {
		return true
	}
	return calls(d.Body, "Setenv") || calls(d.Body, "Chdir") || calls(d.Body, "AllocsPerRun")
}

func calls(n ast.Node, method string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		found = found || ok && sel.Sel.Name == method
		return !found
	})
	return found
}
