package core

import (
	"errors"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// CancelCommand is the command cancel (L108). Fence is that of the lease holder (L100), nil for all other callers.
type CancelCommand struct {
	Fence    *Fence
	Source   string // "": worker with a fence, else operator
	By       string
	Reason   string
	Why      Reason // status reason; ReasonNone: CancelledByRequest
	Recorded *LeaseRecord
}

const (
	sourceOperator = "operator"
	sourceWorker   = "worker"
	sourceTimeout  = "timeout"
)

// Cancel ends x as cancelled, immediately and from every status that is not terminal. already reports that it was cancelled before. Errors:
// execution_not_active naming another outcome; with a fence those of the fence.
func (x *Execution) Cancel(fx *Effects, c CancelCommand) (already bool, err error) {
	var in entry
	if c.Fence != nil {
		if err := c.Fence.Validate(); err != nil {
			return false, err
		}
	}
	switch {
	case x.Status == Cancelled:
		return true, nil
	case c.Fence != nil:
		if in, err = x.enter(fx, *c.Fence, EndCancel, c.Recorded); err != nil {
			return false, err
		}
		if in.repeat != nil {
			return true, nil
		}
	case x.Status.Terminal():
		return false, x.NotActive()
	}
	x.cancel(fx, c, in)
	return false, nil
}

func (x *Execution) cancel(fx *Effects, c CancelCommand, in entry) {
	source, lease, why := sourceOperator, EndCancelled, CancelledByRequest
	if c.Fence != nil {
		source, lease = sourceWorker, EndCancel
	}
	if c.Source != "" {
		source = c.Source
	}
	if c.Why != ReasonNone {
		why = c.Why
	}
	if source == sourceOperator {
		x.emitReason(fx, "execution.cancel_requested", c.Reason)
	}
	x.end(fx, ending{
		status: Cancelled, reason: why, attempt: EndedCancelled, lease: lease, lapse: in.lapse,
		cancellation: &Cancellation{Source: source, By: c.By, Reason: c.Reason},
	})
	if c.Fence != nil {
		fx.recordAnswer(LeaveAnswer{Status: x.Status, Reason: x.Reason, Late: in.lapse != nil}.encode())
	}
}

// SetPriority changes the priority, clamped into its range (L112). Errors: execution_not_active.
func (x *Execution) SetPriority(fx *Effects, priority int) (changed bool, err error) {
	if x.Status.Terminal() {
		return false, x.NotActive()
	}
	old := x.Priority
	x.Priority = base.ClampPriority(priority)
	if x.Priority == old {
		return false, nil
	}
	x.LastMutationAt = fx.Now
	x.emitPriorityChanged(fx, old)
	return true, nil
}

// PlaceHold prevents claims of x until the hold is released; a running attempt continues (L115). Errors: execution_not_active.
func (x *Execution) PlaceHold(fx *Effects, by, reason string) (changed bool, err error) {
	if x.Status.Terminal() {
		return false, x.NotActive()
	}
	if x.Held != nil {
		return false, nil
	}
	x.hold(fx, by, reason)
	switch {
	case x.Status == Granted:
		x.endGrant(fx, "void")
	case x.Status.Queues():
		x.pass(fx, "")
	}
	return true, nil
}

func (x *Execution) hold(fx *Effects, by, reason string) {
	x.Held = &Hold{By: by, At: fx.Now, Reason: reason}
	x.LastMutationAt = fx.Now
	x.emitReason(fx, "execution.held", reason)
}

// ReleaseHold ends a hold and lets x pass the gate (L115). Errors: execution_not_active.
func (x *Execution) ReleaseHold(fx *Effects, reason string) (changed bool, err error) {
	if x.Status.Terminal() {
		return false, x.NotActive()
	}
	if x.Held == nil {
		return false, nil
	}
	x.Held = nil
	x.LastMutationAt = fx.Now
	x.emitReason(fx, "execution.hold_released", reason)
	if x.Status == Blocked {
		x.pass(fx, "hold_released")
	}
	return true, nil
}

// RevokeCommand is the command revoke (L113).
type RevokeCommand struct {
	By     string
	Reason string
	Hold   bool   // hold x first, so that it is not taken over
	HandTo string // the instance that x is to be handed to, for the event; "": none
}

// RevokeAnswer is the answer to revoke; the lease is the one that was revoked, now or before.
type RevokeAnswer struct {
	Outcome string // revoked, already_satisfied
	Cause   string // of already_satisfied: already_revoked, already_expired
	LeaseID base.UUID
	Epoch   int64
}

// Revoke takes the lease away from its worker and queues x for a takeover that does not count as a reclaim. Errors: execution_not_active,
// no_active_lease.
func (x *Execution) Revoke(fx *Effects, c RevokeCommand) (RevokeAnswer, error) {
	if x.Status.Terminal() {
		return RevokeAnswer{}, x.NotActive()
	}
	if x.Status != Running {
		return x.alreadyRevoked()
	}
	if c.Hold && x.Held == nil {
		x.hold(fx, c.By, c.Reason)
	}
	held := x.leave(fx, exit{end: EndRevoked, state: AttemptInterrupted, interruption: InterruptedLeaseRevoked})
	x.Next = NextReclaim
	x.gate(fx.Now)
	x.emitLeaseRevoked(fx, held, &c)
	return RevokeAnswer{Outcome: "revoked", LeaseID: held.leaseID, Epoch: held.epoch}, nil
}

// alreadyRevoked answers a revoke of an execution that is not running (L74 d).
func (x *Execution) alreadyRevoked() (RevokeAnswer, error) {
	last := x.LastLease
	var cause string
	switch {
	case last != nil && last.End == EndRevoked:
		cause = "already_revoked"
	case last != nil && last.End == EndExpired && x.Next == NextReclaim:
		cause = "already_expired"
	default:
		return RevokeAnswer{}, x.refuse(base.CodeNoActiveLease)
	}
	return RevokeAnswer{Outcome: "already_satisfied", Cause: cause, LeaseID: last.ID, Epoch: last.Epoch}, nil
}

// SetTags replaces the tags of the given keys; nil deletes a tag. It applies all changes or none, in every status (L116). Errors: invalid_tag_key,
// invalid_argument.
func (x *Execution) SetTags(fx *Effects, changes map[string]*string) (changed bool, err error) {
	tags, keys, err := changedTags(x.Tags, changes)
	if err != nil || len(keys) == 0 {
		return false, err
	}
	x.Tags = tags
	x.LastMutationAt = fx.Now
	x.emitTagged(fx, keys)
	return true, nil
}

// changedTags returns the tags after the changes, and the keys that differ. old is not changed.
func changedTags(old base.Tags, changes map[string]*string) (tags base.Tags, keys []string, err error) {
	tags = make(base.Tags, len(old)+len(changes))
	maps.Copy(tags, old)
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		value := changes[key]
		if err := checkTagChange(key, value); err != nil {
			return nil, nil, err
		}
		was, had := old[key]
		switch {
		case value == nil && had:
			delete(tags, key)
			keys = append(keys, key)
		case value != nil && (!had || was != *value):
			tags[key] = *value
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 && len(tags) > base.MaxTags {
		return nil, nil, base.Invalid("tags", "%d tags, at most %d are allowed", len(tags), base.MaxTags)
	}
	return tags, keys, nil
}

// CheckTagChanges refuses changes that are invalid for every execution: invalid_tag_key, invalid_argument.
func CheckTagChanges(field string, changes map[string]*string) error {
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		var refusal *base.Error
		if errors.As(checkTagChange(key, changes[key]), &refusal) {
			return refusal.WithField(base.FieldUnder(field, key))
		}
	}
	return nil
}

func checkTagChange(key string, value *string) error {
	if value == nil {
		return base.CheckTagKey(key)
	}
	return base.CheckTag(key, *value)
}

// Expect is what an operator expects of x (L77). Absent fields are not compared.
type Expect struct {
	Status     *Status
	LeaseEpoch *int64
	LeaseID    *base.UUID // of the lease that is held
}

// CheckExpect refuses a command if x differs from what its sender expects: precondition_failed with the actual values.
func (x *Execution) CheckExpect(e Expect) error {
	var lease base.UUID
	if x.Lease != nil {
		lease = x.Lease.ID
	}
	var field string
	switch {
	case e.Status != nil && *e.Status != x.Status:
		field = "status"
	case e.LeaseEpoch != nil && *e.LeaseEpoch != x.LeaseEpoch:
		field = partEpoch
	case e.LeaseID != nil && *e.LeaseID != lease:
		field = partLeaseID
	default:
		return nil
	}
	err := base.Errorf(base.CodePreconditionFailed, "%s is not as expected", field).WithField("expect."+field).
		With("status", x.Status.String()).With(partEpoch, x.LeaseEpoch)
	if x.Lease != nil {
		err.With(partLeaseID, lease.String())
	}
	return err
}
