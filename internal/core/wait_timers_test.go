package core

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

func TestW75_W76_each_behavior_at_the_timeout(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		behavior string
		status   Status
		reason   Reason
		next     Next
		attempt  AttemptState
		cause    SuspensionCause
		closed   CloseReason
	}{
		{BehaviorFail, Failed, SuspensionTimeout, NextNone, EndedFailure, CauseTimeout, ClosedTimedOut},
		{BehaviorCancel, Cancelled, SuspensionTimeout, NextNone, EndedCancelled, CauseTimeout, ClosedTimedOut},
		{BehaviorExpire, Expired, SuspensionTimeout, NextNone, EndedFailure, CauseTimeout, ClosedTimedOut},
		{BehaviorAutoResume, Ready, WaitingForWorker, NextResume, AttemptInterrupted, CauseTimeout, ClosedResumed},
		{BehaviorEscalate, Suspended, PausedByOperator, NextResume, AttemptInterrupted, "", ""},
	} {
		// A retry policy must not bring a failed suspension back.
		s := begin(t, `{"retry_policy":{}}`)
		f := s.claim()
		other := s.pendingAt("other")[0]
		a := must[SuspendAnswer](t)(s.suspendFor(f, singleA, bound(fresh("a")...), timedOut(base.Minute, row.behavior),
			func(c *SuspendCommand) { c.ResumeDelayMS = base.Hour }))
		s.pass(base.Minute - 1)
		s.want(Suspended, WaitingForSignal, NextResume)
		s.pass(1)
		s.want(row.status, row.reason, row.next)
		if s.x.Attempt.State != row.attempt {
			t.Errorf("%s: the attempt is %s", row.behavior, s.x.Attempt.State)
		}
		s.wantCause(a.SuspensionID, row.cause)
		s.wantClosed(a.Waitpoints[0].ID, row.closed)
		if row.status.Terminal() {
			s.wantClosed(other, ClosedEnded)
			if s.x.CompletedAt != a.TimeoutAt || s.last("execution.completed")["reason"] != "suspension_timeout" {
				t.Errorf("%s: ended at %s", row.behavior, s.x.CompletedAt)
			}
			_, err := s.signal(a.Waitpoints[0].ID, "go")
			wantCode(t, err, base.CodeWaitpointClosed)
		} else {
			s.wantClosed(other, "")
		}
	}
}

func TestW75_the_words_of_a_failed_and_of_a_cancelled_end(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	must[SuspendAnswer](t)(s.suspendFor(s.claim(), timeoutOnly, timedOut(1, BehaviorFail)))
	s.pass(1)
	if f := s.x.Failure; f == nil || f.Class != "timeout" || f.Category != "suspension_timeout" {
		t.Fatalf("%+v", f)
	}
	s = begin(t, `{}`)
	must[SuspendAnswer](t)(s.suspendFor(s.claim(), timeoutOnly, timedOut(1, BehaviorCancel)))
	s.pass(1)
	if diff := cmp.Diff(&Cancellation{Source: "timeout", By: "engine"}, s.x.Cancellation); diff != "" {
		t.Fatal(diff)
	}
}

