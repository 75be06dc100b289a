package txn

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// BudgetsOf returns the budgets that apply to the execution now, each once, in the order of B8. A rule that cannot be read may apply to every
// execution: nothing is admitted until it can be read (B3, S45).
func (d *Dictionary) BudgetsOf(x *core.Execution) []base.UUID {
	named := d.NeedsOf(x.Class).NamedBudgets()
	if len(named)+len(x.Budgets)+len(d.budgets)+len(d.lost) == 0 {
		return nil
	}
	return append(d.registry.Applicable(x, named), d.lost...)
}

// BudgetsOf returns the ids of the budgets that apply to the execution.
func (u *Tx) BudgetsOf(x *core.Execution) []base.UUID { return u.Dict.BudgetsOf(x) }

// PassUnreached unblocks an execution that is blocked on a budget which no longer applies to it (L73), and reports whether it did.
func (u *Tx) PassUnreached(x *core.Execution, fx *core.Effects) bool {
	reached := u.BudgetsOf(x)
	return x.Unblock(fx, func(key string) bool {
		return core.OfBudget(key) && !slices.ContainsFunc(reached, func(id base.UUID) bool { return core.BudgetKey(id) == key })
	})
}

// NeedsOf returns what admission requires of a class, also of one that is newer than the dictionary.
func (d *Dictionary) NeedsOf(class *core.Class) *core.Needs {
	if needs := d.Needs(class.ID); needs != nil || class.Needs == "" {
		return needs
	}
	needs, _ := core.ParseNeeds(class.Needs)
	return needs
}

// EveryoneNeeds reports whether every execution of the class needs room in the key, so that one refusal holds for all (S19).
func (d *Dictionary) EveryoneNeeds(class *core.Class, key string) bool {
	needs := d.NeedsOf(class)
	return needs.Uses(key) || d.registry.Covers(class, needs.NamedBudgets(), key)
}

// registerBudgets builds the registry from what was read, and records which budgets cannot be read: their ids are in their keys.
func (r *Rules) registerBudgets() {
	r.registry = core.NewBudgetRegistry(r.budgets)
	for ref := range r.unreadable {
		if id, ok := base.ParseUUID(ref.Key); ok && ref.Kind == docBudgetEntry {
			r.lost = append(r.lost, id)
		}
	}
}
