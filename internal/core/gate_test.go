package core

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestL14_the_first_fact_decides_and_no_fact_clears_another(t *testing.T) {
	t.Parallel()
	const now = storyStart
	for _, c := range []struct {
		name       string
		dependency Reason
		delay      base.Time
		held       bool
		status     Status
		reason     Reason
	}{
		{"nothing", ReasonNone, 0, false, Ready, WaitingForWorker},
		{"held", ReasonNone, 0, true, Blocked, PausedByOperator},
		{"delayed", ReasonNone, now + 1, false, Delayed, WaitingForDelay},
		{"a delay at this moment is over", ReasonNone, now, false, Ready, WaitingForWorker},
		{"delayed and held", ReasonNone, now + 1, true, Delayed, WaitingForDelay},
		{"over and held", ReasonNone, now, true, Blocked, PausedByOperator},
		{"join", WaitingForChildren, 0, false, Blocked, WaitingForChildren},
		{"open sub-flow", WaitingForSubflow, now + 1, true, Blocked, WaitingForSubflow},
		{"join, delayed, held", WaitingForChildren, now + 1, true, Blocked, WaitingForChildren},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := begin(t, `{}`).x
			x.Dependency, x.DelayUntil, x.DelayReason = c.dependency, c.delay, WaitingForDelay
			x.BlockedOn, x.BlockingDetail = "slots:a", []byte(`{}`)
			if c.held {
				x.Held = &Hold{By: "ann"}
			}
			x.gate(now)
			if x.Status != c.status || x.Reason != c.reason || x.BlockedOn != "" || x.BlockingDetail != nil {
				t.Errorf("got %s %s on %q", x.Status, x.Reason, x.BlockedOn)
			}
			if x.Dependency != c.dependency || (x.Held != nil) != c.held || x.Status != Ready && x.DelayUntil != c.delay {
				t.Errorf("a fact is gone: %+v", x)
			}
			if x.Status == Ready && (x.DelayUntil != 0 || x.DelayReason != ReasonNone) {
				t.Errorf("ready with a delay: %+v", x)
			}
		})
	}
}

// LC7: delay, dependency and hold in all orders of placing and release; ready only when all three are gone (LI12).
func TestL14_delay_dependency_and_hold_are_independent_in_every_order(t *testing.T) {
	t.Parallel()
	for _, order := range permutations([]string{"delay", "dependency", "hold"}) {
		t.Run(order[0]+" "+order[1]+" "+order[2], func(t *testing.T) {
			t.Parallel()
			s := begin(t, `{}`, func(sub *Submission) { sub.DelayUntil = storyStart + 1000 })
			s.depend()
			must[bool](t)(s.hold())
			s.want(Blocked, WaitingForChildren, NextInitial)
			for i, fact := range order {
				switch fact {
				case "delay":
					s.pass(1000)
				case "dependency":
					s.satisfy()
				case "hold":
					must[bool](t)(s.releaseHold())
				}
				if (s.x.Status == Ready) != (i == 2) {
					t.Fatalf("after %v: %s", order[:i+1], s.x.Status)
				}
			}
			s.want(Ready, WaitingForWorker, NextInitial)
			if kinds := s.kinds(0); kinds[len(kinds)-1] != "execution.ready" {
				t.Errorf("told %v", kinds)
			}
		})
	}
}

func permutations(list []string) [][]string {
	if len(list) < 2 {
		return [][]string{list}
	}
	var all [][]string
	for i, first := range list {
		rest := slices.Delete(slices.Clone(list), i, i+1)
		for _, tail := range permutations(rest) {
			all = append(all, append([]string{first}, tail...))
		}
	}
	return all
}

