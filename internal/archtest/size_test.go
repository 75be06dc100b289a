package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// The bounds of a file and of a function, in lines.
const (
	maxFile     = 600
	maxFunction = 80
)

// maxPackage bounds the files of a package, tests aside; wide has packages with a bound of their own.
const maxPackage = 60

// wide are packages of more files, with the most that they may have: core is one aggregate.
var wide = map[string]int{
	"internal/core": 105,
}

// long names files that may pass the bound, with the reason. Only data belongs here.
var long = map[string]string{}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	t.Parallel()
	holds(t, checkSize, fmt.Sprintf("a file holds one idea and a function one step: aim at 300 and 40 lines, past %d and %d split", maxFile, maxFunction))
}

func TestPackagesAreSmall(t *testing.T) {
	t.Parallel()
	holds(t, checkPackages, fmt.Sprintf("a reader keeps %d files in mind at most: split a package along its subjects. A bound in wide may only become smaller", maxPackage))
}

func TestLargePackagesAreFound(t *testing.T) {
	t.Parallel()
	files := func(dir string, n int) map[string]string {
		all := map[string]string{dir + "/a_test.go": "package a\n"}
		for i := range n {
			all[fmt.Sprintf("%s/a%d.go", dir, i)] = "package a\n"
		}
		return all
	}
	finds(t, checkPackages, []example{
		{name: "as many as may be", files: files("a", maxPackage)},
		{name: "one more", files: files("a", maxPackage+1), want: []string{"a has 61 files"}},
		{name: "a wide one", files: files("internal/core", wide["internal/core"])},
		{name: "one more than a wide one", files: files("internal/core", wide["internal/core"]+1), want: []string{"internal/core has 106 files, at most 105"}},
	})
}

func TestCoreHasAMap(t *testing.T) {
	t.Parallel()
	holds(t, checkCoreMap, "core is flat: doc.go says which files belong together, by the beginnings of their names")
	finds(t, checkCoreMap, []example{{
		name: "a file of a subject that is not mapped",
		files: map[string]string{
			"internal/core/doc.go": "// Package core has budgets.\n//\n//   - budget: budgets\npackage core\n", "internal/core/budget_book.go": "package core\n",
			"internal/core/quota.go": "package core\n", "internal/core/flow_test.go": "package core\n", "internal/core/base/id.go": "package base\n",
		},
		want: []string{"internal/core/quota.go"},
	}})
}

// checkPackages finds packages of too many files.
func checkPackages(all []source) []string {
	count := map[string]int{}
	for _, s := range all {
		if s.isGo() && !s.isTest() && !s.foreign() {
			count[s.dir()]++
		}
	}
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(count)) {
		most := max(maxPackage, wide[dir])
		if n := count[dir]; n > most {
			found = append(found, fmt.Sprintf("%s has %d files, at most %d", dir, n, most))
		}
	}
	return found
}

// checkCoreMap finds files of core whose subject does not stand in the list of doc.go.
func checkCoreMap(all []source) []string {
	var listed []string
	for _, s := range all {
		if s.path == "internal/core/doc.go" {
			for line := range strings.SplitSeq(s.file.Doc.Text(), "\n") {
				if line, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
					names, _, _ := strings.Cut(line, ":")
					listed = append(listed, strings.Split(names, ", ")...)
				}
			}
		}
	}
	var found []string
	for _, s := range all {
		if !s.isGo() || s.isTest() || s.dir() != "internal/core" || s.path == "internal/core/doc.go" {
			continue
		}
		name := strings.TrimSuffix(path.Base(s.path), ".go")
		if !slices.ContainsFunc(listed, func(subject string) bool { return name == subject || strings.HasPrefix(name, subject+"_") }) {
			found = append(found, s.path+" belongs to no subject in the list of doc.go")
		}
	}
	return found
}

func TestLongFilesStillExist(t *testing.T) {
	t.Parallel()
	holds(t, func(all []source) []string {
		left := map[string]bool{}
		for name := range long {
			left[name] = true
		}
		for _, s := range all {
			delete(left, s.path)
		}
		var found []string
		for name := range left {
			found = append(found, name+" is excused and does not exist")
		}
		return found
	}, "an excuse for a file that is gone hides the next one of that name")
}

func TestLongFilesAndFunctionsAreFound(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("\tf()\n", maxFunction)
	table := "\t_ = []int{\n" + strings.Repeat("\t\t1,\n", maxFunction) + "\t}\n"
	cases := "\t_ = []func(){func() {\n" + strings.Repeat("\t\tf()\n", maxFunction) + "\t}}\n"
	finds(t, checkSize, []example{
		{name: "within the bounds", files: map[string]string{"a/a.go": "package a\nfunc f() {\n" + body[:len(body)-2*len("\tf()\n")] + "}\n"}},
		{name: "a table is data", files: map[string]string{"a/a.go": "package a\nfunc f() {\n" + table + "}\n"}},
		{name: "one line too many", files: map[string]string{"a/a.go": "package a\nfunc f() {\n" + body[:len(body)-len("\tf()\n")] + "}\n"}, want: []string{"f has 81 lines"}},
		{name: "a table of functions is code", files: map[string]string{"a/a.go": "package a\nfunc f() {\n" + cases + "}\n"}, want: []string{"f has"}},
		{name: "a long file", files: map[string]string{"a/a.go": "package a\n" + strings.Repeat("//\n", maxFile)}, want: []string{"a/a.go has 601 lines"}},
	})
}

func checkSize(all []source) []string {
	var found []string
	for _, s := range all {
		if !s.isGo() {
			continue
		}
		if n := strings.Count(s.text, "\n"); n > maxFile && long[s.path] == "" {
			found = append(found, fmt.Sprintf("%s has %d lines", s.path, n))
		}
		for _, decl := range s.file.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok || d.Body == nil {
				continue
			}
			if n := lines(s, d) - dataLines(s, d.Body); n > maxFunction {
				found = append(found, fmt.Sprintf("%s: %s has %d lines", s.at(d), d.Name.Name, n))
			}
		}
	}
	return found
}

func lines(s source, n ast.Node) int { return s.line(int(n.End())) - s.line(int(n.Pos())) + 1 }

// dataLines counts the lines inside tables: lists and maps without a function in them.
func dataLines(s source, body ast.Node) int {
	sum := 0
	ast.Inspect(body, func(n ast.Node) bool {
		list, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch list.Type.(type) {
		case *ast.ArrayType, *ast.MapType:
		default:
			return true
		}
		if hasFunction(list) {
			return true
		}
		sum += lines(s, list) - 1
		return false
	})
	return sum
}

func hasFunction(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		_, is := n.(*ast.FuncLit)
		found = found || is
		return !found
	})
	return found
}
