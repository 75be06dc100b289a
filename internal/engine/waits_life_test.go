package engine_test

import (
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestW50_W62_W80_work_waits_for_a_signal_and_goes_on_with_it(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		s := w.suspend(task, goAtA, func(c *core.SuspendCommand) {
			c.Continuation = &core.Payload{Data: []byte("here"), ContentType: "text/plain"}
		})
		w.is(id, core.Suspended, core.WaitingForSignal)
		w.nothing()
		waiter := w.claiming(ask())
		w.waiters(1)
		same(t, "another name", w.signalled(s, "stay"), condition.EffectNotMatched)
		same(t, "the name", w.signalled(s, "go"), condition.EffectSatisfied)
		again := w.only(waiter)
		same(t, "the attempt goes on", []any{again.How, again.ResumedFrom, again.Execution.Attempt.ID, again.Execution.Attempt.Index},
			[]any{"resumed", core.InterruptedSuspended, task.Execution.Attempt.ID, 0})
		same(t, "epoch", again.Execution.LeaseEpoch, task.Execution.LeaseEpoch+1)
		same(t, "what it waited for", []any{again.Resumed.ID, again.Resumed.Cause, string(again.Resumed.Continuation.Data)},
			[]any{s.SuspensionID, core.CauseSignal, "here"})
		same(t, "signals", heard(again.Resumed.Signals), []string{"stay: from stay", "go: from go"})
		same(t, "closed", w.closed(s.Waitpoints[0].ID), core.ClosedResumed)
		w.complete(again)
		same(t, "story", w.story(id), []string{
			"execution.submitted", "lease.acquired", "waitpoint.created", "execution.suspended", "signal.accepted", "signal.accepted",
			"waitpoint.closed", "execution.resumed", "lease.acquired", "execution.completed",
		})
		_, err := w.signal(s.Waitpoints[0].ID, s.Tokens[0], "late")
		same(t, "why it is closed", refused(t, err, base.CodeWaitpointClosed).Details["close_reason"], any("resumed"))
	})
}

func TestW48_W49_signals_that_come_early_meet_the_condition(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		a := w.pending(task, "a")
		same(t, "buffered", must(w.signal(a.ID, a.Token, "go"))(t).Effect, condition.EffectBuffered)
		got := must(w.e.Suspend(w.ctx(), client, id, waitFor(task, goAtA, adopting(a.ID))))(t)
		same(t, "outcome", []any{got.Satisfied, got.Cause, got.Repeated}, []any{true, core.CauseEarlySignals, false})
		same(t, "signals", heard(got.Signals), []string{"go: from go"})
		same(t, "the same token", got.Tokens[0].Reveal(), a.Token.Reveal())
		same(t, "closed", w.closed(a.ID), core.ClosedResumed)
		same(t, "as it is shown", []any{got.Standings[0].State, got.Standings[0].CloseReason, got.Standings[0].SignalCount, got.Standings[0].MatchedSignals},
			[]any{core.WaitpointClosed, core.ClosedResumed, 1, 1})
		w.is(id, core.Running, core.ReasonNone)
		w.complete(task)
		same(t, "told", w.count(id, "execution.suspend_satisfied"), 1)
	})
}

func TestWI10_early_signals_that_are_not_enough_count_once_the_wait_begins(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		a, b := w.pending(task, "a"), w.pending(task, "b")
		must(w.signal(a.ID, a.Token, "go"))(t)
		both := `{"type":"all_of","members":[` + goAtA + `,{"type":"single","waitpoint_key":"b"},{"type":"single","waitpoint_key":"c"}]}`
		s := w.suspend(task, both, adopting(a.ID, b.ID), func(c *core.SuspendCommand) {
			c.Waitpoints = append(c.Waitpoints, core.Binding{Key: ptr("c")})
		})
		same(t, "came early", []int{s.Standings[0].SignalCount, s.Standings[0].MatchedSignals, s.Standings[1].SignalCount}, []int{1, 1, 0})
		same(t, "b", must(w.signal(b.ID, b.Token, "x"))(t).Effect, condition.EffectAppended)
		same(t, "c", must(w.signal(s.Waitpoints[2].ID, s.Tokens[2], "y"))(t).Effect, condition.EffectSatisfied)
		same(t, "signals", heard(w.claim().Resumed.Signals), []string{"go: from go", "x: from x", "y: from y"})
	})
}

