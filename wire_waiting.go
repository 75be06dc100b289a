package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of waits (U28..U30, U42, U85). Tokens, and addresses that hold one, are in none of it: whoever may show them does so by name.

// MarshalJSON writes the condition as the HTTP API shows it (U29).
func (c Condition) MarshalJSON() ([]byte, error) {
	w := c.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *Condition) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.ResumeCondition](text)
	*c = conditionFrom(*w)
	return err
}

func (c Condition) wire() wire.ResumeCondition {
	w := wire.ResumeCondition{
		Type: c.Type, WaitpointKey: textGiven(c.Key, c.emptyKey), Name: textGiven(c.Name, c.emptyName), N: c.N, CountKind: c.CountKind,
		SourceTypes: c.SourceTypes, Waitpoints: c.Keys,
	}
	if w.Type == "" {
		w.Type = conditionSingle
	}
	for _, member := range c.Members {
		w.Members = append(w.Members, member.wire())
	}
	return w
}

func conditionFrom(w wire.ResumeCondition) Condition {
	c := Condition{Type: w.Type, N: w.N, CountKind: w.CountKind, SourceTypes: w.SourceTypes, Keys: w.Waitpoints}
	c.Key, c.emptyKey = textFrom(w.WaitpointKey)
	c.Name, c.emptyName = textFrom(w.Name)
	for _, member := range w.Members {
		c.Members = append(c.Members, conditionFrom(member))
	}
	return c
}

// textGiven is a text that may be left out; given as empty it is there, for the rules to refuse.
func textGiven(text string, empty bool) *string {
	if text == "" && !empty {
		return nil
	}
	return &text
}

func textFrom(given *string) (text string, empty bool) {
	if given == nil {
		return "", false
	}
	return *given, *given == ""
}

// MarshalJSON writes the binding as the HTTP API takes it (U29).
func (b Binding) MarshalJSON() ([]byte, error) { return wire.Marshal(b.wire()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (b *Binding) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Binding](text)
	*b = bindingFrom(*w)
	return err
}

func (b Binding) wire() wire.Binding {
	if b.Pending {
		return wire.Binding{UsePending: &wire.PendingWaitpoint{WaitpointID: b.WaitpointID}}
	}
	return wire.Binding{Fresh: &wire.FreshWaitpoint{WaitpointKey: textGiven(b.Key, b.emptyKey), WaitpointID: b.WaitpointID}}
}

func bindingFrom(w wire.Binding) Binding {
	switch {
	case w.UsePending != nil:
		return Binding{WaitpointID: w.UsePending.WaitpointID, Pending: true}
	case w.Fresh != nil:
		b := Binding{WaitpointID: w.Fresh.WaitpointID}
		b.Key, b.emptyKey = textFrom(w.Fresh.WaitpointKey)
		return b
	default:
		return Binding{}
	}
}

