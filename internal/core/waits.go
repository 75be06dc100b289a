package core

import "slices"

// Waits is what an execution itself knows of its waitpoints and its suspension: enough for its timers and for its end, so that
// neither needs anything else loaded. What commands must know beyond that is in the Dossier. A Waits value is replaced, never
// changed in place; nil: there never was a waitpoint or a suspension.
type Waits struct {
	Open           []OpenWaitpoint // pending and active ones, in order of creation
	Suspension     *OpenSuspension // present iff the status is suspended (WI7)
	Signals        int             // how many signals are stored, of all runs
	TimeoutSignals int             // those among them that the engine stored for a timeout: the cap leaves them aside (W76)
	Suspensions    int             // how many suspensions there were, of all runs
}

// OpenWaitpoint is a waitpoint that takes signals.
type OpenWaitpoint struct {
	ID        UUID
	Key       string
	Active    bool // bound to the open suspension; else pending
	ExpiresAt Time // of a pending one; an active one goes with its suspension
}

// OpenSuspension is the suspension that has not ended (W53).
type OpenSuspension struct {
	Seq         int // counts the suspensions of the execution, from 1
	ID          UUID
	At          Time
	TimeoutAt   Time   // absent: none
	Behavior    string // at the timeout (W75)
	ResumeDelay Millis
	ReasonCode  string
	PrimaryID   UUID // absent without waitpoints
	PrimaryKey  string
	EscalatedAt Time // absent unless its timeout handed it to operators (W75)
}

// MaxOpenWaitpoints is how many waitpoints of an execution may be open (W36).
const MaxOpenWaitpoints = 256

// ownWaits is a copy of the waits for this command to change: the one before may be part of a snapshot.
func (x *Execution) ownWaits() *Waits {
	var own Waits
	if x.Waits != nil {
		own = *x.Waits
		own.Open = slices.Clone(own.Open)
	}
	x.Waits = &own
	return &own
}

// openWaitpoints lists them; the caller must not change the list.
func (x *Execution) openWaitpoints() []OpenWaitpoint {
	if x.Waits == nil {
		return nil
	}
	return x.Waits.Open
}

// openWaitpoint is nil for one that is closed or was never there.
func (x *Execution) openWaitpoint(id UUID) *OpenWaitpoint {
	open := x.openWaitpoints()
	for i := range open {
		if open[i].ID == id {
			return &open[i]
		}
	}
	return nil
}

// openSuspension is nil unless x is suspended.
func (x *Execution) openSuspension() *OpenSuspension {
	if x.Waits == nil {
		return nil
	}
	return x.Waits.Suspension
}

// closeWaitpoints closes the open waitpoints for which reason has one; "" leaves them open. A closed one stays so for ever.
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

// closing says how a suspension ends (W54).
type closing struct {
	cause   SuspensionCause
	resumed bool        // the wait is passed: the work goes on
	active  CloseReason // of its waitpoints
	closer  UUID        // the signal that met the condition
	by      string      // the operator
}

// endSuspension closes the open suspension and the waitpoints that belong to it. Nothing happens when there is none.
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

// endWaits closes everything that waits when x ends (L16, W79).
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

// noteWait hands a record to whoever writes it.
func (x *Execution) noteWait(fx *Effects, record WaitRecord) {
	fx.Waits = append(fx.Waits, WaitWrite{ExecutionID: x.ID, Record: record})
}
