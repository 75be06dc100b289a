package core

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// suspendScene is an execution with everything that a suspend can stumble over.
type suspendScene struct {
	*story
	f                   Fence
	plain, again        base.UUID // pending ones with one key
	expired, closed     base.UUID
	used                base.UUID // id of a suspension
	ofOther, ofOtherRun base.UUID
	elsewhere           base.UUID // id of a waitpoint of another execution
	conflicting         string
}

// newSuspendScene leaves the execution running, with 200 waitpoints open.
func newSuspendScene(t tester) *suspendScene {
	c := &suspendScene{story: begin(t, `{"max_replay_count":3}`), elsewhere: base.UUID{0xab}, ofOther: base.UUID{0xcd}, used: base.UUID{0xef}, conflicting: "once"}
	c.claim()
	c.ofOtherRun = c.pendingAt("old")[0]
	must[CompleteAnswer](t)(c.complete(c.fence(), nil))
	if err := c.replay(ReplayCommand{By: "ann"}); err != nil {
		t.Fatalf("replay: %v", err)
	}
	c.f = c.claimFor(base.MaxLeaseTTL)
	soon := base.Second
	c.expired = must[CreateWaitpointAnswer](t)(c.createWaitpoint(c.f, "gone", func(w *CreateWaitpointCommand) { w.ExpiresInMS = &soon })).Waitpoint.ID
	c.pass(base.Second)
	c.closed = c.pendingAt("shut")[0]
	must[bool](t)(c.closeWaitpoint(nil, c.closed))
	early := c.pendingAt("early")[0]
	must[SignalAnswer](t)(c.signal(early, "go"))
	passed := must[SuspendAnswer](t)(c.suspendFor(c.f, `{"type":"single"}`, bound(pending(early)...), keyed(c.conflicting),
		func(s *SuspendCommand) { s.SuspensionID = c.used }))
	if !passed.Satisfied {
		t.Fatalf("not passed: %+v", passed)
	}
	ids := c.pendingAt("plain", "plain")
	c.plain, c.again = ids[0], ids[1]
	for len(c.x.openWaitpoints()) < 200 {
		c.pendingAt("filler")
	}
	return c
}

// stateFault is a refusal of W47.
type stateFault struct {
	name   string
	code   base.Code
	reason string
	make   func(*SuspendCommand)
}

// binding adds a binding and what mentions it.
func binding(b Binding, key string) func(*SuspendCommand) {
	return func(c *SuspendCommand) {
		c.Waitpoints = append([]Binding{b}, c.Waitpoints...)
		alsoIf(fmt.Sprintf(`{"type":"single","waitpoint_key":%q}`, key))(c)
	}
}

// stateFaults are the refusals in the order of W47. Of the bindings the first at fault is reported; each of these puts its own
// before the others.
func (c *suspendScene) stateFaults() []stateFault {
	two := c.fence()
	two.Epoch++
	keyTaken := "taken"
	return []stateFault{
		{"idempotency", base.CodeIdempotencyConflict, "", func(s *SuspendCommand) { s.IdempotencyKey = c.conflicting }},
		{"fence", base.CodeStaleLease, "", func(s *SuspendCommand) { s.Fence = two }},
		{"past", base.CodeInvalidSuspend, "timeout_at_in_past", func(s *SuspendCommand) { s.TimeoutAt = c.now.Add(-maxTimeoutPast - 1) }},
		{"timeout only", base.CodeInvalidSuspend, "timeout_only_without_deadline", alsoIf(timeoutOnly)},
		{"key", base.CodeSigningKeyMissing, "", func(s *SuspendCommand) { s.Keys = &keyring.Ring{} }},
		{"unknown", base.CodeWaitpointNotFound, "", binding(Binding{UsePending: true, ID: c.ofOther}, "x")},
		{"of another run", base.CodeWaitpointNotFound, "", binding(Binding{UsePending: true, ID: c.ofOtherRun}, "old")},
		{"expired", base.CodeWaitpointExpired, "", binding(Binding{UsePending: true, ID: c.expired}, "gone")},
		{"closed", base.CodeWaitpointNotPending, "", binding(Binding{UsePending: true, ID: c.closed}, "shut")},
		{"taken", base.CodeWaitpointAlreadyExists, "", binding(Binding{ID: c.elsewhere, Key: &keyTaken}, keyTaken)},
		{"taken here", base.CodeWaitpointAlreadyExists, "", binding(Binding{ID: c.x.openWaitpoints()[100].ID}, "y")},
		{"missing", base.CodeInvalidSuspend, "referenced_waitpoint_key_missing_binding", alsoIf(singleB)},
		{"extra", base.CodeInvalidSuspend, "extra_binding_not_referenced_by_condition", bound(fresh("extra")...)},
		{"one key", base.CodeInvalidSuspend, "duplicate_binding", func(s *SuspendCommand) {
			binding(Binding{UsePending: true, ID: c.plain}, "plain")(s)
			binding(Binding{UsePending: true, ID: c.again}, "plain")(s)
		}},
		{"limit", base.CodeWaitpointLimitExceeded, "", func(s *SuspendCommand) {
			for i := len(s.Waitpoints); i < MaxBindings-3; i++ {
				binding(fresh(fmt.Sprint("many", i))[0], fmt.Sprint("many", i))(s)
			}
		}},
		{"used", base.CodeSuspensionAlreadyExists, "", func(s *SuspendCommand) { s.SuspensionID = c.used }},
	}
}

