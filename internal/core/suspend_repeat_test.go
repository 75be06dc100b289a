package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// once suspends at key "a" under the idempotency key "wait".
func (s *story) once(f Fence, edits ...func(*SuspendCommand)) (SuspendAnswer, error) {
	s.t.Helper()
	return s.suspendFor(f, singleA, append([]func(*SuspendCommand){bound(fresh("a")...), keyed("wait"), timedOut(base.Hour, BehaviorAutoResume)}, edits...)...)
}

// otherwise makes the arguments differ.
func otherwise(c *SuspendCommand) { c.ResumeDelayMS = 5 }

func TestW56_the_fence_that_made_the_suspension_gets_the_recorded_outcome(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	first := must[SuspendAnswer](t)(s.once(f))
	first.Repeated = true
	for _, state := range []string{"open", "closed", "claimed again"} {
		told := len(s.events)
		if diff := cmp.Diff(first, must[SuspendAnswer](t)(s.once(f))); diff != "" || len(s.events) != told {
			t.Fatalf("%s: %s", state, diff)
		}
		_, err := s.once(f, otherwise)
		wantCode(t, err, base.CodeIdempotencyConflict)
		switch state {
		case "open":
			must[SignalAnswer](t)(s.signal(first.Waitpoints[0].ID, "go"))
		case "closed":
			s.claim()
		}
	}
}

func TestW56_a_later_holder_of_the_lease_passes_a_wait_that_was_passed(t *testing.T) {
	t.Parallel()
	for cause, end := range map[SuspensionCause]func(s *story, a SuspendAnswer){
		CauseSignal:   func(s *story, a SuspendAnswer) { must[SignalAnswer](t)(s.signal(a.Waitpoints[0].ID, "go")) },
		CauseOperator: func(s *story, _ SuspendAnswer) { s.resume() },
		CauseTimeout:  func(s *story, _ SuspendAnswer) { s.pass(base.Hour) },
	} {
		s := begin(t, `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`)
		first := must[SuspendAnswer](t)(s.once(s.claim()))
		end(s, first)
		var signals []string
		switch cause {
		case CauseSignal:
			signals = []string{"go"}
		case CauseTimeout:
			signals = []string{"__timeout__"}
		}
		for _, by := range []func(){
			func() { s.claim() }, // the resumed work
			func() { must[FailAnswer](t)(s.fail(s.fence(), "")); s.claim() },                                       // a retry
			func() { s.pass(30 * base.Second); s.claim() },                                                         // a reclaim
			func() { must[LeaveAnswer](t)(s.release(s.fence())); s.claim() },                                       // a release
			func() { s.now = s.now.Add(29 * base.Second) },                                                         // the same lease
			func() { f := s.fence(); s.pass(30 * base.Second); s.wantPassed(f, first, cause, signals); s.claim() }, // a lapse
		} {
			by()
			s.wantPassed(s.fence(), first, cause, signals)
			_, err := s.once(s.fence(), otherwise)
			wantCode(t, err, base.CodeIdempotencyConflict)
		}
	}
}

func (s *story) wantPassed(f Fence, first SuspendAnswer, cause SuspensionCause, signals []string) {
	s.t.Helper()
	before, told := s.x.Clone(), len(s.events)
	a := must[SuspendAnswer](s.t)(s.once(f))
	if !a.Satisfied || !a.Repeated || a.SuspensionID != first.SuspensionID || a.Cause != cause || !cmp.Equal(namesOf(a.Signals), signals) ||
		a.Waitpoints[0].ID != first.Waitpoints[0].ID {
		s.t.Fatalf("W56: %+v", a)
	}
	if diff := cmp.Diff(before, s.x); diff != "" || len(s.events) != told {
		s.t.Fatalf("W56: a passed wait changed something: %s", diff)
	}
}

func TestW56_anybody_else_goes_on_to_the_fence_check_and_sees_no_waitpoint(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	must[SuspendAnswer](t)(s.once(f))
	other := Fence{LeaseID: s.mint(), Epoch: 1, AttemptID: f.AttemptID}
	for _, edit := range []func(*SuspendCommand){func(*SuspendCommand) {}, otherwise} {
		a, err := s.once(other, edit)
		wantCode(t, err, base.CodeExecutionNotActive)
		if len(a.Waitpoints) > 0 {
			t.Fatalf("shown to a stranger: %+v", a)
		}
	}
	s.resume()
	s.claim()
	for _, edit := range []func(*SuspendCommand){func(*SuspendCommand) {}, otherwise} {
		_, err := s.once(other, edit)
		wantCode(t, err, base.CodeStaleLease)
	}
	_, err := s.once(Fence{})
	wantCode(t, err, base.CodeFenceRequired)
	must[bool](t)(s.cancel(nil))
	_, err = s.once(s.lastFence())
	wantCode(t, err, base.CodeExecutionNotActive)
}

// lastFence is that of the lease that ended last.
func (s *story) lastFence() Fence {
	last := s.x.LastLease
	return Fence{LeaseID: last.ID, Epoch: last.Epoch, AttemptID: last.AttemptID}
}

