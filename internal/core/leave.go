package core

import (
	"encoding/json"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// exit states how running is left: what ends the lease, and the resulting state of the attempt.
type exit struct {
	end          LeaseEnd
	state        AttemptState // interrupted, or final
	interruption Interruption // iff interrupted
	failure      *Failure
	result       *Payload
	lapse        *LeaseRecord // the recorded lapse that a late command replaces (L36), nil while running
}

// heldLease is the lease that an exit event ends (E27).
type heldLease struct {
	epoch      int64
	leaseID    base.UUID
	workerID   string
	instanceID string
	heldMS     base.Millis
	late       bool             // lease.expired has already reported the end
	usage      map[string]int64 // what was metered under the lease (B18); nil if nothing was
}

// leave is the only way out of running (L15). It ends the lease, writes last lease and lease history, stops the attempt clock, settles the budget
// reservations and frees the slots. After a lapse it does the same for a late command, in place of the lapse; an outstanding grant is then void
// (L36). The caller decides the status that follows.
func (x *Execution) leave(fx *Effects, e exit) heldLease {
	record := x.leaseRecord(fx, e)
	held := heldLease{
		epoch: record.Epoch, leaseID: record.LeaseID, workerID: record.WorkerID, instanceID: record.InstanceID,
		heldMS: record.EndedAt.Sub(record.AcquiredAt), late: record.Late, usage: x.Attempt.leaseUsage(),
	}
	if e.lapse != nil {
		held.heldMS = e.lapse.EndedAt.Sub(e.lapse.AcquiredAt)
		x.dropGrant(fx)
	} else {
		x.Attempt.RunningMS += held.heldMS
	}
	var lost []base.UUID
	if e.lapse == nil {
		lost = x.settleLease(fx, e, held.heldMS)
	}
	x.stopClock(fx.Now, e)
	x.markAttempt(fx.Now, e)
	x.LastLease = &LastLease{ID: record.LeaseID, Epoch: record.Epoch, AttemptID: x.Attempt.ID, EndedAt: fx.Now, End: e.end, Budgets: lost}
	x.Lease, x.ReplayLineage = nil, nil
	x.Holds = x.slotsAfter(e.interruption)
	record.Attempt = *x.Attempt
	fx.History = append(fx.History, record)
	return held
}

// leaseRecord begins the history entry of the lease that ends now, or of the lapsed one whose end a late command replaces.
func (x *Execution) leaseRecord(fx *Effects, e exit) LeaseRecord {
	if e.lapse != nil {
		record := *e.lapse
		record.EndedAt, record.End, record.Result = fx.Now, e.end, e.result
		record.Late, record.Replaces = true, true
		return record
	}
	return LeaseRecord{
		ExecutionID: x.ID, Epoch: x.LeaseEpoch, LeaseID: x.Lease.ID, RunIndex: x.RunIndex(),
		WorkerID: x.Lease.WorkerID, InstanceID: x.Lease.InstanceID,
		AcquiredAt: x.Lease.AcquiredAt, EndedAt: fx.Now, End: e.end, Result: e.result,
	}
}

// stopClock stores the rest of the attempt's time. A release restores it in full, a final state needs none (L101). Nothing runs after a lapse, so a
// late command leaves the stored value unchanged.
func (x *Execution) stopClock(now base.Time, e exit) {
	switch {
	case e.state.Final() || e.interruption == InterruptedReleased:
		x.AttemptRemaining = 0
	case x.AttemptDeadline != 0:
		x.AttemptRemaining = x.AttemptDeadline.Sub(now)
	}
	x.AttemptDeadline = 0
}

// markAttempt sets the state of the attempt. An interruption by a lapse that a late command replaces leaves no trace.
func (x *Execution) markAttempt(now base.Time, e exit) {
	a := x.Attempt
	a.State, a.Failure = e.state, e.failure
	switch {
	case !e.state.Final():
		a.Interruption, a.InterruptAt = e.interruption, now
	case e.lapse != nil:
		a.Interruption, a.InterruptAt, a.EndedAt = InterruptedNone, 0, now
	default:
		a.EndedAt = now
	}
}

// keepsSlots reports whether an attempt with this interruption may keep its quota slots while it waits (S41).
func (i Interruption) keepsSlots() bool {
	return i == InterruptedSuspended || i == InterruptedDelayed || i == InterruptedWaitingChildren
}

func (x *Execution) slotsAfter(i Interruption) []string {
	if i.keepsSlots() {
		return x.slotsWhileWaiting()
	}
	return nil
}

// slotsWhileWaiting returns the quota slots that slots_while_waiting=hold keeps; a lane's cap never counts waiting executions (S5, S41).
func (x *Execution) slotsWhileWaiting() []string {
	if x.Policy.SlotsWhileWaiting != SlotsHold {
		return nil
	}
	var kept []string
	for _, key := range x.Holds {
		if strings.HasPrefix(key, "slots:") {
			kept = append(kept, key)
		}
	}
	return kept
}

// recordAnswer stores the answer of the command that just ended a lease, for its repeats (L34).
func (fx *Effects) recordAnswer(answer json.RawMessage) {
	fx.History[len(fx.History)-1].Answer = answer
}

// ending states how an execution ends.
type ending struct {
	status       Status
	reason       Reason
	attempt      AttemptState  // final state of the open attempt (L30)
	lease        LeaseEnd      // how the lease ends, if one is held or a late command replaces its end
	lapse        *LeaseRecord  // of a late command (L36)
	failure      *Failure      // recorded on execution and open attempt
	cancellation *Cancellation // recorded on the execution
	result       *Payload      // recorded on the execution
	edges        []string      // names of the upstreams that made it impossible (skipped)
	timedOut     bool          // by the timeout of its suspension (W76)
	denied       *Signal       // the signal that denied more of a budget (B31)
}

// end is the only way into a terminal status (L16). It emits exactly one execution.completed.
func (x *Execution) end(fx *Effects, e ending) {
	held := x.endAttempt(fx, e)
	x.endWaits(fx, &e)
	x.dropGrant(fx)
	x.Holds = nil
	x.Held, x.Dependency = nil, ReasonNone
	x.DelayUntil, x.DelayReason = 0, ReasonNone
	x.clearBlock()
	x.AttemptRemaining, x.ReplayLineage = 0, nil
	x.Next = NextNone
	if e.failure != nil {
		x.Failure = e.failure
	}
	x.Cancellation = e.cancellation
	if e.result != nil {
		x.Result, x.ResultEpoch = e.result, x.LeaseEpoch
	}
	x.CompletedAt = fx.Now
	x.become(fx.Now, e.status, e.reason)
	x.emitCompleted(fx, held, e.edges)
}

// endAttempt leaves running or, for an attempt that waits, writes the final state where its last lease is recorded (L30).
func (x *Execution) endAttempt(fx *Effects, e ending) *heldLease {
	if x.Lease != nil || e.lapse != nil {
		held := x.leave(fx, exit{end: e.lease, state: e.attempt, failure: e.failure, result: e.result, lapse: e.lapse})
		return &held
	}
	x.closeAttempt(fx, e.attempt, e.failure)
	return nil
}

// closeAttempt sets the final state of an attempt that holds no lease, unless it has one.
func (x *Execution) closeAttempt(fx *Effects, state AttemptState, failure *Failure) {
	a := x.Attempt
	if a == nil || a.State.Final() {
		return
	}
	a.State, a.EndedAt, a.Failure = state, fx.Now, failure
	fx.Patches = append(fx.Patches, AttemptPatch{
		ExecutionID: x.ID, Epoch: a.LastEpoch, State: state, EndedAt: fx.Now, Failure: failure,
	})
}
