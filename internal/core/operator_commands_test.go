package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// LC16.
func TestL108_cancel_ends_every_status_once_and_overwrites_no_outcome(t *testing.T) {
	t.Parallel()
	inEveryStatus(t, tablePolicy, func(t *testing.T, s *story, status Status) {
		s.x.Holds = nil
		told, completions := len(s.events), s.ended
		open := s.x.Attempt != nil && !s.x.Attempt.State.Final()
		already, err := s.cancel(nil)
		if status.Terminal() && status != Cancelled {
			wantNotActive(t, wantCode(t, err, base.CodeExecutionNotActive), s.x)
			return
		}
		if err != nil || already != (status == Cancelled) {
			t.Fatalf("already %v, %v", already, err)
		}
		s.want(Cancelled, CancelledByRequest, NextNone)
		if status == Cancelled {
			if len(s.events) != told {
				t.Errorf("told %v", s.kinds(told))
			}
			return
		}
		if diff := cmp.Diff([]string{"execution.cancel_requested", "execution.completed"}, s.kinds(told)); diff != "" || s.ended != completions+1 {
			t.Error(diff)
		}
		if *s.x.Cancellation != (Cancellation{Source: "operator", By: "ann", Reason: "enough"}) {
			t.Errorf("%+v", s.x.Cancellation)
		}
		if open && s.x.Attempt.State != EndedCancelled {
			t.Errorf("attempt %s", s.x.Attempt.State)
		}
		if status == Running && s.history[1].End != EndCancelled {
			t.Errorf("lease end %s", s.history[1].End)
		}
		if s.x.Grant != nil || s.x.Held != nil || s.x.DelayUntil != 0 || s.x.Dependency != ReasonNone || s.x.WakeAt != 0 {
			t.Errorf("L16: %+v", s.x)
		}
	})
}

func TestL108_other_sources_state_their_reason_and_no_request_is_told(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	told := len(s.events)
	_ = s.do(func(fx *Effects) error {
		_, err := s.x.Cancel(fx, CancelCommand{Source: "flow", By: "f", Why: FlowCancelled})
		return err
	})
	s.want(Cancelled, FlowCancelled, NextNone)
	if diff := cmp.Diff([]string{"execution.completed"}, s.kinds(told)); diff != "" {
		t.Error(diff)
	}
}

// LC18.
func TestL112_priority_changes_in_every_status_that_is_not_terminal(t *testing.T) {
	t.Parallel()
	inEveryStatus(t, tablePolicy, func(t *testing.T, s *story, status Status) {
		set := func(priority int) (changed bool, err error) {
			err = s.do(func(fx *Effects) error { changed, err = s.x.SetPriority(fx, priority); return err })
			return changed, err
		}
		if status.Terminal() {
			_, err := set(5)
			wantNotActive(t, wantCode(t, err, base.CodeExecutionNotActive), s.x)
			return
		}
		before := s.x.Clone()
		s.now++
		if !must[bool](t)(set(20_000)) || s.x.Priority != 9000 {
			t.Errorf("priority %d", s.x.Priority)
		}
		if data := s.last("execution.priority_changed"); data["old"] != 0.0 || data["new"] != 9000.0 {
			t.Errorf("%v", data)
		}
		before.Priority, before.LastMutationAt = 9000, s.now
		if diff := cmp.Diff(before, s.x); diff != "" {
			t.Error(diff)
		}
		told := len(s.events)
		if must[bool](t)(set(9001)) || len(s.events) != told {
			t.Error("the same value counts as a change")
		}
		must[bool](t)(set(-7))
		if s.x.Priority != 0 {
			t.Errorf("priority %d", s.x.Priority)
		}
	})
}

