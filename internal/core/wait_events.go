package core

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

func (x *Execution) emitWaitpointCreated(fx *Effects, w *Waitpoint) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldWaitpointID, w.ID)
	o.Str(eventdata.FieldWaitpointKey, w.Key)
	o.Moment(eventdata.FieldExpiresAt, w.ExpiresAt)
	o.Str(eventdata.FieldTokenKid, w.TokenKid)
	o.Str(eventdata.FieldTokenFingerprint, w.TokenFingerprint)
	x.emit(fx, "waitpoint.created", &o)
}

func (x *Execution) emitWaitpointClosed(fx *Effects, w OpenWaitpoint, reason CloseReason) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldWaitpointID, w.ID)
	o.Str(eventdata.FieldWaitpointKey, w.Key)
	o.Str(eventdata.FieldCloseReason, string(reason))
	x.emit(fx, "waitpoint.closed", &o)
}

// emitToken emits that a token was shown or replaced; kid is that of the token shown.
func (x *Execution) emitToken(fx *Effects, kind string, waitpoint base.UUID, kid string) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldWaitpointID, waitpoint)
	o.Str(eventdata.FieldTokenKid, kid)
	x.emit(fx, kind, &o)
}

// emitSuspended emits that a suspension ended the lease (W86).
func (x *Execution) emitSuspended(fx *Effects, held heldLease, s *Suspension, bound []Waitpoint) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldSuspensionID, s.ID)
	o.Str(eventdata.FieldReasonCode, s.ReasonCode)
	o.Moment(eventdata.FieldTimeoutAt, s.TimeoutAt)
	o.Str(eventdata.FieldTimeoutBehavior, s.Behavior)
	o.Raw(eventdata.FieldWaitpoints, waitpointsJSON(bound))
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "execution.suspended", &o)
}

// waitpointsJSON returns the list of waitpoints in execution.suspended.
func waitpointsJSON(bound []Waitpoint) json.RawMessage {
	text := []byte{'['}
	for i := range bound {
		w := &bound[i]
		if i > 0 {
			text = append(text, ',')
		}
		o := base.NewObject(256)
		o.UUID("waitpoint_id", w.ID)
		o.Str("waitpoint_key", w.Key)
		o.Str("token_kid", w.TokenKid)
		o.Str("token_fingerprint", w.TokenFingerprint)
		text = append(text, o.Done()...)
	}
	return append(text, ']')
}

func (x *Execution) emitSuspendSatisfied(fx *Effects, s *Suspension, signals []Signal) {
	ids := make([]string, len(signals))
	for i := range signals {
		ids[i] = signals[i].ID.String()
	}
	var o eventdata.Builder
	o.UUID(eventdata.FieldSuspensionID, s.ID)
	o.Strs(eventdata.FieldSignals, ids)
	x.emit(fx, "execution.suspend_satisfied", &o)
}

func (x *Execution) emitResumed(fx *Effects, suspension base.UUID, c closing) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldSuspensionID, suspension)
	o.Str(eventdata.FieldCause, string(c.cause))
	if !c.closer.IsZero() {
		o.UUID(eventdata.FieldCloserSignalID, c.closer)
	}
	o.Moment(eventdata.FieldDelayUntil, x.DelayUntil)
	o.StrIf(eventdata.FieldBy, c.by)
	x.emit(fx, "execution.resumed", &o)
}

func (x *Execution) emitEscalated(fx *Effects, s *OpenSuspension) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldSuspensionID, s.ID)
	o.Moment(eventdata.FieldTimeoutAt, s.TimeoutAt)
	x.emit(fx, "execution.escalated", &o)
}

// emitSignal emits the event of a signal. One without a waitpoint names none.
func (x *Execution) emitSignal(fx *Effects, s *Signal) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldSignalID, s.ID)
	if !s.WaitpointID.IsZero() {
		o.UUID(eventdata.FieldWaitpointID, s.WaitpointID)
		o.Str(eventdata.FieldWaitpointKey, s.WaitpointKey)
	}
	o.Str(eventdata.FieldName, s.Name)
	o.Str(eventdata.FieldCategory, s.Category)
	o.Str(eventdata.FieldSourceType, s.SourceType)
	o.Str(eventdata.FieldSourceIdentity, s.SourceIdentity)
	o.Flag(eventdata.FieldSourceVerified, s.SourceVerified)
	o.Str(eventdata.FieldEffect, string(s.Effect))
	o.Flag(eventdata.FieldMatched, s.Matched)
	addPayload(&o, eventdata.FieldPayload, &s.Payload)
	x.emit(fx, "signal.accepted", &o)
}

// emitLink emits the event of a link: its expiry if it is new, its decision if it was decided.
func (x *Execution) emitLink(fx *Effects, kind string, l *Link, expires base.Time, decision string) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldLinkID, l.ID)
	o.UUID(eventdata.FieldWaitpointID, l.WaitpointID)
	o.Str(eventdata.FieldApprover, l.Approver)
	o.Moment(eventdata.FieldExpiresAt, expires)
	o.StrIf(eventdata.FieldDecision, decision)
	x.emit(fx, kind, &o)
}
