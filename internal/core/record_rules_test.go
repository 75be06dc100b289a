package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// byRequest are the operations of the table that somebody asks for.
var byRequest = []string{
	"claim_resumed", "reclaim", "operator_claim", "renew", "progress", "complete", "fail", "delay", "wait_for_children", "suspend", "release", "cancel", "revoke",
	"resume", "replay", "set_priority", "hold", "release_hold", "set_tags",
}

// afterEach runs every operation in every status, some time later, and shows the record before and after.
func afterEach(t *testing.T, check func(t *testing.T, operation string, before *Execution, s *story)) {
	for _, operation := range byRequest {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			inEveryStatus(t, tablePolicy, func(t *testing.T, s *story, _ Status) {
				if operation == "release_hold" {
					_, _ = s.hold()
				}
				before := s.x.Clone()
				var f Fence
				if s.x.Lease != nil {
					f = s.fence()
				}
				s.now = s.now.Add(7)
				_ = s.run(operation, f)
				check(t, operation, before, s)
			})
		})
	}
}

func TestL9_every_change_sets_last_mutation_and_only_one_of_status_or_reason_sets_its_since(t *testing.T) {
	t.Parallel()
	afterEach(t, func(t *testing.T, operation string, before *Execution, s *story) {
		x := s.x
		changed := !cmp.Equal(before, x) && operation != "renew"
		if want := x.LastMutationAt == s.now; changed != want {
			t.Errorf("changed %v, last mutation at %s, now %s", changed, x.LastMutationAt, s.now)
		}
		moved := before.Status != x.Status || before.Reason != x.Reason
		if want := x.StatusSince == s.now; moved != want {
			t.Errorf("%s %s -> %s %s since %s, now %s", before.Status, before.Reason, x.Status, x.Reason, x.StatusSince, s.now)
		}
	})
}

func TestL10_no_request_changes_identity_input_policy_lane_kind_or_namespace(t *testing.T) {
	t.Parallel()
	type fixed struct {
		ID, Flow, Parent     base.ID
		Class                Class
		Creator, Key, Policy string
		Input                Payload
		CreatedAt            base.Time
	}
	of := func(x *Execution) fixed {
		return fixed{x.ID, x.FlowID, x.ParentID, *x.Class, x.Creator, x.IdempotencyKey, string(x.Policy.Canonical()), x.Input, x.CreatedAt}
	}
	afterEach(t, func(t *testing.T, _ string, before *Execution, s *story) {
		if diff := cmp.Diff(of(before), of(s.x)); diff != "" {
			t.Error(diff)
		}
	})
}

// departures are the ways out of running: what the lease history calls them, and whether slots may be kept meanwhile.
var departures = map[string]struct {
	end   LeaseEnd
	leave func(s *story)
	keeps bool
}{
	"complete":          {EndComplete, func(s *story) { must[CompleteAnswer](s.t)(s.complete(s.fence(), nil)) }, false},
	"fail":              {EndFail, func(s *story) { must[FailAnswer](s.t)(s.fail(s.fence(), "")) }, false},
	"fail for good":     {EndFail, func(s *story) { must[FailAnswer](s.t)(s.fail(s.fence(), classPermanent)) }, false},
	"delay":             {EndDelay, func(s *story) { must[LeaveAnswer](s.t)(s.delay(s.fence(), s.now.Add(base.Minute))) }, true},
	"release":           {EndRelease, func(s *story) { must[LeaveAnswer](s.t)(s.release(s.fence())) }, false},
	"suspend":           {EndSuspend, func(s *story) { s.suspend() }, true},
	"wait for children": {EndWaitForChildren, func(s *story) { s.waitForChildren() }, true},
	"cancel":            {EndCancelled, func(s *story) { must[bool](s.t)(s.cancel(nil)) }, false},
	"own cancel":        {EndCancel, func(s *story) { f := s.fence(); must[bool](s.t)(s.cancel(&f)) }, false},
	"revoke":            {EndRevoked, func(s *story) { must[RevokeAnswer](s.t)(s.revoke(false)) }, false},
	"lapse":             {EndExpired, func(s *story) { s.pass(s.x.Lease.ExpiresAt.Sub(s.now)) }, false},
	"worker dead":       {EndExpired, func(s *story) { _ = s.do(func(fx *Effects) error { s.x.LapseNow(fx); return nil }) }, false},
	"attempt timeout":   {EndAttemptTimeout, func(s *story) { _ = s.do(func(fx *Effects) error { s.x.timeOut(fx); return nil }) }, false},
	"deadline":          {EndDeadline, func(s *story) { _ = s.do(func(fx *Effects) error { s.x.expire(fx); return nil }) }, false},
}