func (c *suspendScene) try(faults ...stateFault) error {
	s := SuspendCommand{Fence: c.f, Condition: parsed(c.t, together(singleA, singleA)), Waitpoints: fresh("a")}
	s.Taken = func(id base.UUID) bool { return id == c.elsewhere }
	for _, fault := range faults {
		fault.make(&s)
	}
	_, err := c.suspendWith(s)
	return err
}

func TestW47_the_first_fault_is_reported_whatever_else_is_wrong(t *testing.T) {
	t.Parallel()
	c := newSuspendScene(t)
	faults := c.stateFaults()
	for i, fault := range faults {
		if err := c.try(fault); base.CodeOf(err) != fault.code || reasonOf(err) != fault.reason {
			t.Errorf("%s: %v, want %s %s", fault.name, err, fault.code, fault.reason)
		}
		for _, later := range faults[i+1:] {
			if fault.name == "idempotency" && later.name == "fence" {
				continue // who has not the lease learns nothing of the key (W56)
			}
			if err := c.try(later, fault); base.CodeOf(err) != fault.code || reasonOf(err) != fault.reason {
				t.Errorf("%s with %s: %v, want %s %s", fault.name, later.name, err, fault.code, fault.reason)
			}
		}
	}
	if err := c.try(); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
}

func TestW46_W47_arguments_come_before_state(t *testing.T) {
	t.Parallel()
	c := newSuspendScene(t)
	for _, argument := range suspendFaults() {
		for _, fault := range c.stateFaults() {
			err := c.try(fault, stateFault{make: argument.make})
			if reason := reasonOf(wantCode(t, err, base.CodeInvalidSuspend)); reason != argument.reason {
				t.Errorf("%s with %s is reported as %s", argument.reason, fault.name, reason)
			}
		}
	}
}

func TestW44_the_handle_of_a_suspension_is_no_ticket_before_anything_else(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	_, err := s.suspendWith(SuspendCommand{Fence: f, SpentHandle: true})
	wantCode(t, err, base.CodeAlreadySuspended)
}

func TestW47_a_younger_past_moment_is_accepted_and_fires_at_once(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	moment := s.now.Add(-maxTimeoutPast)
	a := must[SuspendAnswer](t)(s.suspendFor(f, timeoutOnly, func(c *SuspendCommand) { c.TimeoutAt = moment }))
	if a.TimeoutAt != moment || s.x.WakeAt != moment {
		t.Fatalf("times out at %s, wakes at %s", a.TimeoutAt, s.x.WakeAt)
	}
	s.settle()
	s.want(Failed, SuspensionTimeout, NextNone)
	if s.x.CompletedAt != s.now {
		t.Fatalf("L5: ended at %s", s.x.CompletedAt)
	}

	s = begin(t, `{}`)
	_, err := s.suspendFor(s.claim(), timeoutOnly, func(c *SuspendCommand) { c.TimeoutAt = s.now.Add(base.MaxAhead + 1) })
	if reason := reasonOf(wantCode(t, err, base.CodeInvalidSuspend)); reason != "bad_number" {
		t.Fatal(reason)
	}
}
