package core

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// Bounds and defaults of signals (section 6).
const (
	MaxSignalPayload   = 262_144
	maxCategory        = 64
	maxSourceIdentity  = 256
	maxCorrelationID   = 128
	defaultSignalWord  = "external" // category and source type
	contentTypeJSON    = "application/json"
	categoryOfApproval = "approval"
)

// SignalCommand is a signal delivered with a token, which the caller of Deliver has verified (W33).
type SignalCommand struct {
	WaitpointID    base.UUID
	Name           string
	Category       *string // nil: external
	SourceType     string  // "": external
	SourceIdentity string  // self-declared
	Payload        Payload
	CorrelationID  string
	IdempotencyKey string
	SignalID       base.UUID // the caller's, which also works as an idempotency key; absent: MintedID
	SentAt         base.Time

	MintedID         base.UUID
	TokenKid         string
	TokenFingerprint string
}

func invalidSignal(field, why string) error {
	if why == "" {
		return nil
	}
	return base.Errorf(base.CodeInvalidSignal, "%s", why).WithField(field)
}

// Check checks the arguments: invalid_signal, reserved_name, reserved_source_type, payload_too_large.
func (c *SignalCommand) Check() error {
	if err := checkSignalName(c.Name); err != nil {
		return err
	}
	if c.Category != nil {
		if err := invalidSignal("category", base.CheckPlain(*c.Category, 0, maxCategory)); err != nil {
			return err
		}
	}
	if err := invalidSignal("source_type", base.CheckPlain(c.SourceType, 0, condition.MaxSourceType)); err != nil {
		return err
	}
	if slices.Contains([]string{condition.SourceOperator, condition.SourceApprover, condition.SourceEngine}, c.SourceType) {
		return base.Errorf(base.CodeReservedSourceType, "the source type %s is set by the engine only", c.SourceType).WithField("source_type")
	}
	if err := invalidSignal("source_identity", base.CheckPlain(c.SourceIdentity, 0, maxSourceIdentity)); err != nil {
		return err
	}
	if err := checkSignalPayload(&c.Payload); err != nil {
		return err
	}
	if err := invalidSignal("correlation_id", base.CheckPlain(c.CorrelationID, 0, maxCorrelationID)); err != nil {
		return err
	}
	if err := invalidSignal("idempotency_key", base.CheckPlain(c.IdempotencyKey, 0, base.MaxIdempotencyKey)); err != nil {
		return err
	}
	if c.SentAt < 0 || c.SentAt > latestShown {
		return invalidSignal("sent_at", "must be a moment of the years 1970 to 9999")
	}
	return nil
}

// latestShown is the last moment that RFC 3339 can represent.
const latestShown base.Time = 253_402_300_799_999

func checkSignalName(name string) error {
	if err := invalidSignal("name", base.CheckPlain(name, 1, condition.MaxSignalName)); err != nil {
		return err
	}
	return checkReserved("name", name)
}

func checkSignalPayload(p *Payload) error {
	if err := base.CheckSize("payload", len(p.Data), MaxSignalPayload); err != nil {
		return err
	}
	if p.ContentType == "" {
		return nil
	}
	return invalidSignal("payload_content_type", base.CheckBytes(p.ContentType, 128, 0x20, "must be printable ASCII"))
}

// carry sets the payload of the signal.
func (s *Signal) carry(p Payload) {
	digest := sha256.Sum256(p.Data)
	s.Payload, s.Digest = *p.sized(), digest[:]
}

// SignalAnswer is the answer to the delivery of a signal (W58, W60).
type SignalAnswer struct {
	Duplicate   bool      // it was delivered before; else accepted
	SignalID    base.UUID // of the first delivery
	Effect      condition.SignalEffect
	SameRequest bool // of a duplicate: name, payload and category equal those of the first delivery
}

// Deliver accepts a signal and resumes x if that satisfies the condition (W57 after verification). Errors: those of Check, waitpoint_not_found,
// waitpoint_expired, waitpoint_closed, signal_limit_exceeded.
func (x *Execution) Deliver(fx *Effects, d *Dossier, c SignalCommand) (SignalAnswer, error) {
	if err := c.Check(); err != nil {
		return SignalAnswer{}, err
	}
	s := Signal{
		ID: c.SignalID, WaitpointID: c.WaitpointID, Name: c.Name, Category: defaultSignalWord, SourceType: c.SourceType,
		SourceIdentity: c.SourceIdentity, CorrelationID: c.CorrelationID, IdempotencyKey: c.IdempotencyKey, SentAt: c.SentAt,
		TokenKid: c.TokenKid, TokenFingerprint: c.TokenFingerprint,
	}
	if c.Category != nil {
		s.Category = *c.Category
	}
	if s.SourceType == "" {
		s.SourceType = defaultSignalWord
	}
	s.carry(c.Payload)
	return x.accept(fx, d, s, c.MintedID)
}