// MarshalJSON writes the waitpoint as lists of the HTTP API show it, without token and address (U30).
func (w Waitpoint) MarshalJSON() ([]byte, error) {
	shown := w.wire()
	return wire.Marshal(&shown)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write, with token and address where an answer has them.
func (w *Waitpoint) UnmarshalJSON(text []byte) error {
	read, err := readAnswer[wire.IssuedWaitpoint](text)
	*w = issuedFrom(*read)
	return err
}

func (w *Waitpoint) wire() wire.Waitpoint {
	return wire.Waitpoint{
		WaitpointID: w.ID, ExecutionID: string(w.ExecutionID), Namespace: w.Namespace, WaitpointKey: w.Key, RunIndex: w.RunIndex,
		SuspensionID: w.SuspensionID, State: w.State, CloseReason: w.CloseReason, RequiredSignalNames: append([]string{}, w.RequiredNames...),
		MintedAt: wireTime(w.MintedAt), TokenKid: w.TokenKid, TokenFingerprint: w.TokenFingerprint, CreatedAt: wireTime(w.CreatedAt),
		ActivatedAt: wireTime(w.ActivatedAt), ExpiresAt: wireTime(w.ExpiresAt), ClosedAt: wireTime(w.ClosedAt), SignalCount: w.SignalCount,
		MatchedSignalCount: w.MatchedSignals, LastSignalAt: wireTime(w.LastSignalAt), Links: w.Links,
	}
}

func waitpointFrom(w wire.Waitpoint) Waitpoint {
	return Waitpoint{
		ID: w.WaitpointID, ExecutionID: ID(w.ExecutionID), Namespace: w.Namespace, Key: w.WaitpointKey, RunIndex: w.RunIndex,
		SuspensionID: w.SuspensionID, State: w.State, CloseReason: w.CloseReason, RequiredNames: noneIfEmpty(w.RequiredSignalNames),
		TokenKid: w.TokenKid, TokenFingerprint: w.TokenFingerprint, CreatedAt: w.CreatedAt.Time, MintedAt: w.MintedAt.Time,
		ActivatedAt: w.ActivatedAt.Time, ExpiresAt: w.ExpiresAt.Time, ClosedAt: w.ClosedAt.Time, SignalCount: w.SignalCount,
		MatchedSignals: w.MatchedSignalCount, LastSignalAt: w.LastSignalAt.Time, Links: w.Links,
	}
}

// noneIfEmpty is nil for a list without elements.
func noneIfEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// issuedFrom is a waitpoint with its token and its address.
func issuedFrom(w wire.IssuedWaitpoint) Waitpoint {
	shown := waitpointFrom(w.Waitpoint)
	shown.CallbackURL = w.CallbackURL
	if w.Token != "" {
		shown.Token = TokenOf(w.Token)
	}
	return shown
}

// suspendWire is the waitpoint as the answer to a suspend shows it, without its token (U71).
func (w *Waitpoint) suspendWire() wire.SuspendWaitpoint {
	return wire.SuspendWaitpoint{WaitpointID: w.ID, WaitpointKey: w.Key, ExpiresAt: wireTime(w.ExpiresAt)}
}

// suspendFrom is a waitpoint of that answer, with its token and its address.
func suspendFrom(w wire.SuspendWaitpoint, suspension string) Waitpoint {
	shown := Waitpoint{ID: w.WaitpointID, Key: w.WaitpointKey, SuspensionID: suspension, ExpiresAt: w.ExpiresAt.Time, CallbackURL: w.CallbackURL}
	if w.Token != "" {
		shown.Token = TokenOf(w.Token)
	}
	return shown
}

// MarshalJSON writes the signal as the HTTP API shows it (U30).
func (s SignalRecord) MarshalJSON() ([]byte, error) {
	w := s.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *SignalRecord) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Signal](text)
	*s = signalFrom(*w)
	return err
}

func (s SignalRecord) wire() wire.Signal {
	return wire.Signal{
		SignalID: s.ID, Ordinal: s.Ordinal, WaitpointID: s.WaitpointID, WaitpointKey: s.WaitpointKey, Name: s.Name, Category: s.Category,
		SourceType: s.SourceType, SourceIdentity: s.SourceIdentity, SourceVerified: s.SourceVerified, CorrelationID: s.CorrelationID,
		SentAt: wireTime(s.SentAt), AcceptedAt: wireTime(s.AcceptedAt), PayloadShown: wire.ShowPayload(s.payload(), encodingOf(s.Payload)),
		Matched: s.Matched, Effect: s.Effect,
	}
}

func signalFrom(w wire.Signal) SignalRecord {
	return SignalRecord{
		ID: w.SignalID, Ordinal: w.Ordinal, WaitpointID: w.WaitpointID, WaitpointKey: w.WaitpointKey, Name: w.Name, Category: w.Category,
		SourceType: w.SourceType, SourceIdentity: w.SourceIdentity, SourceVerified: w.SourceVerified, CorrelationID: w.CorrelationID,
		SentAt: w.SentAt.Time, AcceptedAt: w.AcceptedAt.Time, Payload: payloadFrom(w.PayloadShown.Payload()), Size: w.PayloadShown.Payload().Size,
		Omitted: w.PayloadOmitted, Matched: w.Matched, Effect: w.Effect,
	}
}

// payload is what the signal brought, as it travels.
func (s SignalRecord) payload() wire.Payload {
	if s.Omitted {
		return wire.Payload{ContentType: s.Payload.ContentType, Size: s.Size, Omitted: true}
	}
	return wirePayload(s.Payload)
}

// loadedWire is the payload as it travels. One with a content type and without bytes was not loaded, and is shown as left out (U10).
func loadedWire(p Payload) wire.Payload {
	if p.Data == nil && p.ContentType != "" {
		return wire.Payload{ContentType: p.ContentType, Omitted: true}
	}
	return wirePayload(p)
}

