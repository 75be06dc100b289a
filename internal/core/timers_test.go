package core

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestL18_timers_due_at_one_moment_act_in_the_order_of_the_table(t *testing.T) {
	t.Parallel()
	var names []string
	for _, timer := range timers() {
		names = append(names, timer.name)
	}
	order := []string{"deadline", "attempt timeout", "suspension timeout", "children timeout", "lease lapse", "wall_ms hold", "grant expiry", "delay", "admission retry", "waitpoint expiry"}
	if diff := cmp.Diff(order, names); diff != "" {
		t.Fatal(diff)
	}
	const retry = `"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":1000}}`
	for _, c := range []struct {
		name   string
		policy string
		make   func(s *story)
		status Status
		reason Reason
	}{
		{
			"deadline before attempt timeout and lapse", `{"timeout_policy":{"attempt_timeout_ms":30000,"execution_deadline_ms":30000},` + retry + `}`,
			func(s *story) { s.claim() }, Expired, ExecutionDeadline,
		},
		{
			"attempt timeout before lapse", `{"timeout_policy":{"attempt_timeout_ms":30000},` + retry + `}`,
			func(s *story) { s.claim() }, Delayed, WaitingForRetryBackoff,
		},
		{
			"deadline before grant expiry", `{"timeout_policy":{"execution_deadline_ms":30000}}`,
			func(s *story) { s.grant(30 * base.Second) }, Expired, ExecutionDeadline,
		},
		{
			"deadline before delay", `{"timeout_policy":{"execution_deadline_ms":30000}}`,
			func(s *story) { s.delayFor(30 * base.Second) }, Expired, ExecutionDeadline,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, c.policy)
			c.make(s)
			s.pass(30 * base.Second)
			if s.x.Status != c.status || s.x.Reason != c.reason {
				t.Errorf("got %s %s", s.x.Status, s.x.Reason)
			}
		})
	}
}

func TestL18_several_timers_act_in_order_of_their_due_times(t *testing.T) {
	t.Parallel()
	// Timeout at 10 s, retry at 11 s, deadline at 60 s: a sweep that comes after all of them tells the whole story.
	s := begin(t, `{"timeout_policy":{"attempt_timeout_ms":10000,"execution_deadline_ms":60000},"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":1000}}}`)
	s.claim()
	told := len(s.events)
	s.pass(2 * base.Minute)
	s.want(Expired, ExecutionDeadline, NextNone)
	if diff := cmp.Diff([]string{"attempt.ended", "execution.ready", "execution.completed"}, s.kinds(told)); diff != "" {
		t.Error(diff)
	}
	if s.x.CompletedAt != storyStart+60_000 || s.history[1].EndedAt != storyStart+10_000 {
		t.Errorf("completed %s, lease ended %s", s.x.CompletedAt, s.history[1].EndedAt)
	}
	for _, event := range s.events[told:] {
		if event.At != s.now || event.Actor != (Actor{Type: "engine", ID: "engine"}) || event.RequestID != "" {
			t.Errorf("%s: at %s by %+v for %q", event.Kind, event.At, event.Actor, event.RequestID)
		}
	}
}

// LI13: what the timers decide does not depend on when somebody looks.
func TestL18_a_late_sweep_and_an_eager_one_leave_the_same_record(t *testing.T) {
	t.Parallel()
	tell := func(step base.Millis) *Execution {
		s := begin(t, `{"timeout_policy":{"attempt_timeout_ms":10000},"lease_grace_ms":500,"retry_policy":{"backoff":{"initial_ms":700}}}`)
		s.claimFor(8 * base.Second)
		end := s.now + 20_000
		for s.now < end {
			s.pass(step)
		}
		return s.x
	}
	eager := tell(2)
	for _, step := range []base.Millis{4, 100, 1000, 20_000} {
		if diff := cmp.Diff(eager, tell(step)); diff != "" {
			t.Errorf("sweep every %d ms: %s", step, diff)
		}
	}
}

