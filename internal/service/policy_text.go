package service

import (
	"bytes"
	"encoding/json"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// policyGiven are the fields of a policy that may also stand beside it (U32).
type policyGiven struct {
	FairnessKey string           `json:"fairness_key"`
	Routing     routingGiven     `json:"routing_requirements"`
	BudgetIDs   []string         `json:"budget_ids"`
	Estimate    map[string]int64 `json:"estimate"`
	Budgets     budgetsGiven     `json:"budgets"`
	Quotas      []api.QuotaUse   `json:"quotas"`
}

type routingGiven struct {
	Capabilities []string `json:"required_capabilities"`
}

// budgetsGiven are the budgets that the text of a policy gives.
type budgetsGiven []api.BudgetDefinition

// UnmarshalJSON reads what can be read. What cannot stays zero: the rules refuse the text of the policy.
func (b *budgetsGiven) UnmarshalJSON(text []byte) error {
	_ = wire.DecodeJSON(text, (*[]api.BudgetDefinition)(b))
	return nil
}

// shortForms are the fields of a node that are short for a field of its policy.
var shortForms = []struct {
	field  string // of the node
	name   string // in Go
	member string // of the policy
	path   string // of the value in the policy
	short  func(f *wire.NodeFields) any
	given  func(p *policyGiven) bool
}{
	{
		"requires", "Requires", "routing_requirements", "routing_requirements.required_capabilities", func(f *wire.NodeFields) any { return listOr(f.Requires, routingGiven{f.Requires}) },
		func(p *policyGiven) bool { return len(p.Routing.Capabilities) > 0 },
	},
	{
		"budget_ids", "BudgetIDs", "budget_ids", "budget_ids", func(f *wire.NodeFields) any { return listOr(f.BudgetIDs, f.BudgetIDs) },
		func(p *policyGiven) bool { return len(p.BudgetIDs) > 0 },
	},
	{
		"estimate", "Estimate", "estimate", "estimate", func(f *wire.NodeFields) any {
			if len(f.Estimate) == 0 {
				return nil
			}
			return f.Estimate
		},
		func(p *policyGiven) bool { return len(p.Estimate) > 0 },
	},
	{
		"budgets", "Budgets", "budgets", "budgets", func(f *wire.NodeFields) any { return listOr(f.Budgets, f.Budgets) },
		func(p *policyGiven) bool { return len(p.Budgets) > 0 },
	},
	{
		"quotas", "Quotas", "quotas", "quotas", func(f *wire.NodeFields) any { return listOr(f.Quotas, f.Quotas) },
		func(p *policyGiven) bool { return len(p.Quotas) > 0 },
	},
}

// listOr is the value that a list stands for; nil of an empty one.
func listOr[T any](list []T, value any) any {
	if len(list) == 0 {
		return nil
	}
	return value
}

// policyText is the policy of a node with what is given beside it, for the rules to check; nil when there is neither.
func policyText(f *wire.NodeFields) ([]byte, error) {
	if err := checkBudgets(f.Budgets); err != nil {
		return nil, err
	}
	given, err := givenIn(f)
	if err != nil {
		return nil, err
	}
	text := []byte(f.Policy)
	if f.FairnessKey != "" {
		if given.FairnessKey != "" {
			return nil, core.Invalid("fairness_key", "fairness_key stands in the submission and in its policy").WithHint("give one of them")
		}
		if text, err = withValue(text, "fairness_key", f.FairnessKey); err != nil {
			return nil, err
		}
	}
	for _, form := range shortForms {
		short := form.short(f)
		if short == nil {
			continue
		}
		if form.given(given) {
			return nil, core.Invalid(form.field, "%s is given twice: beside the policy and in it", form.name).WithHint("give one of them")
		}
		if text, err = withValue(text, form.member, short); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// givenIn reads the fields of a node's policy that may stand beside it, if it matters. What cannot be read stays zero: the rules refuse the
// text.
func givenIn(f *wire.NodeFields) (*policyGiven, error) {
	given := &policyGiven{}
	beside := f.FairnessKey != "" || len(f.Requires)+len(f.BudgetIDs)+len(f.Estimate)+len(f.Budgets)+len(f.Quotas) > 0
	if f.Policy == nil || !beside && !bytes.Contains(f.Policy, []byte(`"budgets"`)) {
		return given, nil
	}
	_ = json.Unmarshal(f.Policy, given)
	for i := range given.Budgets {
		if err := given.Budgets[i].Reset.Check(); err != nil {
			return given, api.Within("policy."+placeOfBudget(i), err)
		}
	}
	return given, nil
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
	return WithMember(policy, name, encoded), nil
}

// WithMember adds a member to the text of a JSON object; what is none stays as it is.
func WithMember(object []byte, name string, value []byte) []byte {
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
