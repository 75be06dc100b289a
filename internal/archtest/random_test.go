package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestRandomTestsDrawFromTheSeedOfTheSuite(t *testing.T) {
	t.Parallel()
	holds(t, checkRandom, "the suite gives the same verdict each time: random tests draw from internal/testseed, whose seed is fixed; "+
		"`make explore` draws from fresh seeds")
}

func TestRandomNumbersOfTestsAreFound(t *testing.T) {
	t.Parallel()
	const global = "import \"math/rand/v2\"\nvar x = rand.IntN(3)\n"
	const check = "import \"pgregory.net/rapid\"\nfunc f() { rapid.Check(nil, nil) }\n"
	finds(t, checkRandom, []example{
		{name: "a source with a seed, and random numbers of the program", files: map[string]string{
			"a/a_test.go":                     "package a\nimport \"math/rand/v2\"\nvar x = rand.New(rand.NewPCG(1, 2)).IntN(3)\n",
			"a/b_test.go":                     "package a\nimport \"pgregory.net/rapid\"\nfunc f(t *rapid.T) { rapid.Int().Draw(t, \"n\") }\n",
			"a/a.go":                          "package a\n" + global,
			"internal/testseed/testseed.go":   "package a\n" + global + "func g() { rapid.Check(nil, nil) }\n",
			"internal/testseed/other_test.go": "package a\n" + check,
		}},
		{name: "the global source in a test", files: map[string]string{"a/a_test.go": "package a\n" + global}, want: []string{"a/a_test.go:3"}},
		{name: "an example by rapid's own seed", files: map[string]string{"a/a_test.go": "package a\nimport \"pgregory.net/rapid\"\nvar x = rapid.Int().Example(1)\n"}, want: []string{"a/a_test.go:3"}},
		{name: "rapid's own seed", files: map[string]string{"a/a_test.go": "package a\n" + check, "internal/store/storetest/a.go": "package a\n" + check}, want: []string{"a/a_test.go:3", "storetest/a.go:3"}},
	})
}

// globalRandom are the functions of math/rand/v2 that draw from a source without a fixed seed.
var globalRandom = []string{
	"ExpFloat64", "Float32", "Float64", "Int", "Int32", "Int32N", "Int64", "Int64N", "IntN", "N", "NormFloat64", "Perm", "Shuffle", "Uint", "Uint32", "Uint32N", "Uint64", "Uint64N", "UintN",
}

func checkRandom(all []source) []string {
	var found []string
	for _, s := range all {
		if !s.isGo() || s.foreign() || under(s.path, "internal/testseed") {
			continue
		}
		found = append(found, uses(s, "pgregory.net/rapid", "Check", "MakeCheck")...)
		if s.isTest() && importName(s, "pgregory.net/rapid") != "" {
			found = append(found, methodCalls(s, "Example")...)
		}
		if s.isTest() {
			found = append(found, uses(s, "math/rand/v2", globalRandom...)...)
		}
	}
	return found
}

// methodCalls finds calls of methods of that name, but for those of this module's package of seeds.
func methodCalls(s source, method string) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == method {
			if id, ok := sel.X.(*ast.Ident); !ok || id.Name != "testseed" {
				found = append(found, s.at(call)+": "+method)
			}
		}
		return true
	})
	return found
}

func TestEveryRandomTestIsExplored(t *testing.T) {
	t.Parallel()
	holds(t, checkExplored, "`make explore` searches with every random test: a package that imports internal/testseed stands in EXPLORED of the Makefile")
}

func TestPackagesThatAreNotExploredAreFound(t *testing.T) {
	t.Parallel()
	const random = "package a\nimport \"" + module + "/internal/testseed\"\n"
	finds(t, checkExplored, []example{
		{name: "named", files: map[string]string{"Makefile": "EXPLORED := ./a ./b='TestX' \\\n\t.='TestY'\n\nall:\n", "a/a_test.go": random, "b/b_test.go": random, "root_test.go": random}},
		{name: "not named", files: map[string]string{"Makefile": "EXPLORED := ./a\n\nall: ./b\n", "a/a_test.go": random, "b/b_test.go": random}, want: []string{"b/b_test.go"}},
	})
}

func checkExplored(all []source) []string {
	var explored []string
	for _, s := range all {
		if s.path == "Makefile" {
			_, rest, _ := strings.Cut(s.text, "EXPLORED := ")
			list, _, _ := strings.Cut(rest, "\n\n")
			for _, word := range strings.Fields(list) {
				name, _, _ := strings.Cut(word, "=")
				explored = append(explored, path.Clean(name))
			}
		}
	}
	var found []string
	for _, s := range all {
		if s.isGo() && s.isTest() && importName(s, module+"/internal/testseed") != "" && !under(s.path, "internal/testseed") && !slices.Contains(explored, s.dir()) {
			found = append(found, s.path+" draws random numbers and is not explored")
		}
	}
	return found
}
