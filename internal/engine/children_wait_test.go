package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestF40_F41_a_parent_waits_for_its_children_and_goes_on_in_the_same_attempt(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		ids := w.spawn(task, "a", "b").Children
		w.parked(task)
		x := w.get(given(task))
		same(t, "lease", x.Lease, nil)
		same(t, "next", x.Next, core.NextResume)
		same(t, "attempt (L26)", x.Attempt.Interruption, core.InterruptedWaitingChildren)
		same(t, "state", w.public(given(task)), "waiting_children")
		must(w.e.Complete(w.ctx(), client, ids["a"].Given(), fence(w.claimKind("a")), &core.Payload{Data: []byte("done")}))(t)
		w.is(given(task), core.Blocked, core.WaitingForChildren)
		w.breakDown("b")
		back := w.claimKind("parent")
		same(t, "how", back.How, "resumed")
		same(t, "resumed from", back.ResumedFrom, core.InterruptedWaitingChildren)
		same(t, "attempt (L29)", back.Execution.Attempt.ID, task.Execution.Attempt.ID)
		same(t, "epoch", back.Execution.LeaseEpoch, task.Execution.LeaseEpoch+1)
		same(t, "cause", back.ChildrenCause, core.CauseChildren)
		same(t, "outcomes", outcomes(back.Children), map[string]string{"a": "succeeded", "b": "failed"})
		same(t, "id", back.Children[0].ID, ids["a"])
		same(t, "result", *back.Children[0].Result, core.ResultRef{Of: ids["a"], Epoch: 1, ContentType: base.DefaultContentType, Size: 4})
		same(t, "reason", back.Children[1].FailureReason, "permanent")
		same(t, "story", w.story(given(task)), []string{
			"execution.submitted", "lease.acquired", "execution.waiting_children", "execution.ready", "lease.acquired",
		})
		w.complete(back)
	})
}

func TestF42_calling_again_after_the_resume_answers_at_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		w.spawn(task, "a", "b")
		w.parked(task)
		w.end("a")
		w.end("b")
		back := w.claimKind("parent")
		again := w.waitFor(back)
		same(t, "state", again.State, core.WaitSatisfied)
		same(t, "outcomes", outcomes(again.Children), map[string]string{"a": "succeeded", "b": "succeeded"})
		w.is(given(task), core.Running, core.ReasonNone)
		same(t, "no event", w.count(given(task), "execution.waiting_children"), 1)
	})
}

func TestL96_what_is_decided_before_keeps_the_lease(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		same(t, "none at all (F40)", w.waitFor(task), engine.ChildrenWaitAnswer{State: core.WaitSatisfied, Children: []engine.ChildView{}})
		w.spawn(task, "a", "b", "c")
		w.end("a")
		w.breakDown("b")
		for name, c := range map[string]struct {
			edits []func(*engine.ChildrenWaitRequest)
			state string
		}{
			"any of them":               {[]func(*engine.ChildrenWaitRequest){joining(core.JoinSpec{Policy: core.AnyOf})}, core.WaitSatisfied},
			"two of them":               {[]func(*engine.ChildrenWaitRequest){joining(core.JoinSpec{Policy: core.Quorum, K: 2})}, core.WaitSatisfied},
			"more than there are":       {[]func(*engine.ChildrenWaitRequest){joining(core.JoinSpec{Policy: core.Quorum, K: 4})}, core.WaitImpossible},
			"the success of one failed": {[]func(*engine.ChildrenWaitRequest){ofKind(core.SuccessOnly)}, core.WaitImpossible},
			"the failure of one":        {[]func(*engine.ChildrenWaitRequest){namely("b"), ofKind(core.FailureOnly)}, core.WaitSatisfied},
			"two by name":               {[]func(*engine.ChildrenWaitRequest){namely("b", "a", "b")}, core.WaitSatisfied},
		} {
			same(t, name, w.waitFor(task, c.edits...).State, c.state)
		}
		w.is(given(task), core.Running, core.ReasonNone)
		w.complete(task)
	})
}