func TestW56_a_wait_of_the_run_before_counts_for_nothing(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	first := must[SuspendAnswer](t)(s.once(s.claim()))
	s.resume()
	must[CompleteAnswer](t)(s.complete(s.claim(), nil))
	if err := s.replay(ReplayCommand{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if shown, err := s.x.Observe(&s.d); shown != nil || err != nil {
		t.Fatalf("W82: %+v, %v", shown, err)
	}
	second := must[SuspendAnswer](t)(s.once(s.claim(), otherwise))
	if second.Satisfied || second.SuspensionID == first.SuspensionID {
		t.Fatalf("%+v", second)
	}
}

func TestW56_a_handler_that_runs_three_times_over_three_waits_passes_each_once(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	waits := []string{"one", "two", "three"}
	handler := func(f Fence) int {
		for i, name := range waits {
			a := must[SuspendAnswer](t)(s.suspendFor(f, `{"type":"single"}`, bound(fresh(name)...), keyed(name)))
			if !a.Satisfied {
				return i
			}
		}
		return len(waits)
	}
	for parked := range waits {
		if at := handler(s.claim()); at != parked {
			t.Fatalf("parked at wait %d, want %d", at, parked)
		}
		must[SignalAnswer](t)(s.signal(s.x.Waits.Suspension.PrimaryID, "go"))
	}
	f := s.claim()
	s.pass(30 * base.Second) // the worker crashes after all that
	if at := handler(s.claim()); at != 3 {
		t.Fatalf("parked at wait %d after the crash", at)
	}
	if s.x.Attempt.Index != 1 || len(s.d.Suspensions) != 3 {
		t.Fatalf("attempt %d, %d suspensions, fence %v", s.x.Attempt.Index, len(s.d.Suspensions), f)
	}
}

func TestW56_arguments_that_mean_the_same_have_one_fingerprint_and_others_another(t *testing.T) {
	t.Parallel()
	key, minute := "a", base.Minute
	original := func() SuspendCommand {
		return SuspendCommand{Condition: parsed(t, singleA), Waitpoints: fresh("a")}
	}
	same := original()
	same.ReasonCode, same.Fence, same.IdempotencyKey, same.Mint = ReasonCodeSignal, Fence{Epoch: 9}, "k", func() base.UUID { return base.UUID{1} }
	plain := original()
	if !cmp.Equal(plain.Fingerprint(), same.Fingerprint()) {
		t.Error("the default, the fence or the key counts")
	}
	seen := map[string]string{string(plain.Fingerprint()): "nothing"}
	for name, edit := range map[string]func(*SuspendCommand){
		"waitpoints":        func(c *SuspendCommand) { c.Waitpoints = fresh("b") },
		"waitpoint id":      func(c *SuspendCommand) { c.Waitpoints = []Binding{{ID: base.UUID{1}, Key: &key}} },
		"use pending":       func(c *SuspendCommand) { c.Waitpoints = pending(base.UUID{1}) },
		"condition":         func(c *SuspendCommand) { c.Condition = parsed(t, singleNamed) },
		"reason code":       func(c *SuspendCommand) { c.ReasonCode = "manual_pause" },
		"timeout at":        func(c *SuspendCommand) { c.TimeoutAt = 5 },
		"timeout":           func(c *SuspendCommand) { c.TimeoutMS = &minute },
		"behavior":          func(c *SuspendCommand) { c.Behavior = BehaviorFail },
		"delay":             func(c *SuspendCommand) { c.ResumeDelayMS = 1 },
		"no bytes":          func(c *SuspendCommand) { c.Continuation = &Payload{} },
		"continuation":      func(c *SuspendCommand) { c.Continuation = &Payload{Data: []byte("x")} },
		"continuation type": func(c *SuspendCommand) { c.Continuation = &Payload{Data: []byte("x"), ContentType: "text/plain"} },
		"suspension id":     func(c *SuspendCommand) { c.SuspensionID = base.UUID{2} },
	} {
		c := original()
		edit(&c)
		print := string(c.Fingerprint())
		if other, known := seen[print]; known {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[print] = name
	}
}

func TestW4_the_answer_of_a_suspend_follows_from_the_dossier(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	first := must[SuspendAnswer](t)(s.suspendFor(s.claim(), singleA, bound(fresh("a")...)))
	again := must[SuspendAnswer](t)(s.d.SuspendAnswered(first.SuspensionID, false))
	first.Repeated = true
	if diff := cmp.Diff(first, again); diff != "" {
		t.Fatal(diff)
	}
	if _, err := s.d.SuspendAnswered(first.SuspensionID, true); base.CodeOf(err) != base.CodeCorruption {
		t.Fatalf("a wait that is not over was passed: %v", err)
	}
	must[SignalAnswer](t)(s.signal(first.Waitpoints[0].ID, "go"))
	passed := must[SuspendAnswer](t)(s.d.SuspendAnswered(first.SuspensionID, true))
	if !passed.Satisfied || passed.Cause != CauseSignal || len(passed.Signals) != 1 {
		t.Fatalf("%+v", passed)
	}
	if _, err := s.d.SuspendAnswered(base.UUID{9}, false); base.CodeOf(err) != base.CodeCorruption {
		t.Fatalf("an unknown suspension: %v", err)
	}
}