func TestL15_every_way_out_of_running_ends_the_lease_stops_the_clock_and_frees_the_slots(t *testing.T) {
	t.Parallel()
	for name, c := range departures {
		for _, hold := range []bool{false, true} {
			policy := `{"retry_policy":{},"timeout_policy":{"attempt_timeout_ms":60000}}`
			if hold {
				policy = `{"retry_policy":{},"timeout_policy":{"attempt_timeout_ms":60000},"slots_while_waiting":"hold"}`
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := begin(t, policy)
				f := s.claim()
				s.x.Holds = []string{"lane:default", "slots:api"}
				s.now = s.now.Add(7)
				c.leave(s)
				x, record := s.x, s.history[1]
				if x.Lease != nil || x.AttemptDeadline != 0 {
					t.Errorf("lease %+v, attempt clock until %s", x.Lease, x.AttemptDeadline)
				}
				if last := x.LastLease; last.ID != f.LeaseID || last.Epoch != 1 || last.AttemptID != f.AttemptID || last.End != c.end || last.EndedAt != s.now {
					t.Errorf("last lease %+v", last)
				}
				if record.LeaseID != f.LeaseID || record.End != c.end || record.EndedAt != s.now || record.Attempt.ID != f.AttemptID {
					t.Errorf("lease history %+v", record)
				}
				var kept []string
				if hold && c.keeps {
					kept = []string{"slots:api"}
				}
				if diff := cmp.Diff(kept, x.Holds); diff != "" {
					t.Errorf("slots: %s", diff)
				}
			})
		}
	}
}

func TestL16_an_end_leaves_nothing_open_whatever_the_status(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *story){
		"cancel":   func(s *story) { must[bool](s.t)(s.cancel(nil)) },
		"deadline": func(s *story) { _ = s.do(func(fx *Effects) error { s.x.expire(fx); return nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inEveryStatus(t, `{"slots_while_waiting":"hold"}`, func(t *testing.T, s *story, status Status) {
				if status.Terminal() {
					return // TestL17
				}
				s.x.DeadlineAt = s.now.Add(base.Hour)
				s.x.arm()
				if status != Ready && status != Granted { // which a hold would change
					must[bool](t)(s.hold())
				}
				if s.x.Attempt != nil || status == Granted {
					s.x.Holds = []string{"slots:api"}
				}
				told := s.ended
				s.now = s.now.Add(7)
				end(s)
				x := s.x
				if !x.Status.Terminal() || x.CompletedAt != s.now || x.WakeAt != 0 || x.Next != NextNone {
					t.Errorf("%s, completed at %s, wake_at %s, next=%s", x.Status, x.CompletedAt, x.WakeAt, x.Next)
				}
				if x.Lease != nil || x.Grant != nil || x.Holds != nil || x.Held != nil || x.DelayUntil != 0 || x.BlockedOn != "" || x.Dependency != ReasonNone {
					t.Errorf("left open: %+v", x)
				}
				if x.Attempt != nil && !x.Attempt.State.Final() {
					t.Errorf("attempt %s", x.Attempt.State)
				}
				if s.ended != told+1 {
					t.Errorf("%d completions told", s.ended-told)
				}
			})
		})
	}
}

func TestL17_no_late_command_and_no_timer_changes_an_outcome(t *testing.T) {
	t.Parallel()
	for _, status := range Statuses() {
		if !status.Terminal() {
			continue
		}
		t.Run(status.String(), func(t *testing.T) {
			t.Parallel()
			s := broughtTo(t, tablePolicy, status)
			f := Fence{LeaseID: s.mint(), Epoch: 1, AttemptID: s.mint()}
			if last := s.x.LastLease; last != nil {
				f = Fence{LeaseID: last.ID, Epoch: last.Epoch, AttemptID: last.AttemptID}
			}
			before, told := s.x.Clone(), len(s.events)
			for _, operation := range byRequest {
				if operation == "replay" || operation == "set_tags" {
					continue
				}
				s.pass(base.Day)
				_ = s.run(operation, f)
			}
			if diff := cmp.Diff(before, s.x); diff != "" {
				t.Error(diff)
			}
			if len(s.events) != told {
				t.Errorf("told %v", s.kinds(told))
			}
		})
	}
}

func TestL19_wake_at_is_the_earliest_of_the_timers_that_a_status_arms(t *testing.T) {
	t.Parallel()
	const grace, timeout = 2 * base.Second, 20 * base.Second
	policy := `{"lease_grace_ms":2000,"timeout_policy":{"attempt_timeout_ms":20000}}`
	own := map[Status]base.Time{
		Delayed: storyStart.Add(5 * base.Minute), Granted: storyStart.Add(5 * base.Second), Running: storyStart.Add(timeout),
	}
	inEveryStatus(t, policy, func(t *testing.T, s *story, status Status) {
		if s.x.WakeAt != own[status] {
			t.Errorf("wake_at %s, want %s", s.x.WakeAt, own[status])
		}
		if status.Terminal() {
			return
		}
		s.x.DeadlineAt = storyStart.Add(base.Second)
		if s.x.arm(); s.x.WakeAt != s.x.DeadlineAt {
			t.Errorf("with a deadline: wake_at %s", s.x.WakeAt)
		}
	})
	s := begin(t, policy)
	f := s.claimFor(10 * base.Second)
	if s.x.WakeAt != s.now.Add(10*base.Second+grace) {
		t.Errorf("the lapse comes first, but wake_at is %s", s.x.WakeAt)
	}
	must[int](t)(0, s.renew(f, 500))
	if s.x.WakeAt != s.now.Add(500+grace) {
		t.Errorf("the lapse got earlier, but wake_at is %s", s.x.WakeAt)
	}
}

