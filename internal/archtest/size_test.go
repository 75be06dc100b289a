package archtest

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// The bounds of a file and of a function, in lines.
const (
	maxFile     = 600
	maxFunction = 80
)

// long names files that may pass the bound, with the reason. Only data belongs here.
var long = map[string]string{}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	t.Parallel()
	holds(t, checkSize, fmt.Sprintf("a file holds one idea and a function one step: aim at 300 and 40 lines, past %d and %d split", maxFile, maxFunction))
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
