package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Targeted holds the arguments of a claim of one named execution (S34, S35).
type Targeted struct {
	Lane         *Lane    // of the execution
	GivenLane    string   // as stated by the caller, "" if not
	Capabilities []string // of the worker, sorted
	Force        bool     // operator_claim only: skip lane state and admission
	InstanceID   string
	RequestKey   string
}

// HoldsLeaseOf reports whether the current lease was acquired by this very call (L117). It is called before the checks below.
func (x *Execution) HoldsLeaseOf(instanceID, requestKey string) bool {
	return x.Lease != nil && requestKey != "" && x.Lease.RequestKey == requestKey && x.Lease.InstanceID == instanceID
}

// CheckClaimResumed returns nil if claim_resumed may take x, checking in the order of L75 up to admission. Errors: not_a_resumed_execution,
// grant_outstanding, lane_mismatch, lane_not_claimable, capability_mismatch.
func (x *Execution) CheckClaimResumed(t Targeted) error {
	if x.Next != NextResume {
		return x.refuse(base.CodeNotAResumedExecution)
	}
	if err := x.checkTakeable(base.CodeNotAResumedExecution); err != nil {
		return err
	}
	return x.checkTarget(t)
}

// CheckReclaim returns nil if reclaim may take x, checking in the order of L75 up to admission. Errors: execution_not_active, lease_conflict,
// execution_not_reclaimable, grant_outstanding, execution_not_eligible, lane_mismatch, lane_not_claimable, capability_mismatch.
func (x *Execution) CheckReclaim(t Targeted) error {
	if err := x.checkIdle(); err != nil {
		return err
	}
	if x.Next != NextReclaim {
		return x.refuse(base.CodeExecutionNotReclaimable)
	}
	if err := x.checkTakeable(base.CodeExecutionNotEligible); err != nil {
		return err
	}
	return x.checkTarget(t)
}

// CheckOperatorClaim returns nil if operator_claim may take x, checking in the order of L75 up to admission. It never checks capabilities; Force
// skips the lane's state, never the gate (S35). Errors: execution_not_active, lease_conflict, grant_outstanding, execution_not_eligible,
// lane_mismatch, lane_not_claimable.
func (x *Execution) CheckOperatorClaim(t Targeted) error {
	if err := x.checkIdle(); err != nil {
		return err
	}
	if err := x.checkTakeable(base.CodeExecutionNotEligible); err != nil {
		return err
	}
	return x.checkLane(t)
}

// checkIdle refuses an execution that has ended or is running.
func (x *Execution) checkIdle() error {
	switch {
	case x.Status.Terminal():
		return x.NotActive()
	case x.Status == Running:
		return x.refuse(base.CodeLeaseConflict)
	default:
		return nil
	}
}

// checkTakeable refuses an execution that is granted or not queued; one that is blocked by admission is tested for admission again (L74 a).
func (x *Execution) checkTakeable(otherwise base.Code) error {
	switch {
	case x.Queued():
		return nil
	case x.Status == Granted:
		return x.refuse(base.CodeGrantOutstanding)
	default:
		return x.refuse(otherwise)
	}
}

func (x *Execution) checkTarget(t Targeted) error {
	if err := x.checkLane(t); err != nil {
		return err
	}
	if missing := MissingCapabilities(x.Class.Capabilities, t.Capabilities); len(missing) > 0 {
		return base.Errorf(base.CodeCapabilityMismatch, "the worker lacks capabilities that the execution requires").With("missing", missing)
	}
	return nil
}

func (x *Execution) checkLane(t Targeted) error {
	if t.GivenLane != "" && t.GivenLane != x.Class.Lane {
		return base.Errorf(base.CodeLaneMismatch, "the execution is in lane %q", x.Class.Lane).WithField("lane").With("lane", x.Class.Lane)
	}
	if !t.Force && !t.Lane.Settings.State.Claimable() {
		return base.Errorf(base.CodeLaneNotClaimable, "lane %q is %s", x.Class.Lane, t.Lane.Settings.State).
			With("lane", x.Class.Lane).With("state", t.Lane.Settings.State.String())
	}
	return nil
}

// refuse returns a refusal that names the status of x.
func (x *Execution) refuse(code base.Code) *base.Error {
	return base.Errorf(code, "the execution is %s", x.Status).
		With("status", x.Status.String()).With("reason", x.Reason.String()).With("next", x.Next.String())
}