func TestF40_arguments_are_checked(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		call := func(edits ...func(*engine.ChildrenWaitRequest)) error {
			return second(w.e.WaitForChildren(w.ctx(), client, waitOf(task, edits...)))
		}
		refused(t, call(namely("a")), base.CodeChildNotFound)
		w.spawn(task, "a")
		refused(t, call(namely("a", "b")), base.CodeChildNotFound)
		refused(t, call(joining(core.JoinSpec{Policy: core.Quorum})), base.CodeInvalidJoin)
		refused(t, call(ofKind("sometimes")), base.CodeInvalidArgument)
		refused(t, call(within(-1)), base.CodeInvalidArgument)
		refused(t, call(within(core.MaxChildrenTimeout+1)), base.CodeInvalidArgument)
		refused(t, call(func(r *engine.ChildrenWaitRequest) { r.Usage = map[string]int64{core.WallMS: 1} }), base.CodeReservedDimension)
		refused(t, call(func(r *engine.ChildrenWaitRequest) { r.Fence = core.Fence{} }), base.CodeFenceRequired)
		refused(t, call(func(r *engine.ChildrenWaitRequest) { r.Fence.Epoch++ }), base.CodeStaleLease)
		r := spawnOf(task, "b")
		r.Wait = &engine.ChildrenWaitRequest{Names: []string{"missing"}}
		refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeChildNotFound)
		same(t, "nothing was made (F43)", w.childrenFlow(given(task)).Nodes, 1)
		w.is(given(task), core.Running, core.ReasonNone)
	})
}

func TestF41_a_wait_that_cannot_be_satisfied_any_more_resumes_and_never_skips(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		w.spawn(task, "a", "b", "c")
		w.parked(task, joining(core.JoinSpec{Policy: core.Quorum, K: 2}), ofKind(core.SuccessOnly))
		w.breakDown("a")
		w.is(given(task), core.Blocked, core.WaitingForChildren)
		w.breakDown("b")
		back := w.claimKind("parent")
		same(t, "cause", back.ChildrenCause, core.CauseChildrenImpossible)
		same(t, "outcomes", outcomes(back.Children), map[string]string{"a": "failed", "b": "failed", "c": ""})
		same(t, "again", w.waitFor(back, joining(core.JoinSpec{Policy: core.Quorum, K: 2}), ofKind(core.SuccessOnly)).State, core.WaitImpossible)
		w.end("c")
		w.complete(back)
	})
}

func TestF41_F42_a_timeout_resumes_once_and_the_same_wait_is_over_from_then_on(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		w.spawn(task, "a")
		w.parked(task, within(1000))
		w.turn(999)
		w.is(given(task), core.Blocked, core.WaitingForChildren)
		w.pass(1)
		back := w.claimKind("parent")
		same(t, "cause", back.ChildrenCause, core.CauseChildrenTimeout)
		same(t, "outcomes", outcomes(back.Children), map[string]string{"a": ""})
		again := w.waitFor(back, within(1000))
		same(t, "the same wait again", again.State, core.WaitTimedOut)
		same(t, "with the children", outcomes(again.Children), map[string]string{"a": ""})
		w.parked(back, within(2000)) // another wait
		w.end("a")
		back = w.claimKind("parent")
		same(t, "cause", back.ChildrenCause, core.CauseChildren)
		same(t, "what has come meanwhile counts", w.waitFor(back, within(1000)).State, core.WaitSatisfied)
		w.complete(back)
		same(t, "waits told", w.count(given(task), "execution.waiting_children"), 2)
	})
}

