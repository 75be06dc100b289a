package core

// Vector is the state vector of L24. It is derived, never stored.
type Vector struct {
	LifecyclePhase   string `json:"lifecycle_phase"`
	OwnershipState   string `json:"ownership_state"`
	EligibilityState string `json:"eligibility_state"`
	BlockingReason   string `json:"blocking_reason"`
	TerminalOutcome  string `json:"terminal_outcome"`
	AttemptState     string `json:"attempt_state"`
	PublicState      string `json:"public_state"`
}

// Derive computes public state and state vector from a record and the state of its lane (L20..L24).
func Derive(x *Execution, lane LaneState) (public string, v Vector) {
	v = Vector{
		OwnershipState:  ownership(x),
		BlockingReason:  blockingReason(x, lane),
		TerminalOutcome: x.Status.Outcome(),
		AttemptState:    attemptState(x),
	}
	v.PublicState = publicState(x.Status, x.Reason, x.Next)
	v.LifecyclePhase, v.EligibilityState = phase(x, lane)
	return v.PublicState, v
}

// phase is the right half of the table of L20.
func phase(x *Execution, lane LaneState) (lifecycle, eligibility string) {
	switch {
	case x.Status.Terminal():
		return "terminal", "not_applicable"
	case x.Status == Running:
		return "active", "not_applicable"
	case x.Status == Suspended:
		return "suspended", "not_applicable"
	case x.Status == Delayed:
		return "runnable", "not_eligible_until_time"
	case x.Status == Blocked:
		return "runnable", blockedBy(x.Reason)
	case x.Status == Ready && !lane.Claimable():
		return "runnable", "blocked_by_lane_state"
	default:
		return "runnable", "eligible_now"
	}
}

func blockedBy(reason Reason) string {
	switch reason {
	case WaitingForBudget:
		return "blocked_by_budget"
	case WaitingForQuota:
		return "blocked_by_quota"
	case PausedByOperator:
		return "blocked_by_operator"
	default:
		return "blocked_by_dependencies"
	}
}

// blockingReason is L21.
func blockingReason(x *Execution, lane LaneState) string {
	switch {
	case x.Status == Running || x.Status.Terminal():
		return "none"
	case x.Status == Ready && !lane.Claimable():
		return PausedByPolicy.String()
	default:
		return x.Reason.String()
	}
}

// ownership is L22.
func ownership(x *Execution) string {
	switch {
	case x.Status == Running:
		return "leased"
	case x.Next != NextReclaim || x.LastLease == nil:
		return "unowned"
	case x.LastLease.End == EndExpired:
		return "lease_expired_reclaimable"
	case x.LastLease.End == EndRevoked:
		return "lease_revoked"
	default:
		return "unowned"
	}
}

// Outcome is L23, and the outcome of events (L145); "none" while an execution has not ended.
func (s Status) Outcome() string {
	switch {
	case !s.Terminal():
		return "none"
	case s == Succeeded:
		return "success"
	default:
		return s.String()
	}
}

// attemptState is L24.
func attemptState(x *Execution) string {
	switch {
	case x.Status == Running:
		return "running_attempt"
	case x.Status.Terminal() && x.TotalAttempts > 0:
		return "attempt_terminal"
	case x.Status.Terminal():
		return "none"
	}
	switch x.Next {
	case NextInitial:
		return "pending_first_attempt"
	case NextRetry:
		return "pending_retry_attempt"
	case NextReplay:
		return "pending_replay_attempt"
	default:
		return "attempt_interrupted"
	}
}
