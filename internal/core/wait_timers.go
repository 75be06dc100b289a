package core

import (
	"crypto/sha256"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// The behaviors when a suspension times out (W75).
const (
	BehaviorFail       = "fail"
	BehaviorCancel     = "cancel"
	BehaviorExpire     = "expire"
	BehaviorAutoResume = "auto_resume_with_timeout_signal"
	BehaviorEscalate   = "escalate"
)

var timeoutBehaviors = []string{BehaviorFail, BehaviorCancel, BehaviorExpire, BehaviorAutoResume, BehaviorEscalate}

// suspensionDue returns the timeout of the open suspension: a closed one has no timer (WI14).
func (x *Execution) suspensionDue() base.Time {
	if open := x.openSuspension(); open != nil {
		return open.TimeoutAt
	}
	return 0
}

// timeOutSuspension carries out the timeout behavior of the suspension (W75).
func (x *Execution) timeOutSuspension(fx *Effects) {
	open := x.openSuspension()
	switch open.Behavior {
	case BehaviorCancel:
		x.end(fx, ending{
			status: Cancelled, reason: SuspensionTimeout, attempt: EndedCancelled, timedOut: true,
			cancellation: &Cancellation{Source: sourceTimeout, By: EngineActor().ID},
		})
	case BehaviorExpire:
		x.end(fx, ending{status: Expired, reason: SuspensionTimeout, attempt: EndedFailure, timedOut: true})
	case BehaviorAutoResume:
		x.signalTimeout(fx, open)
		x.resume(fx, closing{cause: CauseTimeout}, 0)
	case BehaviorEscalate:
		x.escalate(fx, open)
	default:
		x.end(fx, ending{
			status: Failed, reason: SuspensionTimeout, attempt: EndedFailure, timedOut: true,
			failure: &Failure{Class: classTimeout, Category: categorySuspensionTimeout, Message: "the suspension timed out", At: fx.Now},
		})
	}
}

// categorySuspensionTimeout is the category of the failure, and the source identity of a timeout signal.
const categorySuspensionTimeout = "suspension_timeout"

// escalate hands x to operators: it stays suspended without a timeout, and signals still count.
func (x *Execution) escalate(fx *Effects, open *OpenSuspension) {
	escalated := *open
	escalated.TimeoutAt, escalated.EscalatedAt, escalated.ReasonCode = 0, fx.Now, ReasonCodeOperatorReview
	x.ownWaits().Suspension = &escalated
	x.become(fx.Now, Suspended, reasonCodes[escalated.ReasonCode])
	x.emitEscalated(fx, open)
}

// timeoutSignalName is the name of the signal that reports a timeout to a resumed handler.
const timeoutSignalName = condition.ReservedPrefix + "timeout" + condition.ReservedPrefix

// signalTimeout stores the signal that reports the timeout, regardless of the cap (W76). It belongs to the primary waitpoint, or to the suspension
// if there is none. No node has matched it, although it ended the wait.
func (x *Execution) signalTimeout(fx *Effects, open *OpenSuspension) {
	payload := base.NewObject(128)
	payload.UUID("suspension_id", open.ID)
	payload.Moment("timeout_at", open.TimeoutAt)
	w := x.ownWaits()
	w.Signals++
	w.TimeoutSignals++
	s := &Signal{
		Ordinal: w.Signals, ID: timeoutSignalID(open), WaitpointID: open.PrimaryID, WaitpointKey: open.PrimaryKey, SuspensionID: open.ID,
		Name: timeoutSignalName, Category: "system", SourceType: condition.SourceEngine, SourceIdentity: categorySuspensionTimeout,
		SourceVerified: true, AcceptedAt: fx.Now, Effect: condition.EffectSatisfied,
	}
	s.carry(Payload{ContentType: contentTypeJSON, Data: payload.Done()})
	x.noteWait(fx, s)
	x.emitSignal(fx, s)
}

// timeoutSignalID derives the id from the suspension, which times out at most once. A timer that is noticed late, or by two processes of which one
// loses, therefore makes the same signal (LI13).
func timeoutSignalID(open *OpenSuspension) base.UUID {
	digest := sha256.Sum256(append([]byte(timeoutSignalName), open.ID[:]...))
	return base.MintUUID(open.TimeoutAt, [10]byte(digest[:10]))
}

// waitpointDue returns when the first pending waitpoint expires. Active ones have no expiry of their own.
func (x *Execution) waitpointDue() (due base.Time) {
	for _, w := range x.openWaitpoints() {
		due = base.Earliest(due, w.ExpiresAt)
	}
	return due
}

// expireWaitpoints closes the pending waitpoints that expire first.
func (x *Execution) expireWaitpoints(fx *Effects) {
	due := x.waitpointDue()
	x.closeWaitpoints(fx, func(w OpenWaitpoint) CloseReason {
		if w.ExpiresAt == due {
			return ClosedExpired
		}
		return ""
	})
	x.LastMutationAt = fx.Now
}