func TestL34_a_repeat_of_the_call_gets_the_recorded_answer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		r := spawnOf(task, "a", "b")
		r.Wait = &engine.ChildrenWaitRequest{}
		first := w.spawnAll(r)
		same(t, "waiting", first.Wait.Waiting, true)
		again := func() {
			t.Helper()
			got := w.spawnAll(r)
			same(t, "children", got.Children, first.Children)
			same(t, "created", got.Created, 2)
			same(t, "waiting", got.Wait, first.Wait)
			same(t, "the wait alone", w.waitFor(task), engine.ChildrenWaitAnswer{Waiting: true})
			same(t, "unknown names", w.waitFor(task, namely("missing")), engine.ChildrenWaitAnswer{Waiting: true})
		}
		again()
		refused(t, second(w.e.Spawn(w.ctx(), client, spawnOf(task, "c"))), base.CodeExecutionNotActive)
		w.end("a")
		w.end("b")
		again()
		back := w.claimKind("parent")
		again()
		w.complete(back)
		again()
		w.replay(given(task))
		again() // also when the run is another (L40)
		same(t, "waits", w.count(given(task), "execution.waiting_children"), 1)
	})
}

func TestF43_a_spawn_that_waits_is_one_transaction(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		r := spawnOf(task, "a", "b")
		r.Wait = &engine.ChildrenWaitRequest{Names: []string{"b"}, Join: core.JoinSpec{Policy: core.AnyOf}}
		got := w.spawnAll(r)
		same(t, "created", got.Created, 2)
		w.is(given(task), core.Blocked, core.WaitingForChildren)
		w.end("a")
		w.is(given(task), core.Blocked, core.WaitingForChildren)
		w.end("b")
		back := w.claimKind("parent")
		same(t, "those waited for", outcomes(back.Children), map[string]string{"b": "succeeded"})
		r.Fence = fence(back)
		got = w.spawnAll(r)
		same(t, "the handler again: created", got.Created, 0)
		same(t, "state", got.Wait.State, core.WaitSatisfied)
	})
}

func TestE28_the_event_of_a_wait_closes_the_lease(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		w.spawn(task, "a", "b")
		w.parked(task, joining(core.JoinSpec{Policy: core.Quorum, K: 2}), within(5000))
		id := given(task)
		told := data(t, w.events(engine.EventFilter{ExecutionID: &id, Kinds: []string{"execution.waiting_children"}})[0])
		same(t, "policy", told["policy"], any("quorum"))
		same(t, "k", told["k"], any(2.0))
		same(t, "children", told["children"], any([]any{"a", "b"}))
		same(t, "timeout", told["timeout_at"] != nil, true)
		same(t, "epoch", told["lease_epoch"], any(1.0))
	})
}

func TestF30_F31_children_that_a_decided_wait_needs_no_more_are_cancelled(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		race := joining(core.JoinSpec{Policy: core.AnyOf, OnSatisfied: core.CancelRemaining})
		task := w.parent()
		r := spawnOf(task, "a", "b", "c", "d")
		r.Children[3].After = []string{"c"}
		ids := w.spawnAll(r).Children
		w.parked(task, race, namely("a", "b", "d"))
		w.end("a")
		back := w.claimKind("parent")
		for _, name := range []string{"b", "d", "c"} { // c leads to nothing but d
			x := w.becomes(ids[name].Given(), core.Cancelled)
			same(t, "reason of "+name, x.Reason, core.JoinSatisfied)
		}
		more := w.spawn(back, "e", "f").Children
		w.end("e")
		got := w.waitFor(back, race, namely("e", "f"))
		same(t, "decided before", got.State, core.WaitSatisfied)
		f := w.childrenFlow(given(task))
		w.becomes(more["f"].Given(), core.Cancelled)
		w.complete(back)
		same(t, "losers are no failures (F5)", w.flowEnds(f.ID).State, core.FlowCompleted)
	})
}

