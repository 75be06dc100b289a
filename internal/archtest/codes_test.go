package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codeTable is the one table of codes; codeTests are its own tests, which name all of them, and codeCells lists refusals of
// operations that do not exist yet.
const (
	codeTable = "internal/core/base/codes.go"
	codeTests = "internal/core/base/codes_test.go"
	codeCells = "internal/core/transitions.go"
)

// codeHome is the package of the table, which has the constructors of errors, too.
var codeHome = path.Dir(codeTable)

// awaited are the codes of the table that nothing raises yet, by the feature that will.
var awaited = map[string][]string{
	"a server that listens before it is ready": {"starting"},
}

func TestU25_LC22_every_code_is_in_the_table_and_raised_by_a_test(t *testing.T) {
	t.Parallel()
	holds(t, checkCodes, "callers match on codes: one that is raised and not in the table has no class and no status, and one that no test "+
		"meets may never be raised. A code counts as raised where production code names its constant other than to compare, and as "+
		"tested where a test expects it.")
}

func TestU25_LC22_codes_that_are_missing_or_untested_are_found(t *testing.T) {
	t.Parallel()
	table := "package core\ntype Code string\nconst (\n\tCodeA Code = \"a_b\"\n\tCodeB Code = \"b_c\"\n)\n"
	tested := "package core\nfunc T() { refused(CodeA); refused(CodeB) }\n"
	raise := func(text string) map[string]string {
		return map[string]string{codeTable: table, codeHome + "/a.go": "package core\n" + text, codeHome + "/a_test.go": tested}
	}
	check := func(all []source) []string { return codeFaults(all, map[string][]string{}) }
	finds(t, check, []example{
		{name: "raised here and there", files: map[string]string{
			codeTable: table, codeHome + "/a.go": "package core\nfunc f() { Errorf(CodeA) }\n",
			"internal/engine/a.go": "package engine\nvar x = T{code: " + path.Base(codeHome) + ".CodeB}\n", codeHome + "/a_test.go": tested,
		}},
		{name: "the server has names of its own", files: map[string]string{
			codeTable: table, "internal/wire/e.go": "package wire\nconst CodeMine = \"a_b\"\nvar e = &Error{Code: CodeMine}\n",
			"internal/server/e.go": "package server\nvar e = &wire.Error{Code: \"b_c\"}\n", "x_test.go": "package x\nvar want = []string{\"a_b\", \"b_c\"}\n",
		}},
		{name: "compared is not raised", files: raise("func f() bool { switch c { case CodeB: }; return c == CodeA && c != CodeB }\n"), want: []string{"a_b", "b_c"}},
		{name: "the table of cells raises nothing", files: map[string]string{
			codeTable: table, codeCells: "package core\nvar x = []Code{CodeA, CodeB}\n", codeHome + "/a_test.go": tested,
		}, want: []string{"a_b is raised by nothing", "b_c is raised by nothing"}},
		{name: "no test names it", files: map[string]string{
			codeTable: table, codeHome + "/a.go": "package core\nvar x = []Code{CodeA, CodeB}\n",
			codeHome + "/a_test.go": "package core\nfunc T() { refused(CodeA); Errorf(CodeB) }\n", codeTests: "package core\nvar all = []Code{CodeB}\n",
		}, want: []string{"b_c is expected by no test"}},
		{name: "not in the table", files: raise(
			"var x = []Code{CodeA, CodeB}\nconst CodeC = \"c_d\"\nfunc f() { Errorf(\"d_e\"); _ = Code(\"e_f\"); _ = Error{Code: \"f_g\"} }\n",
		), want: []string{"c_d", "d_e", "e_f", "f_g"}},
	})
	late := func(all []source) []string { return codeFaults(all, map[string][]string{"later": {"a_b", "z_z"}}) }
	finds(t, late, []example{{
		name: "awaited, and there", files: raise("var x = []Code{CodeA, CodeB}\n"),
		want: []string{"a_b is raised: it is no longer awaited", "z_z is awaited"},
	}})
}

func checkCodes(all []source) []string { return codeFaults(all, awaited) }

// codeUse is what the tree does with codes.
type codeUse struct {
	table    map[string]bool              // codes
	names    map[string]map[string]string // package -> constant -> code
	raised   map[string]bool
	expected map[string]bool
	faults   []string
}

func codeFaults(all []source, awaited map[string][]string) []string {
	u := &codeUse{table: map[string]bool{}, names: map[string]map[string]string{}, raised: map[string]bool{}, expected: map[string]bool{}}
	for _, s := range all {
		if s.isGo() && !s.isTest() && !s.foreign() {
			u.declare(s)
		}
	}
	for _, s := range all {
		if !s.isGo() || s.foreign() || slices.Contains([]string{codeTable, codeTests, codeCells}, s.path) || under(s.path, "internal/archtest") {
			continue
		}
		if s.isTest() {
			u.readTest(s)
		} else {
			u.readSource(s)
		}
	}
	later := map[string]bool{}
	for _, code := range slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(awaited))...))) {
		later[code] = true
		if !u.table[code] {
			u.faults = append(u.faults, code+" is awaited and not in the table")
		} else if u.raised[code] {
			u.faults = append(u.faults, code+" is raised: it is no longer awaited")
		}
	}
	for _, code := range slices.Sorted(maps.Keys(u.table)) {
		switch {
		case later[code]:
		case !u.raised[code]:
			u.faults = append(u.faults, code+" is raised by nothing, and no feature is awaited that will")
		case !u.expected[code]:
			u.faults = append(u.faults, code+" is expected by no test")
		}
	}
	return u.faults
}

