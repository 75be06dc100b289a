package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Fence is what a worker command carries to prove that it belongs to the lease it refers to (L33).
type Fence struct {
	LeaseID   base.UUID `json:"lease_id"`
	Epoch     int64     `json:"lease_epoch"`
	AttemptID base.UUID `json:"attempt_id"`
}

// Validate refuses an incomplete fence: fence_required when nothing is given, partial_fence when something is missing.
func (f Fence) Validate() error {
	var missing string
	switch {
	case f == Fence{}:
		return base.Errorf(base.CodeFenceRequired, "the command needs the fence of the lease").
			WithHint("send `lease_id`, `lease_epoch` and `attempt_id` as the claim returned them")
	case f.LeaseID.IsZero():
		missing = partLeaseID
	case f.Epoch == 0:
		missing = partEpoch
	case f.AttemptID.IsZero():
		missing = partAttemptID
	default:
		return nil
	}
	return base.Errorf(base.CodePartialFence, "%s is missing", missing).WithField("lease." + missing).
		WithHint("send `lease_id`, `lease_epoch` and `attempt_id` together")
}

// The parts of a fence, as errors name them.
const (
	partLeaseID   = "lease_id"
	partEpoch     = "lease_epoch"
	partAttemptID = "attempt_id"
)

// differs names the first part in which f differs from the fence (lease, epoch, attempt), or returns "".
func (f Fence) differs(lease base.UUID, epoch int64, attempt base.UUID) string {
	switch {
	case f.LeaseID != lease:
		return partLeaseID
	case f.Epoch != epoch:
		return partEpoch
	case f.AttemptID != attempt:
		return partAttemptID
	default:
		return ""
	}
}

// NeedsRecord reports whether a lease-ending command under f may need the lease history entry of f.Epoch: always, unless x
// runs under exactly this fence or the epoch has left the history (L40).
func (x *Execution) NeedsRecord(f Fence) bool {
	return f.Epoch > x.HistoryFloor() && (x.Lease == nil || f.differs(x.Lease.ID, x.LeaseEpoch, x.Lease.AttemptID) != "")
}

// CheckKeep is the fence check of commands that keep the lease and take effect even late: steps and similar commands (L34, L36). Errors:
// fence_required, partial_fence, execution_not_active, lease_revoked, stale_lease.
func (x *Execution) CheckKeep(_ *Effects, f Fence) (late bool, err error) {
	if err := f.Validate(); err != nil {
		return false, err
	}
	return x.checkFence(f)
}

// SettledCopy returns x as its timers that are due leave it at a moment, without its budgets: for a fence check in a transaction that changes nothing
// of x. Errors: store_unavailable if that depends on budgets.
func (x *Execution) SettledCopy(now base.Time) (*Execution, error) {
	then := x.Clone()
	if due := then.wallDue(); due.Reached(now) {
		return nil, base.Errorf(base.CodeStoreUnavailable, "the budgets of the execution are about to be settled").WithRetryAfter(100).
			WithHint("roll back and run the whole transaction again")
	}
	then.Settle(&Effects{Now: now})
	return then, nil
}

// checkLive is the fence check of renew and progress, which need a lease that has not lapsed (L34.6).
func (x *Execution) checkLive(f Fence) error {
	late, err := x.CheckKeep(nil, f)
	if err != nil {
		return err
	}
	if late {
		return base.Errorf(base.CodeLeaseExpired, "the lease has lapsed").With("current_epoch", x.LeaseEpoch).
			WithHint("stop the work, or end it late: complete, fail, delay and release still count until somebody takes over")
	}
	return nil
}

// checkFence is L34 without its first rule, which only lease-ending commands have (see enter).
func (x *Execution) checkFence(f Fence) (late bool, err error) {
	last := x.LastLease
	switch {
	case x.Status.Terminal() || x.Status == Suspended:
		return false, x.NotActive()
	case x.Lease == nil && last != nil && last.End == EndRevoked:
		return false, base.Errorf(base.CodeLeaseRevoked, "the lease was revoked").With("current_epoch", x.LeaseEpoch)
	case x.Lease != nil:
		return false, x.stale(f.differs(x.Lease.ID, x.LeaseEpoch, x.Lease.AttemptID))
	case last == nil:
		return false, x.stale(partLeaseID)
	}
	if err := x.stale(f.differs(last.ID, last.Epoch, last.AttemptID)); err != nil {
		return false, err
	}
	if last.End == EndExpired && x.Next == NextReclaim {
		return true, nil
	}
	return false, x.NotActive()
}

// stale is the refusal of a fence with a wrong part, nil if no part is wrong.
func (x *Execution) stale(part string) error {
	if part == "" {
		return nil
	}
	return base.Errorf(base.CodeStaleLease, "%s is not that of the current lease", part).
		With("part", part).With("current_epoch", x.LeaseEpoch).
		WithHint("the lease has gone to somebody else: stop the work")
}

// entry states how a lease-ending command passed the fence: as a repeat of the recorded command, late, or regularly.
type entry struct {
	repeat *LeaseRecord // its recorded answer is returned (L34.1)
	lapse  *LeaseRecord // the lapse that the command replaces (L36)
}

// enter is all of L34 for the lease-ending command op. recorded is the history entry of the fence's epoch, if the caller had to load it (see
// NeedsRecord).
func (x *Execution) enter(fx *Effects, f Fence, op LeaseEnd, recorded *LeaseRecord) (entry, error) {
	if err := f.Validate(); err != nil {
		return entry{}, err
	}
	record := x.recordOf(fx, f.Epoch, recorded)
	if record != nil && record.End == op && record.Answer != nil &&
		f.differs(record.LeaseID, record.Epoch, record.Attempt.ID) == "" {
		return entry{repeat: record}, nil
	}
	late, err := x.checkFence(f)
	switch {
	case err != nil:
		return entry{}, err
	case !late:
		return entry{}, nil
	case record == nil:
		return entry{}, base.Errorf(base.CodeCorruption, "the lease history of %s lacks epoch %d", x.ID, f.Epoch).
			With("record", x.ID.String()).With("field", "lease_history")
	default:
		return entry{lapse: record}, nil
	}
}

// enterAs is enter or, for an operator's override, which has no fence, the check that x is running (L37).
func (x *Execution) enterAs(fx *Effects, f Fence, override bool, op LeaseEnd, recorded *LeaseRecord) (entry, error) {
	if !override {
		return x.enter(fx, f, op, recorded)
	}
	if x.Status != Running {
		return entry{}, x.NotActive()
	}
	return entry{}, nil
}

// recordOf returns the history entry of an epoch: one written by this transaction takes precedence over the stored one.
func (x *Execution) recordOf(fx *Effects, epoch int64, stored *LeaseRecord) *LeaseRecord {
	for i := len(fx.History) - 1; i >= 0; i-- {
		if fx.History[i].Epoch == epoch && fx.History[i].ExecutionID == x.ID {
			return &fx.History[i]
		}
	}
	if stored != nil && stored.Epoch == epoch {
		return stored
	}
	return nil
}

// NotActive is the refusal execution_not_active with the details of L35.
func (x *Execution) NotActive() *base.Error {
	err := base.Errorf(base.CodeExecutionNotActive, "the execution is %s", x.Status).
		With("status", x.Status.String()).With("reason", x.Reason.String()).
		With("terminal_outcome", x.Status.Outcome()).With("lease_epoch", x.LeaseEpoch)
	if x.Attempt != nil {
		err.With("attempt_id", x.Attempt.ID.String()).With("attempt_index", x.Attempt.Index)
	}
	return err
}