func TestF31_a_child_that_its_parent_still_waits_for_is_no_loser(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		r := spawnOf(task, "a", "b", "c")
		r.Children[2].Join = &core.JoinSpec{Policy: core.AnyOf, OnSatisfied: core.CancelRemaining}
		r.Edges = []core.FlowEdge{{From: "a", To: "c"}, {From: "b", To: "c"}}
		ids := w.spawnAll(r).Children
		w.parked(task, namely("b"))
		w.end("a")
		w.end("c")
		w.is(ids["b"].Given(), core.Ready, core.WaitingForWorker)
		w.end("b")
		same(t, "outcome", outcomes(w.claimKind("parent").Children), map[string]string{"b": "succeeded"})
	})
}

func TestL101_the_attempts_time_stands_still_while_it_waits(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Kind: "parent", PolicyJSON: []byte(`{"timeout_policy":{"attempt_timeout_ms":10000}}`)})
		task := w.claimKind("parent")
		w.spawn(task, "a")
		w.turn(4000)
		w.parked(task)
		w.pass(60_000)
		w.end("a")
		back := w.claimKind("parent")
		same(t, "left", back.Execution.AttemptDeadline, w.now()+6000)
	})
}

func TestB16_usage_is_booked_once_whether_it_waits_or_not(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.create(tokens("ours", 100))
		s := costing(10, "ours")
		s.Kind = "parent"
		w.submit(s)
		task := w.claimKind("parent")
		used := func(r *engine.ChildrenWaitRequest) { r.Usage = map[string]int64{"tokens": 7} }
		caller := client
		caller.RequestKey = "k1"
		for range 2 {
			got := must(w.e.WaitForChildren(w.ctx(), caller, waitOf(task, used)))(t)
			same(t, "state", got.State, core.WaitSatisfied)
		}
		same(t, "used, reserved", w.numbers("ours"), [3]int64{7, 3, 0})
		w.spawn(task, "a")
		w.parked(task, used)
		w.parkedAgain(task, used)
		same(t, "used, reserved", w.numbers("ours"), [3]int64{14, 0, 0})
	})
}

// parkedAgain repeats a wait.
func (w *world) parkedAgain(task engine.Task, edits ...func(*engine.ChildrenWaitRequest)) {
	w.t.Helper()
	same(w.t, "the recorded answer", w.waitFor(task, edits...), engine.ChildrenWaitAnswer{Waiting: true})
}

func TestL36_a_late_wait_acts_as_from_running(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		w.spawn(task, "a")
		w.pass(60_000)
		w.becomes(given(task), core.Ready)
		w.parked(task)
		w.end("a")
		back := w.claimKind("parent")
		same(t, "how", back.How, "resumed")
		same(t, "cause", back.ChildrenCause, core.CauseChildren)
		same(t, "attempt", back.Execution.Attempt.Index, 0)
	})
}

func TestF42_a_worker_lost_after_the_resume_is_reclaimed_and_waits_no_more(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		ids := w.spawn(task, "a").Children
		w.parked(task)
		w.restart()
		w.end("a")
		w.claimKind("parent")
		w.pass(60_000)
		taken := w.claimKind("parent")
		same(t, "how", taken.How, "reclaimed")
		same(t, "no wait is shown", taken.ChildrenCause, "")
		same(t, "the same child", w.spawn(taken, "a").Children, ids)
		same(t, "state", w.waitFor(taken).State, core.WaitSatisfied)
		w.complete(taken)
	})
}

func TestF40_waits_follow_each_other_and_a_hold_stands_meanwhile(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		w.spawn(task, "a", "b", "c")
		w.parked(task, joining(core.JoinSpec{Policy: core.AnyOf}))
		w.end("a")
		back := w.claimKind("parent")
		w.parked(back) // the edges of b and c are those of another wait now
		w.end("b")
		w.is(given(task), core.Blocked, core.WaitingForChildren)
		w.hold(given(task))
		w.end("c")
		w.is(given(task), core.Blocked, core.PausedByOperator)
		w.releaseHold(given(task))
		same(t, "children", outcomes(w.claimKind("parent").Children), map[string]string{"a": "succeeded", "b": "succeeded", "c": "succeeded"})
	})
}
