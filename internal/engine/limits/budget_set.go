package limits

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// BudgetsOf returns the budgets that apply to the execution now, each once, in the order of B8. A rule that cannot be read may apply to every
// execution: nothing is admitted until it can be read (B3, S45).
func BudgetsOf(d *txn.Dictionary, x *core.Execution) []base.UUID {
	named := NeedsOf(d, x.Class).NamedBudgets()
	if len(named)+len(x.Budgets)+len(RulesOf(d).budgets)+len(RulesOf(d).lost) == 0 {
		return nil
	}
	return append(RulesOf(d).registry.Applicable(x, named), RulesOf(d).lost...)
}

// PassUnreached unblocks an execution that is blocked on a budget which no longer applies to it (L73), and reports whether it did.
func PassUnreached(u *txn.Tx, x *core.Execution, fx *core.Effects) bool {
	reached := BudgetsOf(u.Dict, x)
	return x.Unblock(fx, func(key string) bool {
		return core.OfBudget(key) && !slices.ContainsFunc(reached, func(id base.UUID) bool { return core.BudgetKey(id) == key })
	})
}

// NeedsOf returns what admission requires of a class, also of one that is newer than the dictionary.
func NeedsOf(d *txn.Dictionary, class *core.Class) *core.Needs {
	if needs := d.Needs(class.ID); needs != nil || class.Needs == "" {
		return needs
	}
	needs, _ := core.ParseNeeds(class.Needs)
	return needs
}

// EveryoneNeeds reports whether every execution of the class needs room in the key, so that one refusal holds for all (S19).
func EveryoneNeeds(d *txn.Dictionary, class *core.Class, key string) bool {
	needs := NeedsOf(d, class)
	return needs.Uses(key) || RulesOf(d).registry.Covers(class, needs.NamedBudgets(), key)
}

// registerBudgets builds the registry from what was read, and records which budgets cannot be read: their ids are in their keys.
func (r *RuleSet) registerBudgets() {
	r.registry = core.NewBudgetRegistry(r.budgets)
	for ref := range r.unreadable {
		if id, ok := base.ParseUUID(ref.Key); ok && ref.Kind == docBudgetEntry {
			r.lost = append(r.lost, id)
		}
	}
}
