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
)

// eventTexts say when an event of a kind happens.
var eventTexts = map[string]string{
	"approval_link.created":       "Somebody was given a link to decide by; its address is shown to operators alone.",
	"approval_link.decided":       "Somebody has decided by a link.",
	"approval_link.revoked":       "A link was withdrawn before anybody decided by it.",
	"attempt.ended":               "An attempt has ended and another follows: a retry, or a takeover.",
	"budget.approval_requested":   "Work has reached a hard limit and waits for somebody who raises it or says no.",
	"budget.closed":               "A budget admits nobody and refuses charges.",
	"budget.created":              "A budget exists.",
	"budget.deleted":              "A budget is gone.",
	"budget.hard_breach":          "A hard limit was reached: a report or charge was refused, or was more than the limit had left.",
	"budget.raised":               "An approval has raised a limit until the next reset.",
	"budget.reopened":             "A closed budget admits again.",
	"budget.reset":                "A budget has begun anew; what was used is kept as an epoch.",
	"budget.soft_breach":          "What is used has passed a soft limit.",
	"budget.updated":              "A budget has another definition.",
	"bulk.finished":               "A bulk job is done or was stopped.",
	"bulk.started":                "A bulk job has begun.",
	"execution.blocked":           "It waits for a named cause.",
	"execution.cancel_requested":  "An operator has cancelled it.",
	"execution.completed":         "It has ended, however it ended. Each run has exactly one.",
	"execution.delayed":           "It waits for a moment.",
	"execution.deleted":           "An administrator has deleted it. Retention removes without an event.",
	"execution.escalated":         "Its time to wait is over, and it waits for an operator instead.",
	"execution.held":              "An operator keeps it from starting.",
	"execution.hold_released":     "The hold is over.",
	"execution.priority_changed":  "Its priority is another.",
	"execution.ready":             "It may be claimed, after it had to wait.",
	"execution.replayed":          "A finished one was opened again.",
	"execution.resumed":           "Its suspension is over; it may be claimed again.",
	"execution.retain_ended":      "It is no longer kept from retention.",
	"execution.retained":          "It is kept from retention and deletion.",
	"execution.submitted":         "It exists.",
	"execution.suspend_satisfied": "What it would have waited for had happened already; it goes on with its lease.",
	"execution.suspended":         "Its worker gave the lease back until something outside has happened.",
	"execution.tagged":            "Some of its tags are others.",
	"execution.waiting_children":  "Its worker gave the lease back until its children have ended.",
	"flow.cancel_requested":       "Somebody has cancelled a flow, or cancels it by a stronger policy.",
	"flow.cancelled":              "A flow has ended: it was cancelled, and nothing is left to do.",
	"flow.completed":              "A flow has ended, and no member counts as a failure.",
	"flow.created":                "A flow exists.",
	"flow.extended":               "A flow has more members or edges.",
	"flow.failed":                 "A flow has ended, and at least one member counts as a failure.",
	"flow.deleted":                "An administrator has deleted it with all its members. Retention removes without an event.",
	"flow.reopened":               "A member of an ended flow was replayed; the flow is open again.",
	"flow.sealed":                 "Nothing more comes to a flow.",
	"grant.ended":                 "A promise to a worker is over: it expired, was returned, or is void.",
	"grant.issued":                "It is promised to a worker, who claims it with a key.",
	"key.purged":                  "A signing key is past its time; its secret is gone, its kid stays taken.",
	"key.revoked":                 "A signing key was revoked: every token of it is dead.",
	"key.rotated":                 "Another signing key is active; the former one verifies until a moment.",
	"key.seeded":                  "The first signing key was installed.",
	"lane.changed":                "A lane has other settings.",
	"quota.changed":               "A quota has other settings; without new ones it is gone.",
	"lease.acquired":              "A worker has claimed it and begins or goes on.",
	"lease.expired":               "The worker did not renew in time; the work can be taken over.",
	"lease.released":              "The worker gave it back: at shutdown, or until a moment.",
	"lease.revoked":               "An operator took it away from the worker.",
	"signal.accepted":             "A signal was taken at a waitpoint.",
	"sweep.quarantined":           "A row cannot be handled; it was set aside and delays nobody.",
	"waitpoint.closed":            "A waitpoint takes no more signals.",
	"waitpoint.created":           "A waitpoint exists.",
	"waitpoint.token_read":        "Somebody was shown the token of a waitpoint.",
	"waitpoint.token_reissued":    "A waitpoint has another token; the former one is dead.",
	"worker.dead":                 "An instance was not seen in time, or was marked dead.",
	"worker.draining":             "An instance is to finish what it has, or no longer.",
	"worker.registered":           "An instance is new, came back, or has other settings.",
}

