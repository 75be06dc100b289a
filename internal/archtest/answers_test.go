package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

func TestNobodyReadsTheAnswerOfACommandThatFailed(t *testing.T) {
	t.Parallel()
	holds(t, checkAnswers, "a caller that gave up gets an error while its command goes on, and may be writing its answer: beside an error return a zero value, or use answered()")
}

func TestAnswersReadBesideAnErrorAreFound(t *testing.T) {
	t.Parallel()
	const head = "package engine\n"
	finds(t, checkAnswers, []example{
		{name: "zero values, answered, and functions that run no command", files: map[string]string{
			"internal/engine/a.go": head + "func f() (T, error) { if err := e.Do(ctx, cmd); err != nil { return T{}, err }; return cmd.answer, nil }\n" +
				"func g() (T, error) { err := e.Do(ctx, cmd); return answered(&cmd.answer, err) }\n" +
				"func h() (bool, error) { err := e.Do(ctx, cmd); return false, err }\n" +
				"func i() (T, error) { t, err := e.read(ctx); return t, err }\n" +
				"func j() (T, error) { err := e.Do(ctx, func() (T, error) { return x.answer, err }); return T{}, err }\n",
			"internal/engine/a_test.go": head + "func f() (T, error) { err := e.Do(ctx, cmd); return cmd.answer, err }\n",
		}},
		{name: "an answer beside an error", files: map[string]string{
			"internal/engine/a.go": head + "func f() (T, error) {\n\terr := e.Do(ctx, cmd)\n\treturn cmd.answer, err\n}\n" +
				"func g() (bool, error) {\n\terr := e.doAlone(ctx, cmd)\n\treturn taken, err\n}\n",
		}, want: []string{"a.go:4: f", "a.go:8: g"}},
		{name: "an answer that is read for a call, where there is no error", files: map[string]string{
			"internal/engine/a.go": head + "func f() (T, error) { err := e.Do(ctx, cmd); cmd.room.settled(err == nil && cmd.answer.Created, err); return answered(&cmd.answer, err) }\n" +
				"func g() error { err := e.Do(ctx, cmd); if err != nil { cmd.settled(none, err); return err }; cmd.settled(cmd.answer.Outcome, nil); return nil }\n" +
				"func h() error { return e.told(x.answer, err) }\n",
		}},
		{name: "an answer that is read for a call beside an error", files: map[string]string{
			"internal/engine/a.go": head + "func f() error {\n\terr := e.Do(ctx, cmd)\n\tcmd.settled(cmd.answer.Outcome, err)\n\treturn err\n}\n" +
				"func g() error {\n\terr := e.Do(ctx, cmd)\n\tcmd.room.settled(cmd.answer.Created && err == nil, err)\n\treturn err\n}\n",
		}, want: []string{"a.go:4: f", "a.go:9: g"}},
		{name: "through another function", files: map[string]string{
			"internal/engine/a.go": head + "func f() (T, error) {\n\terr := e.through(ctx, cmd)\n\treturn cmd.answer, err\n}\n",
			"internal/engine/b.go": head + "func (e *Engine) through(ctx context.Context) error { return e.further(ctx, cmd) }\nfunc (e *Engine) further(ctx context.Context) error { return e.Do(ctx, cmd) }\n",
		}, want: []string{"a.go:4: f"}},
	})
}

// checkAnswers finds returns of an error beside something that a command may still be writing, and calls that are given both, in functions
// of the engine that run commands, themselves or through functions that return nothing but an error.
func checkAnswers(all []source) (found []string) {
	type function struct {
		source
		*ast.FuncDecl
	}
	var functions []function
	for _, s := range all {
		if !s.isGo() || s.isTest() || !underAny(s.path, "internal/engine") {
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				functions = append(functions, function{s, f})
			}
		}
	}
	running := map[string]bool{"Do": true, "doAlone": true}
	for known := 0; known < len(running); {
		known = len(running)
		for _, f := range functions {
			if handsOn(f.FuncDecl) && callsAny(f.Body, running) {
				running[f.Name.Name] = true
			}
		}
	}
	for _, f := range functions {
		if !callsAny(f.Body, running) {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.ReturnStmt:
				if answersBesideError(n.Results) {
					found = append(found, f.at(n)+": "+f.Name.Name)
				}
			case *ast.CallExpr:
				if readsBesideError(n.Args) {
					found = append(found, f.at(n)+": "+f.Name.Name)
				}
			}
			return true
		})
	}
	return found
}

// handsOn reports whether a method of the engine or of a room is given a context and returns nothing but an error: whatever else it finds is in what it was
// given.
func handsOn(f *ast.FuncDecl) bool {
	if f.Recv == nil || f.Type.Results == nil || len(f.Type.Results.List) != 1 || len(f.Type.Params.List) == 0 {
		return false
	}
	receiver, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	of, isName := receiver.X.(*ast.Ident)
	result, isError := f.Type.Results.List[0].Type.(*ast.Ident)
	_, hasContext := f.Type.Params.List[0].Type.(*ast.SelectorExpr)
	return isName && isError && hasContext && of.IsExported() && result.Name == "error"
}

// callsAny reports whether one of the methods is called.
func callsAny(body ast.Node, methods map[string]bool) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && methods[sel.Sel.Name] {
				found = true
			}
		}
		return !found
	})
	return found
}

// answersBesideError tells of `return something, err`.
func answersBesideError(results []ast.Expr) bool {
	if len(results) < 2 {
		return false
	}
	last := len(results) - 1
	if err, ok := results[last].(*ast.Ident); !ok || err.Name == "nil" {
		return false
	}
	return slices.ContainsFunc(results[:last], func(x ast.Expr) bool {
		switch x := x.(type) {
		case *ast.CompositeLit:
			return len(x.Elts) > 0
		case *ast.BasicLit:
			return false
		case *ast.Ident:
			return !slices.Contains([]string{"nil", "true", "false"}, x.Name)
		}
		return true
	})
}

// readsBesideError tells of `settled(cmd.answer.Outcome, err)`: arguments that are read whether or not there is an error. What follows
// `err == nil &&` is read only where there is none, and an address is not read.
func readsBesideError(args []ast.Expr) bool {
	if len(args) < 2 {
		return false
	}
	last := len(args) - 1
	if err, ok := args[last].(*ast.Ident); !ok || err.Name != "err" {
		return false
	}
	return slices.ContainsFunc(args[:last], readsField)
}

func readsField(x ast.Expr) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			return n.Op != token.AND
		case *ast.BinaryExpr:
			return n.Op != token.LAND || !isNoError(leftmost(n))
		case *ast.SelectorExpr:
			found = true
		}
		return !found
	})
	return found
}

// leftmost is what a chain of && begins with.
func leftmost(x *ast.BinaryExpr) ast.Expr {
	if further, ok := x.X.(*ast.BinaryExpr); ok && further.Op == token.LAND {
		return leftmost(further)
	}
	return x.X
}

// isNoError tells of `err == nil`.
func isNoError(x ast.Expr) bool {
	compared, ok := x.(*ast.BinaryExpr)
	if !ok || compared.Op != token.EQL {
		return false
	}
	err, isName := compared.X.(*ast.Ident)
	return isName && err.Name == "err"
}