func TestL18_L78_what_settling_changed_stays_when_the_command_is_refused(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	s.now = s.now.Add(30 * base.Second)
	wantCode(t, s.renew(f, 0), base.CodeLeaseExpired)
	s.want(Ready, WaitingForWorker, NextReclaim)
	s.last("lease.expired")
}

func TestL5_the_clock_of_an_execution_never_runs_backwards(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.now += 1000
	f := s.claim()
	s.now += 1000
	must[base.Millis](t)(0, s.renew(f, 0))
	s.now = storyStart
	must[CompleteAnswer](t)(s.complete(f, nil))
	if s.x.CompletedAt != storyStart+2000 || s.x.LastMutationAt != storyStart+2000 {
		t.Errorf("completed %s", s.x.CompletedAt)
	}
}

func TestL32_live_in_grace_and_lapsed_at_the_exact_millisecond(t *testing.T) {
	t.Parallel()
	const grace = `{"lease_grace_ms":1000}`
	for _, c := range []struct {
		after base.Millis
		code  base.Code
	}{{29_999, ""}, {30_000, ""}, {30_999, ""}, {31_000, base.CodeLeaseExpired}} {
		s := begin(t, grace)
		f := s.claim()
		s.now = s.now.Add(c.after)
		wantCode(t, s.renew(f, 0), c.code)
		if c.code == "" {
			s.want(Running, ReasonNone, NextNone)
		}
	}
}

func TestL38_renewal_touches_the_lease_times_only_and_leaves_wake_at_alone_unless_it_gets_earlier(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	before, told := s.x.Clone(), len(s.events)
	s.now += 10_000
	must[base.Millis](t)(0, s.renew(f, 0))
	want := before.Clone()
	want.Lease.RenewedAt, want.Lease.ExpiresAt = s.now, s.now+30_000
	if diff := cmp.Diff(want, s.x); diff != "" {
		t.Fatalf("L9: %s", diff)
	}
	must[base.Millis](t)(0, s.renew(f, 500))
	if s.x.WakeAt != s.now+500 || s.x.Lease.TTL != 500 {
		t.Errorf("wake_at %s, ttl %d", s.x.WakeAt, s.x.Lease.TTL)
	}
	if len(s.events) != told {
		t.Errorf("L146: renewal told %v", s.kinds(told))
	}
	wantCode(t, s.renew(f, 499), base.CodeInvalidArgument)
}

func TestS65_a_sweep_that_finds_the_lease_alive_re_arms_and_emits_nothing(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	s.now += 20_000
	must[base.Millis](t)(0, s.renew(f, 0))
	before, told := s.x.Clone(), len(s.events)
	s.pass(10_000)
	before.WakeAt = storyStart + 50_000
	if diff := cmp.Diff(before, s.x); diff != "" || len(s.events) != told {
		t.Errorf("%s, told %v", diff, s.kinds(told))
	}
}

