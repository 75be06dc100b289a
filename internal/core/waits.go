package core

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Waits is the part of an execution record about its waitpoints and its suspension: enough for its timers and for its end, so that neither needs
// other records. Everything else that commands need is in the Dossier. A Waits value is replaced, never changed in place; nil if there never was a
// waitpoint or a suspension.
type Waits struct {
	Open           []OpenWaitpoint // pending and active ones, in order of creation
	Suspension     *OpenSuspension // present iff the status is suspended (WI7)
	Signals        int             // number of stored signals, over all runs
	TimeoutSignals int             // those that the engine stored for a timeout: the cap does not count them (W76)
	Suspensions    int             // number of suspensions, over all runs
}

// OpenWaitpoint is a waitpoint that accepts signals.
type OpenWaitpoint struct {
	ID        base.UUID
	Key       string
	Active    bool      // bound to the open suspension; else pending
	ExpiresAt base.Time // of a pending one; an active one ends with its suspension
}

// OpenSuspension is the suspension that has not ended (W53).
type OpenSuspension struct {
	Seq         int // number of the suspension within the execution, from 1
	ID          base.UUID
	At          base.Time
	TimeoutAt   base.Time // absent: none
	Behavior    string    // at the timeout (W75)
	ResumeDelay base.Millis
	ReasonCode  string
	PrimaryID   base.UUID // absent without waitpoints
	PrimaryKey  string
	EscalatedAt base.Time // absent unless a timeout handed it to operators (W75)
}

// MaxOpenWaitpoints is the maximum number of open waitpoints of an execution (W36).
const MaxOpenWaitpoints = 256

// ownWaits returns a copy of the waits that this command may change: the previous one may be part of a snapshot.
func (x *Execution) ownWaits() *Waits {
	var own Waits
	if x.Waits != nil {
		own = *x.Waits
		own.Open = slices.Clone(own.Open)
	}
	x.Waits = &own
	return &own
}

// openWaitpoints returns the open waitpoints; the caller must not change the list.
func (x *Execution) openWaitpoints() []OpenWaitpoint {
	if x.Waits == nil {
		return nil
	}
	return x.Waits.Open
}

// openWaitpoint returns nil if the waitpoint is closed or never existed.
func (x *Execution) openWaitpoint(id base.UUID) *OpenWaitpoint {
	open := x.openWaitpoints()
	for i := range open {
		if open[i].ID == id {
			return &open[i]
		}
	}
	return nil
}

// openSuspension returns nil unless x is suspended.
func (x *Execution) openSuspension() *OpenSuspension {
	if x.Waits == nil {
		return nil
	}
	return x.Waits.Suspension
}

// closeWaitpoints closes the open waitpoints for which reason returns one; "" leaves a waitpoint open. A closed waitpoint is never reopened.
func (x *Execution) closeWaitpoints(fx *Effects, reason func(OpenWaitpoint) CloseReason) {
	if len(x.openWaitpoints()) == 0 {
		return
	}
	w := x.ownWaits()
	var kept []OpenWaitpoint
	for _, open := range w.Open {
		why := reason(open)
		if why == "" {
			kept = append(kept, open)
			continue
		}
		x.noteWait(fx, &WaitpointEnd{WaitpointID: open.ID, Reason: why, At: fx.Now})
		x.emitWaitpointClosed(fx, open, why)
	}
	w.Open = kept
}

// closing states how a suspension ends (W54).
type closing struct {
	cause   SuspensionCause
	resumed bool        // the wait is passed: the work continues
	active  CloseReason // of its waitpoints
	closer  base.UUID   // the signal that satisfied the condition
	by      string      // the operator
}

// endSuspension closes the open suspension and its waitpoints. It does nothing if there is none.
func (x *Execution) endSuspension(fx *Effects, c closing) {
	open := x.openSuspension()
	if open == nil {
		return
	}
	x.noteWait(fx, &SuspensionEnd{
		Seq: open.Seq, Cause: c.cause, Resumed: c.resumed, At: fx.Now, CloserSignalID: c.closer, By: c.by, EscalatedAt: open.EscalatedAt,
	})
	x.closeWaitpoints(fx, func(w OpenWaitpoint) CloseReason {
		if w.Active {
			return c.active
		}
		return ""
	})
	x.ownWaits().Suspension = nil
}

// endWaits closes all waits when x ends (L16, W79).
func (x *Execution) endWaits(fx *Effects, e *ending) {
	if x.Waits == nil {
		return
	}
	c := closing{cause: CauseEnded, active: ClosedEnded}
	switch {
	case e.timedOut:
		c = closing{cause: CauseTimeout, active: ClosedTimedOut}
	case e.denied != nil:
		c = closing{cause: CauseBudgetDenied, active: ClosedDenied, closer: e.denied.ID, by: e.denied.SourceIdentity}
	case e.status == Cancelled:
		c.cause = CauseCancelled
	}
	x.endSuspension(fx, c)
	x.closeWaitpoints(fx, func(OpenWaitpoint) CloseReason { return ClosedEnded })
}

// noteWait adds a record to the effects, to be written.
func (x *Execution) noteWait(fx *Effects, record WaitRecord) {
	fx.Waits = append(fx.Waits, WaitWrite{ExecutionID: x.ID, Record: record})
}