func TestL35_L78_what_the_fence_refuses_changes_nothing_and_says_where_the_execution_stands(t *testing.T) {
	t.Parallel()
	for _, operation := range workerCommands {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			inEveryStatus(t, tablePolicy, func(t *testing.T, s *story, _ Status) {
				s.now = s.now.Add(7)
				before, told := s.x.Clone(), len(s.events)
				err := s.run(operation, Fence{LeaseID: base.UUID{9}, Epoch: 1, AttemptID: base.UUID{9}})
				if err == nil {
					t.Fatal("passed")
				}
				if diff := cmp.Diff(before, s.x); diff != "" || len(s.events) != told {
					t.Errorf("told %v, changed %s", s.kinds(told), diff)
				}
				if refusal := wantCode(t, err, base.CodeOf(err)); refusal.Code == base.CodeExecutionNotActive {
					wantNotActive(t, refusal, s.x)
				}
			})
		})
	}
}

func TestS7_what_begins_anew_queues_from_then_on_and_what_was_begun_keeps_its_place(t *testing.T) {
	t.Parallel()
	delayed := begin(t, `{}`, func(s *Submission) { s.DelayUntil = storyStart.Add(base.Minute) })
	if delayed.x.QueuedAt != storyStart.Add(base.Minute) {
		t.Errorf("a delayed submission is queued at %s", delayed.x.QueuedAt)
	}
	for name, c := range map[string]struct {
		run  func(s *story)
		want base.Time // 0: kept
	}{
		"retry":        {func(s *story) { must[FailAnswer](s.t)(s.fail(s.claim(), "")) }, storyStart.Add(7 + base.Second)},
		"worker delay": {func(s *story) { must[LeaveAnswer](s.t)(s.delay(s.claim(), s.now.Add(base.Minute))) }, storyStart.Add(7 + base.Minute)},
		"replay": {func(s *story) {
			must[CompleteAnswer](s.t)(s.complete(s.claim(), nil))
			s.now = s.now.Add(base.Hour)
			must[int](s.t)(0, s.replay(ReplayCommand{}))
		}, storyStart.Add(7 + base.Hour)},
		"release":         {func(s *story) { must[LeaveAnswer](s.t)(s.release(s.claim())) }, 0},
		"lapse":           {func(s *story) { s.claim(); s.pass(30 * base.Second) }, 0},
		"worker dead":     {func(s *story) { s.claim(); _ = s.do(func(fx *Effects) error { s.x.LapseNow(fx); return nil }) }, 0},
		"revoke":          {func(s *story) { s.claim(); must[RevokeAnswer](s.t)(s.revoke(false)) }, 0},
		"resume":          {func(s *story) { s.claim(); s.suspend(); s.resume() }, 0},
		"children":        {func(s *story) { s.claim(); s.waitForChildren(); s.satisfy() }, 0},
		"hold":            {func(s *story) { must[bool](s.t)(s.hold()); must[bool](s.t)(s.releaseHold()) }, 0},
		"admission block": {func(s *story) { s.blockByQuota(); must[bool](s.t)(s.hold()); must[bool](s.t)(s.releaseHold()) }, 0},
		"grant expiry":    {func(s *story) { s.grant(base.Second); s.pass(base.Second) }, 0},
		"priority":        {func(s *story) { must[int](s.t)(0, s.run("set_priority", Fence{})) }, 0},
	} {
		s := begin(t, `{"retry_policy":{}}`)
		s.now = s.now.Add(7)
		c.run(s)
		if want := max(c.want, storyStart); s.x.QueuedAt != want {
			t.Errorf("%s: queued at %s, want %s", name, s.x.QueuedAt, want)
		}
	}
}

func TestL113_revoke_with_hold_of_what_is_held_leaves_the_first_hold(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.claim()
	must[bool](t)(s.hold())
	first, told := *s.x.Held, len(s.events)
	s.now = s.now.Add(7)
	must[RevokeAnswer](t)(s.revoke(true))
	s.want(Blocked, PausedByOperator, NextReclaim)
	if diff := cmp.Diff(first, *s.x.Held); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"lease.revoked"}, s.kinds(told)); diff != "" {
		t.Error(diff)
	}
}

func TestS54_an_instance_whose_lapse_was_not_noticed_goes_too(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	if w.Removable(noon.Add(base.Day)-1) || !w.Removable(noon.Add(base.Day)) {
		t.Error("a lapsed instance goes a day after it was seen, whether its lapse was noted or not")
	}
}
