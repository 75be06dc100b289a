package core

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestS27_a_grant_promises_the_execution_and_keeps_what_admission_took(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	told := len(s.events)
	s.grant(5*base.Second, "slots:q")
	s.want(Granted, WaitingForWorker, NextInitial)
	if diff := cmp.Diff([]string{"grant.issued"}, s.kinds(told)); diff != "" {
		t.Fatal(diff)
	}
	want := map[string]any{"worker_id": "w", "worker_instance_id": "w-2", "expires_at": dataOf(t, s.events[told])["expires_at"]}
	if diff := cmp.Diff(want, dataOf(t, s.events[told])); diff != "" || s.events[told].InstanceID != "w-2" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"slots:q"}, s.x.Holds); diff != "" {
		t.Error(diff)
	}
	sum := sha256.Sum256([]byte(s.grantKey.Reveal()))
	if g := s.x.Grant; !bytes.Equal(g.Hash, sum[:]) || g.ExpiresAt != s.now.Add(5*base.Second) || g.IssuedAt != s.now || g.Kid == "" || s.x.WakeAt != g.ExpiresAt {
		t.Errorf("%+v", g)
	}
}

func TestS27_the_bounds_of_a_grant(t *testing.T) {
	t.Parallel()
	for ms, ok := range map[base.Millis]bool{0: false, -1: false, 1: true, 60_000: true, 60_001: false} {
		if err := CheckGrantTTL(ms); (err == nil) != ok {
			t.Errorf("%d: %v", ms, err)
		}
	}
}

