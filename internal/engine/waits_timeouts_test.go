package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestW75_W76_every_behaviour_at_a_timeout(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		behavior string
		status   core.Status
		reason   core.Reason
		attempt  core.AttemptState
		cause    core.SuspensionCause
		closed   core.CloseReason
	}{
		{core.BehaviorFail, core.Failed, core.SuspensionTimeout, core.EndedFailure, core.CauseTimeout, core.ClosedTimedOut},
		{core.BehaviorCancel, core.Cancelled, core.SuspensionTimeout, core.EndedCancelled, core.CauseTimeout, core.ClosedTimedOut},
		{core.BehaviorExpire, core.Expired, core.SuspensionTimeout, core.EndedFailure, core.CauseTimeout, core.ClosedTimedOut},
		{core.BehaviorAutoResume, core.Ready, core.WaitingForWorker, core.AttemptInterrupted, core.CauseTimeout, core.ClosedResumed},
		{core.BehaviorEscalate, core.Suspended, core.PausedByOperator, core.AttemptInterrupted, "", ""},
	} {
		t.Run(row.behavior, func(t *testing.T) {
			t.Parallel()
			onSigning(t, func(t *testing.T, w *world) {
				task := w.started(policy(`{"retry_policy":{"max_retries":3},"max_signals_per_execution":1}`))
				id := given(task)
				s := w.suspend(task, goAtA, timingOut(1000, row.behavior))
				w.signalled(s, "stay") // the cap is reached
				w.turn(999)
				w.is(id, core.Suspended, core.WaitingForSignal)
				w.pass(1)
				var x *core.Execution
				eventually(t, "the timeout has acted", func() bool {
					x = w.get(id)
					return x.Reason == row.reason && x.Status == row.status
				})
				seen := w.observed(id)
				same(t, "what is left", []any{x.Attempt.State, seen.Cause, w.closed(s.Waitpoints[0].ID)}, []any{row.attempt, row.cause, row.closed})
				if row.behavior == core.BehaviorAutoResume {
					same(t, "signals", len(w.claim().Resumed.Signals), 2)
					same(t, "the last one", seen.Signals[1].Name, "__timeout__")
				}
				if row.behavior == core.BehaviorEscalate {
					same(t, "escalated", []any{seen.ReasonCode, w.count(id, "execution.escalated")}, []any{"waiting_for_operator_review", 1})
					w.turn(base.Hour)
					must(w.approve("ann", id, core.ApproveCommand{Name: "x"}))
					_, _, err := w.resume(id, core.ResumeCommand{})
					ok(t, err)
					w.claim()
				}
			})
		})
	}
}

func TestW77_WI14_a_signal_at_the_timeout_loses_and_the_timer_of_a_wait_that_is_over_does_nothing(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{NoTimers: true}, func(t *testing.T, w *world) {
		must(w.seedKey("a", 1))(t)
		early, e := w.asleep(atA, timingOut(1000, core.BehaviorFail))
		late, l := w.asleep(atA, timingOut(1000, core.BehaviorFail))
		w.turn(999)
		same(t, "a millisecond before", w.signalled(e, "go"), condition.EffectSatisfied)
		w.turn(1)
		_, err := w.signal(l.Waitpoints[0].ID, l.Tokens[0], "go")
		refused(t, err, base.CodeWaitpointClosed)
		w.is(late, core.Failed, core.SuspensionTimeout)
		task := w.claim()
		same(t, "it runs", given(task).UUID, early.UUID)
		w.complete(task)
	})
}