// LC9.
func TestL101_an_attempt_timeout_retries_and_then_fails(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"timeout_policy":{"attempt_timeout_ms":5000},"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":0}}}`)
	s.claim()
	s.pass(5000)
	s.want(Ready, WaitingForWorker, NextRetry)
	if a := s.x.Attempt; a.State != EndedFailure || a.Failure.Class != "timeout" || a.Failure.Category != "timeout" || a.RunningMS != 5000 {
		t.Errorf("%+v", a)
	}
	if s.history[1].End != EndAttemptTimeout || s.history[1].Answer != nil {
		t.Errorf("%+v", s.history[1])
	}
	s.claim()
	if l := s.x.Attempt.Lineage; s.x.Attempt.Type != AttemptRetry || l.Class != "timeout" || l.Category != "timeout" {
		t.Errorf("lineage %+v", l)
	}
	s.pass(5000)
	s.want(Failed, AttemptTimeout, NextNone)
	if data := s.last("execution.completed"); data["reason"] != "attempt_timeout" || data["lease_epoch"] != 2.0 {
		t.Errorf("%v", data)
	}
}

func TestL101_the_attempt_clock_stands_still_while_the_attempt_waits_and_a_release_restores_it(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		leave func(s *story, f Fence)
		left  base.Millis
	}{
		{"suspend", func(s *story, _ Fence) { s.suspend(); s.pass(base.Hour); s.resume() }, 6000},
		{"delay", func(s *story, f Fence) {
			must[LeaveAnswer](s.t)(s.delay(f, s.now.Add(base.Hour)))
			s.pass(base.Hour)
		}, 6000},
		{"wait_for_children", func(s *story, _ Fence) { s.waitForChildren(); s.pass(base.Hour); s.satisfy() }, 6000},
		{"release", func(s *story, f Fence) { must[LeaveAnswer](s.t)(s.release(f)) }, 10_000},
		{"revoke: a new attempt", func(s *story, _ Fence) { must[RevokeAnswer](s.t)(s.revoke(false)) }, 10_000},
		{"late delay", func(s *story, f Fence) {
			must[base.Millis](s.t)(0, s.renew(f, 500))
			s.pass(500)
			must[LeaveAnswer](s.t)(s.delay(f, s.now))
		}, 5500},
		{"late release", func(s *story, f Fence) {
			must[base.Millis](s.t)(0, s.renew(f, 500))
			s.pass(500)
			must[LeaveAnswer](s.t)(s.release(f))
		}, 10_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, `{"timeout_policy":{"attempt_timeout_ms":10000}}`)
			f := s.claim()
			s.pass(4000)
			c.leave(s, f)
			if s.x.AttemptDeadline != 0 {
				t.Errorf("the clock still runs: %s", s.x.AttemptDeadline)
			}
			s.claim()
			if left := s.x.AttemptDeadline.Sub(s.now); left != c.left {
				t.Errorf("%d ms left, want %d", left, c.left)
			}
		})
	}
}

// LC10.
func TestL102_the_deadline_ends_an_execution_in_every_status(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Ready, Delayed, Blocked, Granted, Running, Suspended} {
		t.Run(status.String(), func(t *testing.T) {
			t.Parallel()
			s := broughtTo(t, `{"timeout_policy":{"execution_deadline_ms":4000}}`, status)
			f := Fence{LeaseID: s.mint(), Epoch: 1, AttemptID: s.mint()}
			if s.x.Lease != nil {
				f = s.fence()
			}
			s.now = storyStart + 4000
			_, err := s.complete(f, nil)
			wantNotActive(t, wantCode(t, err, base.CodeExecutionNotActive), s.x)
			s.want(Expired, ExecutionDeadline, NextNone)
			if a := s.x.Attempt; a != nil && a.State != EndedFailure {
				t.Errorf("attempt %s", a.State)
			}
			if status == Running && s.history[1].End != EndDeadline {
				t.Errorf("lease end %s", s.history[1].End)
			}
			if data := s.last("execution.completed"); data["outcome"] != "expired" || (data["lease"] != nil) != (status == Running) {
				t.Errorf("%v", data)
			}
		})
	}
	s := begin(t, `{"timeout_policy":{"execution_deadline_ms":4000}}`)
	f := s.claim()
	s.now = storyStart + 3999
	must[CompleteAnswer](t)(s.complete(f, nil))
	s.want(Succeeded, Completed, NextNone)
}

// LC11.
func TestL103_exactly_the_cap_of_takeovers_happens_and_the_next_lapse_ends_the_execution(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 1, 3} {
		s := begin(t, `{}`)
		s.x.Policy = func() *Policy { p := *s.x.Policy; p.MaxReclaims = limit; return &p }()
		for i := range limit {
			s.claim()
			s.pass(30 * base.Second)
			s.want(Ready, WaitingForWorker, NextReclaim)
			if data := s.last("lease.expired"); data["reclaim_count"] != float64(i+1) || data["lease_epoch"] != float64(i+1) {
				t.Errorf("%v", data)
			}
		}
		s.claim()
		if limit > 0 && (s.x.Attempt.Type != AttemptReclaim || s.x.Attempt.Lineage.Cause != "lease_expired") {
			t.Errorf("%+v", s.x.Attempt)
		}
		s.pass(30 * base.Second)
		s.want(Failed, ReclaimsExhausted, NextNone)
		if f := s.x.Attempt.Failure; f.Class != "infra_crash" || f.Category != "lease_lost" || s.x.Attempt.State != EndedFailure {
			t.Errorf("cap %d: %+v", limit, s.x.Attempt)
		}
		if s.x.LeaseEpoch != int64(limit+1) || s.history[s.x.LeaseEpoch].End != EndExpired {
			t.Errorf("cap %d: epoch %d ended by %s", limit, s.x.LeaseEpoch, s.history[s.x.LeaseEpoch].End)
		}
		s.last("execution.completed")
	}
}

func TestS52_leases_of_a_dead_worker_lapse_at_once_without_grace(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"lease_grace_ms":600000}`)
	f := s.claim()
	lapsed := false
	_ = s.do(func(fx *Effects) error { lapsed = s.x.LapseNow(fx); return nil })
	if data := s.last("lease.expired"); !lapsed || data["cause"] != "worker_dead" {
		t.Errorf("%v %v", lapsed, data)
	}
	_ = s.do(func(fx *Effects) error { lapsed = s.x.LapseNow(fx); return nil })
	if lapsed {
		t.Error("lapsed twice")
	}
	s.claim()
	if cause := s.x.Attempt.Lineage.Cause; cause != "worker_dead" || s.x.ReplayLineage != nil {
		t.Errorf("cause %q", cause)
	}
	_, err := s.complete(f, nil)
	wantCode(t, err, base.CodeStaleLease)
}