func TestW56_a_handler_that_runs_again_passes_the_waits_it_has_passed(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":1}}}`))
		id := given(task)
		first := w.suspend(task, atA, named("one"))
		repeat := must(w.e.Suspend(w.ctx(), client, id, waitFor(task, atA, named("one"))))(t) // the answer was lost
		same(t, "the same outcome", []any{repeat.Satisfied, repeat.SuspensionID, repeat.Tokens[0].Reveal(), repeat.Repeated},
			[]any{false, first.SuspensionID, first.Tokens[0].Reveal(), true})
		_, err := w.e.Suspend(w.ctx(), client, id, waitFor(task, goAtA, named("one")))
		refused(t, err, base.CodeIdempotencyConflict)
		w.signalled(first, "go")

		task = w.claim() // from its top
		passed := func(task engine.Task, key string) {
			t.Helper()
			got := must(w.e.Suspend(w.ctx(), client, id, waitFor(task, atA, named(key))))(t)
			same(t, "wait "+key+" is passed", []any{got.Satisfied, got.Cause, heard(got.Signals)}, []any{true, core.CauseSignal, []string{"go: from go"}})
		}
		passed(task, "one")
		second := w.suspend(task, atA, named("two"))
		w.signalled(second, "go")

		w.claim() // it crashes after the second wait
		w.turn(30_000)
		w.becomes(id, core.Ready)
		task = w.claim()
		same(t, "taken over", task.How, "reclaimed")
		passed(task, "one")
		passed(task, "two")
		w.complete(task)
		same(t, "suspended twice", w.count(id, "execution.suspended"), 2)
	})
}

func TestL34_W4_the_answer_of_a_suspend_is_given_again(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		var again atomic.Bool
		repeating := client
		repeating.Repeated = &again
		task := w.started(core.Submission{})
		id := given(task)
		cmd := waitFor(task, atA)
		first := must(w.e.Suspend(w.ctx(), repeating, id, cmd))(t)
		same(t, "new", again.Load(), false)
		w.untouched(id, func() error {
			got, err := w.e.Suspend(w.ctx(), repeating, id, cmd)
			same(t, "again", []any{got.SuspensionID, got.Tokens[0].Reveal()}, []any{first.SuspensionID, first.Tokens[0].Reveal()})
			return err
		}, "")
		same(t, "repeated", again.Load(), true)
		w.signalled(first, "go")
		got := must(w.e.Suspend(w.ctx(), repeating, id, cmd))(t)
		same(t, "after the resume", []any{got.Satisfied, got.SuspensionID}, []any{false, first.SuspensionID})

		task = w.claim() // a wait that is over at once leaves the lease: only the request key knows the repeat
		a := w.pending(task, "a")
		must(w.signal(a.ID, a.Token, "go"))(t)
		keyed := client
		keyed.RequestKey = "k-1"
		early := must(w.e.Suspend(w.ctx(), keyed, id, waitFor(task, atA, adopting(a.ID))))(t)
		same(t, "over", []any{early.Satisfied, heard(early.Signals)}, []any{true, []string{"go: from go"}})
		early2 := must(w.e.Suspend(w.ctx(), keyed, id, waitFor(task, atA, adopting(a.ID))))(t)
		same(t, "over, again", []any{early2.Satisfied, early2.SuspensionID, heard(early2.Signals), early2.Tokens[0].Reveal()},
			[]any{true, early.SuspensionID, []string{"go: from go"}, a.Token.Reveal()})
		_, err := w.e.Suspend(w.ctx(), keyed, id, waitFor(task, goAtA, adopting(a.ID)))
		refused(t, err, base.CodeIdempotencyConflict)
	})
}

func TestW44_W46_W47_arguments_come_before_state_and_the_execution_before_the_fence(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		nowhere := base.GivenID{UUID: base.UUID{1}}
		task := w.started(core.Submission{})
		suspend := func(id base.GivenID, c core.SuspendCommand) error {
			_, err := w.e.Suspend(w.ctx(), client, id, c)
			return err
		}
		spent := core.SuspendCommand{SpentHandle: true}
		refused(t, suspend(nowhere, spent), base.CodeAlreadySuspended)
		empty := core.SuspendCommand{Condition: parsedCondition(atA)}
		same(t, "reason", refused(t, suspend(nowhere, empty), base.CodeInvalidSuspend).Details["reason"], any("waitpoints_empty"))
		unfenced := waitFor(task, atA)
		unfenced.Fence = core.Fence{}
		refused(t, suspend(nowhere, unfenced), base.CodeExecutionNotFound)
		refused(t, suspend(given(task), unfenced), base.CodeFenceRequired)
		stale := waitFor(task, atA)
		stale.Fence.LeaseID = base.UUID{9}
		w.untouched(given(task), func() error { return suspend(given(task), stale) }, base.CodeStaleLease)
		foreign := engine.Caller{Principal: "me", Actor: "client", Namespaces: []string{"other"}}
		_, err := w.e.Suspend(w.ctx(), foreign, given(task), waitFor(task, atA))
		refused(t, err, base.CodeExecutionNotFound)
	})
}

func TestW47_ids_of_waitpoints_are_used_once_across_executions(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id := base.UUID{7, 7, 7}
		first, second := w.started(core.Submission{}), w.started(core.Submission{})
		with := func(c *core.SuspendCommand) { c.Waitpoints[0].ID = id }
		s := w.suspend(first, atA, with)
		same(t, "its id", s.Waitpoints[0].ID, id)
		_, err := w.e.Suspend(w.ctx(), client, given(second), waitFor(second, atA, with))
		refused(t, err, base.CodeWaitpointAlreadyExists)
		_, err = w.e.CreateWaitpoint(w.ctx(), client, given(second), core.CreateWaitpointCommand{Fence: fence(second), Key: "a", WaitpointID: id})
		refused(t, err, base.CodeWaitpointAlreadyExists)
		_, err = w.e.Suspend(w.ctx(), client, given(second), waitFor(second, atA, adopting(id)))
		refused(t, err, base.CodeWaitpointNotFound)
		same(t, "whose it is", w.signalled(s, "go"), condition.EffectSatisfied)
	})
}