func TestL81_past_present_and_future_delays_of_a_submission(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		until  base.Time
		status Status
		queued base.Time
	}{
		{"past", storyStart - 5, Ready, storyStart},
		{"present", storyStart, Ready, storyStart},
		{"future", storyStart + 5, Delayed, storyStart + 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, `{}`, func(sub *Submission) { sub.DelayUntil = c.until })
			if s.x.Status != c.status || s.x.QueuedAt != c.queued || s.x.CreatedAt != storyStart || s.x.StatusSince != storyStart {
				t.Errorf("%+v", s.x)
			}
			if (s.x.DelayUntil != 0) != (c.status == Delayed) {
				t.Errorf("delay_until %s", s.x.DelayUntil)
			}
			s.pass(5)
			s.want(Ready, WaitingForWorker, NextInitial)
		})
	}
}

func TestL81_the_deadline_is_the_earlier_of_the_given_one_and_the_policys(t *testing.T) {
	t.Parallel()
	const relative = `{"timeout_policy":{"execution_deadline_ms":1000}}`
	for _, c := range []struct {
		policy string
		given  base.Time
		want   base.Time
	}{
		{`{}`, 0, 0},
		{`{}`, storyStart + 7, storyStart + 7},
		{relative, 0, storyStart + 1000},
		{relative, storyStart + 999, storyStart + 999},
		{relative, storyStart + 1001, storyStart + 1000},
	} {
		s := begin(t, c.policy, func(sub *Submission) { sub.DeadlineAt = c.given })
		if s.x.DeadlineAt != c.want || s.x.WakeAt != c.want {
			t.Errorf("given %s: deadline %s, wake_at %s, want %s", c.given, s.x.DeadlineAt, s.x.WakeAt, c.want)
		}
	}
}

func TestE28_a_submission_is_told_once_with_sizes_and_no_bytes(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`, func(sub *Submission) {
		sub.Priority, sub.DelayUntil, sub.DeadlineAt = 99_999, storyStart+1, storyStart+2
		sub.Tags = base.Tags{"tenant": "7"}
	})
	want := map[string]any{
		"status": "delayed", "reason": "waiting_for_delay", "priority": 9000.0,
		"delay_until": (storyStart + 1).String(), "deadline_at": (storyStart + 2).String(),
		"input": map[string]any{"size": 2.0, "content_type": "application/octet-stream"},
	}
	if diff := cmp.Diff(want, s.last("execution.submitted")); diff != "" {
		t.Error(diff)
	}
	event := s.events[0]
	if len(s.events) != 1 || event.AttemptIndex != -1 || event.Tags["tenant"] != "7" || event.Namespace != "default" ||
		event.Actor.ID != "tester" || event.RequestID != "r-1" || event.At != storyStart || event.InstanceID != "" {
		t.Errorf("%+v", event)
	}
}

func TestL147_the_return_from_an_admission_block_is_silent(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.blockByQuota()
	told := len(s.events)
	_ = s.do(func(fx *Effects) error { s.x.pass(fx, ""); return nil })
	s.want(Ready, WaitingForWorker, NextInitial)
	if len(s.events) != told {
		t.Errorf("told %v", s.kinds(told))
	}
}

func TestL115_a_hold_catches_an_admission_block(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.blockByQuota()
	must[bool](t)(s.hold())
	s.want(Blocked, PausedByOperator, NextInitial)
	must[bool](t)(s.releaseHold())
	s.want(Ready, WaitingForWorker, NextInitial)
}

func TestL106_a_due_delay_keeps_next_and_tells_its_cause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause string
		make  func(s *story)
		next  Next
	}{
		{"delay", func(s *story) { must[LeaveAnswer](s.t)(s.delay(s.claim(), s.now+100)) }, NextResume},
		{"retry", func(s *story) { must[FailAnswer](s.t)(s.fail(s.claim(), "")) }, NextRetry},
		{"resume_delay", func(s *story) { s.delayFor(100) }, NextInitial},
	} {
		s := begin(t, `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":100}}}`)
		c.make(s)
		s.pass(100)
		s.want(Ready, WaitingForWorker, c.next)
		if cause := s.last("execution.ready")["cause"]; cause != c.cause || s.x.StatusSince != s.now {
			t.Errorf("cause %v, want %s", cause, c.cause)
		}
	}
}