// accept is the only way for a signal into the store: dedup, expiry, lifecycle, cap, record, evaluate, apply (W57). minted is the id of a signal
// without one.
func (x *Execution) accept(fx *Effects, d *Dossier, s Signal, minted base.UUID) (SignalAnswer, error) {
	waitpoint := d.Waitpoint(s.WaitpointID)
	if waitpoint == nil {
		return SignalAnswer{}, waitpointNotFound()
	}
	if known := d.delivered(&s); known != nil {
		return SignalAnswer{Duplicate: true, SignalID: known.ID, Effect: known.Effect, SameRequest: known.asks(&s)}, nil
	}
	if err := x.checkAccepting(d, waitpoint); err != nil {
		return SignalAnswer{}, err
	}
	if s.ID.IsZero() {
		s.ID = minted
	}
	s.WaitpointKey, s.AcceptedAt = waitpoint.Key, fx.Now
	asked := x.askingBudget(d)
	raise, err := x.checkDecision(fx, asked, &s)
	if err != nil {
		return SignalAnswer{}, err
	}
	if err := x.judge(d, &s); err != nil {
		return SignalAnswer{}, err
	}
	w := x.ownWaits()
	w.Signals++
	s.Ordinal = w.Signals
	x.LastMutationAt = fx.Now
	x.noteWait(fx, &s)
	x.emitSignal(fx, &s)
	switch {
	case s.Effect != condition.EffectSatisfied:
	case asked != nil:
		x.decideBudget(fx, asked, &s, raise)
	default:
		x.resume(fx, closing{cause: CauseSignal, closer: s.ID}, w.Suspension.ResumeDelay)
	}
	return SignalAnswer{SignalID: s.ID, Effect: s.Effect}, nil
}

// delivered finds the first delivery of a signal at the same waitpoint (W58). A signal with a token cannot use the idempotency key of an operator
// or a link, so that it cannot prevent a vote from counting.
func (d *Dossier) delivered(s *Signal) *Signal {
	return first(d.Signals, func(known *Signal) bool {
		return known.WaitpointID == s.WaitpointID && (!s.ID.IsZero() && known.ID == s.ID ||
			s.IdempotencyKey != "" && known.IdempotencyKey == s.IdempotencyKey && known.SourceVerified == s.SourceVerified)
	})
}

// asks reports whether another delivery has the same content.
func (s *Signal) asks(other *Signal) bool {
	return s.Name == other.Name && s.Category == other.Category && bytes.Equal(s.Digest, other.Digest)
}

// checkAccepting refuses a signal for a closed waitpoint, or above the cap (W59).
func (x *Execution) checkAccepting(d *Dossier, w *Waitpoint) error {
	if end := d.waitpointEnd(w.ID); end != nil {
		return closedError(end)
	}
	if x.Waits == nil || x.openWaitpoint(w.ID) == nil {
		return x.lacks("end of a waitpoint")
	}
	if stored := x.Waits.Signals - x.Waits.TimeoutSignals; stored >= x.Policy.MaxSignals {
		return base.Errorf(base.CodeSignalLimitExceeded, "the execution has %d signals already", stored).With("limit", x.Policy.MaxSignals)
	}
	return nil
}

// closedError is the refusal by a closed waitpoint: waitpoint_expired or waitpoint_closed.
func closedError(end *WaitpointEnd) error {
	if end.Reason == ClosedExpired {
		return base.Errorf(base.CodeWaitpointExpired, "the waitpoint has expired").With("closed_at", end.At.String())
	}
	return base.Errorf(base.CodeWaitpointClosed, "the waitpoint is closed: %s", strings.ReplaceAll(string(end.Reason), "_", " ")).
		With("close_reason", string(end.Reason)).With("closed_at", end.At.String())
}

// judge sets the effect of a signal (W61). At a pending waitpoint it is buffered until the waitpoint is adopted. At an active one it counts only
// for the suspension that the waitpoint is bound to (W63), together with all stored signals (W40).
func (x *Execution) judge(d *Dossier, s *Signal) error {
	if !x.openWaitpoint(s.WaitpointID).Active {
		s.Effect = condition.EffectBuffered
		return nil
	}
	open := x.openSuspension()
	if open == nil {
		return x.lacks("suspension")
	}
	suspension := d.suspension(open.Seq)
	if suspension == nil || !suspension.binds(s.WaitpointID) {
		return x.lacks("suspension")
	}
	condition, err := condition.Decode(suspension.Condition)
	if err != nil {
		return err
	}
	s.Effect = condition.Evaluate(evidenceIn(d.signalsOf(suspension))).Add(s.evidence())
	s.Matched = s.Effect.Matched()
	return nil
}
