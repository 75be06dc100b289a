package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestB19_a_report_is_judged_against_every_budget_and_dimension(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100, softly(50)))
		task := w.started(costing(0, "team"))
		same(t, "40 of 100", w.report(task, 40).Outcome, core.UsageOK)
		soft := w.report(task, 20)
		same(t, "60 of 50", []any{soft.Outcome, soft.Used, soft.Soft}, []any{core.UsageSoftBreach, int64(60), int64(50)})
		hard := w.report(task, 70)
		same(t, "130 of 100", []any{hard.Outcome, hard.Applied, hard.Used, hard.Hard, hard.Attempted, hard.Action},
			[]any{core.UsageHardBreach, false, int64(60), int64(100), int64(70), core.ActionNone})
		same(t, "BI6: nothing was booked", w.numbers("team"), [3]int64{60, 0, 0})
		same(t, "the limit exactly", w.report(task, 40).Outcome, core.UsageSoftBreach)
		same(t, "exhausted", w.budget("team").Exhausted, []string{"tokens"})
		over := w.report(task, 5, spent)
		same(t, "already spent", []any{over.Outcome, over.Applied, over.Overrun}, []any{core.UsageHardBreach, true, int64(5)})
		w.complete(task)
		same(t, "BI1", w.numbers("team"), [3]int64{100, 0, 5})
		same(t, "B18: the meter has all", must(w.e.Usage(w.ctx(), client, given(task), nil))(t).Usage["tokens"], int64(105))
		same(t, "of the attempt too", must(w.e.Usage(w.ctx(), client, given(task), ptr(0)))(t).Usage["tokens"], int64(105))
		view := w.budget("team")
		same(t, "BI11", []int64{view.Breaches, view.SoftBreaches}, []int64{2, 1})
		same(t, "told", []int{w.count(given(task), "budget.hard_breach"), w.count(given(task), "budget.soft_breach")}, []int{2, 1})
	})
}

func TestB20_a_breach_of_one_budget_books_nothing_anywhere(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("wide", 1000))
		w.create(tokens("narrow", 10))
		task := w.started(costing(0, "wide", "narrow"))
		out := w.report(task, 11, func(r *engine.UsageRequest) { r.Usage["calls"] = 1 })
		same(t, "refused by", []any{out.Outcome, out.Budget}, []any{core.UsageHardBreach, w.budget("narrow").ID})
		same(t, "numbers", [][3]int64{w.numbers("wide"), w.numbers("narrow")}, [][3]int64{{}, {}})
		same(t, "meters", must(w.e.Usage(w.ctx(), client, given(task), nil))(t).Usage["calls"], int64(0))
		same(t, "the ledger", w.spend("wide"), nil)
		w.complete(task)
	})
}

func TestB22_a_report_draws_its_own_hold_first(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100))
		task := w.started(costing(60, "team"))
		other := w.started(costing(40, "team"))
		same(t, "reserved", w.numbers("team"), [3]int64{0, 100, 0})
		w.report(task, 50)
		same(t, "drawn", w.numbers("team"), [3]int64{50, 50, 0})
		same(t, "more than the rest", w.report(task, 11).Outcome, core.UsageHardBreach)
		same(t, "the rest", w.report(task, 10).Outcome, core.UsageOK)
		w.complete(other)
		same(t, "what others gave back", w.report(task, 40).Outcome, core.UsageOK)
		w.complete(task)
		same(t, "numbers", w.numbers("team"), [3]int64{100, 0, 0})
	})
}

func TestB16_what_ends_a_run_may_say_what_it_used(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 1000))
		use := map[string]int64{"tokens": 10}
		exits := map[string]func(task engine.Task) error{
			"complete": func(task engine.Task) error {
				_, err := w.e.CompleteWith(w.ctx(), client, given(task), core.Completion{Fence: fence(task), Usage: use})
				return err
			},
			"fail": func(task engine.Task) error {
				_, err := w.e.Fail(w.ctx(), client, given(task), core.FailCommand{Fence: fence(task), Class: "permanent", Message: "no", Usage: use})
				return err
			},
			"delay": func(task engine.Task) error {
				_, err := w.e.DelayWith(w.ctx(), client, given(task), core.DelayCommand{Fence: fence(task), Usage: use}, ptr(base.Hour))
				return err
			},
			"suspend": func(task engine.Task) error {
				_, err := w.e.Suspend(w.ctx(), client, given(task), waitFor(task, atA, func(c *core.SuspendCommand) { c.Usage = use }))
				return err
			},
		}
		booked := int64(0)
		for name, exit := range exits {
			task := w.started(costing(100, "team"))
			ok(t, exit(task))
			booked += 10
			same(t, name, w.numbers("team"), [3]int64{booked, 0, 0})
		}
		same(t, "the ledger", w.spend("team"), []int64{10, 10, 10, 10})
	})
}

