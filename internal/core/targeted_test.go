package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestL74_targeted_claims_want_their_next(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	target := Targeted{Lane: s.lane}
	wantCode(t, s.x.CheckClaimResumed(target), base.CodeNotAResumedExecution)
	wantCode(t, s.x.CheckReclaim(target), base.CodeExecutionNotReclaimable)
	wantCode(t, s.x.CheckOperatorClaim(target), "")
	s.grant(1000)
	wantCode(t, s.x.CheckClaimResumed(target), base.CodeNotAResumedExecution)
	wantCode(t, s.x.CheckReclaim(target), base.CodeExecutionNotReclaimable)
	wantCode(t, s.x.CheckOperatorClaim(target), base.CodeGrantOutstanding)
}

func TestL74_an_admission_block_is_left_to_admission(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	must[LeaveAnswer](t)(s.release(s.claim()))
	s.blockByQuota()
	wantCode(t, s.x.CheckClaimResumed(Targeted{Lane: s.lane}), "")
	wantCode(t, s.x.CheckOperatorClaim(Targeted{Lane: s.lane}), "")
	s.claim()
	if s.x.BlockedOn != "" {
		t.Errorf("still blocked on %s", s.x.BlockedOn)
	}
}

func TestL75_lane_then_its_state_then_capabilities(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"routing_requirements":{"required_capabilities":["gpu","eu"]}}`)
	must[RevokeAnswer](t)(func() (RevokeAnswer, error) { s.claim(); return s.revoke(false) }())
	s.lane.Settings.State = LanePaused
	target := Targeted{Lane: s.lane, GivenLane: "other", Capabilities: []string{"gpu"}}
	if err := wantCode(t, s.x.CheckReclaim(target), base.CodeLaneMismatch); err.Field != "lane" {
		t.Errorf("%+v", err)
	}
	target.GivenLane = "default"
	wantCode(t, s.x.CheckReclaim(target), base.CodeLaneNotClaimable)
	wantCode(t, s.x.CheckOperatorClaim(target), base.CodeLaneNotClaimable)
	target.Force = true
	wantCode(t, s.x.CheckOperatorClaim(target), "")
	target.Force, s.lane.Settings.State = false, LaneDraining
	err := wantCode(t, s.x.CheckReclaim(target), base.CodeCapabilityMismatch)
	if diff := cmp.Diff([]string{"eu"}, err.Details["missing"]); diff != "" {
		t.Error(diff)
	}
	wantCode(t, s.x.CheckOperatorClaim(target), "")
	target.Capabilities = []string{"eu", "gpu", "x"}
	wantCode(t, s.x.CheckReclaim(target), "")
}

func TestS35_force_never_skips_the_gate(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Delayed, Blocked, Suspended} {
		s := broughtTo(t, `{}`, status)
		wantCode(t, s.x.CheckOperatorClaim(Targeted{Lane: s.lane, Force: true}), base.CodeExecutionNotEligible)
	}
}

func TestL117_a_repeated_claim_is_known_by_instance_and_request_key(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	_ = s.do(func(fx *Effects) error {
		s.x.Acquire(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: "w", InstanceID: "w-1", TTL: base.Minute, RequestKey: "k", Forced: true})
		return nil
	})
	if s.last("lease.acquired")["forced"] != true {
		t.Error("S35: force is not told")
	}
	if !s.x.HoldsLeaseOf("w-1", "k") || s.x.HoldsLeaseOf("w-2", "k") || s.x.HoldsLeaseOf("w-1", "") || s.x.HoldsLeaseOf("w-1", "j") {
		t.Error("the wrong calls are taken for repeats")
	}
	must[LeaveAnswer](t)(s.release(s.fence()))
	if s.x.HoldsLeaseOf("w-1", "k") {
		t.Error("a lease that is over was found")
	}
}

func TestS20_a_takeover_ends_the_old_attempt_before_the_new_lease_is_told(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.claim()
	s.pass(30 * base.Second)
	told := len(s.events)
	s.now += 5
	var got Acquired
	_ = s.do(func(fx *Effects) error {
		got = s.x.Acquire(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: "v", InstanceID: "v-1", TTL: base.Minute})
		return nil
	})
	if diff := cmp.Diff([]string{"attempt.ended", "lease.acquired"}, s.kinds(told)); diff != "" || got.How != "reclaimed" {
		t.Fatal(diff, got)
	}
	ended := s.events[told]
	want := map[string]any{"state": "interrupted_reclaimed", "retry_count": 0.0}
	if diff := cmp.Diff(want, dataOf(t, ended)); diff != "" || ended.AttemptIndex != 0 || s.events[told+1].AttemptIndex != 1 {
		t.Error(diff)
	}
	old := s.history[1].Attempt
	if old.State != InterruptedReclaimed || old.EndedAt != s.now || old.Interruption != InterruptedLeaseExpired {
		t.Errorf("%+v", old)
	}
	attempts := AttemptsOf(s.x, s.entries())
	if len(attempts) != 2 || attempts[0].State != InterruptedReclaimed || attempts[1].Type != AttemptReclaim || attempts[1].State != AttemptStarted {
		t.Errorf("%+v", attempts)
	}
}

func TestS31_an_acquisition_consumes_the_grant(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.grant(1000)
	s.claim()
	s.want(Running, ReasonNone, NextNone)
	if s.x.Grant != nil {
		t.Error("the grant is still out")
	}
}