func TestL115_hold_and_release_in_every_status(t *testing.T) {
	t.Parallel()
	held := map[Status]Reason{
		Ready: PausedByOperator, Delayed: WaitingForDelay, Blocked: WaitingForChildren, Granted: PausedByOperator,
		Running: ReasonNone, Suspended: WaitingForSignal,
	}
	status := map[Status]Status{Ready: Blocked, Granted: Blocked}
	told := map[Status][]string{
		Ready:   {"execution.held", "execution.blocked"},
		Granted: {"execution.held", "grant.ended"},
	}
	inEveryStatus(t, tablePolicy, func(t *testing.T, s *story, from Status) {
		if from.Terminal() {
			_, err := s.hold()
			wantCode(t, err, base.CodeExecutionNotActive)
			_, err = s.releaseHold()
			wantCode(t, err, base.CodeExecutionNotActive)
			return
		}
		before, n := s.x.Clone(), len(s.events)
		if !must[bool](t)(s.hold()) || must[bool](t)(s.hold()) {
			t.Error("not idempotent")
		}
		want, moved := status[from]
		if !moved {
			want = from
		}
		s.want(want, held[from], before.Next)
		wantKinds := told[from]
		if wantKinds == nil {
			wantKinds = []string{"execution.held"}
		}
		if diff := cmp.Diff(wantKinds, s.kinds(n)); diff != "" {
			t.Error(diff)
		}
		if s.x.QueuedAt != before.QueuedAt || *s.x.Held != (Hold{By: "ann", At: s.now, Reason: "look into it"}) {
			t.Errorf("%+v", s.x.Held)
		}
		if from == Granted && s.last("grant.ended")["cause"] != "void" {
			t.Error("S32: the grant is not void")
		}
		n = len(s.events)
		if !must[bool](t)(s.releaseHold()) || must[bool](t)(s.releaseHold()) {
			t.Error("not idempotent")
		}
		if moved {
			s.want(Ready, WaitingForWorker, before.Next)
			if diff := cmp.Diff([]string{"execution.hold_released", "execution.ready"}, s.kinds(n)); diff != "" || s.last("execution.ready")["cause"] != "hold_released" {
				t.Error(diff)
			}
		}
	})
}

func TestL115_what_runs_is_held_when_it_would_queue_again(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	must[bool](t)(s.hold())
	must[LeaveAnswer](t)(s.delay(f, s.now+1000))
	s.want(Delayed, WaitingForDelay, NextResume)
	s.pass(1000)
	s.want(Blocked, PausedByOperator, NextResume)
	s.last("execution.blocked")
	must[bool](t)(s.releaseHold())
	s.want(Ready, WaitingForWorker, NextResume)
}

func TestL113_revoke_takes_the_lease_and_counts_no_reclaim(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	s.now += 10
	if answer := must[RevokeAnswer](t)(s.revoke(false)); answer != (RevokeAnswer{Outcome: "revoked", LeaseID: f.LeaseID, Epoch: 1}) {
		t.Errorf("%+v", answer)
	}
	s.want(Ready, WaitingForWorker, NextReclaim)
	if s.x.ReclaimCount != 0 || s.x.QueuedAt != storyStart || s.x.Attempt.Interruption != InterruptedLeaseRevoked || s.history[1].End != EndRevoked {
		t.Errorf("%+v", s.x)
	}
	if data := s.last("lease.revoked"); data["by"] != "ann" || data["reason"] != "stuck" || data["lease_epoch"] != 1.0 {
		t.Errorf("%v", data)
	}
	if answer := must[RevokeAnswer](t)(s.revoke(false)); answer.Outcome != "already_satisfied" || answer.Cause != "already_revoked" || answer.LeaseID != f.LeaseID {
		t.Errorf("%+v", answer)
	}
	s.claim()
	if s.x.Attempt.Type != AttemptReclaim || s.x.Attempt.Lineage.Cause != "lease_revoked" {
		t.Errorf("%+v", s.x.Attempt)
	}
	s.pass(30 * base.Second)
	if answer := must[RevokeAnswer](t)(s.revoke(false)); answer.Cause != "already_expired" {
		t.Errorf("%+v", answer)
	}
	must[LeaveAnswer](t)(s.release(s.claim()))
	_, err := s.revoke(false)
	wantCode(t, err, base.CodeNoActiveLease)
}

