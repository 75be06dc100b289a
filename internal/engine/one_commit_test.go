package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	admission "github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Commands of several callers share a commit, and what they do must come out as if each had one of its own.

func TestB27_F4_F28_a_member_that_a_breach_cancels_is_told_to_its_flow(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 10, onHard(core.OnHardCancelRunning)))
		s := chain("a", "b")
		s.Nodes[0].PolicyJSON = []byte(`{"budget_ids":["team"]}`)
		flow := w.submitFlow(s)
		a := w.claimMember(flow, "a")
		must(w.charge("team", 20))(t)
		w.becomes(given(a), core.Cancelled)
		w.is(flow.Members["b"].Given(), core.Skipped, core.DependencyImpossible)
		same(t, "state", w.flow(flow).State, core.FlowFailed)
		w.consistent(flow)
	})
}

func TestB27_F42_F44_a_child_that_a_breach_cancels_wakes_its_parent_and_ends_its_own_children(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 10, onHard(core.OnHardCancelRunning)))
		p := w.parent()
		r := spawnOf(p, "child")
		r.Children[0].PolicyJSON = []byte(`{"budget_ids":["team"]}`)
		w.spawnAll(r)
		child := w.claimKind("child")
		w.spawn(child, "grandchild")
		grandchildren := w.get(given(child)).Children.FlowID
		w.parked(p)
		must(w.charge("team", 20))(t)
		w.becomes(given(child), core.Cancelled)
		w.becomes(given(p), core.Ready)
		same(t, "the flow of the grandchild", w.flowEnds(grandchildren).State, core.FlowStopped)
	})
}

func TestL18_FI2_FI10_a_replay_of_a_member_whose_time_is_over_counts_its_end_first(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{{Name: "a", Kind: "work", DeadlineAt: w.now().Add(1000)}}})
		w.turn(1000)
		w.replay(flow.Members["a"].Given())
		w.consistent(flow)
		same(t, "told", w.count(flow.Members["a"].Given(), "execution.completed"), 1)
		w.workOff("work", 1, succeeds)
		same(t, "state", w.flow(flow).State, core.FlowCompleted)
	})
}

func TestF56_FI10_a_cascade_over_a_member_whose_time_is_over_counts_its_end_first(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{
			{Name: "a", Kind: "a"},
			{Name: "other", Kind: "other"},
			{Name: "d", Kind: "d", After: []string{"a", "other"}, DeadlineAt: w.now().Add(base.Minute)},
		}})
		w.workOff("a", 1, succeeds)
		w.turn(base.Minute)
		must(w.e.Replay(w.ctx(), operator, flow.Members["a"].Given(), engine.ReplayRequest{Cascade: core.CascadeAll}, engine.Operator{}))(t)
		w.consistent(flow)
		w.is(flow.Members["d"].Given(), core.Blocked, core.WaitingForChildren)
	})
}

func TestF48_F57_a_replay_of_a_flow_node_whose_time_is_over_stops_its_subflow_and_begins_another(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		inner := chain("x")
		inner.Kind = ""
		flow := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "n", Flow: &inner, DeadlineAt: w.now().Add(base.Minute)}}})
		first := w.subflow(flow, "n").Flow.ID
		swept := w.cfg
		w.cfg.NoTimers, w.cfg.PollInterval = true, 1<<40
		w.restart()
		w.turn(base.Minute)
		w.replay(flow.Members["n"].Given())
		w.cfg = swept
		w.restart()
		w.turn(base.Minute)
		eventually(t, "another begins", func() bool { return w.member(flow, "n").Children != nil })
		same(t, "the sub-flow of the run that expired", w.flowEnds(first).State, core.FlowStopped)
		w.consistent(flow)
	})
}

func TestF44_an_end_and_a_replay_in_one_commit_end_the_children_of_the_run_that_is_over(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		p := w.parent()
		w.spawn(p, "c")
		old := w.get(given(p)).Children.FlowID
		w.batched(b,
			func() { w.fail(p, "permanent") },
			func() { w.replay(given(p)) },
		)
		same(t, "the children flow", w.flowEnds(old).State, core.FlowStopped)
		same(t, "replays", w.get(given(p)).ReplayCount, 1)
	})
}

func TestL139_a_replay_and_a_cancel_in_one_commit_arm_the_removal(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		task := w.started(policy(`{"retention_ms":{"succeeded":-1,"cancelled":1000}}`))
		w.complete(task)
		w.batched(b,
			func() { w.replay(given(task)) },
			func() { must(w.e.Cancel(w.ctx(), operator, given(task), nil, "", engine.Operator{}))(t) },
		)
		w.becomes(given(task), core.Cancelled)
		w.turn(base.Minute)
		w.gone(given(task))
	})
}

