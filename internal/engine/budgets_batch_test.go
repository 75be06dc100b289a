package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestB5_BI8_a_budget_that_gets_one_below_it_in_the_commit_of_its_delete_stays(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		b := w.interpose()
		w.create(tokens("outer", 10))
		var made, dropped error
		w.batched(b, func() {
			_, made = w.e.CreateBudget(w.ctx(), operator, "default", tokens("inner", 5, below("outer")), engine.AdminAction{})
		}, func() { dropped = w.dropFound("outer") })
		ok(t, made)
		refused(t, dropped, base.CodeBudgetInUse)
		must(w.charge("inner", 1))(t)
		same(t, "used of the one above", w.numbers("outer"), [3]int64{1, 0, 0})
	})
}

func TestB2_B5_nothing_is_made_below_a_budget_that_went_in_the_same_commit(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		b := w.interpose()
		w.create(tokens("outer", 10))
		var made, dropped error
		w.batched(b, func() { dropped = w.dropFound("outer") }, func() {
			_, made = w.e.CreateBudget(w.ctx(), operator, "default", tokens("inner", 5, below("outer")), engine.AdminAction{})
		})
		ok(t, dropped)
		refused(t, made, base.CodeBudgetNotFound)
	})
}

func TestB24_L83_a_repeated_submit_does_not_hide_the_budget_that_it_made_from_a_charge(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		b := w.interpose()
		s := policy(`{"budgets":[{"budget_id":"01890a5d-ac96-774b-bcce-b302099a8057","name":"mine","dimensions":{"tokens":{"hard":10}}}]}`)
		s.Namespace, s.Kind, s.Lane, s.IdempotencyKey = "default", "work", "default", "k"
		must(w.e.Submit(w.ctx(), client, s))(t)
		var again engine.SubmitAnswer
		var repeated, charged error
		w.batched(b, func() { again, repeated = w.e.Submit(w.ctx(), client, s) }, func() { _, charged = w.charge("mine", 4) })
		ok(t, repeated)
		same(t, "the repeat", again.Outcome, "duplicate")
		ok(t, charged)
		same(t, "numbers", w.numbers("mine"), [3]int64{4, 0, 0})
	})
}