func TestL113_revoke_with_hold_holds_first(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.claim()
	told := len(s.events)
	must[RevokeAnswer](t)(s.revoke(true))
	s.want(Blocked, PausedByOperator, NextReclaim)
	if diff := cmp.Diff([]string{"execution.held", "lease.revoked"}, s.kinds(told)); diff != "" {
		t.Error(diff)
	}
}

// LC17, last line.
func TestL110_revoke_cancel_replay_claim_renew_in_a_row_works(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.claim()
	must[RevokeAnswer](t)(s.revoke(false))
	must[bool](t)(s.cancel(nil))
	must[int](t)(0, s.replay(ReplayCommand{}))
	must[int](t)(0, s.renew(s.claim(), 0))
}

func TestL116_tags_are_replaced_and_deleted_all_or_nothing_in_every_status(t *testing.T) {
	t.Parallel()
	inEveryStatus(t, tablePolicy, func(t *testing.T, s *story, _ Status) {
		set := func(changes map[string]*string) (changed bool, err error) {
			err = s.do(func(fx *Effects) error { changed, err = s.x.SetTags(fx, changes); return err })
			return changed, err
		}
		a, b := "1", "2"
		first := s.x.Tags
		must[bool](t)(set(map[string]*string{"zone": &a, "app.tier": &b}))
		if diff := cmp.Diff([]any{"app.tier", "zone"}, s.last("execution.tagged")["keys"]); diff != "" {
			t.Error(diff)
		}
		if len(first) != 0 {
			t.Error("the old tags were changed in place")
		}
		told := len(s.events)
		for key, code := range map[string]base.Code{"ff.x": base.CodeInvalidTagKey, "Bad": base.CodeInvalidTagKey} {
			_, err := set(map[string]*string{"zone": &b, key: &b})
			wantCode(t, err, code)
			_, err = set(map[string]*string{key: nil})
			wantCode(t, err, code)
		}
		long := strings.Repeat("x", 257)
		_, err := set(map[string]*string{"zone": &long})
		wantCode(t, err, base.CodeInvalidArgument)
		many := map[string]*string{}
		for i := range 63 {
			many[fmt.Sprintf("k%d", i)] = &a
		}
		_, err = set(many)
		wantCode(t, err, base.CodeInvalidArgument)
		if must[bool](t)(set(map[string]*string{"zone": &a, "absent": nil})) || len(s.events) != told {
			t.Error("a change of nothing was told")
		}
		must[bool](t)(set(map[string]*string{"zone": nil}))
		if diff := cmp.Diff(base.Tags{"app.tier": "2"}, s.x.Tags); diff != "" {
			t.Error(diff)
		}
	})
}

func TestL77_expect_refuses_what_the_operator_did_not_expect(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	ready, running := Ready, Running
	zero, one := int64(0), int64(1)
	wantCode(t, s.x.CheckExpect(Expect{}), "")
	wantCode(t, s.x.CheckExpect(Expect{Status: &ready, LeaseEpoch: &zero, LeaseID: &base.UUID{}}), "")
	if err := wantCode(t, s.x.CheckExpect(Expect{Status: &running}), base.CodePreconditionFailed); err.Field != "expect.status" || err.Details["status"] != "ready" {
		t.Errorf("%+v", err)
	}
	f := s.claim()
	wantCode(t, s.x.CheckExpect(Expect{Status: &running, LeaseEpoch: &one, LeaseID: &f.LeaseID}), "")
	if err := wantCode(t, s.x.CheckExpect(Expect{LeaseEpoch: &zero}), base.CodePreconditionFailed); err.Field != "expect.lease_epoch" {
		t.Errorf("%+v", err)
	}
	if err := wantCode(t, s.x.CheckExpect(Expect{LeaseID: &base.UUID{7}}), base.CodePreconditionFailed); err.Details["lease_id"] != f.LeaseID.String() {
		t.Errorf("%+v", err)
	}
}