func TestF4_F44_the_last_child_and_the_end_of_its_parent_in_one_commit_leave_the_flow_completed(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		b := w.interpose()
		p := w.parent()
		w.spawn(p, "c")
		flow := w.get(given(p)).Children.FlowID
		child := w.claimKind("c")
		w.fail(p, "permanent")
		w.batched(b,
			func() { w.complete(child) },
			func() { ok(t, w.e.EndChildren(w.ctx(), given(p), flow)) },
		)
		same(t, "the children flow", w.flowEnds(flow).State, core.FlowCompleted)
	})
}

func TestS38_a_quota_that_is_put_and_deleted_in_one_commit_is_gone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		w.quota("mail", core.QuotaSettings{ConcurrencyLimit: 5})
		w.batched(b,
			func() { // it is gone before its caller looks at it
				_, err := w.e.PutQuota(w.ctx(), operator, "mail", core.QuotaSettings{ConcurrencyLimit: 1}, engine.AdminAction{})
				same(t, "put", base.CodeOf(err), base.CodeQuotaNotFound)
			},
			func() { ok(t, w.e.DeleteQuota(w.ctx(), operator, "mail", true, engine.AdminAction{})) },
		)
		_, err := w.e.Quota(w.ctx(), operator, "mail")
		refused(t, err, base.CodeQuotaNotFound)
	})
}

func TestB2_a_budget_that_is_renamed_twice_in_one_commit_keeps_the_last_name_alone(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		b := w.interpose()
		w.create(tokens("a", 10))
		id := w.budget("a").ID.String()
		rename := func(to string) func() {
			return func() {
				_, err := w.e.UpdateBudget(w.ctx(), operator, ofName(id), core.BudgetUpdate{Name: &to}, engine.AdminAction{})
				ok(t, err)
			}
		}
		w.batched(b, rename("c"), rename("d"))
		same(t, "name", w.budget(id).Name, "d")
		w.create(tokens("c", 30))
		w.create(tokens("a", 30))
	})
}

func TestB5_B33_a_budget_that_is_renamed_and_deleted_in_one_commit_is_gone(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		b := w.interpose()
		w.create(tokens("a", 10, covering(core.ScopeNamespace, "")))
		id, to := w.budget("a").ID.String(), "c"
		w.batched(b,
			func() { // it is gone before its caller looks at it
				_, err := w.e.UpdateBudget(w.ctx(), operator, ofName(id), core.BudgetUpdate{Name: &to}, engine.AdminAction{})
				same(t, "update", base.CodeOf(err), base.CodeBudgetNotFound)
			},
			func() { ok(t, w.dropFound(id)) },
		)
		w.create(tokens("c", 30))
		w.started(core.Submission{})
	})
}

func TestB27_S20_a_claim_that_rides_along_with_a_breach_gets_a_lease_that_stands(t *testing.T) {
	t.Parallel()
	rides(t, 1, func(w *world, together func(...func()) engine.ClaimAnswer) {
		w.create(tokens("team", 100, onHard(core.OnHardCancelRunning)))
		task := w.started(costing(0, "team"))
		w.submit(costing(0, "team"))
		answer := together(func() { same(w.t, "action", w.report(task, 200).Action, core.ActionCancelled) })
		for _, got := range answer.Tasks {
			same(w.t, "status", w.get(given(got)).Status, core.Running)
		}
	})
}

// ticking is a store whose clock moves on with every look at the ledger.
type ticking struct {
	store.Store
	w *world
}

type tickingTx struct {
	store.Tx
	w *world
}

func (s ticking) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := s.Store.Begin(ctx, want)
	return tickingTx{tx, s.w}, loaded, err
}

func (t tickingTx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if slices.ContainsFunc(want.Docs, func(ref store.DocRef) bool { return ref.Kind == admission.DocLedger }) {
		t.w.turn(1)
	}
	return t.Tx.Load(ctx, want)
}

func TestB27_a_lease_that_begins_in_the_commit_of_a_breach_ends_although_the_clock_moves(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		b := w.interpose()
		closeEngine(t, w.e)
		b.Store = ticking{w.store, w}
		w.e = w.openEngine(b)
		w.create(tokens("team", 100, onHard(core.OnHardCancelRunning)))
		task := w.started(costing(0, "team"))
		other := w.submit(costing(0, "team"))
		w.batched(b,
			func() {
				claim := engine.TargetedRequest{WorkerID: "w", InstanceID: "i1", TTL: 30000}
				must(w.e.OperatorClaim(w.ctx(), operator, other, claim))(t)
			},
			func() {
				over := core.Completion{Fence: fence(task), Usage: map[string]int64{"tokens": 200}}
				must(w.e.CompleteWith(w.ctx(), client, given(task), over))(t)
			},
		)
		w.becomes(other, core.Cancelled)
	})
}