// MarshalJSON writes the suspension as the HTTP API shows it (U42).
func (s SuspensionRecord) MarshalJSON() ([]byte, error) {
	w := s.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *SuspensionRecord) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Suspension](text)
	*s = suspensionFrom(*w)
	return err
}

func (s SuspensionRecord) wire() wire.Suspension {
	return wire.Suspension{
		SuspensionID: s.ID, RunIndex: s.RunIndex, AttemptIndex: s.AttemptIndex, SuspendedAt: wireTime(s.SuspendedAt), ReasonCode: s.ReasonCode,
		TimeoutAt: wireTime(s.TimeoutAt), TimeoutBehavior: string(s.OnTimeout), ResumeCondition: s.Until.wire(),
		Waitpoints: boundWire(s.Waitpoints),
		Cause:      s.Cause, ClosedAt: wireTime(s.ClosedAt), CloserSignalID: s.CloserSignalID, By: s.By, EscalatedAt: wireTime(s.EscalatedAt),
		Signals: each(s.Signals, SignalRecord.wire), ContinuationShown: wire.ShowContinuation(loadedWire(s.Continuation), encodingOf(s.Continuation)),
	}
}

func suspensionFrom(w wire.Suspension) SuspensionRecord {
	return SuspensionRecord{
		ID: w.SuspensionID, RunIndex: w.RunIndex, AttemptIndex: w.AttemptIndex, SuspendedAt: w.SuspendedAt.Time, ReasonCode: w.ReasonCode,
		TimeoutAt: w.TimeoutAt.Time, OnTimeout: TimeoutBehavior(w.TimeoutBehavior), Until: conditionFrom(w.ResumeCondition),
		Waitpoints: boundFrom(w.Waitpoints),
		Cause:      w.Cause, ClosedAt: w.ClosedAt.Time, CloserSignalID: w.CloserSignalID, By: w.By, EscalatedAt: w.EscalatedAt.Time,
		Signals: each(w.Signals, signalFrom), Continuation: payloadFrom(w.ContinuationShown.Payload()),
	}
}

// MarshalJSON writes how the wait ended, as a task of the HTTP API shows it (U28).
func (r Resume) MarshalJSON() ([]byte, error) {
	w := r.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Resume) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Resumed](text)
	*r = *resumeFrom(w)
	return err
}

func (r *Resume) wire() wire.Resumed {
	return wire.Resumed{
		SuspensionID: r.SuspensionID, Cause: r.Cause, Signals: each(r.Signals, SignalRecord.wire), Children: some(r.Children, Child.wire),
		ContinuationShown: wire.ShowContinuation(loadedWire(r.Continuation), encodingOf(r.Continuation)),
	}
}

func resumeFrom(w *wire.Resumed) *Resume {
	return &Resume{
		SuspensionID: w.SuspensionID, Cause: w.Cause, Signals: each(w.Signals, signalFrom), Children: some(w.Children, childFrom),
		Continuation: payloadFrom(w.ContinuationShown.Payload()),
	}
}

// MarshalJSON writes the receipt as the HTTP API shows it (U52, U81).
func (r SignalReceipt) MarshalJSON() ([]byte, error) {
	w := wire.SignalReceipt{Outcome: r.Outcome, SignalID: r.SignalID, Effect: r.Effect}
	if r.Outcome == outcomeDuplicate {
		w.SameRequest = &r.SameRequest
	}
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *SignalReceipt) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.SignalReceipt](text)
	*r = receiptFrom(w)
	return err
}

func receiptFrom(w *wire.SignalReceipt) SignalReceipt {
	return SignalReceipt{Outcome: w.Outcome, SignalID: w.SignalID, Effect: w.Effect, SameRequest: w.SameRequest != nil && *w.SameRequest}
}

// MarshalJSON writes the answer as the HTTP API shows it (U83).
func (r CloseResult) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.ClosedWaitpoint(r))
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *CloseResult) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.ClosedWaitpoint](text)
	*r = CloseResult(*w)
	return err
}

// earlierOf is the earlier of two moments, of which either may be absent.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func boundWire(all []Binding) []BoundWaitpoint {
	return each(all, func(b Binding) BoundWaitpoint {
		return BoundWaitpoint{WaitpointID: b.WaitpointID, Key: b.Key}
	})
}

func boundFrom(all []BoundWaitpoint) []Binding {
	return noneIfEmpty(each(all, func(b BoundWaitpoint) Binding {
		return Binding{WaitpointID: b.WaitpointID, Key: b.Key}
	}))
}
