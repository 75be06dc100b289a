package core

import (
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// EpochRecord is the history row of an epoch that has ended (B36, B40).
type EpochRecord struct {
	Budget       base.UUID           `json:"budget_id"`
	Epoch        int64               `json:"epoch"`
	StartedAt    base.Time           `json:"started_at"`
	EndedAt      base.Time           `json:"ended_at"`
	Dimensions   map[string]EpochUse `json:"dimensions"`
	Breaches     int64               `json:"breach_count"` // in this epoch, like the next field
	SoftBreaches int64               `json:"soft_breach_count"`
}

// EpochUse is what an epoch used of a dimension.
type EpochUse struct {
	Used    int64 `json:"used"`
	Overrun int64 `json:"overrun"`
}

// The causes named by budget.reset.
const (
	resetBySchedule = "schedule"
	resetByOperator = "operator"
)

// SettleResets carries out the due resets of all loaded budgets (W2, B36). They remain in effect even if the next command is refused.
func (b *Books) SettleResets(fx *Effects) {
	if b == nil {
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(b.budgets), compareUUIDs) {
		b.settled(fx, id)
	}
}

// settled returns a budget with its due reset carried out, for reading; nil as with Get.
func (b *Books) settled(fx *Effects, id base.UUID) *Budget {
	budget := b.Get(id)
	if budget == nil || !budget.NextResetAt.Reached(fx.Now) {
		return budget
	}
	budget = b.own(id)
	b.beginEpoch(fx, budget, resetBySchedule)
	return budget
}

// Reset begins a new epoch now and leaves the schedule unchanged (B37). Errors: budget_not_found.
func (b *Books) Reset(fx *Effects, id base.UUID) error {
	if b.settled(fx, id) == nil {
		return BudgetNotFound(id.String())
	}
	b.beginEpoch(fx, b.own(id), resetByOperator)
	return nil
}

// beginEpoch is the only way into a new epoch. Live holds move to it: what they need of a raise that ends here is carried over (B36).
func (b *Books) beginEpoch(fx *Effects, budget *Budget, cause string) {
	over, started := fx.Now, fx.Now
	if cause == resetBySchedule {
		over = budget.NextResetAt
		started, budget.NextResetAt = budget.Reset.around(fx.Now)
	}
	record := EpochRecord{
		Budget: budget.ID, Epoch: budget.Epoch, StartedAt: budget.EpochStarted, EndedAt: over, Dimensions: map[string]EpochUse{},
		Breaches: budget.EpochHard, SoftBreaches: budget.EpochSoft,
	}
	for name, d := range budget.Dimensions {
		record.Dimensions[name] = EpochUse{Used: d.Used, Overrun: d.Overrun}
		d.Used, d.Overrun, d.Raised, d.Carried = 0, 0, 0, 0
		if d.Hard != nil {
			d.Carried = max(d.Reserved-*d.Hard, 0)
		}
	}
	budget.Epoch++
	budget.EpochStarted = started
	budget.EpochHard, budget.EpochSoft, budget.LastBreach, budget.Removed = 0, 0, nil, nil
	b.epochs = append(b.epochs, record)
	b.free(budget.ID)
	budget.emitReset(fx, &record, cause)
}
