package service

import (
	"bytes"
	"encoding/json"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// givenPolicy is the policy of an execution as a request has it: a policy, and fields of a policy next to it (U32).
type givenPolicy struct {
	policy      *api.Policy
	requires    []string
	fairnessKey string
	quotas      []api.QuotaUse
	budgetIDs   []string
	estimate    map[string]int64
	budgets     []api.BudgetDefinition
}

func policyOfNode(f *wire.NodeFields) givenPolicy {
	return givenPolicy{f.Policy, f.Requires, f.FairnessKey, f.Quotas, f.BudgetIDs, f.Estimate, f.Budgets}
}

func policyOfSubmission(o *api.SubmitOptions) givenPolicy {
	return givenPolicy{o.Policy, o.Requires, o.FairnessKey, o.Quotas, o.BudgetIDs, o.Estimate, o.Budgets}
}

// shortForms are the policy fields that a request may have next to a policy.
var shortForms = []struct {
	field  string // of the request
	name   string // in Go
	member string // of the policy
	path   string // of the value in the policy
	short  func(g *givenPolicy) any
	given  func(p *api.Policy) bool
}{
	{
		"fairness_key", "FairnessKey", "fairness_key", "fairness_key", func(g *givenPolicy) any {
			if g.fairnessKey == "" {
				return nil
			}
			return g.fairnessKey
		},
		func(p *api.Policy) bool { return p.FairnessKey != "" },
	},
	{
		"requires", "Requires", "routing_requirements", "routing_requirements.required_capabilities",
		func(g *givenPolicy) any { return listOr(g.requires, routingGiven{g.requires}) },
		func(p *api.Policy) bool { return len(p.Capabilities) > 0 },
	},
	{
		"budget_ids", "BudgetIDs", "budget_ids", "budget_ids", func(g *givenPolicy) any { return listOr(g.budgetIDs, g.budgetIDs) },
		func(p *api.Policy) bool { return len(p.BudgetIDs) > 0 },
	},
	{
		"estimate", "Estimate", "estimate", "estimate", func(g *givenPolicy) any {
			if len(g.estimate) == 0 {
				return nil
			}
			return g.estimate
		},
		func(p *api.Policy) bool { return len(p.Estimate) > 0 },
	},
	{
		"budgets", "Budgets", "budgets", "budgets", func(g *givenPolicy) any { return listOr(g.budgets, g.budgets) },
		func(p *api.Policy) bool { return len(p.Budgets) > 0 },
	},
	{
		"quotas", "Quotas", "quotas", "quotas", func(g *givenPolicy) any { return listOr(g.quotas, g.quotas) },
		func(p *api.Policy) bool { return len(p.Quotas) > 0 },
	},
}

type routingGiven struct {
	Capabilities []string `json:"required_capabilities"`
}

// listOr returns the value of a list; nil for an empty one.
func listOr[T any](list []T, value any) any {
	if len(list) == 0 {
		return nil
	}
	return value
}

// isEmpty reports whether neither a policy nor a part of one is given.
func (g givenPolicy) isEmpty() bool { return g.policy == nil && !g.beside() }

// beside reports whether the request has policy fields next to the policy.
func (g givenPolicy) beside() bool {
	return g.fairnessKey != "" || len(g.requires)+len(g.budgetIDs)+len(g.estimate)+len(g.budgets)+len(g.quotas) > 0
}

// text returns the policy combined with the fields next to it, for validation; nil if there is neither.
func (g givenPolicy) text() ([]byte, error) {
	if err := checkBudgets(g.budgets); err != nil {
		return nil, err
	}
	text, err := g.policy.Text()
	if err != nil || !g.beside() {
		return text, err
	}
	return g.addTo(text)
}

// addTo adds the fields next to the policy to its text.
func (g givenPolicy) addTo(text []byte) (_ []byte, err error) {
	inside := g.policy.Read()
	for _, form := range shortForms {
		short := form.short(&g)
		if short == nil {
			continue
		}
		if inside != nil && form.given(inside) {
			return nil, base.Invalid(form.field, "%s is given twice: beside the policy and in it", form.name).WithHint("give one of them")
		}
		if text, err = withValue(text, form.member, short); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// withValue adds a member to the text of a policy; nil is the text of an empty one.
func withValue(policy []byte, name string, value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if policy == nil {
		policy = []byte("{}")
	}
	return withMember(policy, name, encoded), nil
}

// withMember adds a member to the text of a JSON object; an absent value changes nothing.
func withMember(object []byte, name string, value []byte) []byte {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(object), []byte("{"))
	if !ok {
		return object
	}
	text := append([]byte(`{"`+name+`":`), value...)
	if !bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
		text = append(text, ',')
	}
	return append(text, rest...)
}
