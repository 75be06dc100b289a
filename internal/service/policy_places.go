package service

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Validation sees one policy of an execution, and names its fields by their paths there. A request may give them in a policy,
// next to it, or in the defaults of a flow: a refusal names the place where the request gave the field (U11).

// AsGiven returns the path in the graph of a field that validation refused.
func AsGiven(err error, w wire.SubFlow) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return placedAt(err, refusal, placeInGraph(&w, refusal.Code, refusal.Field))
}

// placedAt replaces the field of a refusal.
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

// SubmissionAsGiven returns the path in a submission of a field that validation refused.
func SubmissionAsGiven(err error, s *api.Submission) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return placedAt(err, refusal, policyOfSubmission(&s.SubmitOptions).place(refusal.Code, refusal.Field))
}

// place returns where the request gave a field that validation refused.
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

// policyPath returns the path in the policy of a field that validation refused, unless the field is not part of the policy.
// Budgets that an execution creates are refused with codes of their own.
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