func TestW77_the_deadline_of_the_execution_ends_a_wait(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"timeout_policy":{"execution_deadline_ms":1000}}`))
		s := w.suspend(task, atA)
		w.pass(1000)
		w.becomes(given(task), core.Expired)
		same(t, "closed", []any{w.closed(s.Waitpoints[0].ID), w.observed(given(task)).Cause}, []any{core.ClosedEnded, core.CauseEnded})
	})
}

func TestW35_a_pending_waitpoint_expires_by_the_sweep_and_by_the_next_command(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		short := func() engine.Issued {
			return must(w.e.CreateWaitpoint(w.ctx(), client, given(task),
				core.CreateWaitpointCommand{Fence: fence(task), Key: "a", ExpiresInMS: ptr(base.Second)}))(t)
		}
		swept := short()
		w.pass(base.Second)
		eventually(t, "the sweep closes it", func() bool { return w.count(given(task), "waitpoint.closed") == 1 })
		same(t, "reason", w.closed(swept.ID), core.ClosedExpired)
		touched := short()
		w.turn(base.Second)
		_, err := w.signal(touched.ID, touched.Token, "go")
		refused(t, err, base.CodeWaitpointExpired)
		_, err = w.e.Suspend(w.ctx(), client, given(task), waitFor(task, atA, adopting(swept.ID)))
		refused(t, err, base.CodeWaitpointExpired)
	})
}

func TestW78_an_operator_resumes_whatever_the_condition(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		for _, text := range []string{atA, operatorOnly, twoApprovers, `{"type":"all_of","members":[` + atA + `,{"type":"operator_only"}]}`} {
			id, s := w.asleep(text, func(c *core.SuspendCommand) { c.ResumeDelayMS = base.Hour })
			view, already, err := w.resume(id, core.ResumeCommand{ExpectedSuspensionID: s.SuspensionID})
			ok(t, err)
			same(t, "ready at once", []any{view.Execution.Status, already}, []any{core.Ready, false})
			_, already, err = w.resume(id, core.ResumeCommand{ExpectedSuspensionID: s.SuspensionID})
			ok(t, err)
			same(t, "resumed before", already, true)
			_, _, err = w.resume(id, core.ResumeCommand{})
			refused(t, err, base.CodeExecutionNotSuspended)
			task := must(w.e.ClaimResumed(w.ctx(), client, id, engine.TargetedRequest{WorkerID: "w", InstanceID: "w1"}))(t)
			same(t, "why", []any{task.Resumed.Cause, task.Resumed.By}, []any{core.CauseOperator, "op"})
			w.suspend(task, text)
			_, _, err = w.resume(id, core.ResumeCommand{ExpectedSuspensionID: base.UUID{5}})
			refused(t, err, base.CodeSuspensionMismatch)
			w.cancel(id)
			_, _, err = w.resume(id, core.ResumeCommand{})
			refused(t, err, base.CodeExecutionNotActive)
		}
		_, _, err := w.resume(base.GivenID{UUID: base.UUID{1}}, core.ResumeCommand{})
		refused(t, err, base.CodeExecutionNotFound)
	})
}

func TestW4_W78_a_resume_is_answered_again_and_waits_for_its_delay(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, _ := w.asleep(operatorOnly)
		resume := func() (engine.View, bool, error) {
			return w.e.Resume(w.ctx(), operator, id, core.ResumeCommand{DelayMS: 1000}, engine.Operator{RequestKey: "k", Reason: "go on"})
		}
		first, _, err := resume()
		ok(t, err)
		same(t, "delayed", []any{first.Execution.Status, first.Execution.Reason}, []any{core.Delayed, core.WaitingForResumeDelay})
		w.nothing()
		w.pass(1000)
		task := w.claim()
		again, already, err := resume()
		ok(t, err)
		same(t, "the first answer", []any{again.Execution.Status, already}, []any{core.Delayed, false})
		w.complete(task)
		same(t, "U131", w.deeds("default"), []string{"default resume execution"})
		_, _, err = w.e.Resume(w.ctx(), operator, id, core.ResumeCommand{DelayMS: -1}, engine.Operator{})
		refused(t, err, base.CodeInvalidArgument)
	})
}

func TestW79_cancel_ends_a_wait(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(atA)
		w.cancel(id)
		same(t, "closed", []any{w.closed(s.Waitpoints[0].ID), w.observed(id).Cause}, []any{core.ClosedEnded, core.CauseCancelled})
		_, err := w.signal(s.Waitpoints[0].ID, s.Tokens[0], "go")
		refused(t, err, base.CodeWaitpointClosed)
		same(t, "one end", w.count(id, "execution.completed"), 1)
	})
}

func TestU57_bulk_jobs_resume_and_signal(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		one, _ := w.asleep(atA)
		two, _ := w.asleep(`{"type":"any_of","members":[` + atA + `,{"type":"single","waitpoint_key":"b"}]}`)
		three := given(w.started(core.Submission{}))
		all := []base.GivenID{one, two, three}
		job := w.ended(w.bulk(engine.BulkRequest{Action: "signal", IDs: all, Args: engine.BulkArgs{
			Signal: &engine.BulkSignal{Name: "yes", Payload: &core.Payload{Data: []byte("because")}},
		}}).JobID)
		same(t, "signalled", []any{job.Done, job.Refused}, []any{1, map[base.Code]int{base.CodeWaitpointAmbiguous: 2}})
		same(t, "signals", heard(w.claim().Resumed.Signals), []string{"yes: because"})
		job = w.ended(w.bulk(engine.BulkRequest{Action: "resume", IDs: all, Args: engine.BulkArgs{DelayMS: 1000}}).JobID)
		same(t, "resumed", []any{job.Done, job.Refused}, []any{1, map[base.Code]int{base.CodeExecutionNotSuspended: 2}})
		w.is(two, core.Delayed, core.WaitingForResumeDelay)
		_, err := w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "signal", IDs: all})
		refused(t, err, base.CodeInvalidArgument)
		_, err = w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "resume", IDs: all, Args: engine.BulkArgs{DelayMS: -1}})
		refused(t, err, base.CodeInvalidArgument)
	})
}
