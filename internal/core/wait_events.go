package core

import "encoding/json"

func (x *Execution) emitWaitpointCreated(fx *Effects, w *Waitpoint) {
	var o dataBuilder
	o.uuid(fieldWaitpointID, w.ID)
	o.str(fieldWaitpointKey, w.Key)
	o.moment(fieldExpiresAt, w.ExpiresAt)
	o.str(fieldTokenKid, w.TokenKid)
	o.str(fieldTokenFingerprint, w.TokenFingerprint)
	x.emit(fx, "waitpoint.created", &o)
}

func (x *Execution) emitWaitpointClosed(fx *Effects, w OpenWaitpoint, reason CloseReason) {
	var o dataBuilder
	o.uuid(fieldWaitpointID, w.ID)
	o.str(fieldWaitpointKey, w.Key)
	o.str(fieldCloseReason, string(reason))
	x.emit(fx, "waitpoint.closed", &o)
}

// emitToken emits that a token was shown or replaced; kid is that of the token shown.
func (x *Execution) emitToken(fx *Effects, kind string, waitpoint UUID, kid string) {
	var o dataBuilder
	o.uuid(fieldWaitpointID, waitpoint)
	o.str(fieldTokenKid, kid)
	x.emit(fx, kind, &o)
}

// emitSuspended emits that a suspension ended the lease (W86).
func (x *Execution) emitSuspended(fx *Effects, held heldLease, s *Suspension, bound []Waitpoint) {
	var o dataBuilder
	o.uuid(fieldSuspensionID, s.ID)
	o.str(fieldReasonCode, s.ReasonCode)
	o.moment(fieldTimeoutAt, s.TimeoutAt)
	o.str(fieldTimeoutBehavior, s.Behavior)
	o.raw(fieldWaitpoints, waitpointsTold(bound))
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "execution.suspended", &o)
}

// waitpointsTold returns the list of waitpoints in execution.suspended.
func waitpointsTold(bound []Waitpoint) json.RawMessage {
	text := []byte{'['}
	for i := range bound {
		w := &bound[i]
		if i > 0 {
			text = append(text, ',')
		}
		o := newObject(256)
		o.uuid("waitpoint_id", w.ID)
		o.str("waitpoint_key", w.Key)
		o.str("token_kid", w.TokenKid)
		o.str("token_fingerprint", w.TokenFingerprint)
		text = append(text, o.done()...)
	}
	return append(text, ']')
}

func (x *Execution) emitSuspendSatisfied(fx *Effects, s *Suspension, signals []Signal) {
	ids := make([]string, len(signals))
	for i := range signals {
		ids[i] = signals[i].ID.String()
	}
	var o dataBuilder
	o.uuid(fieldSuspensionID, s.ID)
	o.strs(fieldSignals, ids)
	x.emit(fx, "execution.suspend_satisfied", &o)
}

func (x *Execution) emitResumed(fx *Effects, suspension UUID, c closing) {
	var o dataBuilder
	o.uuid(fieldSuspensionID, suspension)
	o.str(fieldCause, string(c.cause))
	if !c.closer.IsZero() {
		o.uuid(fieldCloserSignalID, c.closer)
	}
	o.moment(fieldDelayUntil, x.DelayUntil)
	o.strIf(fieldBy, c.by)
	x.emit(fx, "execution.resumed", &o)
}

func (x *Execution) emitEscalated(fx *Effects, s *OpenSuspension) {
	var o dataBuilder
	o.uuid(fieldSuspensionID, s.ID)
	o.moment(fieldTimeoutAt, s.TimeoutAt)
	x.emit(fx, "execution.escalated", &o)
}

// emitSignal emits the event of a signal. One without a waitpoint names none.
func (x *Execution) emitSignal(fx *Effects, s *Signal) {
	var o dataBuilder
	o.uuid(fieldSignalID, s.ID)
	if !s.WaitpointID.IsZero() {
		o.uuid(fieldWaitpointID, s.WaitpointID)
		o.str(fieldWaitpointKey, s.WaitpointKey)
	}
	o.str(fieldName, s.Name)
	o.str(fieldCategory, s.Category)
	o.str(fieldSourceType, s.SourceType)
	o.str(fieldSourceIdentity, s.SourceIdentity)
	o.flag(fieldSourceVerified, s.SourceVerified)
	o.str(fieldEffect, string(s.Effect))
	o.flag(fieldMatched, s.Matched)
	addPayload(&o, fieldPayload, &s.Payload)
	x.emit(fx, "signal.accepted", &o)
}

// emitLink emits the event of a link: its expiry if it is new, its decision if it was decided.
func (x *Execution) emitLink(fx *Effects, kind string, l *Link, expires Time, decision string) {
	var o dataBuilder
	o.uuid(fieldLinkID, l.ID)
	o.uuid(fieldWaitpointID, l.WaitpointID)
	o.str(fieldApprover, l.Approver)
	o.moment(fieldExpiresAt, expires)
	o.strIf(fieldDecision, decision)
	x.emit(fx, kind, &o)
}
