package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestLC7_a_delay_in_the_past_or_present_is_none_and_one_ahead_holds(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		past := w.submit(core.Submission{DelayUntil: w.now() - 1})
		present := w.submit(core.Submission{DelayUntil: w.now()})
		zero := w.submit(core.Submission{DelayMS: ptr(int64(0))})
		ahead := w.submit(core.Submission{DelayUntil: w.now() + 1000})
		also := w.submit(core.Submission{DelayMS: ptr(int64(2000))})
		for _, id := range []base.GivenID{past, present, zero} {
			x := w.is(id, core.Ready, core.WaitingForWorker)
			same(t, "queued_at", x.QueuedAt, x.CreatedAt)
		}
		for range 3 {
			w.complete(w.claim())
		}
		for _, id := range []base.GivenID{ahead, also} {
			x := w.is(id, core.Delayed, core.WaitingForDelay)
			same(t, "queued_at", x.QueuedAt, x.DelayUntil)
		}
		w.nothing()
		w.turn(999)
		w.nothing()
		w.turn(1)
		task := w.claim()
		same(t, "first due", given(task), ahead)
		same(t, "delay is gone", task.Execution.DelayUntil, 0)
		w.nothing()
		w.turn(1000)
		same(t, "second due", given(w.claim()), also)
		same(t, "events", w.story(ahead), []string{"execution.submitted", "execution.ready", "lease.acquired"})
	})
}

func TestLI12_LC7_delay_and_hold_are_independent_in_every_order_of_release(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		first := w.submit(core.Submission{DelayMS: ptr(int64(1000))})
		w.hold(first)
		w.is(first, core.Delayed, core.WaitingForDelay)
		w.turn(1000)
		w.becomes(first, core.Blocked)
		w.is(first, core.Blocked, core.PausedByOperator)
		w.nothing()
		w.releaseHold(first)
		w.is(first, core.Ready, core.WaitingForWorker)

		second := w.submit(core.Submission{DelayMS: ptr(int64(1000))})
		w.hold(second)
		w.releaseHold(second)
		w.is(second, core.Delayed, core.WaitingForDelay)
		w.turn(1000)
		w.becomes(second, core.Ready)

		third := w.submit(core.Submission{DelayMS: ptr(int64(1000))})
		w.turn(1000)
		w.hold(third) // settles first: the delay is over
		w.is(third, core.Blocked, core.PausedByOperator)
		w.releaseHold(third)
		same(t, "events", w.story(third), []string{
			"execution.submitted", "execution.ready", "execution.held", "execution.blocked", "execution.hold_released", "execution.ready",
		})
	})
}

func TestL95_a_worker_delays_and_the_same_attempt_resumes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		answer := w.delay(task, w.now()+5000)
		same(t, "answer", answer, core.LeaveAnswer{Status: core.Delayed, Reason: core.WaitingForDelay, DelayUntil: w.now() + 5000})
		x := w.is(given(task), core.Delayed, core.WaitingForDelay)
		same(t, "next", x.Next, core.NextResume)
		same(t, "queued_at", x.QueuedAt, w.now()+5000)
		w.turn(5000)
		again := w.claim()
		same(t, "how", again.How, "resumed")
		same(t, "resumed from", again.ResumedFrom, core.InterruptedDelayed)
		same(t, "attempt", again.Execution.Attempt.ID, task.Execution.Attempt.ID)
		same(t, "index", again.Execution.Attempt.Index, 0)
		same(t, "epoch", again.Execution.LeaseEpoch, 2)
		past := w.delay(again, w.now()-1)
		same(t, "a time in the past makes it ready", past.Status, core.Ready)
		w.complete(w.claim())
	})
}

func TestLC8_backoff_follows_the_formula(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			policy string
			delays []base.Millis
			end    core.Reason
		}{
			{`{"retry_policy":{"max_retries":2,"backoff":{"strategy":"fixed","delay_ms":700}}}`, []base.Millis{700, 700}, core.RetriesExhausted},
			{`{"retry_policy":{"max_retries":5,"backoff":{"initial_ms":100,"max_ms":900,"multiplier":2.5}}}`, []base.Millis{100, 250, 625, 900, 900}, core.RetriesExhausted},
			{`{"retry_policy":{"max_retries":3}}`, []base.Millis{1000, 2000, 4000}, core.RetriesExhausted},
			{`{"retry_policy":{"max_retries":0}}`, nil, core.RetriesExhausted},
			{`{"retry_policy":{"max_retries":9,"max_elapsed_ms":3000,"backoff":{"strategy":"fixed","delay_ms":1500}}}`, []base.Millis{1500, 1500}, core.RetryWindowElapsed},
		} {
			id := w.submit(policy(c.policy))
			for i, delay := range c.delays {
				task := w.claim()
				answer := w.fail(task, "")
				same(t, "answer", answer, core.FailAnswer{Outcome: core.OutcomeRetryScheduled, RetryAt: w.now().Add(delay)})
				x := w.is(id, core.Delayed, core.WaitingForRetryBackoff)
				same(t, "retry count", x.RetryCount, i+1)
				same(t, "queued at its due time", x.QueuedAt, w.now().Add(delay))
				w.turn(delay - 1)
				w.nothing()
				w.pass(1)
			}
			task := w.claim()
			same(t, "attempts", task.Execution.TotalAttempts, len(c.delays)+1)
			same(t, "final answer", w.fail(task, ""), core.FailAnswer{Outcome: core.OutcomeFailed, Reason: c.end})
			x := w.is(id, core.Failed, c.end)
			same(t, "failure", *x.Failure, core.Failure{Class: "transient", Category: "transient", Message: "it broke", At: w.now()})
		}
	})
}

