package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// forced takes an execution whatever admission says.
func (w *world) forced(id base.GivenID) engine.Task {
	w.t.Helper()
	return must(w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{Force: true}))(w.t)
}

func TestS35_B6_B21_a_forced_lease_reserves_nothing_and_is_charged(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		made := w.create(tokens("team", 10))
		must(w.charge("team", 8))(t)
		id := w.submit(costing(5, "team"))
		w.nothing()
		task := w.forced(id)
		same(t, "left", task.Remaining, map[base.UUID]map[string]int64{made.ID: {"tokens": 2}})
		same(t, "numbers", w.numbers("team"), [3]int64{8, 0, 0})
		same(t, "holders", []int64{w.budget("team").LiveHolds, int64(len(w.budget("team").Holders))}, []int64{1, 1})
		refused(t, w.e.DeleteBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}), base.CodeBudgetInUse)
		w.sound()
		same(t, "asked before", w.report(task, 3).Applied, false)
		same(t, "overrun", w.report(task, 50, spent).Overrun, 48)
		same(t, "booked", w.numbers("team"), [3]int64{10, 0, 48})
		same(t, "metered", w.get(id).Usage["tokens"], 50)
		same(t, "blockers", len(must(w.e.Explain(w.ctx(), client, id, 0))(t).Blockers), 0)
		w.complete(task)
		same(t, "nothing is held any more", []int64{w.budget("team").LiveHolds, w.numbers("team")[1]}, []int64{0, 0})
	})
}

func TestS35_B27_a_breach_that_cancels_what_runs_ends_a_forced_lease(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 10, onHard(core.OnHardCancelRunning)))
		task := w.forced(w.submit(costing(0, "team")))
		must(w.charge("team", 20))(t)
		w.becomes(given(task), core.Cancelled)
	})
}

func TestS35_B15_B16_a_forced_lease_that_lapses_forfeits_nothing_and_books_what_is_reported_late(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 10, onLoss(core.OnLossForfeit)))
		task := w.forced(w.submit(costing(5, "team")))
		w.turn(base.Minute)
		eventually(t, "it lapses", func() bool { return w.get(given(task)).Lease == nil })
		same(t, "numbers", w.numbers("team"), [3]int64{})
		w.report(task, 4, spent)
		same(t, "booked late", w.numbers("team"), [3]int64{4, 0, 0})
	})
}

func TestS35_B17_the_time_of_a_forced_lease_is_booked_when_it_ends(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(core.BudgetDefinition{Name: "team", Dimensions: limits(map[string]int64{core.WallMS: 1000})})
		task := w.forced(w.submit(costing(0, "team")))
		w.turn(5000)
		w.complete(task)
		n := w.budget("team").Numbers[core.WallMS]
		same(t, "used, reserved, overrun", [3]int64{n.Used, n.Reserved, n.Overrun}, [3]int64{1000, 0, 4000})
	})
}