func TestW75_W76_an_automatic_resume_leaves_a_signal_whatever_the_cap_says(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"a"}, nil} {
		condition := timeoutOnly
		s := begin(t, `{"max_signals_per_execution":1}`)
		f := s.claim()
		elsewhere := s.pendingAt("other")[0]
		must[SignalAnswer](t)(s.signal(elsewhere, "filler"))
		a := must[SuspendAnswer](t)(s.suspendFor(f, condition, bound(fresh(keys...)...), timedOut(base.Minute, BehaviorAutoResume)))
		told := len(s.events)
		s.pass(base.Minute + 5)
		s.want(Ready, WaitingForWorker, NextResume)
		if kinds := s.kinds(told); kinds[0] != "signal.accepted" || kinds[len(kinds)-1] != "execution.resumed" || s.last("execution.resumed")["cause"] != "timeout" {
			t.Fatalf("%v", kinds)
		}
		shown := s.observed()
		if shown.Cause != CauseTimeout || len(shown.Signals) != 1 {
			t.Fatalf("W76: %+v", shown)
		}
		one := shown.Signals[0]
		if one.Name != "__timeout__" || one.Category != "system" || one.SourceType != "engine" || one.SourceIdentity != "suspension_timeout" ||
			!one.SourceVerified || one.AcceptedAt != a.TimeoutAt || one.Ordinal != 2 {
			t.Fatalf("W75: %+v", one)
		}
		if keys != nil && one.WaitpointID != a.Waitpoints[0].ID || keys == nil && !one.WaitpointID.IsZero() {
			t.Fatalf("W75: %+v", one)
		}
		var payload map[string]string
		if err := json.Unmarshal(one.Payload.Data, &payload); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"suspension_id": a.SuspensionID.String(), "timeout_at": a.TimeoutAt.String()}, payload); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestW76_timeouts_use_up_nothing_of_the_cap(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"max_signals_per_execution":1}`)
	for range 3 {
		must[SuspendAnswer](t)(s.suspendFor(s.claim(), timeoutOnly, timedOut(base.Minute, BehaviorAutoResume)))
		s.pass(base.Minute)
	}
	s.claim()
	must[SignalAnswer](t)(s.signal(s.pendingAt("a")[0], "go"))
	if s.x.Waits.Signals != 4 || s.d.Signals[3].Ordinal != 4 {
		t.Fatalf("%+v", s.x.Waits)
	}
}

func TestW75_what_was_escalated_waits_without_timeout_and_still_resumes(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *story, a SuspendAnswer){
		"signal":   func(s *story, a SuspendAnswer) { must[SignalAnswer](t)(s.signal(a.Waitpoints[0].ID, "go")) },
		"operator": func(s *story, _ SuspendAnswer) { s.resume() },
	} {
		s := begin(t, `{}`)
		a := must[SuspendAnswer](t)(s.suspendFor(s.claim(), singleA, bound(fresh("a")...), timedOut(base.Minute, BehaviorEscalate)))
		s.pass(base.Minute)
		data := s.last("execution.escalated")
		if data["suspension_id"] != a.SuspensionID.String() || data["timeout_at"] != a.TimeoutAt.String() || s.x.WakeAt != 0 {
			t.Fatalf("%v, wakes at %s", data, s.x.WakeAt)
		}
		wantShown := func(cause SuspensionCause) {
			t.Helper()
			if shown := s.observed(); shown.ReasonCode != "waiting_for_operator_review" || shown.TimeoutAt != 0 || shown.Cause != cause || shown.EscalatedAt != a.TimeoutAt {
				t.Fatalf("W82: %+v", shown)
			}
		}
		wantShown("")
		views, err := s.x.WaitpointViews(&s.d, false)
		if err != nil || views[0].State != WaitpointActive || views[0].ExpiresAt != 0 {
			t.Fatalf("%+v, %v", views, err)
		}
		s.pass(base.Day)
		s.want(Suspended, PausedByOperator, NextResume)
		end(s, a)
		s.want(Ready, WaitingForWorker, NextResume)
		wantShown(SuspensionCause(name))
	}
}

func TestW77_a_signal_at_the_timeout_loses_and_one_before_wins(t *testing.T) {
	t.Parallel()
	for _, behavior := range timeoutBehaviors {
		for _, offset := range []base.Millis{-1, 0, 1} {
			s := begin(t, `{}`)
			a := must[SuspendAnswer](t)(s.suspendFor(s.claim(), singleA, bound(fresh("a")...), timedOut(base.Minute, behavior)))
			s.now = a.TimeoutAt.Add(offset) // no sweep has run
			answer, err := s.signal(a.Waitpoints[0].ID, "go")
			switch {
			case offset < 0, behavior == BehaviorEscalate:
				if err != nil || answer.Effect != condition.EffectSatisfied {
					t.Fatalf("%s %d: %+v, %v", behavior, offset, answer, err)
				}
				s.wantCause(a.SuspensionID, CauseSignal)
			default:
				wantCode(t, err, base.CodeWaitpointClosed)
				s.wantCause(a.SuspensionID, CauseTimeout)
			}
			s.pass(base.Hour)
			if offset < 0 {
				s.want(Ready, WaitingForWorker, NextResume)
			}
		}
	}
}

func TestWI14_the_timer_of_a_suspension_that_ended_does_nothing(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	first := must[SuspendAnswer](t)(s.suspendFor(s.claim(), operatorOnly, timedOut(base.Minute, BehaviorFail)))
	s.resume()
	second := must[SuspendAnswer](t)(s.suspendFor(s.claim(), operatorOnly, timedOut(base.Hour, BehaviorCancel)))
	s.pass(base.Minute)
	s.want(Suspended, WaitingForSignal, NextResume)
	s.pass(base.Hour - base.Minute)
	s.want(Cancelled, SuspensionTimeout, NextNone)
	s.wantCause(first.SuspensionID, CauseOperator)
	s.wantCause(second.SuspensionID, CauseTimeout)
}

func TestL18_the_deadline_comes_before_a_timeout_of_the_same_moment(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"timeout_policy":{"execution_deadline_ms":60000}}`)
	a := must[SuspendAnswer](t)(s.suspendFor(s.claim(), operatorOnly, timedOut(base.Minute, BehaviorFail)))
	s.pass(base.Minute)
	s.want(Expired, ExecutionDeadline, NextNone)
	s.wantCause(a.SuspensionID, CauseEnded)
}

