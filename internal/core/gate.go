package core

import (
	"hash/fnv"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// become is the only place where status and reason are written (L9). It re-arms the timers (L19), so everything that they depend on must be set
// before.
func (x *Execution) become(now base.Time, status Status, reason Reason) {
	if x.Status != status || x.Reason != reason {
		x.StatusSince = now
	}
	x.Status, x.Reason = status, reason
	x.LastMutationAt = now
	x.arm()
}

// gate is the only way into ready, delayed and blocked (L14; except admission blocks, S44). It decides by Dependency, DelayUntil and Held. A flow
// node is never ready: passing the gate begins its sub-flow and makes it wait for that (F26, F46). gate emits nothing; see pass.
func (x *Execution) gate(now base.Time) {
	x.clearBlock()
	switch {
	case x.Dependency != ReasonNone:
		x.become(now, Blocked, x.Dependency)
	case x.DelayUntil > now:
		x.become(now, Delayed, x.DelayReason)
	case x.Held != nil:
		x.become(now, Blocked, PausedByOperator)
	case x.Member != nil && x.Member.Subflow:
		x.DelayUntil, x.DelayReason = 0, ReasonNone
		x.Dependency = WaitingForSubflow
		x.become(now, Blocked, WaitingForSubflow)
	default:
		x.DelayUntil, x.DelayReason = 0, ReasonNone
		x.become(now, Ready, WaitingForWorker)
	}
}

// pass sends a waiting execution through the gate and emits the change of status (E28). cause is the cause in execution.ready. The return from an
// admission block emits nothing (L147), nor does a new reason for the same status.
func (x *Execution) pass(fx *Effects, cause string) {
	from, silent := x.Status, x.blockedByAdmission()
	x.gate(fx.Now)
	if x.Status == from || silent && x.Status == Ready {
		return
	}
	switch x.Status {
	case Ready:
		x.emitReady(fx, cause)
	case Delayed:
		x.emitDelayed(fx)
	default:
		x.emitBlocked(fx)
	}
}

// blockedByAdmission reports whether x waits for room under a budget or quota (S44).
func (x *Execution) blockedByAdmission() bool {
	return x.Status == Blocked && (x.Reason == WaitingForBudget || x.Reason == WaitingForQuota)
}

// Queued reports whether x has a row in the queue: it is ready, or it is blocked by admission and picks test it again (S46).
func (x *Execution) Queued() bool { return x.Status == Ready || x.blockedByAdmission() }

// dropGrant ends an unused grant and returns its admission (S32, L105). Slots that the execution kept while it waited are its own and are kept
// (S41).
func (x *Execution) dropGrant(fx *Effects) {
	if x.Grant == nil {
		return
	}
	x.Grant = nil
	x.giveRatesBack(fx)
	x.endHolds(fx, false)
	if x.Next == NextResume && x.Attempt.Interruption.keepsSlots() {
		x.Holds = x.slotsWhileWaiting()
		return
	}
	x.Holds = nil
}

// Unblock sends an execution that is blocked by admission on a deleted key through the gate (S47), and reports whether it did.
func (x *Execution) Unblock(fx *Effects, gone func(key string) bool) bool {
	if !x.blockedByAdmission() || !gone(x.BlockedOn) {
		return false
	}
	x.pass(fx, "")
	return true
}

// The numbers under which executions of a class are filed in the queue. The values are stored: never change them. Executions under one number need
// the same of the same keys, so that a refusal of the first holds for all (S19).
const (
	blockReady   = 0  // ready, and everything of a class that needs nothing
	blockResumed = 1  // ready to resume: no rate admission is needed (S40)
	blockKept    = 2  // ready to resume with the slots that it has kept (S41)
	firstKey     = 16 // from here on: blocked on the key with that number
)

// BlockNumber returns the number under which executions blocked on an admission key are filed (S46); 0 for "". Two keys of one class share a number
// with a probability of one in two billion: the rows of one key may then have to wait for room in the other.
func BlockNumber(key string) int32 {
	if key == "" {
		return blockReady
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return int32(h.Sum32()&0x7fff_ffff) | firstKey
}

// ReadyBlocks returns the numbers other than 0 under which ready executions of a class that needs something are filed.
func ReadyBlocks() []int32 { return []int32{blockResumed, blockKept} }

// KeyBlock reports whether executions filed under the number are blocked by admission.
func KeyBlock(number int32) bool { return number >= firstKey }

// Block returns the number under which x is filed while it is Queued.
func (x *Execution) Block() int32 {
	switch {
	case x.BlockedOn != "":
		return BlockNumber(x.BlockedOn)
	case x.Class.Needs == "" || x.Next != NextResume:
		return blockReady
	case len(x.Holds) > 0:
		return blockKept
	default:
		return blockResumed
	}
}