func TestB14_every_exit_from_running_gives_back_what_is_left(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100))
		exits := map[string]func(task engine.Task){
			"complete": func(task engine.Task) { w.complete(task) },
			"fail":     func(task engine.Task) { w.fail(task, "permanent") },
			"delay":    func(task engine.Task) { w.delay(task, w.now().Add(base.Day)) },
			"suspend":  func(task engine.Task) { w.suspend(task, atA) },
			"release":  func(task engine.Task) { w.release(task); w.cancel(given(task)) },
			"cancel":   func(task engine.Task) { w.cancel(given(task)) },
			"revoke":   func(task engine.Task) { w.revoke(given(task)); w.cancel(given(task)) },
			"lapse":    func(task engine.Task) { w.pass(base.Hour); w.becomes(given(task), core.Ready); w.cancel(given(task)) },
		}
		for name, exit := range exits {
			task := w.started(costing(100, "team"))
			same(t, name+" began with", w.numbers("team"), [3]int64{0, 100, 0})
			same(t, "holders", w.budget("team").Holders[0].ExecutionID, task.Execution.ID)
			exit(task)
			same(t, name, w.numbers("team"), [3]int64{0, 0, 0})
			view := w.budget("team")
			same(t, "none holds it", []int{int(view.LiveHolds), len(view.Holders)}, []int{0, 0})
		}
	})
}

func TestB15_a_lost_lease_forfeits_where_the_budget_says_so(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("hard", 1000, onLoss(core.OnLossForfeit)))
		w.create(tokens("kind", 1000))
		task := w.started(costing(100, "hard", "kind"))
		w.report(task, 30)
		w.pass(base.Hour)
		w.becomes(given(task), core.Ready)
		same(t, "after the lapse", [][3]int64{w.numbers("hard"), w.numbers("kind")}, [][3]int64{{100, 0, 0}, {30, 0, 0}})
		same(t, "the ledger has it", w.spend("hard"), []int64{100})
		w.revoke(given(w.claim()))
		same(t, "after the revocation", w.numbers("hard"), [3]int64{200, 0, 0})
	})
}

func TestB16_a_late_completion_books_without_a_hold(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100))
		task := w.started(costing(100, "team"))
		w.pass(base.Hour)
		w.becomes(given(task), core.Ready)
		must(w.charge("team", 90))(t)
		answer := must(w.e.CompleteWith(w.ctx(), client, given(task), core.Completion{Fence: fence(task), Usage: map[string]int64{"tokens": 30}}))(t)
		if answer.Repeated {
			t.Fatal("repeated")
		}
		w.becomes(given(task), core.Succeeded)
		same(t, "what fits, and the rest", w.numbers("team"), [3]int64{100, 0, 20})
	})
}

func TestB19_a_late_report_is_metered_though_its_budget_was_deleted_since(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100, covering(core.ScopeNamespace, "")))
		task := w.started(costing(10))
		w.pass(base.Hour)
		w.becomes(given(task), core.Ready)
		ok(t, w.e.DeleteBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}))
		same(t, "booked nowhere", w.report(task, 30).Outcome, core.UsageOK)
		same(t, "metered", w.get(given(task)).Usage["tokens"], 30)
	})
}

func TestB24_a_charge_is_for_a_budget_and_those_above_it(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("above", 50))
		w.create(tokens("team", 100, below("above")))
		same(t, "fits", must(w.charge("team", 50))(t).Outcome, core.UsageOK)
		out := must(w.charge("team", 1))(t)
		same(t, "refused by the one above", []any{out.Outcome, out.Budget}, []any{core.UsageHardBreach, w.budget("above").ID})
		same(t, "numbers", [][3]int64{w.numbers("team"), w.numbers("above")}, [][3]int64{{50, 0, 0}, {50, 0, 0}})
		_, err := w.e.Charge(w.ctx(), client, ofName("team"), engine.ChargeRequest{Usage: map[string]int64{"money": 1}})
		refused(t, err, base.CodeUnknownDimension)
		_, err = w.charge("missing", 1)
		refused(t, err, base.CodeBudgetNotFound)
		_, err = w.charge("team", -1)
		refused(t, err, base.CodeInvalidUsage)
		same(t, "a charge has no ledger", w.spend("team"), nil)
	})
}

