package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

func TestW50_W51_a_suspend_hands_the_lease_back_and_keeps_the_attempt(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"timeout_policy":{"attempt_timeout_ms":10000,"execution_deadline_ms":3600000}}`)
	f := s.claim()
	s.now = s.now.Add(4 * base.Second)
	adopted := s.pendingAt("first")[0]
	told := len(s.events)
	minted := s.d.Waitpoint(adopted).MintedAt
	s.now = s.now.Add(base.Second)
	a := must[SuspendAnswer](t)(s.suspendFor(f, bothOf(`{"type":"single","name":"go"}`, `{"type":"single","waitpoint_key":"second"}`),
		bound(pending(adopted)...), bound(fresh("second")...), timedOut(base.Minute, BehaviorEscalate),
		func(c *SuspendCommand) {
			c.ReasonCode, c.Continuation = "waiting_for_callback", &Payload{Data: []byte("here")}
		}))
	s.want(Suspended, WaitingForCallback, NextResume)
	if a.Satisfied || a.TimeoutAt != s.now.Add(base.Minute) || len(a.Waitpoints) != 2 || a.Waitpoints[0].ID != adopted || a.Waitpoints[1].Key != "second" {
		t.Fatalf("W51: %+v", a)
	}
	for i, names := range [][]string{{"go"}, nil} {
		w := a.Waitpoints[i]
		if w.ExpiresAt != a.TimeoutAt || w.ActivatedAt != s.now || w.SuspensionID != a.SuspensionID || !cmp.Equal(w.RequiredNames, names) {
			t.Fatalf("W50: %+v", w)
		}
	}
	if a.Waitpoints[0].MintedAt != minted || a.Waitpoints[1].MintedAt != s.now || a.Waitpoints[1].TokenKid != "k1" || len(a.Waitpoints[1].TokenFingerprint) != 16 {
		t.Fatalf("W28, W50: %+v", a.Waitpoints)
	}
	if s.x.LeaseEpoch != 1 || s.x.Attempt.State != AttemptInterrupted || s.x.Attempt.Interruption != InterruptedSuspended || s.x.AttemptRemaining != 5*base.Second {
		t.Fatalf("W50: %+v", s.x.Attempt)
	}
	if s.x.WakeAt != a.TimeoutAt {
		t.Fatalf("W50: wakes at %s", s.x.WakeAt)
	}
	if diff := cmp.Diff([]string{"waitpoint.created", "execution.suspended"}, s.kinds(told)); diff != "" {
		t.Fatal(diff)
	}
	data := s.last("execution.suspended")
	waitpoints, _ := data["waitpoints"].([]any)
	second, _ := waitpoints[1].(map[string]any)
	if data["suspension_id"] != a.SuspensionID.String() || data["reason_code"] != "waiting_for_callback" || data["timeout_behavior"] != "escalate" ||
		data["timeout_at"] != a.TimeoutAt.String() || data["lease"] == nil || second["waitpoint_key"] != "second" || second["token_kid"] != "k1" {
		t.Fatalf("E28: %v", data)
	}
}

func TestW50_the_deadline_of_the_execution_wakes_before_a_later_timeout(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"timeout_policy":{"execution_deadline_ms":60000}}`)
	must[SuspendAnswer](t)(s.suspendFor(s.claim(), operatorOnly, timedOut(2*base.Minute, "")))
	if s.x.WakeAt != s.x.DeadlineAt {
		t.Fatalf("wakes at %s, the deadline is %s", s.x.WakeAt, s.x.DeadlineAt)
	}
	s.pass(base.Minute)
	s.want(Expired, ExecutionDeadline, NextNone)
	s.wantCause(s.d.Suspensions[0].ID, CauseEnded)
}

func TestW87_the_policy_gives_timeout_and_behavior_where_the_suspend_gives_none(t *testing.T) {
	t.Parallel()
	const policy = `{"suspension_policy":{"default_timeout_ms":5000,"timeout_behavior":"cancel"}}`
	s := begin(t, policy)
	a := must[SuspendAnswer](t)(s.suspendFor(s.claim(), timeoutOnly))
	if a.TimeoutAt != s.now.Add(5000) {
		t.Fatalf("times out at %s", a.TimeoutAt)
	}
	s.pass(5000)
	s.want(Cancelled, SuspensionTimeout, NextNone)

	s = begin(t, policy)
	must[SuspendAnswer](t)(s.suspendFor(s.claim(), timeoutOnly, timedOut(9000, BehaviorExpire)))
	s.pass(8999)
	s.want(Suspended, WaitingForSignal, NextResume)
	s.pass(1)
	s.want(Expired, SuspensionTimeout, NextNone)
}

