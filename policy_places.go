package flowfabric

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
)

// The rules see one policy of an execution, and call its fields by their paths there. A request may give them in a policy, beside it, or among
// the defaults of a flow: a refusal names the place where it gave the field (U11).

// asGiven names the place in the submission of a field that the rules refuse.
func (o *SubmitOptions) asGiven(err error) error { return placed(err, o.placeOf) }

// asGiven names the place in the graph of a field that the rules refuse.
func (g graph) asGiven(err error) error { return placed(err, g.placeOf) }

// placed gives a refusal another field.
func placed(err error, place func(code core.Code, field string) string) error {
	var refusal *Error
	if !errors.As(err, &refusal) {
		return err
	}
	field := place(core.Code(refusal.Code), refusal.Field)
	if field == refusal.Field {
		return err
	}
	named := *refusal
	named.Field = field
	return &named
}

func (o *SubmitOptions) placeOf(code core.Code, field string) string {
	path, ofPolicy := policyPath(code, field)
	if !ofPolicy {
		return field
	}
	short := o.short()
	for _, form := range shortForms {
		if rest, ok := strings.CutPrefix(path, form.path); ok && form.given(&short) && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return form.field + rest
		}
	}
	if path == "fairness_key" && o.Policy != nil && o.Policy.keyAside {
		return path
	}
	return "policy." + path
}

// policyPath returns the path in the policy of a field that the rules refuse, unless the field is none of the policy. Budgets that an execution
// makes are refused with codes of their own.
func policyPath(code core.Code, field string) (path string, ofPolicy bool) {
	path, ofPolicy = strings.CutPrefix(field, "policy.")
	switch {
	case ofPolicy:
		return path, true
	case code == core.CodeInvalidPolicy, code == core.CodeInvalidCapabilities:
		return field, field != "" && field != "policy"
	}
	return field, strings.HasPrefix(field, "budgets[")
}

func (g graph) placeOf(code core.Code, field string) string {
	for _, list := range []string{"nodes", "children"} {
		var i int
		if n, err := fmt.Sscanf(field, list+"[%d].", &i); n != 1 || err != nil || i < 0 || i >= len(g.nodes) {
			continue
		}
		at := fmt.Sprintf("%s[%d].", list, i)
		rest, node := strings.TrimPrefix(field, at), &g.nodes[i]
		if inner, ok := strings.CutPrefix(rest, "flow."); ok && node.Flow != nil {
			return at + "flow." + node.Flow.graph().placeOf(code, inner)
		}
		if _, ofPolicy := policyPath(code, rest); ofPolicy && !node.hasPolicy() && g.defaults.hasPolicy() { // it has that of the defaults as a whole
			return "defaults." + g.defaults.placeOf(code, rest)
		}
		return at + node.placeOf(code, rest)
	}
	return field
}

// hasPolicy reports whether a policy, or a part of one, is given.
func (o *SubmitOptions) hasPolicy() bool {
	short := o.short()
	return o.Policy != nil || short.anyShort()
}
