package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestW78_an_operator_resumes_whatever_the_condition(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{
		singleA, operatorOnly, timeoutOnly, bothOf(singleA, singleA), together(singleA, operatorOnly),
		countOf(1, "distinct_sources", `"waitpoints":["a"]`),
	} {
		for _, delay := range []base.Millis{0, base.Minute} {
			s := begin(t, `{}`)
			a := must[SuspendAnswer](t)(s.suspendFor(s.claim(), condition, bound(fresh("a")...), timedOut(base.Hour, ""),
				func(c *SuspendCommand) { c.ResumeDelayMS = 7 * base.Second }))
			already := must[bool](t)(s.resumeWith(ResumeCommand{By: "ann", DelayMS: delay}))
			if already {
				t.Fatal("already resumed")
			}
			data := s.last("execution.resumed")
			if data["by"] != "ann" || data["cause"] != "operator" || s.d.SuspensionEnds[0].By != "ann" {
				t.Fatalf("%v", data)
			}
			if delay > 0 {
				s.want(Delayed, WaitingForResumeDelay, NextResume)
				s.pass(delay)
			}
			s.want(Ready, WaitingForWorker, NextResume)
			s.wantCause(a.SuspensionID, CauseOperator)
			s.wantClosed(a.Waitpoints[0].ID, ClosedResumed)
		}
	}
}

func TestW78_the_expected_suspension_decides_first(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	first := must[SuspendAnswer](t)(s.suspendFor(s.claim(), operatorOnly))
	expect := func(id base.UUID) (bool, error) {
		return s.resumeWith(ResumeCommand{By: "ann", ExpectedSuspensionID: id})
	}
	_, err := expect(base.UUID{1})
	if refused := wantCode(t, err, base.CodeSuspensionMismatch); refused.Details["suspension_id"] != first.SuspensionID.String() {
		t.Fatalf("%+v", refused)
	}
	if already := must[bool](t)(expect(first.SuspensionID)); already {
		t.Fatal("already resumed")
	}
	wantAlready := func() {
		t.Helper()
		told := len(s.events)
		if already := must[bool](t)(expect(first.SuspensionID)); !already || len(s.events) != told {
			t.Fatal("resumed again")
		}
	}
	wantAlready() // ready
	_, err = expect(base.UUID{1})
	wantCode(t, err, base.CodeExecutionNotSuspended)
	second := must[SuspendAnswer](t)(s.suspendFor(s.claim(), operatorOnly, timedOut(base.Minute, BehaviorFail)))
	wantAlready() // another is open
	s.pass(base.Minute)
	wantAlready() // ended
	_, err = expect(second.SuspensionID)
	wantNotActive(t, wantCode(t, err, base.CodeExecutionNotActive), s.x)
}

func TestW78_arguments(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.claim()
	s.suspend()
	for _, c := range []ResumeCommand{{DelayMS: -1}, {DelayMS: maxResumeDelay + 1}, {Reason: "\xff"}} {
		_, err := s.resumeWith(c)
		wantCode(t, err, base.CodeInvalidArgument)
	}
}

func TestW79_a_cancel_closes_everything_that_waits(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	other := s.pendingAt("other")[0]
	a := must[SuspendAnswer](t)(s.suspendFor(f, singleA, bound(fresh("a")...)))
	told := len(s.events)
	must[bool](t)(s.cancel(nil))
	s.want(Cancelled, CancelledByRequest, NextNone)
	kinds := []string{"execution.cancel_requested", "waitpoint.closed", "waitpoint.closed", "execution.completed"}
	if diff := cmp.Diff(kinds, s.kinds(told)); diff != "" {
		t.Fatal(diff)
	}
	s.wantCause(a.SuspensionID, CauseCancelled)
	for _, id := range []base.UUID{other, a.Waitpoints[0].ID} {
		s.wantClosed(id, ClosedEnded)
		_, err := s.signal(id, "go")
		if refused := wantCode(t, err, base.CodeWaitpointClosed); refused.Details["close_reason"] != "ended" {
			t.Fatalf("%+v", refused)
		}
	}
	if s.x.Attempt.State != EndedCancelled {
		t.Fatalf("the attempt is %s", s.x.Attempt.State)
	}
}