func TestLC8_jitter_stays_in_its_band_and_retry_after_replaces_the_backoff(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := policy(`{"retry_policy":{"max_retries":50,"backoff":{"strategy":"fixed","delay_ms":1000,"jitter":0.5}}}`)
		id := w.submit(s)
		for range 10 {
			delay := w.fail(w.claim(), "timeout").RetryAt.Sub(w.now())
			if delay <= 500 || delay > 1000 {
				t.Fatalf("delay %d with jitter 0.5 of 1000", delay)
			}
			w.turn(1000)
		}
		task := w.claim()
		answer := must(w.e.Fail(w.ctx(), client, id, core.FailCommand{Fence: fence(task), RetryAfter: ptr(int64(123_456))}))(t)
		same(t, "retry_after_ms", answer.RetryAt, w.now()+123_456)
		w.turn(123_456)
		task = w.claim()
		same(t, "retry_after_ms of 0", must(w.e.Fail(w.ctx(), client, id, core.FailCommand{Fence: fence(task), RetryAfter: ptr(int64(0))}))(t).RetryAt, w.now())
		w.is(id, core.Ready, core.WaitingForWorker)
	})
}

func TestLC8_class_and_category_decide_whether_there_is_a_retry(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := policy(`{"retry_policy":{"retryable_categories":["net","timeout"]}}`)
		for _, c := range []struct {
			class, category string
			want            core.Reason
		}{
			{"permanent", "net", core.Permanent},
			{"cancelled", "net", core.Permanent},
			{"transient", "disk", core.NotRetryable},
			{"transient", "", core.NotRetryable},
			{"transient", "net", core.ReasonNone},
			{"timeout", "disk", core.ReasonNone},
		} {
			task := w.started(s)
			answer := must(w.e.Fail(w.ctx(), client, given(task), core.FailCommand{Fence: fence(task), Class: c.class, Category: c.category}))(t)
			same(t, c.class+" "+c.category, answer.Reason, c.want)
			w.cancelQuietly(given(task))
		}
		task := w.started(s)
		for _, bad := range []core.FailCommand{{Class: "odd"}, {Category: "Upper"}, {RetryAfter: ptr(int64(-1))}, {RetryAfter: ptr(30*base.Day + 1)}} {
			bad.Fence = fence(task)
			w.untouched(given(task), func() error {
				_, err := w.e.Fail(w.ctx(), client, given(task), bad)
				return err
			}, base.CodeInvalidArgument)
		}
	})
}

// cancelQuietly ends what may or may not be over.
func (w *world) cancelQuietly(id base.GivenID) {
	w.t.Helper()
	_, err := w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{})
	if err != nil && base.CodeOf(err) != base.CodeExecutionNotActive {
		w.t.Fatal(err)
	}
}

func TestLC9_an_attempt_that_runs_too_long_is_retried_and_then_fails(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"timeout_policy":{"attempt_timeout_ms":2000},"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":100}}}`))
		task := w.claim()
		same(t, "attempt deadline", task.Execution.AttemptDeadline, w.now()+2000)
		w.turn(1999)
		w.renewed(task)
		w.turn(1)
		x := w.becomes(id, core.Delayed)
		same(t, "retry counts from the timeout", x.DelayUntil, w.now()+100)
		refused(t, w.completing(task), base.CodeExecutionNotActive)
		w.turn(100)
		task = w.claim()
		same(t, "lineage", *task.Execution.Attempt.Lineage, core.Lineage{Class: "timeout", Category: "timeout"})
		w.turn(2000)
		refused(t, w.completing(task), base.CodeExecutionNotActive) // whether or not the sweep was here before
		x = w.is(id, core.Failed, core.AttemptTimeout)
		same(t, "failure", x.Failure.Class, "timeout")
		ends := []core.LeaseEnd{}
		entries, _, err := w.e.Leases(w.ctx(), client, id, 0, 10)
		ok(t, err)
		for _, entry := range entries {
			ends = append(ends, entry.End)
		}
		same(t, "lease ends", ends, []core.LeaseEnd{core.EndAttemptTimeout, core.EndAttemptTimeout})
	})
}

func (w *world) renewed(task engine.Task) {
	w.t.Helper()
	_, err := w.renew(task, 0)
	ok(w.t, err)
}

func (w *world) completing(task engine.Task) error {
	_, err := w.e.Complete(w.ctx(), client, given(task), fence(task), nil)
	return err
}

func TestLC9_the_attempt_clock_stands_while_delayed_and_is_given_back_by_release(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"timeout_policy":{"attempt_timeout_ms":2000}}`))
		w.turn(500)
		w.delay(task, w.now()+60_000)
		w.turn(60_000)
		task = w.claim()
		same(t, "remainder after a delay", task.Execution.AttemptDeadline, w.now()+1500)
		w.turn(1000)
		w.release(task)
		w.turn(10_000)
		task = w.claim()
		same(t, "all of it after a release", task.Execution.AttemptDeadline, w.now()+2000)
		w.complete(task)
	})
}