func TestLI13_a_timeout_that_is_noticed_late_leaves_the_same_records(t *testing.T) {
	t.Parallel()
	tell := func(looks []base.Millis) (*Execution, Dossier) {
		s := begin(t, `{}`)
		must[SuspendAnswer](t)(s.suspendFor(s.claim(), timeoutOnly, timedOut(base.Minute, BehaviorAutoResume)))
		for _, ms := range looks {
			s.pass(ms)
		}
		return s.x, s.d
	}
	early, earlyDossier := tell([]base.Millis{base.Minute, base.Minute})
	late, lateDossier := tell([]base.Millis{2 * base.Minute})
	if diff := cmp.Diff(early, late); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(earlyDossier, lateDossier); diff != "" {
		t.Error(diff)
	}
}

func TestW36_W2_pending_waitpoints_expire_at_their_moment_without_a_sweep(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claimFor(base.MaxLeaseTTL)
	expiry := []base.Millis{3 * base.Second, base.Second, base.Second, 2 * base.Second}
	var ids []base.UUID
	for _, ms := range expiry {
		ids = append(ids, must[CreateWaitpointAnswer](t)(s.createWaitpoint(f, "a", func(c *CreateWaitpointCommand) { c.ExpiresInMS = &ms })).Waitpoint.ID)
	}
	if s.x.WakeAt != s.now.Add(base.Second) {
		t.Fatalf("wakes at %s", s.x.WakeAt)
	}
	start := s.now
	s.now = start.Add(base.Second - 1)
	must[SignalAnswer](t)(s.signal(ids[1], "go"))
	s.now = start.Add(base.Second)
	_, err := s.signal(ids[1], "go")
	wantCode(t, err, base.CodeWaitpointExpired)
	for i, reason := range []CloseReason{"", ClosedExpired, ClosedExpired, ""} {
		s.wantClosed(ids[i], reason)
	}
	_, err = s.suspendFor(f, `{"type":"single"}`, bound(pending(ids[2])...))
	wantCode(t, err, base.CodeWaitpointExpired)
	s.now = start.Add(base.Hour) // one look for all that is due
	s.settle()
	var closed []base.Time
	for _, end := range s.d.WaitpointEnds {
		closed = append(closed, end.At)
	}
	if want := []base.Time{start.Add(base.Second), start.Add(base.Second), start.Add(2 * base.Second), start.Add(3 * base.Second)}; !slices.Equal(closed, want) {
		t.Fatalf("closed at %v", closed)
	}
	s.want(Running, ReasonNone, NextNone)
}

func TestW36_an_adopted_waitpoint_no_longer_expires_by_itself(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	id := s.pendingAt("a")[0]
	must[SuspendAnswer](t)(s.suspendFor(f, singleA, bound(pending(id)...)))
	s.pass(base.Year)
	s.wantClosed(id, "")
	must[SignalAnswer](t)(s.signal(id, "go"))
	s.want(Ready, WaitingForWorker, NextResume)
}
