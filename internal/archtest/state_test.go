package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestThereIsNoPackageLevelState(t *testing.T) {
	t.Parallel()
	holds(t, checkState, "importing starts nothing and two engines in one process share nothing: state belongs to a value that somebody made; "+
		"package-level variables are tables that are never assigned to")
}

func TestPackageLevelStateIsFound(t *testing.T) {
	t.Parallel()
	finds(t, checkState, []example{
		{name: "tables, errors, assertions, embedded files", files: map[string]string{
			"a/a.go": "package a\nvar names = []string{\"x\"}\nvar ErrX = errors.New(\"x\")\nvar _ Reader = (*T)(nil)\n" +
				"//go:embed x.sql\nvar text string\nvar (\n\t//go:embed *.sql\n\tfiles embed.FS\n)\nvar n = 1\n" +
				"func f() { n := 2; n = 3; _ = n }\nfunc g(n int) { n++ }\n",
			"a/a_test.go": "package a\nvar seen int\nfunc init() {}\n",
		}},
		{name: "init", files: map[string]string{"a/a.go": "package a\nfunc init() {}\n"}, want: []string{"a/a.go:2: init"}},
		{name: "no value, an empty container, a lock", files: map[string]string{
			"a/a.go": "package a\nvar cache map[string]int\nvar all = make([]int, 3)\nvar one = new(T)\nvar mu = sync.Mutex{}\nvar p = &atomic.Int64{}\n",
		}, want: []string{"cache", "all", "one", "mu", "p"}},
		{name: "assigned to in another file", files: map[string]string{
			"a/a.go": "package a\nvar names = map[int]string{}\nvar n = 1\nvar t = T{}\n",
			"a/b.go": "package a\nfunc f() { names[1] = \"x\" }\nfunc g() { n++ }\nfunc h() { t.x = 1 }\n",
			"b/b.go": "package b\nfunc f() { n = 1 }\n",
		}, want: []string{"a/b.go:2: names", "a/b.go:3: n", "a/b.go:4: t"}},
	})
}

func checkState(all []source) []string {
	var found []string
	vars := map[string][]string{} // directory -> names of package-level variables
	for _, s := range all {
		if !s.isGo() || s.isTest() {
			continue
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					found = append(found, s.at(d)+": init runs for everybody who imports this")
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok || d.Tok != token.VAR {
						continue
					}
					vars[s.dir()] = append(vars[s.dir()], namesOf(v)...)
					if !embedded(d, v) && mutable(v) {
						found = append(found, s.at(v)+": "+v.Names[0].Name+" is state of the package")
					}
				}
			}
		}
	}
	for _, s := range all {
		if s.isGo() && !s.isTest() {
			found = append(found, assignments(s, vars[s.dir()])...)
		}
	}
	return found
}

// namesOf lists the variables of a declaration; _ is none.
func namesOf(v *ast.ValueSpec) []string {
	var names []string
	for _, id := range v.Names {
		if id.Name != "_" {
			names = append(names, id.Name)
		}
	}
	return names
}

// embedded reports whether the compiler fills the variable.
func embedded(d *ast.GenDecl, v *ast.ValueSpec) bool {
	for _, group := range []*ast.CommentGroup{d.Doc, v.Doc} {
		if group == nil {
			continue
		}
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// mutable reports whether a variable can only be of use if somebody writes to it.
func mutable(v *ast.ValueSpec) bool {
	if len(v.Values) == 0 {
		return true
	}
	return slices.ContainsFunc(v.Values, func(value ast.Expr) bool {
		if address, ok := value.(*ast.UnaryExpr); ok {
			value = address.X
		}
		switch e := value.(type) {
		case *ast.CallExpr:
			f, ok := e.Fun.(*ast.Ident)
			return ok && (f.Name == "make" || f.Name == "new")
		case *ast.CompositeLit:
			sel, ok := e.Type.(*ast.SelectorExpr)
			if !ok {
				return false
			}
			pkg, ok := sel.X.(*ast.Ident)
			return ok && (pkg.Name == "sync" || pkg.Name == "atomic")
		}
		return false
	})
}

// assignments finds writes to the variables. A function that declares the name itself is passed over.
func assignments(s source, vars []string) []string {
	var found []string
	for _, decl := range s.file.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		own := declared(d)
		report := func(target ast.Expr) {
			if id := base(target); id != nil && slices.Contains(vars, id.Name) && !own[id.Name] {
				found = append(found, s.at(id)+": "+id.Name+" is a package-level variable and is assigned to")
			}
		}
		ast.Inspect(d.Body, func(n ast.Node) bool {
			switch stmt := n.(type) {
			case *ast.AssignStmt:
				if stmt.Tok == token.DEFINE {
					break
				}
				for _, target := range stmt.Lhs {
					report(target)
				}
			case *ast.IncDecStmt:
				report(stmt.X)
			}
			return true
		})
	}
	return found
}

// base is the variable at the root of an assignable expression.
func base(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// declared collects the names that a function declares: parameters, results, receiver, variables, loop variables.
func declared(d *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	add := func(list ...ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok {
				names[id.Name] = true
			}
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Field:
			for _, id := range x.Names {
				add(id)
			}
		case *ast.AssignStmt:
			if x.Tok == token.DEFINE {
				add(x.Lhs...)
			}
		case *ast.RangeStmt:
			if x.Tok == token.DEFINE {
				add(x.Key, x.Value)
			}
		case *ast.ValueSpec:
			for _, id := range x.Names {
				add(id)
			}
		}
		return true
	})
	return names
}
