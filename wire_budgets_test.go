package flowfabric

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU9_every_answer_about_budgets_comes_back_as_it_was_written(t *testing.T) {
	t.Parallel()
	roundTrip[Budget, wire.NewBudget](t, "Budget", func(_ *rapid.T, b *Budget) { settleBudget(b) })
	roundTrip[BudgetStatus, wire.Budget](t, "BudgetStatus", func(_ *rapid.T, b *BudgetStatus) { settleStatus(b) })
	roundTrip[ApplicableBudgets, wire.ApplicableBudgets](t, "ApplicableBudgets", func(_ *rapid.T, a *ApplicableBudgets) {
		for _, b := range a.Budgets {
			settleStatus(b)
		}
		if a.Budgets == nil {
			a.Budgets = []*BudgetStatus{}
		}
	})
	roundTrip[BudgetEpoch, wire.BudgetEpoch](t, "BudgetEpoch", func(_ *rapid.T, e *BudgetEpoch) { notNil(&e.Dimensions) })
	roundTrip[BudgetSpend, wire.BudgetSpend](t, "BudgetSpend", func(_ *rapid.T, s *BudgetSpend) { notNil(&s.Used) })
	roundTrip[UsageReceipt, wire.UsageReceipt](t, "UsageReceipt", func(_ *rapid.T, r *UsageReceipt) { r.Outcome = UsageOK })
	roundTrip[ExecutionUsage, wire.ExecutionUsage](t, "ExecutionUsage", nil)
}

// settleBudget makes of a drawn definition one that can be: a reset of one sort, and a map of dimensions.
func settleBudget(b *Budget) {
	notNil(&b.Dimensions)
	switch {
	case b.Reset.Unit != "" || b.Reset.Timezone != "":
		b.Reset = BudgetReset{Type: core.ResetCalendar, Unit: b.Reset.Unit, Timezone: b.Reset.Timezone}
	case b.Reset.Every != 0 || !b.Reset.AnchorAt.IsZero():
		b.Reset = BudgetReset{Type: core.ResetInterval, Every: b.Reset.Every, AnchorAt: b.Reset.AnchorAt}
	default:
		b.Reset = BudgetReset{}
	}
}

// settleStatus gives each dimension its numbers, and each scope its word.
func settleStatus(b *BudgetStatus) {
	settleBudget(&b.Budget)
	if b.Existed = false; b.Scope.Type == "" {
		b.Scope.Type = core.ScopeNone
	}
	drawn := b.Numbers
	b.Numbers = map[string]BudgetNumbers{}
	for name := range b.Dimensions {
		n := drawn[name]
		if n.EffectiveHard == 0 {
			n.Available = 0
		}
		b.Numbers[name] = n
	}
}

func notNil[K comparable, V any](m *map[K]V) {
	if *m == nil {
		*m = map[K]V{}
	}
}

func TestU11_of_several_faulty_dimensions_the_same_is_reported_each_time(t *testing.T) {
	t.Parallel()
	for range 50 {
		var b Budget
		err := b.UnmarshalJSON([]byte(`{"name":"b","dimensions":{"d":{"hard":0},"c":{"soft":0},"b":{"soft":0,"hard":0},"e":{"hard":0}}}`))
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Field != "dimensions.b.hard" {
			t.Fatalf("%v", err)
		}
	}
}
