package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageHasAComment(t *testing.T) {
	t.Parallel()
	holds(t, checkPackageComments, "a reader finds the room by its name and its comment: what it is and what it must not know")
}

func TestExportedIdentifiersAreDocumented(t *testing.T) {
	t.Parallel()
	holds(t, checkExportedComments, "what is exported is promised: the comment states defaults, zero value and error codes")
}

func TestPackagesWithoutACommentAreFound(t *testing.T) {
	t.Parallel()
	finds(t, checkPackageComments, []example{
		{name: "one comment a package is enough", files: map[string]string{
			"a/a.go": "// Package a is.\npackage a", "a/b.go": "package a", "a/b_test.go": "package a_test",
			"cmd/x/main.go": "// Command x is.\npackage main", "t/t_test.go": "// Package t is.\npackage t",
		}},
		{name: "none", files: map[string]string{"a/a.go": "package a"}, want: []string{"a has no package comment"}},
		{name: "one that does not name the package", files: map[string]string{"a/a.go": "// All of it.\npackage a"}, want: []string{"Package a"}},
	})
}

func TestExportedIdentifiersWithoutACommentAreFound(t *testing.T) {
	t.Parallel()
	finds(t, checkExportedComments, []example{
		{name: "documented, hidden or not promised", files: map[string]string{
			"a/a.go": "package a\n// T is.\ntype T struct{}\n// M does.\nfunc (T) M() {}\ntype u int\nfunc (u) M() {}\n" +
				"// All of them.\nconst (\nA = 1\nB = 2\n)\nconst (\n// C is.\nC = 1\nD = 2 // D is.\n)\nvar _ = 1\nfunc f() {}\n",
			"a/a_test.go":   "package a\nfunc TestX() {}\n",
			"cmd/x/main.go": "package main\ntype T int\n",
		}},
		{name: "each kind without", files: map[string]string{
			"a/a.go": "package a\ntype T[X any] struct{}\nfunc (*T[X]) M() {}\nfunc F() {}\nconst (\nA = 1\n)\nvar V = 1\n",
		}, want: []string{"a/a.go:2: T ", "a/a.go:3: M ", "a/a.go:4: F ", "a/a.go:6: A ", "a/a.go:8: V "}},
	})
}

func checkPackageComments(all []source) []string {
	documented := map[string]bool{}
	var dirs []string
	names := map[string]string{}
	for _, s := range all {
		if !s.isGo() {
			continue
		}
		if _, seen := documented[s.dir()]; !seen {
			documented[s.dir()] = false
			dirs = append(dirs, s.dir())
		}
		names[s.dir()] = strings.TrimSuffix(s.file.Name.Name, "_test")
		text := s.file.Doc.Text()
		if strings.HasPrefix(text, "Package "+names[s.dir()]+" ") || s.isMain() && strings.HasPrefix(text, "Command ") {
			documented[s.dir()] = true
		}
	}
	var found []string
	for _, dir := range dirs {
		if !documented[dir] {
			found = append(found, dir+" has no package comment that begins with \"Package "+names[dir]+"\" (\"Command\" for a program)")
		}
	}
	return found
}

func checkExportedComments(all []source) []string {
	var found []string
	for _, s := range all {
		if !s.isGo() || s.isTest() || s.isMain() {
			continue
		}
		report := func(id *ast.Ident) { found = append(found, s.at(id)+": "+id.Name+" is exported and has no comment") }
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					report(d.Name)
				}
			case *ast.GenDecl:
				undocumented(d, report)
			}
		}
	}
	return found
}

// exportedReceiver reports whether a function belongs to no type or to an exported one.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

// undocumented reports exported names of a declaration. A comment on a group of constants, variables or aliases covers the group.
func undocumented(d *ast.GenDecl, report func(*ast.Ident)) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			covered := d.Doc != nil && (d.Lparen == token.NoPos || s.Assign != token.NoPos)
			if s.Name.IsExported() && s.Doc == nil && !covered {
				report(s.Name)
			}
		case *ast.ValueSpec:
			if d.Doc != nil || s.Doc != nil || s.Comment != nil {
				continue
			}
			if i := slices.IndexFunc(s.Names, (*ast.Ident).IsExported); i >= 0 {
				report(s.Names[i])
			}
		}
	}
}