func TestW35_W36_W37_pending_waitpoints_outlive_their_attempt_and_are_made_once_a_key(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":1}}}`))
		id := given(task)
		create := func(task engine.Task, c core.CreateWaitpointCommand) (engine.Issued, error) {
			c.Fence = fence(task)
			return w.e.CreateWaitpoint(w.ctx(), client, id, c)
		}
		_, err := create(task, core.CreateWaitpointCommand{Key: ""})
		refused(t, err, base.CodeInvalidWaitpoint)
		a := must(create(task, core.CreateWaitpointCommand{Key: "a", IdempotencyKey: "x"}))(t)
		same(t, "expires", a.ExpiresAt, w.now().Add(base.Day))
		same(t, "not the same", must(create(task, core.CreateWaitpointCommand{Key: "a"}))(t).ID != a.ID, true)
		w.fail(task, "")
		w.pass(1)
		task = w.claim()
		same(t, "a new attempt", task.Execution.Attempt.Index, 1)
		again := must(create(task, core.CreateWaitpointCommand{Key: "a", IdempotencyKey: "x"}))(t)
		same(t, "the same", []any{again.ID, again.Token.Reveal(), again.Repeated}, []any{a.ID, a.Token.Reveal(), true})
		_, err = create(task, core.CreateWaitpointCommand{Key: "b", IdempotencyKey: "x"})
		refused(t, err, base.CodeIdempotencyConflict)
		same(t, "signals", must(w.signal(a.ID, a.Token, "go"))(t).Effect, condition.EffectBuffered)
		w.complete(task)
		same(t, "closed by the end", w.closed(a.ID), core.ClosedEnded)

		w.replay(id)
		task = w.claim()
		later := must(create(task, core.CreateWaitpointCommand{Key: "a", IdempotencyKey: "x"}))(t)
		same(t, "another run, another waitpoint", []any{later.ID != a.ID, later.RunIndex, later.Repeated}, []any{true, 1, false})
		_, err = w.signal(a.ID, a.Token, "go again")
		refused(t, err, base.CodeWaitpointClosed)
		_, err = w.e.Suspend(w.ctx(), client, id, waitFor(task, atA, adopting(a.ID)))
		refused(t, err, base.CodeWaitpointNotFound)
	})
}

func TestW36_more_than_256_waitpoints_of_an_execution_are_not_open(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		var last engine.Issued
		for range core.MaxOpenWaitpoints {
			last = w.pending(task, "a")
		}
		_, err := w.e.CreateWaitpoint(w.ctx(), client, given(task), core.CreateWaitpointCommand{Fence: fence(task), Key: "a"})
		refused(t, err, base.CodeWaitpointLimitExceeded)
		same(t, "closed by its worker", must(w.e.CloseWaitpoint(w.ctx(), client, last.ID, ptr(fence(task)), engine.Operator{}))(t), false)
		w.pending(task, "a")
		w.complete(task)
	})
}

func TestW38_a_pending_waitpoint_is_closed_by_its_worker_or_an_operator(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{Namespace: "a"})
		shut := func(c engine.Caller, id base.UUID, f *core.Fence, key string) (bool, error) {
			return w.e.CloseWaitpoint(w.ctx(), c, id, f, engine.Operator{Reason: "no use", RequestKey: key})
		}
		one, two, three := w.pending(task, "a"), w.pending(task, "b"), w.pending(task, "c")
		stale := fence(task)
		stale.LeaseID = base.UUID{1}
		_, err := shut(client, one.ID, &stale, "")
		refused(t, err, base.CodeStaleLease)
		same(t, "by its worker", must(shut(client, one.ID, ptr(fence(task)), ""))(t), false)
		same(t, "by an operator", must(shut(operator, two.ID, nil, "k"))(t), false)
		same(t, "the same request", must(shut(operator, two.ID, nil, "k"))(t), false)
		same(t, "another one", must(shut(operator, two.ID, nil, "l"))(t), true)
		_, err = shut(operator, base.UUID{3}, nil, "")
		refused(t, err, base.CodeWaitpointNotFound)
		foreign := engine.Caller{Principal: "op", Actor: "operator", Namespaces: []string{"b"}}
		_, err = shut(foreign, three.ID, nil, "")
		refused(t, err, base.CodeWaitpointNotFound)
		_, err = w.signal(two.ID, two.Token, "go")
		refused(t, err, base.CodeWaitpointClosed)
		w.suspend(task, `{"type":"single","waitpoint_key":"c"}`, adopting(three.ID))
		_, err = shut(operator, three.ID, nil, "")
		refused(t, err, base.CodeWaitpointActive)
		same(t, "told", w.deeds("a"), []string{"a close_waitpoint waitpoint"})
	})
}
