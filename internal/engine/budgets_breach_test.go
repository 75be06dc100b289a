package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestB27_a_breach_fails_the_reporter(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 10, onHard(core.OnHardFail)))
		task := w.started(policy(`{"budget_ids":["team"],"retry_policy":{"max_retries":3}}`))
		same(t, "action", w.report(task, 11).Action, core.ActionFailed)
		w.is(given(task), core.Failed, core.BudgetExceeded)
		_, err := w.reporting(task, 1)
		refused(t, err, base.CodeExecutionNotActive)
		same(t, "numbers", w.numbers("team"), [3]int64{0, 0, 0})
	})
}

func TestB28_finished_work_stays_finished(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 10, onHard(core.OnHardFail)))
		task := w.started(costing(0, "team"))
		must(w.e.CompleteWith(w.ctx(), client, given(task), core.Completion{Fence: fence(task), Usage: map[string]int64{"tokens": 25}}))(t)
		w.becomes(given(task), core.Succeeded)
		same(t, "numbers", w.numbers("team"), [3]int64{10, 0, 15})
	})
}

func TestB27_cancel_running_ends_every_holder(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 1000, onHard(core.OnHardCancelRunning)))
		var tasks []engine.Task
		for range 5 {
			tasks = append(tasks, w.started(costing(1, "team")))
		}
		w.create(tokens("other", 100))
		bystander := w.started(costing(1, "other"))
		waiting := w.submit(costing(1, "team"))
		same(t, "action", w.report(tasks[0], 2000).Action, core.ActionCancelled)
		for _, task := range tasks {
			x := w.becomes(given(task), core.Cancelled)
			same(t, "why", []any{x.Reason, x.Cancellation.Source}, []any{core.BudgetExceeded, "budget"})
		}
		w.is(given(bystander), core.Running, core.ReasonNone)
		w.is(waiting, core.Ready, core.WaitingForWorker)
		same(t, "BI2", w.numbers("team"), [3]int64{0, 0, 0})
	})
}

func TestB27_more_holders_than_one_transaction_ends_are_follow_up_work(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100_000, onHard(core.OnHardCancelRunning)))
		const all = 300
		w.submitMany(all, costing(1, "team"))
		r := ask()
		r.Max = all
		var tasks []engine.Task
		for len(tasks) < all {
			tasks = append(tasks, w.take(r)...)
		}
		must(w.charge("team", 200_000))(t)
		for _, task := range tasks {
			w.becomes(given(task), core.Cancelled)
		}
		eventually(t, "nothing is held", func() bool { return w.numbers("team") == [3]int64{0, 0, 0} })
	})
}

// asking is an execution that a breach has suspended for approval.
func (w *world) asking(edits ...func(*core.BudgetDefinition)) (base.GivenID, core.WaitpointView) {
	w.t.Helper()
	w.create(tokens("team", 10, append([]func(*core.BudgetDefinition){onHard(core.OnHardSuspendForApproval)}, edits...)...))
	task := w.started(costing(4, "team"))
	same(w.t, "action", w.report(task, 11).Action, core.ActionSuspended)
	x := w.is(given(task), core.Suspended, core.WaitingForBudget)
	return given(task), must(w.e.Waitpoint(w.ctx(), client, x.Waits.Open[0].ID))(w.t)
}

func TestB29_a_breach_asks_for_approval(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		id, at := w.asking()
		same(t, "waitpoint", at.Key, "budget")
		seen := w.observed(id)
		same(t, "reason", seen.ReasonCode, core.ReasonCodeBudget)
		same(t, "timeout", seen.TimeoutAt.Sub(seen.At), core.DefaultApprovalTimeout)
		asked := w.events(engine.EventFilter{ExecutionID: &id, Kinds: []string{"budget.approval_requested"}})
		same(t, "told", data(t, asked[0])["waitpoint_id"], any(at.ID.String()))
		same(t, "nothing is held", w.numbers("team"), [3]int64{0, 0, 0})
	})
}

func TestB30_an_operator_raises_the_limit_until_the_next_reset(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		id, _ := w.asking(resetting(core.BudgetReset{Type: "interval", EveryMS: base.Hour, AnchorAt: w.now()}))
		raise := func(payload string) core.ApproveCommand {
			return core.ApproveCommand{Name: "budget_approved", Payload: &core.Payload{ContentType: "application/json", Data: []byte(payload)}}
		}
		_, err := w.approve("ann", id, raise(`{"raise":{"tokens":0}}`))
		refused(t, err, base.CodeInvalidSignal)
		must(w.approve("ann", id, raise(`{"raise":{"tokens":5}}`)))(t)
		task := w.claim()
		same(t, "the same attempt", task.Execution.TotalAttempts, 1)
		n := w.budget("team").Numbers["tokens"]
		same(t, "limits", []int64{*n.Hard, *n.EffectiveHard}, []int64{10, 15})
		same(t, "raised", w.report(task, 11).Outcome, core.UsageOK)
		w.complete(task)
		same(t, "cause", w.observed(id).Cause, core.CauseBudgetApproved)
		w.turn(base.Hour)
		same(t, "after the reset", *w.budget("team").Numbers["tokens"].EffectiveHard, int64(10))
	})
}