func TestB25_release_touches_one_execution_and_this_epoch_only(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("above", 1000))
		w.create(tokens("team", 1000, below("above")))
		a, b := w.started(costing(0, "team")), w.started(costing(0, "team"))
		w.report(a, 30)
		w.report(b, 50)
		must(w.charge("team", 7, func(r *engine.ChargeRequest) { r.Execution = ptr(given(a)) }))(t)
		same(t, "largest first", w.spend("team"), []int64{50, 37})
		release := func(id base.GivenID) map[string]int64 {
			return must(w.e.ReleaseBudget(w.ctx(), operator, ofName("team"), id, engine.AdminAction{}))(t)
		}
		_, err := w.e.ReleaseBudget(w.ctx(), operator, ofName("team"), given(a), engine.AdminAction{Revision: ptr(int64(99))})
		refused(t, err, base.CodeStaleVersion)
		same(t, "released", release(given(a)), map[string]int64{"tokens": 37})
		same(t, "again", release(given(a)), map[string]int64{})
		same(t, "the other stays", w.spend("team"), []int64{50})
		same(t, "numbers", [][3]int64{w.numbers("team"), w.numbers("above")}, [][3]int64{{50, 0, 0}, {50, 0, 0}})
		must(w.e.ResetBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}))(t)
		w.report(a, 5)
		same(t, "BI7: of the new epoch nothing", release(given(b)), map[string]int64{})
		same(t, "numbers after the reset", [][3]int64{w.numbers("team"), w.numbers("above")}, [][3]int64{{5, 0, 0}, {55, 0, 0}})
		rows, _, err := w.e.BudgetSpend(w.ctx(), client, ofName("team"), engine.SpendQuery{Epoch: ptr(int64(1))})
		ok(t, err)
		same(t, "the old epoch keeps its ledger", len(rows), 1)
	})
}

func TestB26_a_dedup_key_books_once(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100))
		w.create(tokens("other", 100))
		task := w.started(costing(0, "team"))
		w.report(task, 10, once("a"))
		again := w.report(task, 10, once("a"))
		same(t, "repeated", []any{again.Repeated, again.Outcome}, []any{true, core.UsageOK})
		_, err := w.reporting(task, 11, once("a"))
		refused(t, err, base.CodeIdempotencyConflict)
		same(t, "a refused breach is not remembered", w.report(task, 91, once("b")).Applied, false)
		raised := int64(200)
		must(w.e.UpdateBudget(w.ctx(), operator, ofName("team"), core.BudgetUpdate{Dimensions: map[string]core.DimensionUpdate{
			"tokens": {Hard: core.LimitChange{Set: true, Value: &raised}},
		}}, engine.AdminAction{}))(t)
		same(t, "judged afresh", w.report(task, 91, once("b")).Applied, true)
		same(t, "numbers", w.numbers("team"), [3]int64{101, 0, 0})
		key := func(r *engine.ChargeRequest) { r.DedupKey = "a" }
		for range 2 {
			must(w.charge("team", 5, key))(t)
			must(w.charge("other", 5, key))(t)
		}
		same(t, "BI5", [][3]int64{w.numbers("team"), w.numbers("other")}, [][3]int64{{106, 0, 0}, {5, 0, 0}})
		w.turn(7 * base.Day)
		must(w.charge("other", 5, key))(t)
		same(t, "a key that is over", w.numbers("other"), [3]int64{10, 0, 0})
	})
}

func TestB17_time_is_measured_by_the_engine(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(core.BudgetDefinition{Name: "time", Dimensions: limits(map[string]int64{"wall_ms": 10_000})})
		task := w.started(policy(`{"budget_ids":["time"],"estimate":{"wall_ms":4000}}`))
		_, err := w.e.ReportUsage(w.ctx(), client, given(task), engine.UsageRequest{Fence: fence(task), Usage: map[string]int64{"wall_ms": 1}})
		refused(t, err, base.CodeReservedDimension)
		reserved := func() int64 { return w.budget("time").Numbers["wall_ms"].Reserved }
		same(t, "at the claim", reserved(), int64(4000))
		w.pass(4000)
		eventually(t, "extended", func() bool { return reserved() == 8000 })
		w.turn(1000)
		w.complete(task)
		n := w.budget("time").Numbers["wall_ms"]
		same(t, "booked", []int64{n.Used, n.Reserved}, []int64{w.get(given(task)).CompletedAt.Sub(task.Execution.Lease.AcquiredAt), 0})
	})
}