func TestL44_S14_a_grant_of_one_id_tests_lane_and_capabilities(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"routing_requirements":{"required_capabilities":["gpu","eu"]}}`)
	s.lane.Settings.State = LanePaused
	target := Targeted{Lane: s.lane, GivenLane: "other", Capabilities: []string{"gpu"}}
	wantCode(t, s.grantOne(target), base.CodeLaneMismatch)
	target.GivenLane = ""
	wantCode(t, s.grantOne(target), base.CodeLaneNotClaimable)
	s.lane.Settings.State = LaneDraining
	err := wantCode(t, s.grantOne(target), base.CodeCapabilityMismatch)
	if diff := cmp.Diff([]string{"eu"}, err.Details["missing"]); diff != "" {
		t.Error(diff)
	}
	target.Capabilities = []string{"eu", "gpu"}
	wantCode(t, s.grantOne(target), "")
	wantCode(t, s.grantOne(target), base.CodeGrantOutstanding)
}

func TestS31_a_grant_is_claimed_by_its_worker_once(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.grant(5 * base.Second)
	for _, other := range [][2]string{{"w", "w-1"}, {"v", "w-2"}, {"w-2", "w"}} {
		_, err := s.claimGrant(s.grantKey, other[0], other[1])
		wantCode(t, err, base.CodeGrantSignatureMismatch)
		s.want(Granted, WaitingForWorker, NextInitial)
	}
	s.lane.Settings.State = LanePaused // it is not looked at again
	got := must[Acquired](t)(s.claimGrant(s.grantKey, "w", "w-2"))
	s.want(Running, ReasonNone, NextNone)
	if got.How != "fresh" || s.x.Grant != nil || s.x.LeaseEpoch != 1 {
		t.Errorf("%+v %+v", got, s.x.Lease)
	}
	lease := s.x.Lease.ID
	s.pass(10 * base.Second) // later than the grant would have lasted
	must[Acquired](t)(s.claimGrant(s.grantKey, "w", "w-2"))
	if s.x.Lease.ID != lease || s.x.LeaseEpoch != 1 {
		t.Error("the repeat got another lease")
	}
	_, err := s.claimGrant(s.grantKey, "w", "w-3")
	wantCode(t, err, base.CodeGrantExpired)
}

func TestS31_a_second_use_by_anybody_else_is_unknown(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.grant(5 * base.Second)
	must[Acquired](t)(s.claimGrant(s.grantKey, "w", "w-2"))
	_, err := s.claimGrant(s.grantKey, "w", "w-3")
	wantCode(t, err, base.CodeGrantUnknown)
	must[LeaveAnswer](t)(s.release(s.fence()))
	_, err = s.claimGrant(s.grantKey, "w", "w-2")
	wantCode(t, err, base.CodeGrantUnknown)
}

func TestSC8_a_grant_of_work_that_resumes_or_is_reclaimed(t *testing.T) {
	t.Parallel()
	resumed := begin(t, `{}`)
	must[LeaveAnswer](t)(resumed.release(resumed.claim()))
	attempt := resumed.x.Attempt.ID
	wantCode(t, resumed.grantOne(Targeted{Lane: resumed.lane}), "")
	got := must[Acquired](t)(resumed.claimGrant(resumed.grantKey, "w", "w-2"))
	if got.How != "resumed" || resumed.x.Attempt.ID != attempt {
		t.Errorf("%+v", got)
	}
	reclaimed := begin(t, `{}`)
	reclaimed.claim()
	reclaimed.pass(30 * base.Second)
	wantCode(t, reclaimed.grantOne(Targeted{Lane: reclaimed.lane}), "")
	if got := must[Acquired](t)(reclaimed.claimGrant(reclaimed.grantKey, "w", "w-2")); got.How != "reclaimed" || reclaimed.x.Attempt.Index != 1 {
		t.Errorf("%+v", got)
	}
}

// voiders are what moves an execution out of granted (S32).
var voiders = map[string]func(s *story, late Fence){
	"expiry":   func(s *story, _ Fence) { s.pass(5 * base.Second) },
	"cancel":   func(s *story, _ Fence) { _, _ = s.cancel(nil) },
	"hold":     func(s *story, _ Fence) { _, _ = s.hold() },
	"deadline": func(s *story, _ Fence) { s.x.DeadlineAt = s.now.Add(1); s.x.arm(); s.pass(1) },
	"late completion": func(s *story, late Fence) {
		_, _ = s.complete(late, nil)
	},
	"late release": func(s *story, late Fence) { _, _ = s.release(late) },
	"return":       func(s *story, _ Fence) { _ = s.returnGrant(s.grantKey) },
}

func TestS32_SC7_whatever_moves_the_execution_out_of_granted_voids_the_grant(t *testing.T) {
	t.Parallel()
	for name, void := range voiders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, `{}`)
			late := s.claim()
			s.pass(30 * base.Second)
			s.grant(5*base.Second, "lane:default", "slots:q")
			key := s.grantKey
			void(s, late)
			if s.x.Status == Granted || s.x.Grant != nil || s.x.Holds != nil {
				t.Fatalf("%s, grant %+v, holds %v", s.x.Status, s.x.Grant, s.x.Holds)
			}
			want := base.CodeGrantUnknown
			if name == "expiry" {
				want = base.CodeGrantExpired
			}
			_, err := s.claimGrant(key, "w", "w-2")
			wantCode(t, err, want)
		})
	}
}

func TestS33_a_returned_grant_passes_the_gate_at_once(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	queued := s.x.QueuedAt
	s.grant(5 * base.Second)
	s.now += 10
	told := len(s.events)
	wantCode(t, s.returnGrant(s.grantKey), "")
	s.want(Ready, WaitingForWorker, NextInitial)
	if diff := cmp.Diff([]string{"grant.ended"}, s.kinds(told)); diff != "" || s.last("grant.ended")["cause"] != "returned" || s.x.QueuedAt != queued {
		t.Error(diff)
	}
	wantCode(t, s.returnGrant(s.grantKey), base.CodeGrantUnknown)
}

func TestL117_a_repeated_grant_makes_the_same_key_again(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	if _, ok := s.x.SameGrantKey(s.now, s.keys); ok {
		t.Error("a key without a grant")
	}
	s.grant(5 * base.Second)
	if same, ok := s.x.SameGrantKey(s.now, s.keys); !ok || same.Reveal() != s.grantKey.Reveal() {
		t.Error("the key is another")
	}
	if !s.x.HoldsGrantOf("w-2", "r") || s.x.HoldsGrantOf("w-2", "") || s.x.HoldsGrantOf("w-1", "r") || s.x.HoldsGrantOf("w-2", "q") {
		t.Error("the wrong calls are taken for repeats")
	}
}
