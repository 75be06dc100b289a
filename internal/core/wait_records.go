package core

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// WaitRecord is a record beside an execution: *Waitpoint, *WaitpointEnd, *Suspension, *SuspensionEnd, *Signal, *Link or *LinkEnd.
// A Waitpoint may be written again under its id; every other is written once.
type WaitRecord interface {
	// Encode encodes the record for the store. The Decode functions read it back.
	Encode() []byte
	// keptBy adds the record to the state of waits.
	keptBy(d *WaitState)
}

// WaitWrite is a record that a command or a timer of an execution has written.
type WaitWrite struct {
	ExecutionID base.ID
	Record      WaitRecord
}

// Waitpoint is an address for signals (section 3). State, counts and the end are derived: see WaitpointView.
type Waitpoint struct {
	ID               base.UUID `json:"waitpoint_id"`
	ExecutionID      base.ID   `json:"execution_id"`
	Namespace        string    `json:"namespace"`
	Key              string    `json:"waitpoint_key"`
	RunIndex         int       `json:"run_index"`
	SuspensionID     base.UUID `json:"suspension_id,omitzero"` // that it is bound to
	RequiredNames    []string  `json:"required_signal_names,omitempty"`
	MintedAt         base.Time `json:"minted_at"`
	TokenKid         string    `json:"token_kid,omitempty"` // of the first token issued (W28)
	TokenFingerprint string    `json:"token_fingerprint,omitempty"`
	CreatedAt        base.Time `json:"created_at"`
	ActivatedAt      base.Time `json:"activated_at,omitzero"`
	ExpiresAt        base.Time `json:"expires_at,omitzero"`       // its own expiry while it is pending, then the timeout of the suspension
	IdempotencyKey   string    `json:"idempotency_key,omitempty"` // of create_waitpoint (W37)
	Fingerprint      []byte    `json:"fingerprint,omitempty"`     // of the arguments, with an idempotency key
}

// TokenFields returns the signed fields of its token (W26).
func (w *Waitpoint) TokenFields() keyring.WaitpointFields {
	return keyring.WaitpointFields{Namespace: w.Namespace, ExecutionID: w.ExecutionID, WaitpointID: w.ID, Key: w.Key, MintedAt: w.MintedAt}
}

// handOut makes the first token and stores what may be stored of it (W28); signing_key_missing.
func (w *Waitpoint) handOut(keys *keyring.Ring) error {
	token, err := keys.Mint(w.TokenFields())
	if err != nil {
		return err
	}
	w.TokenKid, w.TokenFingerprint = token.Split()
	return nil
}

// CloseReason is why a waitpoint closed (section 3). The words are stored and shown.
type CloseReason string

// The reasons of section 3.
const (
	ClosedByRequest CloseReason = "closed"
	ClosedExpired   CloseReason = "expired"
	ClosedResumed   CloseReason = "resumed"
	ClosedTimedOut  CloseReason = "timed_out"
	ClosedDenied    CloseReason = "denied" // a budget was not raised
	ClosedEnded     CloseReason = "ended"
)

// WaitpointEnd closes a waitpoint. A waitpoint without an end is open.
type WaitpointEnd struct {
	WaitpointID base.UUID   `json:"waitpoint_id"`
	Reason      CloseReason `json:"close_reason"`
	At          base.Time   `json:"closed_at"`
}

// SuspensionCause is how a suspension ended (W54). The words are stored and shown.
type SuspensionCause string

// The causes of W54.
const (
	CauseSignal         SuspensionCause = "signal"
	CauseOperator       SuspensionCause = "operator"
	CauseTimeout        SuspensionCause = base.CauseTimeout
	CauseEarlySignals   SuspensionCause = "early_signals"
	CauseBudgetApproved SuspensionCause = "budget_approved"
	CauseBudgetDenied   SuspensionCause = "budget_denied"
	CauseCancelled      SuspensionCause = "cancelled"
	CauseEnded          SuspensionCause = "ended"
)

// Suspension is what a suspend requested (section 5), including one whose condition was already satisfied. What changes while it lasts is in
// OpenSuspension, what ended it in SuspensionEnd.
type Suspension struct {
	Seq            int              `json:"seq"`
	ID             base.UUID        `json:"suspension_id"`
	RunIndex       int              `json:"run_index"`
	AttemptIndex   int              `json:"attempt_index"`
	Waitpoints     []BoundWaitpoint `json:"waitpoints,omitempty"` // in the order of the bindings; only those that exist
	Condition      json.RawMessage  `json:"condition"`            // canonical, every Single with its key
	Fingerprint    []byte           `json:"fingerprint"`
	IdempotencyKey string           `json:"idempotency_key,omitempty"`
	Fence          Fence            `json:"fence"` // of the command that made it
	ReasonCode     string           `json:"reason_code"`
	TimeoutAt      base.Time        `json:"timeout_at,omitzero"`
	Behavior       string           `json:"timeout_behavior"`
	ResumeDelay    base.Millis      `json:"resume_delay_ms,omitempty"`
	Continuation   *Payload         `json:"-"` // nil: none; its bytes are stored beside the record
	At             base.Time        `json:"suspended_at"`
	Early          bool             `json:"early,omitempty"`    // buffered signals satisfied the condition: nothing was suspended (W49)
	Late           bool             `json:"late,omitempty"`     // the lease had lapsed (L36)
	Budget         base.UUID        `json:"budget_id,omitzero"` // that was breached: the engine suspended, and a person has to decide (B29)
	Dimension      string           `json:"dimension,omitempty"`
}