func TestB30_a_link_approves_by_the_default_raise(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		_, at := w.asking(func(d *core.BudgetDefinition) { d.Approval.DefaultRaise = map[string]int64{"tokens": 3} })
		must(w.decideLink(w.link(at.ID, "ann"), "approve"))(t)
		task := w.claim()
		same(t, "by default", *w.budget("team").Numbers["tokens"].EffectiveHard, int64(13))
		same(t, "goes on", w.report(task, 11).Outcome, core.UsageOK)
		w.complete(task)
	})
}

func TestB31_a_denial_fails_the_execution(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		id, at := w.asking()
		must(w.decideLink(w.link(at.ID, "ann"), "reject"))(t)
		w.is(id, core.Failed, core.BudgetExceeded)
		same(t, "cause", w.observed(id).Cause, core.CauseBudgetDenied)
		same(t, "the waitpoint", w.closed(at.ID), core.ClosedDenied)
	})
}

func TestB29_no_answer_comes_in_time(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		id, _ := w.asking(func(d *core.BudgetDefinition) { d.Approval.TimeoutMS = base.Minute })
		w.pass(base.Minute)
		w.becomes(id, core.Failed)
	})
}

func TestB17_a_time_limit_that_is_used_up_acts(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(core.BudgetDefinition{Name: "time", OnHard: core.OnHardSuspendForApproval, Dimensions: limits(map[string]int64{"wall_ms": 5000})})
		task := w.started(policy(`{"budget_ids":["time"]}`))
		w.pass(5000)
		w.becomes(given(task), core.Suspended)
		n := w.budget("time").Numbers["wall_ms"]
		same(t, "used up", []int64{n.Used, n.Reserved}, []int64{5000, 0})
	})
}

func TestB28_a_breach_within_a_wait_that_is_passed_at_once_acts_on_the_run_that_goes_on(t *testing.T) {
	t.Parallel()
	for action, want := range map[string][2]any{
		core.OnHardBlockNew: {core.Running, core.ReasonNone}, core.OnHardFail: {core.Failed, core.BudgetExceeded},
		core.OnHardSuspendForApproval: {core.Suspended, core.WaitingForBudget}, core.OnHardCancelRunning: {core.Cancelled, core.BudgetExceeded},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			onSigning(t, func(t *testing.T, w *world) {
				w.create(tokens("b", 10, onHard(action)))
				task := w.started(costing(0, "b"))
				a := w.pending(task, "a")
				must(w.signal(a.ID, a.Token, "go"))(t)
				usage := func(c *core.SuspendCommand) { c.Usage = map[string]int64{"tokens": 25} }
				got := must(w.e.Suspend(w.ctx(), client, given(task), waitFor(task, goAtA, adopting(a.ID), usage)))(t)
				same(t, "passed", [2]any{got.Satisfied, got.Cause}, [2]any{true, core.CauseEarlySignals})
				x := w.get(given(task))
				same(t, "the run", [2]any{x.Status, x.Reason}, want)
				same(t, "booked", w.numbers("b"), [3]int64{10, 0, 15})
				same(t, "breaches", w.budget("b").Breaches, 1)
				w.sound()
			})
		})
	}
}

// holderLooks is a store that counts the looks for holders of budgets.
type holderLooks struct {
	store.Store
	scans atomic.Int64
}

// holders is the kind of the records by which those who hold leases charged to a budget are found.
const holders store.DocKind = 23

func (h *holderLooks) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := h.Store.Begin(ctx, want)
	return holderLooksTx{tx, h}, loaded, err
}

type holderLooksTx struct {
	store.Tx
	of *holderLooks
}

func (h holderLooksTx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	for _, scan := range want.Scans {
		if scan.Kind == holders {
			h.of.scans.Add(1)
		}
	}
	return h.Tx.Load(ctx, want)
}

func TestB27_breaches_of_one_transaction_look_for_the_holders_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		looks := &holderLooks{Store: w.store}
		w.store = looks
		b := w.interpose()
		w.create(tokens("b", 10, onHard(core.OnHardCancelRunning)))
		idle := w.started(costing(0, "b"))
		var ids []base.GivenID
		var reports []func()
		for range 4 {
			task := w.started(costing(0, "b"))
			ids = append(ids, given(task))
			reports = append(reports, func() { same(t, "action", w.report(task, 20, spent).Action, core.ActionCancelled) })
		}
		looks.scans.Store(0)
		w.batched(b, reports...)
		same(t, "looks", looks.scans.Load(), 1)
		for _, id := range append(ids, given(idle)) {
			w.is(id, core.Cancelled, core.BudgetExceeded)
		}
		same(t, "breaches", w.budget("b").Breaches, 4)
		w.sound()
	})
}
