package archtest

import (
	"go/ast"
	"go/printer"
	"slices"
	"strings"
	"testing"
)

func TestNothingWaitsForWhatPanicked(t *testing.T) {
	t.Parallel()
	holds(t, checkPanics, "a panic in the engine is contained, and must leave no mutex locked and no goroutine without somebody who recovers: "+
		"Lock is followed by a deferred Unlock, and every goroutine runs below Guard, KeepRunning or answering")
}

func TestMutexesAndGoroutinesThatAPanicWouldBreakAreFound(t *testing.T) {
	t.Parallel()
	const head = "package engine\n"
	finds(t, checkPanics, []example{
		{name: "deferred, and given up for a while", files: map[string]string{
			"internal/engine/a.go": head + "func f() { c.mu.Lock(); defer c.mu.Unlock(); c.mu.Unlock(); g(); c.mu.Lock() }\n" +
				"func g() { c.mu.Unlock(); defer c.mu.Lock(); h() }\nfunc h() { e.wg.Go(func() { _ = e.Guard(inLog, f) }) }\n",
			"internal/engine/a_test.go": head + "func f() { mu.Lock(); g(); mu.Unlock(); go g() }\n",
			"internal/other/a.go":       "package other\nfunc f() { mu.Lock(); g(); mu.Unlock() }\n",
		}},
		{name: "unlocked without defer", files: map[string]string{
			"internal/engine/a.go": head + "func f() {\n\tc.mu.Lock()\n\tg()\n\tc.mu.Unlock()\n}\nfunc g() {\n\tc.mu.RLock()\n\tdefer d.mu.RUnlock()\n}\n",
		}, want: []string{"a.go:3: c.mu.Lock", "a.go:8: c.mu.RLock"}},
		{name: "goroutines", files: map[string]string{
			"internal/engine/a.go": head + "func f() {\n\tgo g()\n\tgo func() { g() }()\n\te.loops.Go(func() { g() })\n}\n",
		}, want: []string{"a.go:3: ", "a.go:4: ", "a.go:5: "}},
	})
}

// harmless are the goroutines that run nothing which could panic, by file and function.
var harmless = []string{"internal/engine/txn/engine.go Close"} // waits for all others

func checkPanics(all []source) (found []string) {
	for _, s := range all {
		if !s.isGo() || s.isTest() || !underAny(s.path, "internal/engine") {
			continue
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BlockStmt:
					found = append(found, lockings(s, n.List)...)
				case *ast.CaseClause:
					found = append(found, lockings(s, n.Body)...)
				case *ast.CommClause:
					found = append(found, lockings(s, n.Body)...)
				case *ast.GoStmt:
					found = append(found, goroutine(s, f, n, n.Call)...)
				case *ast.CallExpr:
					if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" {
						found = append(found, goroutine(s, f, n, n)...)
					}
				}
				return true
			})
		}
	}
	return found
}

// lockings finds the mutexes that some statements lock without deferring that they are unlocked.
func lockings(s source, list []ast.Stmt) (found []string) {
	released := map[string]bool{}
	for i, stmt := range list {
		of, verb := mutexCall(s, stmt)
		switch verb {
		case "Unlock", "RUnlock":
			released[of] = true
		case "Lock", "RLock":
			if released[of] || i+1 < len(list) && defersUnlock(s, list[i+1], of) {
				continue
			}
			found = append(found, s.at(stmt)+": "+of+"."+verb+" is not followed by a deferred call that unlocks it")
		}
	}
	return found
}

// mutexCall is the mutex and the method of a statement that calls it; a deferred call is none.
func mutexCall(s source, stmt ast.Stmt) (of, verb string) {
	e, ok := stmt.(*ast.ExprStmt)
	if !ok {
		return "", ""
	}
	return methodOf(s, e.X)
}

func defersUnlock(s source, stmt ast.Stmt, of string) bool {
	d, ok := stmt.(*ast.DeferStmt)
	if !ok {
		return false
	}
	other, verb := methodOf(s, d.Call)
	return other == of && (verb == "Unlock" || verb == "RUnlock")
}

func methodOf(s source, e ast.Expr) (of, verb string) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return "", ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	return written(s, sel.X), sel.Sel.Name
}

// goroutine finds a goroutine whose panics are not recovered.
func goroutine(s source, in *ast.FuncDecl, at ast.Node, call *ast.CallExpr) []string {
	text := written(s, call)
	for _, guard := range []string{"Guard(", "KeepRunning(", "answering("} {
		if strings.Contains(text, guard) {
			return nil
		}
	}
	if slices.Contains(harmless, s.path+" "+in.Name.Name) {
		return nil
	}
	return []string{s.at(at) + ": a panic in this goroutine would end the process"}
}

// written is the source of a node.
func written(s source, n ast.Node) string {
	var text strings.Builder
	if err := printer.Fprint(&text, s.fset, n); err != nil {
		return ""
	}
	return text.String()
}