func TestL105_a_grant_ends_unused_and_returns_its_admission(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.grant(5 * base.Second)
	s.x.Holds = []string{"lane:default", "slots:api"}
	s.pass(4999)
	s.want(Granted, WaitingForWorker, NextInitial)
	s.pass(1)
	s.want(Ready, WaitingForWorker, NextInitial)
	if data := s.last("grant.ended"); data["cause"] != "expired" || s.x.Holds != nil || s.x.QueuedAt != storyStart {
		t.Errorf("%v, holds %v", data, s.x.Holds)
	}
}

func TestS41_slots_are_kept_while_waiting_only_if_the_policy_says_so(t *testing.T) {
	t.Parallel()
	held := []string{"lane:default", "slots:api", "slots:db"}
	for _, c := range []struct {
		name, mode string
		leave      func(s *story, f Fence)
		want       []string
	}{
		{"delay, hold", "hold", func(s *story, f Fence) { must[LeaveAnswer](s.t)(s.delay(f, s.now.Add(base.Hour))) }, held[1:]},
		{"suspend, hold", "hold", func(s *story, _ Fence) { s.suspend() }, held[1:]},
		{"children, hold", "hold", func(s *story, _ Fence) { s.waitForChildren() }, held[1:]},
		{"children, hold, granted and expired", "hold", func(s *story, _ Fence) {
			s.waitForChildren()
			s.satisfy()
			s.grant(1000)
			s.pass(1000)
		}, held[1:]},
		{"delay, release", "release", func(s *story, f Fence) { must[LeaveAnswer](s.t)(s.delay(f, s.now.Add(base.Hour))) }, nil},
		{"release, hold", "hold", func(s *story, f Fence) { must[LeaveAnswer](s.t)(s.release(f)) }, nil},
		{"lapse, hold", "hold", func(s *story, _ Fence) { s.pass(base.Hour) }, nil},
		{"revoke, hold", "hold", func(s *story, _ Fence) { must[RevokeAnswer](s.t)(s.revoke(false)) }, nil},
		{"complete, hold", "hold", func(s *story, f Fence) { must[CompleteAnswer](s.t)(s.complete(f, nil)) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, `{"slots_while_waiting":"`+c.mode+`"}`)
			f := s.claim()
			s.x.Holds = slices.Clone(held)
			c.leave(s, f)
			if diff := cmp.Diff(c.want, s.x.Holds); diff != "" {
				t.Error(diff)
			}
		})
	}
}