func TestW45_a_fresh_binding_without_key_gets_one(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	a := must[SuspendAnswer](t)(s.suspendFor(s.claim(), singleA, bound(Binding{})))
	if a.Waitpoints[0].Key != "a" {
		t.Fatalf("the only key of the condition is not taken: %+v", a.Waitpoints)
	}
	s = begin(t, `{}`)
	a = must[SuspendAnswer](t)(s.suspendFor(s.claim(), `{"type":"single"}`, bound(Binding{})))
	if w := a.Waitpoints[0]; w.Key != "wpk:"+w.ID.String() {
		t.Fatalf("%+v", w)
	}
	if got := must[SignalAnswer](t)(s.signal(a.Waitpoints[0].ID, "any")); got.Effect != condition.EffectSatisfied {
		t.Fatalf("the primary binding is not meant by a single without key: %+v", got)
	}
}

func TestL34_a_repeat_of_the_suspend_that_ended_the_lease_gets_its_answer_even_after_the_resume(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	first := must[SuspendAnswer](t)(s.suspendFor(f, singleA, bound(fresh("a")...), timedOut(base.Hour, "")))
	wantRepeat := func() {
		t.Helper()
		told := len(s.events)
		again := must[SuspendAnswer](t)(s.suspendFor(f, singleA, bound(fresh("a")...), timedOut(base.Hour, "")))
		want := first
		want.Repeated = true
		if diff := cmp.Diff(want, again); diff != "" || len(s.events) != told {
			t.Fatalf("%s, %v", diff, s.kinds(told))
		}
	}
	wantRepeat()
	must[SignalAnswer](t)(s.signal(first.Waitpoints[0].ID, "go"))
	wantRepeat()
	s.claim()
	wantRepeat()

	stale := f
	stale.AttemptID = s.mint()
	_, err := s.suspendFor(stale, singleA, bound(fresh("a")...))
	wantCode(t, err, base.CodeStaleLease)
}

func TestL36_a_suspend_after_the_lapse_counts_until_somebody_takes_over(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	s.pass(30 * base.Second)
	s.want(Ready, WaitingForWorker, NextReclaim)
	must[CreateWaitpointAnswer](t)(s.createWaitpoint(f, "late")) // keeps the lease, and leaves x queued
	s.want(Ready, WaitingForWorker, NextReclaim)
	a := must[SuspendAnswer](t)(s.suspendFor(f, operatorOnly))
	s.want(Suspended, WaitingForSignal, NextResume)
	if !a.Late || s.last("execution.suspended")["late"] != true {
		t.Fatalf("not late: %+v", a)
	}

	s = begin(t, `{}`)
	f = s.claim()
	s.pass(30 * base.Second)
	s.blockByQuota()
	must[SuspendAnswer](t)(s.suspendFor(f, operatorOnly))
	s.want(Suspended, WaitingForSignal, NextResume)
	s.resume()
	s.want(Ready, WaitingForWorker, NextResume)

	s = begin(t, `{}`)
	f = s.claim()
	s.pass(30 * base.Second)
	s.claim()
	_, err := s.suspendFor(f, operatorOnly)
	wantCode(t, err, base.CodeStaleLease)
}

func TestL15_slots_go_with_a_suspend_unless_the_policy_holds_them(t *testing.T) {
	t.Parallel()
	for policy, kept := range map[string][]string{`{}`: nil, `{"slots_while_waiting":"hold"}`: {"slots:api"}} {
		s := begin(t, policy)
		f := s.claim()
		s.x.Holds = []string{"lane:default", "slots:api"}
		must[SuspendAnswer](t)(s.suspendFor(f, operatorOnly))
		if diff := cmp.Diff(kept, s.x.Holds); diff != "" {
			t.Errorf("%s: %s", policy, diff)
		}
	}
}
