package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// The states of a signing key.
const (
	KeyActive     = "active"      // it signs and verifies
	KeyVerifyOnly = "verify_only" // it verifies until VerifyUntil
	KeyExpired    = "expired"     // past its time
	KeyRevoked    = "revoked"
)

// The outcomes of changes of signing keys.
const (
	OutcomeSeeded        = "seeded"
	OutcomeAlreadySeeded = "already_seeded"
	OutcomeRotated       = "rotated"
	OutcomeRevoked       = "revoked"
	OutcomeNoop          = "noop"
)

// SigningKeyList is all signing keys that were asked for.
type SigningKeyList struct {
	CurrentKid string       `json:"current_kid" doc:"Kid of the key that signs; empty when none does."`
	Keys       []SigningKey `json:"keys" doc:"In the order of their creation."`
}

// SigningKey is a key without its secret.
type SigningKey struct {
	Kid         string    `json:"kid" doc:"Name of the key; stands in tokens."`
	State       string    `json:"state" enum:"active,verify_only,expired,revoked" doc:"What it does."`
	CreatedAt   time.Time `json:"created_at,omitzero" doc:"When it was made."`
	VerifyUntil time.Time `json:"verify_until,omitzero" doc:"The last moment at which it verifies; absent: no end, or it was revoked."`
	RevokedAt   time.Time `json:"revoked_at,omitzero" doc:"When it was revoked."`
}

// SeededKey is the answer to a seed. Its JSON has what belongs to the outcome even where it is false, and nothing else.
type SeededKey struct {
	Outcome string `json:"outcome" enum:"seeded,already_seeded" doc:"What happened."`
	Kid     string `json:"kid" doc:"Name of the key."`
	// SameSecret and State belong to OutcomeAlreadySeeded.
	SameSecret bool   `json:"same_secret,omitempty" doc:"Of already_seeded: whether the secret is the one that is held; false also when none is held any more."`
	State      string `json:"state,omitempty" enum:"active,verify_only,expired,revoked" doc:"Of already_seeded: the state of the key."`
}

// RotatedKey is the answer to a rotation. Its JSON has what belongs to the outcome even where it is 0 or false, and nothing else.
type RotatedKey struct {
	Outcome string `json:"outcome" enum:"rotated,noop" doc:"What happened; noop: the key was active."`
	// Kid belongs to OutcomeNoop, the rest to OutcomeRotated.
	Kid         string `json:"kid,omitempty" doc:"Of noop: the key."`
	PreviousKid string `json:"previous_kid,omitempty" doc:"The key that signed before; absent when none did."`
	NewKid      string `json:"new_kid,omitempty" doc:"The key that signs now."`
	PurgedCount int    `json:"purged_count,omitempty" doc:"Keys that lost their secret because their time was over."`
	Reactivated bool   `json:"reactivated,omitempty" doc:"The key was there, and verified."`
}

// RevokedKey is the answer to a revocation.
type RevokedKey struct {
	Outcome string `json:"outcome" enum:"revoked,noop" doc:"What happened; noop: it was revoked before."`
	Kid     string `json:"kid" doc:"Name of the key."`
}

// MarshalJSON writes the list as the HTTP API shows it.
func (l SigningKeyList) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&l) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (l *SigningKeyList) UnmarshalJSON(text []byte) error { return readAnswer(text, l) }

// MarshalJSON writes the key as the HTTP API shows it.
func (k SigningKey) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&k) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (k *SigningKey) UnmarshalJSON(text []byte) error { return readAnswer(text, k) }

// MarshalJSON writes the answer as the HTTP API shows it.
func (k SeededKey) MarshalJSON() ([]byte, error) { return k.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON writes.
func (k SeededKey) AppendJSON(text []byte) ([]byte, error) {
	type fields SeededKey
	if k.Outcome != OutcomeAlreadySeeded {
		return jsonx.Append(text, (*fields)(&k))
	}
	return jsonx.Append(text, &struct {
		Outcome    string `json:"outcome"`
		Kid        string `json:"kid"`
		SameSecret bool   `json:"same_secret"`
		State      string `json:"state,omitempty"`
	}{k.Outcome, k.Kid, k.SameSecret, k.State})
}

// MarshalJSON writes the answer as the HTTP API shows it.
func (k RotatedKey) MarshalJSON() ([]byte, error) { return k.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON writes.
func (k RotatedKey) AppendJSON(text []byte) ([]byte, error) {
	type fields RotatedKey
	if k.Outcome != OutcomeRotated {
		return jsonx.Append(text, (*fields)(&k))
	}
	return jsonx.Append(text, &struct {
		Outcome     string `json:"outcome"`
		Kid         string `json:"kid,omitempty"`
		PreviousKid string `json:"previous_kid,omitempty"`
		NewKid      string `json:"new_kid,omitempty"`
		PurgedCount int    `json:"purged_count"`
		Reactivated bool   `json:"reactivated"`
	}{k.Outcome, k.Kid, k.PreviousKid, k.NewKid, k.PurgedCount, k.Reactivated})
}
