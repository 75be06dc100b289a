package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"testing"
)

// The bounds of the root package: what a person reads who wants to know what there is. They may only shrink.
const (
	rootFiles       = 45
	rootIdentifiers = 150 // as go doc lists them: functions, types, and groups of constants and variables
)

func TestTheRootPackageCanBeReadInOneSitting(t *testing.T) {
	t.Parallel()
	holds(t, checkSurface(rootFiles, rootIdentifiers), "values that few programs name belong to api, calls of operators to ops, the worker protocol to workapi")
}

func TestARootPackageThatGrowsIsFound(t *testing.T) {
	t.Parallel()
	finds(t, checkSurface(2, 4), []example{
		{name: "within the bounds", files: map[string]string{
			"a.go": "package p\nconst (\n\tA = 1\n\tB = 2\n)\ntype T int\nfunc F() {}\nfunc (T) M() {}\nfunc f() {}\n", "b.go": "package p\nvar V = 1\n",
			"b_test.go": "package p\nfunc G() {}\nfunc H() {}\n", "api/a.go": "package api\ntype (\n\tA int\n\tB int\n\tC int\n\tD int\n\tE int\n)\n",
		}},
		{name: "too many files", files: map[string]string{"a.go": "package p\n", "b.go": "package p\n", "c.go": "package p\n"}, want: []string{"3 files"}},
		{name: "too many identifiers", files: map[string]string{"a.go": "package p\ntype (\n\tA int\n\tB int\n)\nfunc F() {}\nvar V = 1\nconst C = 1\n"}, want: []string{"5 identifiers"}},
	})
}

func checkSurface(mostFiles, mostIdentifiers int) checker {
	return func(all []source) (found []string) {
		files, identifiers := 0, 0
		for _, s := range all {
			if !s.isGo() || s.isTest() || s.dir() != "." {
				continue
			}
			files++
			for _, d := range s.file.Decls {
				identifiers += exportedIn(d)
			}
		}
		if files > mostFiles {
			found = append(found, fmt.Sprintf("the root package has %d files, at most %d", files, mostFiles))
		}
		if identifiers > mostIdentifiers {
			found = append(found, fmt.Sprintf("the root package has %d identifiers, at most %d", identifiers, mostIdentifiers))
		}
		return found
	}
}

// exportedIn counts what a declaration exports: each function and type, a group of constants or variables once.
func exportedIn(d ast.Decl) (n int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() {
			return 1
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					n++
				}
			case *ast.ValueSpec:
				if ast.IsExported(spec.Names[0].Name) {
					n++
				}
			}
		}
		if d.Tok == token.CONST || d.Tok == token.VAR {
			n = min(n, 1)
		}
	}
	return n
}