func TestW35_pending_waitpoints_survive_retry_and_reclaim_and_end_with_the_run(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`)
	s.claim()
	id := s.pendingAt("a")[0]
	must[FailAnswer](t)(s.fail(s.fence(), ""))
	s.claim()
	s.pass(30 * base.Second)
	s.claim()
	s.wantClosed(id, "")
	must[CompleteAnswer](t)(s.complete(s.fence(), nil))
	s.wantClosed(id, ClosedEnded)
	if err := s.replay(ReplayCommand{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if len(s.x.openWaitpoints()) != 0 || s.x.Waits.Signals != 0 {
		t.Fatalf("%+v", s.x.Waits)
	}
	shown, err := s.x.Observe(&s.d)
	if shown != nil || err != nil {
		t.Fatalf("W82: %+v, %v", shown, err)
	}
	_, err = s.suspendFor(s.claim(), `{"type":"single"}`, bound(pending(id)...))
	wantCode(t, err, base.CodeWaitpointNotFound)
}

func TestW80_WI17_resumed_work_is_claimed_with_the_same_attempt_and_what_arrived(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"timeout_policy":{"attempt_timeout_ms":60000}}`)
	f := s.claim()
	attempt, started := *s.x.Attempt, s.x.StartedAt
	s.pass(20 * base.Second)
	a := must[SuspendAnswer](t)(s.suspendFor(f, singleNamed, bound(fresh("a")...),
		func(c *SuspendCommand) { c.Continuation = &Payload{Data: []byte("page 7")} }))
	s.pass(base.Hour)
	must[SignalAnswer](t)(s.signal(a.Waitpoints[0].ID, "no"))
	closer := must[SignalAnswer](t)(s.signal(a.Waitpoints[0].ID, "go"))
	got := Acquired{}
	_ = s.do(func(fx *Effects) error {
		got = s.x.Acquire(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: "w", InstanceID: "w-2", TTL: base.Minute})
		return nil
	})
	if got.How != howResumed || s.x.Attempt.ID != attempt.ID || s.x.Attempt.Index != attempt.Index || s.x.LeaseEpoch != 2 ||
		s.x.Attempt.State != AttemptStarted || s.x.StartedAt != started || s.x.Attempt.StartedAt != attempt.StartedAt {
		t.Fatalf("%+v %+v", got, s.x.Attempt)
	}
	if s.x.AttemptDeadline != s.now.Add(40*base.Second) {
		t.Fatalf("the attempt ends at %s", s.x.AttemptDeadline)
	}
	resumed, err := s.x.ResumedWait(&s.d, got)
	if err != nil || resumed.ID != a.SuspensionID || resumed.Cause != CauseSignal || resumed.CloserSignalID != closer.SignalID ||
		string(resumed.Continuation.Data) != "page 7" || !cmp.Equal(namesOf(resumed.Signals), []string{"no", "go"}) {
		t.Fatalf("%+v, %v", resumed, err)
	}
	early := must[CreateWaitpointAnswer](t)(s.createWaitpoint(s.fence(), "b"))
	must[SignalAnswer](t)(s.signal(early.Waitpoint.ID, "go"))
	if a := must[SuspendAnswer](t)(s.suspendFor(s.fence(), `{"type":"single"}`, bound(pending(early.Waitpoint.ID)...))); !a.Satisfied {
		t.Fatalf("%+v", a)
	}
	if again, err := s.x.ResumedWait(&s.d, got); err != nil || again.ID != a.SuspensionID {
		t.Fatalf("told again after a wait that was passed: %+v, %v", again, err)
	}
	must[LeaveAnswer](t)(s.release(s.fence()))
	_ = s.do(func(fx *Effects) error {
		got = s.x.Acquire(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: "w", InstanceID: "w-2", TTL: base.Minute})
		return nil
	})
	if resumed, err := s.x.ResumedWait(&s.d, got); resumed != nil || err != nil {
		t.Fatalf("after a release: %+v, %v", resumed, err)
	}
}

func TestW81_what_is_suspended_or_delayed_is_claimed_by_no_path(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.claim()
	s.suspend()
	target := Targeted{Lane: s.lane}
	wantCode(t, s.x.CheckClaimResumed(target), base.CodeNotAResumedExecution)
	wantCode(t, s.x.CheckOperatorClaim(target), base.CodeExecutionNotEligible)
	if s.x.Queued() {
		t.Fatal("it queues")
	}
	must[bool](t)(s.resumeWith(ResumeCommand{By: "ann", DelayMS: base.Minute}))
	wantCode(t, s.x.CheckClaimResumed(target), base.CodeNotAResumedExecution)
	s.pass(base.Minute)
	if err := s.x.CheckClaimResumed(target); err != nil {
		t.Fatal(err)
	}
}

func TestW82_observe_shows_the_open_suspension_and_then_the_last_one(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	if shown, err := s.x.Observe(&s.d); shown != nil || err != nil {
		t.Fatalf("never suspended: %+v, %v", shown, err)
	}
	first := must[SuspendAnswer](t)(s.suspendFor(s.claim(), singleNamed, bound(fresh("a")...), timedOut(base.Hour, "")))
	must[SignalAnswer](t)(s.signal(first.Waitpoints[0].ID, "no"))
	shown := s.observed()
	if shown.ID != first.SuspensionID || shown.Cause != "" || shown.TimeoutAt != first.TimeoutAt || len(shown.Signals) != 1 || shown.Signals[0].Matched {
		t.Fatalf("%+v", shown)
	}
	must[SignalAnswer](t)(s.signal(first.Waitpoints[0].ID, "go"))
	for range 2 { // reading consumes nothing
		if shown = s.observed(); shown.Cause != CauseSignal || !cmp.Equal(namesOf(shown.Signals), []string{"no", "go"}) || !shown.Signals[1].Matched {
			t.Fatalf("%+v", shown)
		}
	}
	second := must[SuspendAnswer](t)(s.suspendFor(s.claim(), operatorOnly))
	if shown = s.observed(); shown.ID != second.SuspensionID || len(shown.Signals) != 0 {
		t.Fatalf("%+v", shown)
	}
	s.resume()
	if shown = s.observed(); shown.Cause != CauseOperator || shown.By != "ann" {
		t.Fatalf("%+v", shown)
	}
	history, err := s.x.Suspensions(&s.d)
	if err != nil || len(history) != 2 || history[0].ID != first.SuspensionID || history[1].ID != second.SuspensionID {
		t.Fatalf("W85: %+v, %v", history, err)
	}
}
