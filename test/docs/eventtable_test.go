package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// eventTexts say when an event of a kind happens.
var eventTexts = map[string]string{
	"approval_link.created":       "A link for a decision was created; only operators can read its address.",
	"approval_link.decided":       "A person decided by a link.",
	"approval_link.revoked":       "A link was revoked before it was used.",
	"attempt.ended":               "An attempt ended and another follows: a retry, or a takeover.",
	"budget.approval_requested":   "Work reached a hard limit and waits for an approval to raise it.",
	"budget.closed":               "A budget was closed: it admits no work and refuses charges.",
	"budget.created":              "A budget was created.",
	"budget.deleted":              "A budget was deleted.",
	"budget.hard_breach":          "A hard limit was reached: a report or charge was refused, or exceeded what was left.",
	"budget.raised":               "An approval raised a limit until the next reset.",
	"budget.reopened":             "A closed budget was reopened.",
	"budget.reset":                "A budget was reset; the previous usage is kept as an epoch.",
	"budget.soft_breach":          "Usage exceeded a soft limit.",
	"budget.updated":              "The definition of a budget changed.",
	"bulk.finished":               "A bulk job finished or was stopped.",
	"bulk.started":                "A bulk job started.",
	"execution.blocked":           "It waits for a named cause.",
	"execution.cancel_requested":  "An operator cancelled it.",
	"execution.completed":         "It ended, with any outcome. Each run has exactly one.",
	"execution.delayed":           "It waits for a time.",
	"execution.deleted":           "An administrator deleted it. Removal by retention emits no event.",
	"execution.escalated":         "Its wait timed out, and it now waits for an operator.",
	"execution.held":              "An operator put it on hold.",
	"execution.hold_released":     "The hold was released.",
	"execution.priority_changed":  "Its priority changed.",
	"execution.ready":             "It can be claimed, after a wait.",
	"execution.replayed":          "It had ended and was reopened.",
	"execution.resumed":           "Its suspension ended; it can be claimed again.",
	"execution.retain_ended":      "It is no longer protected from retention.",
	"execution.retained":          "It is protected from retention and deletion.",
	"execution.submitted":         "It was created.",
	"execution.suspend_satisfied": "The condition of its wait was already met; it continues under its lease.",
	"execution.suspended":         "Its worker gave the lease back to wait for an external event.",
	"execution.tagged":            "Its tags changed.",
	"execution.waiting_children":  "Its worker gave the lease back to wait for its children.",
	"flow.cancel_requested":       "A flow was cancelled, or its cancel got a stronger policy.",
	"flow.cancelled":              "A cancelled flow ended; nothing is left to do.",
	"flow.completed":              "A flow ended, and no member counts as a failure.",
	"flow.created":                "A flow was created.",
	"flow.extended":               "Members or edges were added to a flow.",
	"flow.failed":                 "A flow ended, and at least one member counts as a failure.",
	"flow.deleted":                "An administrator deleted it with all its members. Removal by retention emits no event.",
	"flow.reopened":               "A member of an ended flow was replayed; the flow is open again.",
	"flow.sealed":                 "A flow was sealed: nothing more can be added.",
	"grant.ended":                 "A grant ended: it expired, was returned, or became void.",
	"grant.issued":                "It was granted to a worker, which claims it with a key.",
	"key.purged":                  "A signing key is past its grace period; its secret was erased, its kid stays reserved.",
	"key.revoked":                 "A signing key was revoked: all its tokens are invalid.",
	"key.rotated":                 "Another signing key became active; the previous one verifies until the end of its grace period.",
	"key.seeded":                  "The first signing key was installed.",
	"lane.changed":                "The settings of a lane changed.",
	"quota.changed":               "The settings of a quota changed; without new settings it was deleted.",
	"lease.acquired":              "A worker claimed it and starts or continues.",
	"lease.expired":               "The worker did not renew in time; another can take over.",
	"lease.released":              "The worker gave it back: at shutdown, or until a time.",
	"lease.revoked":               "An operator revoked the lease of the worker.",
	"signal.accepted":             "A waitpoint accepted a signal.",
	"sweep.quarantined":           "A row could not be processed; it was set aside and does not delay others.",
	"waitpoint.closed":            "A waitpoint accepts no more signals.",
	"waitpoint.created":           "A waitpoint was created.",
	"waitpoint.token_read":        "The token of a waitpoint was read.",
	"waitpoint.token_reissued":    "A waitpoint got a new token; the previous one is invalid.",
	"worker.dead":                 "An instance was not seen in time, or was marked dead.",
	"worker.draining":             "An instance started or stopped draining.",
	"worker.registered":           "An instance is new, came back, or has other settings.",
}

