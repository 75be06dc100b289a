package service

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The rules see one policy of an execution, and call its fields by their paths there. A request may give them in a policy, beside it, or among
// the defaults of a flow: a refusal names the place where it gave the field (U11).

// AsGiven names the place in the graph of a field that the rules refuse.
func AsGiven(err error, w wire.SubFlow) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return placedAt(err, refusal, placeInGraph(&w, refusal.Code, refusal.Field))
}

// placedAt gives a refusal another field.
func placedAt(err error, refusal *base.Error, field string) error {
	if field == refusal.Field {
		return err
	}
	named := *refusal
	return named.WithField(field)
}

func placeInGraph(w *wire.SubFlow, code base.Code, field string) string {
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
		own := policyOfNode(&node.NodeFields)
		if _, ofPolicy := policyPath(code, rest); ofPolicy && own.isEmpty() && w.Defaults != nil {
			if whole := policyOfNode(w.Defaults); !whole.isEmpty() {
				return "defaults." + whole.place(code, rest) // it has that of the defaults as a whole
			}
		}
		return at + own.place(code, rest)
	}
	return field
}

// SubmissionAsGiven names the place in a submission of a field that the rules refuse.
func SubmissionAsGiven(err error, s *api.Submission) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return placedAt(err, refusal, policyOfSubmission(&s.SubmitOptions).place(refusal.Code, refusal.Field))
}

// place is where the request gave a field that the rules refuse.
func (g givenPolicy) place(code base.Code, field string) string {
	path, ofPolicy := policyPath(code, field)
	if !ofPolicy {
		return field
	}
	for _, form := range shortForms {
		if rest, ok := strings.CutPrefix(path, form.path); ok && form.short(&g) != nil && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return form.field + rest
		}
	}
	return "policy." + path
}

// policyPath returns the path in the policy of a field that the rules refuse, unless the field is none of the policy. Budgets that an execution
// makes are refused with codes of their own.
func policyPath(code base.Code, field string) (path string, ofPolicy bool) {
	path, ofPolicy = strings.CutPrefix(field, "policy.")
	switch {
	case ofPolicy:
		return path, true
	case code == base.CodeInvalidPolicy, code == base.CodeInvalidCapabilities:
		return field, field != "" && field != "policy"
	}
	return field, strings.HasPrefix(field, "budgets[")
}
