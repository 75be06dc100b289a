package service

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The rules see one policy of an execution, and call its fields by their paths there. A request may give them in a policy, beside it, or among
// the defaults of a flow: a refusal names the place where it gave the field (U11).

// AsGiven names the place in the graph of a field that the rules refuse.
func AsGiven(err error, w wire.SubFlow) error {
	var refusal *core.Error
	if !errors.As(err, &refusal) {
		return err
	}
	field := placeInGraph(&w, refusal.Code, refusal.Field)
	if field == refusal.Field {
		return err
	}
	named := *refusal
	return named.WithField(field)
}

func placeInGraph(w *wire.SubFlow, code core.Code, field string) string {
	for _, list := range []string{"nodes", "children"} {
		var i int
		if n, err := fmt.Sscanf(field, list+"[%d].", &i); n != 1 || err != nil || i < 0 || i >= len(w.Nodes) {
			continue
		}
		at := fmt.Sprintf("%s[%d].", list, i)
		rest, node := strings.TrimPrefix(field, at), &w.Nodes[i]
		if inner, ok := strings.CutPrefix(rest, "flow."); ok && node.Flow != nil {
			return at + "flow." + placeInGraph(node.Flow, code, inner)
		}
		if _, ofPolicy := PolicyPath(code, rest); ofPolicy && !hasPolicy(&node.NodeFields) && w.Defaults != nil && hasPolicy(w.Defaults) {
			return "defaults." + placeInWork(w.Defaults, code, rest) // it has that of the defaults as a whole
		}
		return at + placeInWork(&node.NodeFields, code, rest)
	}
	return field
}

func placeInWork(f *wire.NodeFields, code core.Code, field string) string {
	path, ofPolicy := PolicyPath(code, field)
	if !ofPolicy {
		return field
	}
	for _, form := range shortForms {
		if rest, ok := strings.CutPrefix(path, form.path); ok && form.short(f) != nil && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return form.field + rest
		}
	}
	if path == "fairness_key" && f.FairnessKey != "" {
		return path
	}
	return "policy." + path
}

// hasPolicy reports whether a policy, or a part of one, is given.
func hasPolicy(f *wire.NodeFields) bool {
	given := f.Policy != nil || f.FairnessKey != ""
	for _, form := range shortForms {
		given = given || form.short(f) != nil
	}
	return given
}

// PolicyPath returns the path in the policy of a field that the rules refuse, unless the field is none of the policy. Budgets that an execution
// makes are refused with codes of their own.
func PolicyPath(code core.Code, field string) (path string, ofPolicy bool) {
	path, ofPolicy = strings.CutPrefix(field, "policy.")
	switch {
	case ofPolicy:
		return path, true
	case code == core.CodeInvalidPolicy, code == core.CodeInvalidCapabilities:
		return field, field != "" && field != "policy"
	}
	return field, strings.HasPrefix(field, "budgets[")
}