// dataField is a field of the data of an event.
type dataField struct {
	name, kind string
	optional   bool
	depth      int
}

// builders are the calls that write a field, with the type of what they write. Functions are found here by their unexported names.
var builders = map[string]dataField{
	"str": {}, "strIf": {optional: true}, "strs": {kind: "list"}, "raw": {kind: "JSON", optional: true}, "num": {kind: "number"},
	"moment": {kind: "time", optional: true}, "uuid": {kind: "id"}, "idIf": {kind: "id", optional: true}, "flag": {kind: "true or false"},
	"flagIf": {kind: "true", optional: true}, "open": {kind: "object"}, "addPayload": {kind: "object"},
}

// mapped are the types of fields that are written as a map.
var mapped = map[string]string{
	"total": "number", "done": "number", "failed": "number", "failures": "number", "filter": "JSON", "refused": "JSON", "next_try_at": "time",
}

var (
	eventKind  = regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)
	fieldConst = regexp.MustCompile(`^[fF]ield[A-Z]`)
)

// emitters reads from the code which events there are and what their data holds.
type emitters struct {
	names     map[string]string        // constant -> name of the field
	functions map[string]*ast.FuncDecl // by name; of those that write fields no two have the same
	all       []*ast.FuncDecl
}

// emitted are the kinds of events with their fields.
var emitted = sync.OnceValues(func() (map[string][]dataField, error) {
	e, err := readEmitters()
	if err != nil {
		return nil, err
	}
	return e.kinds(), nil
})

func readEmitters() (*emitters, error) {
	e := &emitters{names: map[string]string{}, functions: map[string]*ast.FuncDecl{}}
	for _, pattern := range []string{"internal/core/*.go", "internal/core/*/*.go", "internal/engine/*/*.go"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			e.declare(file)
		}
	}
	return e, nil
}

func (e *emitters) declare(file *ast.File) {
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			e.functions[inner(f.Name.Name)] = f
			e.all = append(e.all, f)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			key, isName := pair.Key.(*ast.Ident)
			value, isText := pair.Value.(*ast.BasicLit)
			if isName && isText && fieldConst.MatchString(key.Name) {
				e.names[inner(key.Name)], _ = strconv.Unquote(value.Value)
			}
		}
		return true
	})
}

// kinds are the kinds of events with their fields. A function that is handed the kind tells the fields, its callers the kinds.
func (e *emitters) kinds() map[string][]dataField {
	all := map[string][]dataField{}
	for _, f := range e.all {
		changes := map[*ast.KeyValueExpr]bool{} // that emitKey is called with
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				for _, kind := range kindsIn(n) {
					changes[kind] = true
					e.add(all, kind.Value, e.functions["emitKey"])
				}
				e.readCall(all, f, n)
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Kind" && !changes[n] {
					e.add(all, n.Value, f)
				}
			}
			return true
		})
	}
	return all
}

// kindsIn are the kinds of the changes of signing keys that a call emits.
func kindsIn(call *ast.CallExpr) (kinds []*ast.KeyValueExpr) {
	if calledName(call) != "emitKey" {
		return nil
	}
	for _, arg := range call.Args {
		change, ok := arg.(*ast.CompositeLit)
		if !ok {
			continue
		}
		for _, field := range change.Elts {
			if pair, ok := field.(*ast.KeyValueExpr); ok && fmt.Sprint(pair.Key) == "Kind" {
				kinds = append(kinds, pair)
			}
		}
	}
	return kinds
}

