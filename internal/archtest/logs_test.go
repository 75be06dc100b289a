package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestU217_log_lines_have_constant_messages_and_known_keys(t *testing.T) {
	t.Parallel()
	holds(t, checkLogs, "who searches a log needs messages that do not vary and one name for one thing: what varies goes into a value, and a new key into logKeys")
}

func TestU217_lines_that_are_not_constant_are_found(t *testing.T) {
	t.Parallel()
	in := func(body string) map[string]string {
		return map[string]string{"internal/engine/a.go": "package a\nfunc f(){\n" + body + "\n}\n"}
	}
	finds(t, checkLogs, []example{
		{name: "what is right", files: in(`e.cfg.Logger.Info("it is so", "execution_id", id, "error", err); t.Logger().Warn("it is so"); e.notes.DebugMany(n, "it is so", "kind", k)`)},
		{name: "what is no log", files: in(`t.Error(fmt.Sprint(1)); catalog.Info(x); e.log.position(); math.Log(x)`)},
		{name: "a message that varies", files: in(`log.Warn("it failed: " + err.Error())`), want: []string{"message is not constant"}},
		{name: "a key that varies", files: in(`cfg.Log.Info("it is so", name, 1)`), want: []string{"key is not constant"}},
		{name: "a key that has another name", files: in(`s.log.Debug("it is so", "execution", id)`), want: []string{`key "execution" is not known`}},
		{name: "a key without a value", files: in(`s.log.Error("it is so", "error")`), want: []string{"no value"}},
		{name: "keys of a logger", files: in(`x := r.log.With("worker_id", id)`), want: []string{`key "worker_id" is not known`}},
		{name: "many at once", files: in(`e.notes.DebugMany(n, text, "kind", k)`), want: []string{"message is not constant"}},
	})
}

// logKeys are the keys of log lines: those that are promised (U217), and those of single messages.
var logKeys = []string{
	"request_id", "execution_id", "flow_id", "namespace", "worker", "code", "duration_ms", "trace_id",

	"error", "count", "kind", "lane", "attempt", "command", "call", "op", "route", "method", "status", // what was done
	"panic", "stack", "failures", "tries", "again_in", "row", "place", "seq", "step", // what went wrong
	"class", "category", "reason", "retry_at", // of a failed attempt
	"asked_by", "exits", // of a drain
	"audit_id", "action", "entity", "entity_id", "principal", "address", "key_id", // who did it to what
	"version", "store", "store_version", "schema", "steps", "signal", "drain_timeout", "log_level", "problem", "create_one", "spans", // of a process
	"store_pool", "max_connections", "standbys", "incarnation", "incarnation_before", "lost_from", "lost_to",
}

// loggers are the last names of what lines are written to.
var loggers = []string{"log", "Log", "Logger", "notes", "quiet", "logger"}

// checkLogs looks at every line that is written to a log. Examples are programs of users.
func checkLogs(all []source) []string {
	var found []string
	for _, s := range all {
		if !s.isGo() || s.isTest() || s.foreign() || underAny(s.path, "examples", "bench", "internal/quiet") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for _, fault := range lineFaults(call) {
				found = append(found, fmt.Sprintf("%s: %s", s.at(call), fault))
			}
			return true
		})
	}
	return found
}

// lineFaults are what is wrong with a call, if it writes to a log.
func lineFaults(call *ast.CallExpr) []string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(loggers, lastName(method.X)) {
		return nil
	}
	before := 0 // arguments before the message
	switch method.Sel.Name {
	case "Debug", "Info", "Warn", "Error":
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext", "DebugMany":
		before = 1
	case "With":
		return keyFaults(call.Args)
	default:
		return nil
	}
	if len(call.Args) <= before {
		return nil
	}
	var faults []string
	if _, constant := textOf(call.Args[before]); !constant {
		faults = append(faults, "the message is not constant")
	}
	return append(faults, keyFaults(call.Args[before+1:])...)
}

// keyFaults are what is wrong with pairs of keys and values.
func keyFaults(args []ast.Expr) []string {
	var faults []string
	for i := 0; i < len(args); i += 2 {
		key, constant := textOf(args[i])
		switch {
		case !constant:
			faults = append(faults, "a key is not constant")
		case !slices.Contains(logKeys, key):
			faults = append(faults, fmt.Sprintf("the key %q is not known", key))
		case i+1 == len(args):
			faults = append(faults, fmt.Sprintf("the key %q has no value", key))
		}
	}
	return faults
}

// lastName is the last name of an expression: c of a.b.c and of a.b.c().
func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.CallExpr:
		return lastName(x.Fun)
	}
	return ""
}

// textOf is the text of a literal.
func textOf(x ast.Expr) (string, bool) {
	literal, ok := x.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING || strings.TrimSpace(literal.Value) == "" {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}
