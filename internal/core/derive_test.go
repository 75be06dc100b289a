package core

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// LC3: every row of the tables of L20..L24.
func TestL20_L21_LC3_public_state_phase_eligibility_and_blocking_reason_row_by_row(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status                     Status
		reason                     Reason
		next                       Next
		lane                       LaneState
		public, phase, eligibility string
		blocking                   string
	}{
		{Ready, WaitingForWorker, NextInitial, LaneActive, "waiting", "runnable", "eligible_now", "waiting_for_worker"},
		{Ready, WaitingForWorker, NextReclaim, LaneDraining, "waiting", "runnable", "eligible_now", "waiting_for_worker"},
		{Ready, WaitingForWorker, NextResume, LaneActive, "resumable", "runnable", "eligible_now", "waiting_for_worker"},
		{Ready, WaitingForWorker, NextInitial, LanePaused, "waiting", "runnable", "blocked_by_lane_state", "paused_by_policy"},
		{Ready, WaitingForWorker, NextResume, LaneDisabled, "resumable", "runnable", "blocked_by_lane_state", "paused_by_policy"},
		{Granted, WaitingForWorker, NextRetry, LanePaused, "waiting", "runnable", "eligible_now", "waiting_for_worker"},
		{Granted, WaitingForWorker, NextResume, LaneActive, "resumable", "runnable", "eligible_now", "waiting_for_worker"},
		{Delayed, WaitingForRetryBackoff, NextRetry, LanePaused, "delayed", "runnable", "not_eligible_until_time", "waiting_for_retry_backoff"},
		{Delayed, WaitingForDelay, NextResume, LaneActive, "delayed", "runnable", "not_eligible_until_time", "waiting_for_delay"},
		{Blocked, WaitingForChildren, NextResume, LaneActive, "waiting_children", "runnable", "blocked_by_dependencies", "waiting_for_children"},
		{Blocked, WaitingForSubflow, NextInitial, LaneActive, "waiting_children", "runnable", "blocked_by_dependencies", "waiting_for_subflow"},
		{Blocked, WaitingForBudget, NextInitial, LaneActive, "rate_limited", "runnable", "blocked_by_budget", "waiting_for_budget"},
		{Blocked, WaitingForQuota, NextInitial, LaneActive, "rate_limited", "runnable", "blocked_by_quota", "waiting_for_quota"},
		{Blocked, PausedByOperator, NextResume, LaneActive, "waiting", "runnable", "blocked_by_operator", "paused_by_operator"},
		{Running, ReasonNone, NextNone, LanePaused, "active", "active", "not_applicable", "none"},
		{Suspended, WaitingForApproval, NextResume, LaneActive, "suspended", "suspended", "not_applicable", "waiting_for_approval"},
		{Succeeded, Completed, NextNone, LaneActive, "completed", "terminal", "not_applicable", "none"},
		{Failed, Permanent, NextNone, LaneActive, "failed", "terminal", "not_applicable", "none"},
		{Cancelled, CancelledByRequest, NextNone, LaneActive, "cancelled", "terminal", "not_applicable", "none"},
		{Expired, ExecutionDeadline, NextNone, LaneActive, "expired", "terminal", "not_applicable", "none"},
		{Skipped, DependencyImpossible, NextNone, LanePaused, "skipped", "terminal", "not_applicable", "none"},
	} {
		x := &Execution{Status: c.status, Reason: c.reason, Next: c.next}
		public, v := Derive(x, c.lane)
		if public != c.public || v.PublicState != c.public || v.LifecyclePhase != c.phase || v.EligibilityState != c.eligibility || v.BlockingReason != c.blocking {
			t.Errorf("%s %s next=%s lane %s: %+v", c.status, c.reason, c.next, c.lane, v)
		}
	}
}

func TestL22_ownership(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status Status
		next   Next
		end    LeaseEnd
		want   string
	}{
		{Running, NextNone, EndNone, "leased"},
		{Ready, NextReclaim, EndExpired, "lease_expired_reclaimable"},
		{Delayed, NextReclaim, EndExpired, "lease_expired_reclaimable"},
		{Blocked, NextReclaim, EndRevoked, "lease_revoked"},
		{Ready, NextResume, EndRelease, "unowned"},
		{Ready, NextInitial, EndNone, "unowned"},
		{Failed, NextNone, EndExpired, "unowned"},
	} {
		x := &Execution{Status: c.status, Next: c.next}
		if c.end != EndNone {
			x.LastLease = &LastLease{End: c.end}
		}
		if _, v := Derive(x, LaneActive); v.OwnershipState != c.want {
			t.Errorf("%s next=%s last %s: %s, want %s", c.status, c.next, c.end, v.OwnershipState, c.want)
		}
	}
}

func TestL23_L24_terminal_outcome_and_attempt_state(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status   Status
		next     Next
		attempts int
		outcome  string
		attempt  string
	}{
		{Succeeded, NextNone, 1, "success", "attempt_terminal"},
		{Failed, NextNone, 1, "failed", "attempt_terminal"},
		{Cancelled, NextNone, 0, "cancelled", "none"},
		{Expired, NextNone, 2, "expired", "attempt_terminal"},
		{Skipped, NextNone, 0, "skipped", "none"},
		{Running, NextNone, 1, "none", "running_attempt"},
		{Ready, NextInitial, 0, "none", "pending_first_attempt"},
		{Delayed, NextRetry, 1, "none", "pending_retry_attempt"},
		{Ready, NextReplay, 1, "none", "pending_replay_attempt"},
		{Suspended, NextResume, 1, "none", "attempt_interrupted"},
		{Granted, NextReclaim, 1, "none", "attempt_interrupted"},
	} {
		_, v := Derive(&Execution{Status: c.status, Next: c.next, TotalAttempts: c.attempts}, LaneActive)
		if v.TerminalOutcome != c.outcome || v.AttemptState != c.attempt {
			t.Errorf("%s next=%s: %s %s", c.status, c.next, v.TerminalOutcome, v.AttemptState)
		}
	}
}

func TestS6_priority_comes_first_and_ageing_gives_it_a_price(t *testing.T) {
	t.Parallel()
	work := func(priority int, queued base.Time) *Execution {
		return &Execution{Priority: priority, QueuedAt: queued}
	}
	if work(1, storyStart.Add(10*base.Year)).RankKey(0) >= work(0, storyStart).RankKey(0) {
		t.Error("age came before priority")
	}
	if work(0, storyStart).RankKey(0) >= work(0, storyStart+1).RankKey(0) {
		t.Error("younger work came first")
	}
	if key := work(9000, 0).RankKey(1_000_000_000_000); key != -9_000_000_000_000_000 {
		t.Errorf("key %d", key)
	}
	const ageing = 1000
	old, new := work(0, storyStart), work(3, storyStart+3001)
	if old.RankKey(ageing) >= new.RankKey(ageing) {
		t.Error("overtaken by work that queued more than (p' - p) x ageing_ms later")
	}
	new.QueuedAt -= 2
	if old.RankKey(ageing) <= new.RankKey(ageing) {
		t.Error("priority is worth nothing")
	}
}