// readCall looks for a kind among the arguments of a call. The data is made by a call beside it, by the callee, or by the caller.
func (e *emitters) readCall(all map[string][]dataField, caller *ast.FuncDecl, call *ast.CallExpr) {
	callee := calledName(call)
	told, handsOn := handedOn[callee]
	if !handsOn && !strings.HasPrefix(callee, "emit") && !strings.HasSuffix(callee, "Event") {
		return
	}
	for i, arg := range call.Args {
		home := e.functions[callee]
		switch {
		case told != "":
			home = e.functions[told]
		case handsOn || callee == "emit" || callee == "emitFor":
			home = caller
			if i+1 < len(call.Args) {
				if maker, ok := call.Args[i+1].(*ast.CallExpr); ok && calledName(maker) != "done" {
					home = e.functions[calledName(maker)]
				}
			}
		}
		e.add(all, arg, home)
	}
}

// handedOn are functions that hand a kind on, by the one that tells the fields; "": their caller does.
var handedOn = map[string]string{"turn": "emitChange", "revise": "emitChange", "emitBreach": "", "envelope": ""}

// composed are the kinds whose name is a beginning and a state, both as they stand in the code.
var composed = map[string][]string{`"flow."`: {`"flow.completed"`, `"flow.failed"`, `"flow.cancelled"`}}

// add files the fields of a function under a kind. Where several functions tell of one kind, what only some have is optional.
func (e *emitters) add(all map[string][]dataField, kind ast.Expr, home *ast.FuncDecl) {
	if joined, ok := kind.(*ast.BinaryExpr); ok {
		if text, ok := joined.X.(*ast.BasicLit); ok {
			for _, whole := range composed[text.Value] {
				e.add(all, &ast.BasicLit{Value: whole}, home)
			}
		}
		return
	}
	text, ok := kind.(*ast.BasicLit)
	if !ok || home == nil {
		return
	}
	name, err := strconv.Unquote(text.Value)
	if err != nil || !eventKind.MatchString(name) {
		return
	}
	fields := e.fieldsOf(home)
	if before, again := all[name]; again {
		fields = merge(before, fields)
	}
	all[name] = fields
}

func merge(a, b []dataField) []dataField {
	longer, shorter := a, b
	if len(b) > len(a) {
		longer, shorter = b, a
	}
	var all []dataField
	for _, f := range longer {
		f.optional = f.optional || f.depth == 0 && !slices.ContainsFunc(shorter, func(o dataField) bool { return o.name == f.name && o.depth == f.depth })
		all = append(all, f)
	}
	return all
}

// fieldsOf are the fields that a function writes, in order.
func (e *emitters) fieldsOf(function *ast.FuncDecl) []dataField {
	w := fieldWalk{e: e}
	ast.Walk(&w, function.Body)
	return w.fields
}

// fieldWalk goes through a function in order.
type fieldWalk struct {
	e      *emitters
	fields []dataField
	depth  int
	ifs    int
}

// Visit reads calls of a builder, and maps that become JSON. What stands in an if, or behind one that returns, is optional.
func (w *fieldWalk) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.IfStmt:
		inner := &fieldWalk{e: w.e, depth: w.depth, ifs: w.ifs + 1}
		ast.Walk(inner, n.Body)
		w.fields = append(w.fields, inner.fields...)
		if _, returns := n.Body.List[len(n.Body.List)-1].(*ast.ReturnStmt); returns && len(w.fields) > 0 {
			w.ifs++
		}
		return nil
	case *ast.CallExpr:
		w.call(n)
	case *ast.CompositeLit:
		if kind, ok := n.Type.(*ast.MapType); ok && fmt.Sprint(kind.Value) == "any" {
			for _, pair := range n.Elts {
				if text, ok := pair.(*ast.KeyValueExpr).Key.(*ast.BasicLit); ok {
					name, _ := strconv.Unquote(text.Value)
					w.write(dataField{name: name, kind: mapped[name]})
				}
			}
		}
	}
	return w
}

