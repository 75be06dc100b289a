package core

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Needs is what admission requires for every execution of a class (S13): executions of one class need the same of the same keys, so that one
// refusal holds for all of them (S19). Budgets that apply to an execution by its tags, its flow or itself are not included.
type Needs struct {
	Quotas   []QuotaUse       // in the order of the policy (S44)
	Budgets  []base.UUID      // that the policy names, resolved, in its order (B8)
	Estimate map[string]int64 // amounts to reserve by dimension (B9)
}

// storedNeeds is the text form of Needs. Names are stored: never change them.
type storedNeeds struct {
	Quotas   []QuotaUse       `json:"q,omitempty"`
	Budgets  []base.UUID      `json:"b,omitempty"`
	Estimate map[string]int64 `json:"e,omitempty"`
}

// Text returns the canonical text of n, by which classes are distinguished; "" when nothing is needed. An estimate matters only if a budget
// applies, which is not known beforehand, so it is always included.
func (n *Needs) Text() string {
	if n == nil || len(n.Quotas)+len(n.Budgets)+len(n.Estimate) == 0 {
		return ""
	}
	text, _ := json.Marshal(storedNeeds(*n)) // maps are written in order of their keys
	return string(text)
}

// ParseNeeds reads what Text wrote. "" is nil: nothing is needed. Errors: corruption.
func ParseNeeds(text string) (*Needs, error) {
	if text == "" {
		return nil, nil
	}
	var n storedNeeds
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return nil, base.Errorf(base.CodeCorruption, "the needs of a class cannot be read: %w", err)
	}
	return (*Needs)(&n), nil
}

// RateKey returns the key that counts starts; it is the first of the two keys of a quota in use (S37).
func (u QuotaUse) RateKey() string { return "rate:" + u.keyText() }

// SlotsKey returns the key that counts concurrent executions; it is the second one.
func (u QuotaUse) SlotsKey() string { return "slots:" + u.keyText() }

func (u QuotaUse) keyText() string {
	if u.Key == "" {
		return u.Quota
	}
	return u.Quota + "/" + u.Key
}

// BudgetKey returns the key under which an execution is blocked on a budget (S44).
func BudgetKey(id base.UUID) string { return budgetKeyPrefix + id.String() }

const budgetKeyPrefix = "budget:"

// OfBudget reports whether the key belongs to a budget.
func OfBudget(key string) bool { return strings.HasPrefix(key, budgetKeyPrefix) }

// budgetOfKey returns the budget of a key.
func budgetOfKey(key string) (base.UUID, bool) {
	id, ok := strings.CutPrefix(key, budgetKeyPrefix)
	if !ok {
		return base.UUID{}, false
	}
	return base.ParseUUID(id)
}

// NamedBudgets returns the budgets that the policy names.
func (n *Needs) NamedBudgets() []base.UUID {
	if n == nil {
		return nil
	}
	return n.Budgets
}

// Uses reports whether n names the key: a refusal by it then holds for the whole class (S19).
func (n *Needs) Uses(key string) bool {
	if n == nil {
		return false
	}
	for _, use := range n.Quotas {
		if key == use.RateKey() || key == use.SlotsKey() {
			return true
		}
	}
	return slices.ContainsFunc(n.Budgets, func(id base.UUID) bool { return key == BudgetKey(id) })
}
