package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestB5_B26_the_id_of_a_deleted_budget_is_free_once_its_history_is_gone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		d := tokens("b", 100)
		d.ID = w.create(tokens("other", 1)).ID
		ok(t, w.e.DeleteBudget(w.ctx(), operator, ofName("other"), engine.AdminAction{}))
		again := func() error {
			_, err := w.e.CreateBudget(w.ctx(), operator, "default", d, engine.AdminAction{})
			return err
		}
		same(t, "field", refused(t, again(), base.CodeBudgetAlreadyExists).Field, "budget_id")
		own := policy(`{"budgets":[{"budget_id":"` + d.ID.String() + `","dimensions":{"tokens":{"hard":5}}}]}`)
		own.Kind = "k"
		_, err := w.e.Submit(w.ctx(), client, own)
		same(t, "field", refused(t, err, base.CodeBudgetAlreadyExists).Field, "budgets[0].budget_id")
		w.turn(90 * base.Day)
		eventually(t, "the id is free", func() bool { return again() == nil })
		same(t, "it begins clean", w.numbers("b"), [3]int64{})
	})
}

func TestB4_B25_a_dimension_that_is_there_again_has_a_ledger_of_its_own(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		d := tokens("b", 100)
		d.Dimensions["calls"] = core.BudgetLimits{}
		w.create(d)
		change := func(c core.DimensionUpdate) {
			must(w.e.UpdateBudget(w.ctx(), operator, ofName("b"), core.BudgetUpdate{Dimensions: map[string]core.DimensionUpdate{"tokens": c}}, engine.AdminAction{}))(t)
		}
		release := func(task engine.Task) map[string]int64 {
			return must(w.e.ReleaseBudget(w.ctx(), operator, ofName("b"), given(task), engine.AdminAction{}))(t)
		}
		one, two := w.started(costing(0, "b")), w.started(costing(0, "b"))
		w.report(one, 30)
		w.complete(one)
		w.complete(two)
		change(core.DimensionUpdate{Remove: true})
		same(t, "nothing is left to release", len(release(one)), 0)
		change(core.DimensionUpdate{Hard: core.LimitChange{Set: true, Value: ptr(int64(50))}})
		same(t, "it starts at 0", w.numbers("b"), [3]int64{})
		one, two = w.started(costing(0, "b")), w.started(costing(0, "b"))
		w.report(one, 5)
		w.report(two, 7)
		w.complete(one)
		w.complete(two)
		same(t, "released", release(two), map[string]int64{"tokens": 7})
		same(t, "the other's is untouched", w.numbers("b"), [3]int64{5, 0, 0})
		same(t, "what was used of both is shown", w.spend("b"), []int64{30, 5})
	})
}

func TestB4_B25_an_execution_releases_only_what_it_used_since_the_dimension_is_there_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		d := tokens("b", 100)
		d.Dimensions["calls"] = core.BudgetLimits{}
		w.create(d)
		one, two := w.started(costing(0, "b")), w.started(costing(0, "b"))
		w.report(one, 30)
		for _, c := range []core.DimensionUpdate{{Remove: true}, {Hard: core.LimitChange{Set: true, Value: ptr(int64(50))}}} {
			must(w.e.UpdateBudget(w.ctx(), operator, ofName("b"), core.BudgetUpdate{Dimensions: map[string]core.DimensionUpdate{"tokens": c}}, engine.AdminAction{}))(t)
		}
		w.report(one, 3)
		w.report(two, 20)
		released := must(w.e.ReleaseBudget(w.ctx(), operator, ofName("b"), given(one), engine.AdminAction{}))(t)
		same(t, "released", released, map[string]int64{"tokens": 3})
		same(t, "the other's is untouched", w.numbers("b"), [3]int64{20, 0, 0})
		must(w.e.ResetBudget(w.ctx(), operator, ofName("b"), engine.AdminAction{}))(t)
		w.report(one, 4)
		released = must(w.e.ReleaseBudget(w.ctx(), operator, ofName("b"), given(one), engine.AdminAction{}))(t)
		same(t, "in a new epoch", released, map[string]int64{"tokens": 4})
	})
}

func TestB23_what_is_left_is_told_as_all_tasks_of_a_claim_leave_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.create(tokens("b", 100))
		w.submitMany(3, costing(20, "b"))
		r := ask()
		r.Max = 3
		tasks := w.take(r)
		same(t, "tasks", len(tasks), 3)
		for _, task := range tasks { // the limit, without what the two others have reserved
			same(t, "left", task.Remaining, map[base.UUID]map[string]int64{b.ID: {"tokens": 60}})
		}
	})
}