func (w *fieldWalk) call(n *ast.CallExpr) {
	name := calledName(n)
	if name == "shut" {
		w.depth--
		return
	}
	if inlined := name == "addExit" || name == "data" && len(n.Args) == 0; inlined && w.e.functions[name] != nil {
		for _, f := range w.e.fieldsOf(w.e.functions[name]) {
			f.depth += w.depth
			w.write(f)
		}
		return
	}
	f, known := builders[name]
	if !known {
		return
	}
	for _, arg := range n.Args {
		if f.name = w.e.names[inner(constantName(arg))]; f.name != "" {
			break
		}
	}
	if f.name == "" {
		return
	}
	f.depth += w.depth
	w.write(f)
	switch name {
	case "open":
		w.depth++
	case "addPayload":
		w.write(dataField{name: "size", kind: "number", depth: w.depth + 1})
		w.write(dataField{name: "content_type", depth: w.depth + 1})
	}
}

func (w *fieldWalk) write(f dataField) {
	f.optional = f.optional || w.ifs > 0 && f.depth == 0
	w.fields = append(w.fields, f)
}

// calledName is the name of a called function, as it is in its own package.
func calledName(n *ast.CallExpr) string { return inner(constantName(n.Fun)) }

// constantName is the last part of a name, of this package or another; "" if the expression is none.
func constantName(n ast.Expr) string {
	switch f := n.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// inner is a name as if it was not exported.
func inner(name string) string {
	n := strings.IndexFunc(name, unicode.IsLower)
	switch {
	case n < 0:
		n = len(name)
	case n > 1: // the last capital begins the next word
		n--
	}
	return strings.ToLower(name[:n]) + name[n:]
}

func TestU264_fields_of_events_are_read_from_the_code(t *testing.T) {
	t.Parallel()
	e := &emitters{names: map[string]string{}, functions: map[string]*ast.FuncDecl{}}
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
var names = [...]string{fieldA: "a_b", fieldC: "c", fieldD: "d", fieldE: "e"}
func (x *X) emitOne(fx *Effects) {
	o.str(fieldA, "")
	if x.hm {
		o.open(fieldC)
		o.num(fieldD, 1)
		o.shut()
	}
	if x.over {
		x.emit(fx, "thing.one", &o)
		return
	}
	o.flag(fieldE, true)
	x.emit(fx, "thing.one", &o)
}
func (x *X) emitAny(fx *Effects, kind string) { o.moment(fieldA, 1); x.emit(fx, kind, &o) }
func caller() { x.emitAny(fx, "thing.two") }
func (u *unit) jobEvent(kind string) { f(map[string]any{"c": 1}) }
func other() { u.jobEvent("thing.three") }
func (x *X) emitFour(fx *Effects) { o.Num(data.FieldD, 1); addPayload(&o, data.FieldC, p); x.emit(fx, "thing.four", &o) }
func (fx *Effects) EmitKey(c Change) { o.Str(data.FieldE, c.Kid); fx.add(Event{Kind: c.Kind}) }
func seed(fx Log) { o.Num(fieldD, 1); fx.EmitKey(keys.Change{Kind: "key.five", Kid: "k"}) }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	e.declare(file)
	kinds := e.kinds()
	for kind, want := range map[string]string{
		"thing.one": "`a_b`, `c`? {`d` number}, `e`? true or false", "thing.two": "`a_b`? time", "thing.three": "`c`",
		"thing.four": "`d` number, `c` {`size` number, `content_type`}", "key.five": "`e`",
	} {
		if got := fieldList(kinds[kind]); got != want {
			t.Errorf("%s has %s, want %s", kind, got, want)
		}
	}
	if len(kinds) != 5 {
		t.Errorf("%v", kinds)
	}
}
