package core

import (
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// storedPayload describes bytes that are stored beside a record.
type storedPayload struct {
	ContentType string `json:"content_type"`
	Size        int    `json:"size"`
}

func (p *storedPayload) read() Payload { return Payload{ContentType: p.ContentType, Size: p.Size} }

type storedSuspension struct {
	Suspension
	Continuation *storedPayload `json:"continuation,omitempty"`
}

type storedSignal struct {
	Signal
	Payload storedPayload `json:"payload"`
}

// encodeWait encodes a record. It cannot fail.
func encodeWait(record any) []byte {
	text, _ := json.Marshal(record)
	return text
}

// decodeWait reads the output of encodeWait. Fields added by a later version are ignored.
func decodeWait(what string, text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return base.Errorf(base.CodeCorruption, "the stored %s cannot be read: %w", what, err).With("record", what)
	}
	return nil
}

// sound is the refusal of a record that no rule can have written.
func sound(what string, ok bool) error {
	if ok {
		return nil
	}
	return base.Errorf(base.CodeCorruption, "the stored %s cannot be one", what).With("record", what)
}

// Encode encodes the waitpoint for the store.
func (w *Waitpoint) Encode() []byte { return encodeWait(w) }

// DecodeWaitpoint reads what Encode wrote; corruption.
func DecodeWaitpoint(text []byte) (w Waitpoint, err error) {
	if err := decodeWait("waitpoint", text, &w); err != nil {
		return Waitpoint{}, err
	}
	return w, sound("waitpoint", !w.ID.IsZero() && !w.ExecutionID.IsZero() && w.Key != "" && w.RunIndex >= 0)
}

// Encode encodes the end for the store.
func (e *WaitpointEnd) Encode() []byte { return encodeWait(e) }

// DecodeWaitpointEnd reads what Encode wrote; corruption.
func DecodeWaitpointEnd(text []byte) (e WaitpointEnd, err error) {
	if err := decodeWait("end of a waitpoint", text, &e); err != nil {
		return WaitpointEnd{}, err
	}
	known := slices.Contains([]CloseReason{ClosedByRequest, ClosedExpired, ClosedResumed, ClosedTimedOut, ClosedDenied, ClosedEnded}, e.Reason)
	return e, sound("end of a waitpoint", !e.WaitpointID.IsZero() && known)
}

// Encode encodes the suspension for the store, without the bytes of its continuation.
func (s *Suspension) Encode() []byte {
	stored := storedSuspension{Suspension: *s}
	if c := s.Continuation; c != nil {
		stored.Continuation = &storedPayload{c.ContentType, c.Size}
	}
	return encodeWait(stored)
}

// DecodeSuspension reads the output of Encode; the bytes of the continuation are not loaded; corruption.
func DecodeSuspension(text []byte) (Suspension, error) {
	var stored storedSuspension
	if err := decodeWait("suspension", text, &stored); err != nil {
		return Suspension{}, err
	}
	s := stored.Suspension
	if c := stored.Continuation; c != nil {
		payload := c.read()
		s.Continuation = &payload
	}
	_, known := reasonCodes[s.ReasonCode]
	ok := s.Seq > 0 && !s.ID.IsZero() && known && slices.Contains(timeoutBehaviors, s.Behavior)
	if err := sound("suspension", ok); err != nil {
		return Suspension{}, err
	}
	_, err := condition.Decode(s.Condition)
	return s, err
}

// Encode encodes the end for the store.
func (e *SuspensionEnd) Encode() []byte { return encodeWait(e) }

// DecodeSuspensionEnd reads what Encode wrote; corruption.
func DecodeSuspensionEnd(text []byte) (e SuspensionEnd, err error) {
	if err := decodeWait("end of a suspension", text, &e); err != nil {
		return SuspensionEnd{}, err
	}
	causes := []SuspensionCause{
		CauseSignal, CauseOperator, CauseTimeout, CauseEarlySignals, CauseBudgetApproved, CauseBudgetDenied, CauseCancelled, CauseEnded,
	}
	return e, sound("end of a suspension", e.Seq > 0 && slices.Contains(causes, e.Cause))
}

// Encode encodes the signal for the store, without the bytes of its payload.
func (s *Signal) Encode() []byte {
	return encodeWait(storedSignal{Signal: *s, Payload: storedPayload{s.Payload.ContentType, s.Payload.Size}})
}

// DecodeSignal reads the output of Encode; the bytes of the payload are not loaded; corruption.
func DecodeSignal(text []byte) (Signal, error) {
	var stored storedSignal
	if err := decodeWait("signal", text, &stored); err != nil {
		return Signal{}, err
	}
	s := stored.Signal
	s.Payload = stored.Payload.read()
	return s, sound("signal", s.Ordinal > 0 && !s.ID.IsZero() && s.Name != "" && s.Effect != "" && s.Payload.Size >= 0)
}

// Encode encodes the link for the store.
func (l *Link) Encode() []byte { return encodeWait(l) }

// DecodeLink reads what Encode wrote; corruption.
func DecodeLink(text []byte) (l Link, err error) {
	if err := decodeWait("link", text, &l); err != nil {
		return Link{}, err
	}
	return l, sound("link", !l.ID.IsZero() && !l.WaitpointID.IsZero() && !l.ExecutionID.IsZero() && l.Approver != "" && len(l.Decisions) > 0)
}

// Encode encodes the end for the store.
func (e *LinkEnd) Encode() []byte { return encodeWait(e) }

// DecodeLinkEnd reads what Encode wrote; corruption.
func DecodeLinkEnd(text []byte) (e LinkEnd, err error) {
	if err := decodeWait("end of a link", text, &e); err != nil {
		return LinkEnd{}, err
	}
	return e, sound("end of a link", !e.LinkID.IsZero() && e.Revoked == (e.Decision == ""))
}