// declare takes in the constants of a file that name codes.
func (u *codeUse) declare(s source) {
	for _, decl := range s.file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, "Code") {
				continue
			}
			code, ok := text(v.Values[0])
			if !ok {
				continue
			}
			if s.path == codeTable {
				u.table[code] = true
			}
			home := path.Base(s.dir())
			if u.names[home] == nil {
				u.names[home] = map[string]string{}
			}
			u.names[home][v.Names[0].Name] = code
		}
	}
}

// codeOf is the code that an expression names by a constant.
func (u *codeUse) codeOf(s source, n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.Ident:
		code, ok := u.names[path.Base(s.dir())][n.Name]
		return code, ok
	case *ast.SelectorExpr:
		if home, ok := n.X.(*ast.Ident); ok {
			code, ok := u.names[home.Name][n.Sel.Name]
			return code, ok
		}
	}
	return "", false
}

// readSource notes what production code raises.
func (u *codeUse) readSource(s source) {
	cases := map[ast.Node]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if cases[n] {
			return false
		}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if compares(n) && (u.isCode(s, n.X) || u.isCode(s, n.Y)) {
				return false
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				cases[e] = u.isCode(s, e)
			}
		case *ast.ValueSpec:
			u.mustKnow(s, n)
			return !strings.HasPrefix(n.Names[0].Name, "Code")
		case *ast.CallExpr:
			if len(n.Args) > 0 && makesError(s, n) {
				u.literal(s, n.Args[0])
			}
		case *ast.CompositeLit:
			if typeName(n.Type) == "Error" {
				u.literals(s, n)
			}
		}
		if code, ok := u.codeOf(s, n); ok {
			u.raised[code] = true
			return false
		}
		return true
	})
}

func (u *codeUse) isCode(s source, e ast.Expr) bool {
	_, ok := u.codeOf(s, e)
	return ok
}

// mustKnow finds a constant that names a code which is not in the table.
func (u *codeUse) mustKnow(s source, v *ast.ValueSpec) {
	if !strings.HasPrefix(v.Names[0].Name, "Code") || len(v.Values) != 1 {
		return
	}
	if code, ok := text(v.Values[0]); ok && !u.table[code] {
		u.faults = append(u.faults, fmt.Sprintf("%s: %s is not in the table", s.at(v), code))
	}
}

// literals takes in the code of an error that is written as a text.
func (u *codeUse) literals(s source, n *ast.CompositeLit) {
	for _, e := range n.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Code" {
				u.literal(s, pair.Value)
			}
		}
	}
}

func (u *codeUse) literal(s source, e ast.Expr) {
	code, ok := text(e)
	switch {
	case !ok:
	case u.table[code]:
		u.raised[code] = true
	default:
		u.faults = append(u.faults, fmt.Sprintf("%s: %s is not in the table", s.at(e), code))
	}
}

// readTest notes what tests expect: constants, except those with which a test makes an error itself, and texts where the
// constants are out of reach.
func (u *codeUse) readTest(s source) {
	inside := underAny(s.path, "internal/core", "internal/engine", "internal/store", "test")
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && typeName(call.Fun) == "Errorf" && len(call.Args) > 0 && u.isCode(s, call.Args[0]) {
			return false
		}
		if code, ok := u.codeOf(s, n); ok {
			u.expected[code] = true
		}
		if e, ok := n.(*ast.BasicLit); ok && !inside {
			if words, ok := text(e); ok {
				code, _, _ := strings.Cut(words, " ") // a test may expect the message too
				u.expected[strings.TrimSuffix(code, ":")] = true
			}
		}
		return true
	})
}

func compares(n *ast.BinaryExpr) bool { return n.Op == token.EQL || n.Op == token.NEQ }

// text is the value of a string literal.
func text(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

// makesError reports whether the first argument of a call is the code of an error, or a text that becomes one.
func makesError(s source, n *ast.CallExpr) bool {
	switch f := n.Fun.(type) {
	case *ast.Ident:
		return f.Name == "newError" || s.dir() == "internal/server" && f.Name == "refuse" || s.dir() == codeHome && (f.Name == "Errorf" || f.Name == "Code")
	case *ast.SelectorExpr:
		home, ok := f.X.(*ast.Ident)
		return ok && home.Name == path.Base(codeHome) && (f.Sel.Name == "Errorf" || f.Sel.Name == "Code")
	}
	return false
}

// typeName is the last part of a possibly qualified name.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