// BoundWaitpoint is a binding of a suspension, as it was made.
type BoundWaitpoint struct {
	ID  base.UUID `json:"waitpoint_id"`
	Key string    `json:"waitpoint_key"`
}

// binds reports whether the waitpoint is bound to the suspension.
func (s *Suspension) binds(id base.UUID) bool {
	for _, bound := range s.Waitpoints {
		if bound.ID == id {
			return true
		}
	}
	return false
}

// SuspensionEnd closes a suspension, once (W54).
type SuspensionEnd struct {
	Seq            int             `json:"seq"`
	Cause          SuspensionCause `json:"cause"`
	Resumed        bool            `json:"resumed,omitempty"` // the wait was passed; else the execution ended
	At             base.Time       `json:"closed_at"`
	CloserSignalID base.UUID       `json:"closer_signal_id,omitzero"`
	By             string          `json:"by,omitempty"`
	EscalatedAt    base.Time       `json:"escalated_at,omitzero"`
}

// Signal is a signal received at a waitpoint (W60).
type Signal struct {
	Ordinal          int                    `json:"ordinal"` // order of acceptance within the execution, from 1
	ID               base.UUID              `json:"signal_id"`
	WaitpointID      base.UUID              `json:"waitpoint_id,omitzero"` // absent: the timeout of a suspension without waitpoints
	WaitpointKey     string                 `json:"waitpoint_key,omitempty"`
	SuspensionID     base.UUID              `json:"suspension_id,omitzero"` // of a timeout: the suspension that it ended
	Name             string                 `json:"name"`
	Category         string                 `json:"category"`
	SourceType       string                 `json:"source_type"`
	SourceIdentity   string                 `json:"source_identity,omitempty"`
	SourceVerified   bool                   `json:"source_verified,omitempty"`
	CorrelationID    string                 `json:"correlation_id,omitempty"`
	IdempotencyKey   string                 `json:"idempotency_key,omitempty"`
	SentAt           base.Time              `json:"sent_at,omitzero"`
	AcceptedAt       base.Time              `json:"accepted_at"`
	Matched          bool                   `json:"matched,omitempty"` // a node matched it (W43); not known for a buffered one
	Effect           condition.SignalEffect `json:"effect"`
	TokenKid         string                 `json:"token_kid,omitempty"` // of the token that was used
	TokenFingerprint string                 `json:"token_fingerprint,omitempty"`
	Principal        string                 `json:"principal,omitempty"` // the principal, if no token was needed
	Payload          Payload                `json:"-"`                   // its bytes are stored beside the record
	Digest           []byte                 `json:"payload_digest"`      // SHA-256 of the bytes, to detect a repeat (W58)
}

// evidence returns the part that a condition evaluates.
func (s *Signal) evidence() condition.Evidence {
	return condition.Evidence{
		WaitpointKey: s.WaitpointKey, SignalID: s.ID, Name: s.Name, SourceType: s.SourceType, SourceIdentity: s.SourceIdentity,
	}
}

// Link lets one named person decide once (section 8).
type Link struct {
	ID              base.UUID  `json:"link_id"`
	WaitpointID     base.UUID  `json:"waitpoint_id"`
	ExecutionID     base.ID    `json:"execution_id"`
	Namespace       string     `json:"namespace"`
	Approver        string     `json:"approver"`
	Decisions       []Decision `json:"decisions"`
	ExpiresAt       base.Time  `json:"expires_at"`
	Title           string     `json:"title,omitempty"`
	Message         string     `json:"message,omitempty"`
	CommentRequired bool       `json:"comment_required,omitempty"`
	CreatedAt       base.Time  `json:"created_at"`
}

// Decision is one of the buttons of a link.
type Decision struct {
	ID         string `json:"id"`
	Label      string `json:"label"`
	SignalName string `json:"signal_name"`
}

// TokenFields returns the signed fields of its token. mintedAt is that of the waitpoint: reissuing the waitpoint's token invalidates the link
// (W32).
func (l *Link) TokenFields(mintedAt base.Time) keyring.LinkFields {
	return keyring.LinkFields{
		Namespace: l.Namespace, ExecutionID: l.ExecutionID, WaitpointID: l.WaitpointID, LinkID: l.ID, Approver: l.Approver,
		ExpiresAt: l.ExpiresAt, MintedAt: mintedAt,
	}
}

// LinkEnd is the decision or the withdrawal of a link. It never changes (WI20).
type LinkEnd struct {
	LinkID   base.UUID `json:"link_id"`
	Revoked  bool      `json:"revoked,omitempty"`
	Decision string    `json:"decision,omitempty"` // its id; "" if revoked
	Comment  string    `json:"comment,omitempty"`
	SignalID base.UUID `json:"signal_id,omitzero"`
	At       base.Time `json:"at"`
	By       string    `json:"by,omitempty"` // who revoked
}