func TestLC10_the_deadline_ends_every_status_that_is_not_terminal(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		deadline := w.now() + 10_000
		s := core.Submission{DeadlineAt: deadline}
		running := w.started(s)
		resting := w.started(s)
		w.delay(resting, w.now()+20_000)
		ready := w.submit(s)
		delayed := w.submit(core.Submission{DeadlineAt: deadline, DelayMS: ptr(int64(20_000))})
		blocked := w.submit(s)
		w.hold(blocked)
		ids := []base.GivenID{ready, delayed, blocked, given(running), given(resting)}
		w.turn(9999)
		for _, id := range ids {
			if x := w.get(id); x.Status.Terminal() {
				t.Fatalf("%s a millisecond before the deadline", x.Status)
			}
		}
		w.turn(1)
		for _, id := range ids {
			w.becomes(id, core.Expired)
			x := w.is(id, core.Expired, core.ExecutionDeadline)
			same(t, "completed_at", x.CompletedAt, deadline)
			same(t, "completions", w.count(id, "execution.completed"), 1)
		}
		same(t, "lease of the running one", w.get(given(running)).LastLease.End, core.EndDeadline)
		same(t, "attempt of the delayed one", w.attempts(given(resting))[0].State, core.EndedFailure)
		refused(t, w.completing(running), base.CodeExecutionNotActive)
		_, err := w.renew(running, 0)
		refused(t, err, base.CodeExecutionNotActive)
	})
}

func TestLC10_a_completion_one_millisecond_before_the_deadline_counts_and_at_it_does_not(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{PolicyJSON: []byte(`{"timeout_policy":{"execution_deadline_ms":1000}}`)}
		first, second := w.started(s), w.started(s)
		same(t, "deadline by policy", first.Execution.DeadlineAt, w.now()+1000)
		w.turn(999)
		w.complete(first)
		w.turn(1)
		refusal := refused(t, w.completing(second), base.CodeExecutionNotActive)
		same(t, "details", fmt.Sprint(refusal.Details["status"], refusal.Details["reason"], refusal.Details["terminal_outcome"], refusal.Details["lease_epoch"], refusal.Details["attempt_index"]),
			fmt.Sprint("expired", "execution_deadline", "expired", int64(1), 0))
		w.is(given(second), core.Expired, core.ExecutionDeadline)
	})
}

func TestL81_the_earlier_deadline_counts(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		p := []byte(`{"timeout_policy":{"execution_deadline_ms":1000}}`)
		same(t, "policy is earlier", w.get(w.submit(core.Submission{PolicyJSON: p, DeadlineAt: w.now() + 2000})).DeadlineAt, w.now()+1000)
		same(t, "call is earlier", w.get(w.submit(core.Submission{PolicyJSON: p, DeadlineAt: w.now() + 500})).DeadlineAt, w.now()+500)
	})
}

func TestLI13_answers_do_not_depend_on_the_sweep(t *testing.T) {
	t.Parallel()
	// An engine that never turns a timer: every command settles what is due by itself.
	onStoresWith(t, engine.Config{NoTimers: true, PollInterval: time.Hour}, func(t *testing.T, w *world) {
		w.unaudited = true // lists need the loops that this engine does not run
		s := policy(`{"timeout_policy":{"attempt_timeout_ms":10000},"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":100}}}`)
		lapsed, late, delayed := w.started(s), w.started(s), w.submit(core.Submission{DelayMS: ptr(int64(50))})
		_, err := w.renew(lapsed, 1000)
		ok(t, err)
		_, err = w.renew(late, 2000)
		ok(t, err)
		w.turn(2500)
		_, err = w.renew(lapsed, 0)
		refused(t, err, base.CodeLeaseExpired)
		same(t, "lapsed", w.is(given(lapsed), core.Ready, core.WaitingForWorker).LastLease.EndedAt, w.now()-1500)
		same(t, "late", w.complete(late), core.CompleteAnswer{Status: core.Succeeded, Late: true})
		w.is(delayed, core.Delayed, core.WaitingForDelay) // reads do not settle
		w.hold(delayed)
		w.is(delayed, core.Blocked, core.PausedByOperator)
	})
}