// dataField is a field of the data of an event.
type dataField struct {
	name, kind string
	optional   bool
	depth      int
}

// builders are the calls that write a field, with the type of what they write.
var builders = map[string]dataField{
	"str": {}, "strIf": {optional: true}, "strs": {kind: "list"}, "raw": {kind: "JSON", optional: true}, "num": {kind: "number"},
	"moment": {kind: "time", optional: true}, "uuid": {kind: "id"}, "idIf": {kind: "id", optional: true}, "flag": {kind: "true or false"},
	"flagIf": {kind: "true", optional: true}, "open": {kind: "object"}, "payload": {kind: "object"},
}

// mapped are the types of fields that are written as a map.
var mapped = map[string]string{
	"total": "number", "done": "number", "failed": "number", "failures": "number", "filter": "JSON", "refused": "JSON", "next_try_at": "time",
}

var (
	eventKind  = regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)
	fieldConst = regexp.MustCompile(`^field[A-Z]`)
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
	for _, dir := range []string{"internal/core", "internal/engine"} {
		found, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
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
			e.functions[f.Name.Name] = f
			e.all = append(e.all, f)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			key, isName := pair.Key.(*ast.Ident)
			value, isText := pair.Value.(*ast.BasicLit)
			if isName && isText && fieldConst.MatchString(key.Name) {
				e.names[key.Name], _ = strconv.Unquote(value.Value)
			}
		}
		return true
	})
}

// kinds are the kinds of events with their fields. A function that is handed the kind tells the fields, its callers the kinds.
func (e *emitters) kinds() map[string][]dataField {
	all := map[string][]dataField{}
	for _, f := range e.all {
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				e.readCall(all, f, n)
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Kind" {
					e.add(all, n.Value, f)
				}
			}
			return true
		})
	}
	return all
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
	if inlined := name == "exitFields" || name == "data" && len(n.Args) == 0; inlined && w.e.functions[name] != nil {
		for _, f := range w.e.fieldsOf(w.e.functions[name]) {
			f.depth += w.depth
			w.write(f)
		}
		return
	}
	f, known := builders[name]
	if !known || len(n.Args) == 0 {
		return
	}
	constant, ok := n.Args[0].(*ast.Ident)
	if !ok || w.e.names[constant.Name] == "" {
		return
	}
	f.name = w.e.names[constant.Name]
	f.depth += w.depth
	w.write(f)
	switch name {
	case "open":
		w.depth++
	case "payload":
		w.write(dataField{name: "size", kind: "number", depth: w.depth + 1})
		w.write(dataField{name: "content_type", depth: w.depth + 1})
	}
}

func (w *fieldWalk) write(f dataField) {
	f.optional = f.optional || w.ifs > 0 && f.depth == 0
	w.fields = append(w.fields, f)
}

func calledName(n *ast.CallExpr) string {
	switch f := n.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
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
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	e.declare(file)
	kinds := e.kinds()
	for kind, want := range map[string]string{
		"thing.one": "`a_b`, `c`? {`d` number}, `e`? true or false", "thing.two": "`a_b`? time", "thing.three": "`c`",
	} {
		if got := fieldList(kinds[kind]); got != want {
			t.Errorf("%s has %s, want %s", kind, got, want)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("%v", kinds)
	}
}
