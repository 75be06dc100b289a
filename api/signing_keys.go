package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// States of a signing key.
const (
	KeyActive     = "active"      // it signs and verifies
	KeyVerifyOnly = "verify_only" // it verifies until VerifyUntil
	KeyExpired    = "expired"     // no longer valid
	KeyRevoked    = "revoked"
)

// Outcomes of changes of signing keys.
const (
	OutcomeSeeded        = "seeded"
	OutcomeAlreadySeeded = "already_seeded"
	OutcomeRotated       = "rotated"
	OutcomeRevoked       = "revoked"
	OutcomeNoop          = "noop"
)

// SigningKeyList is a list of signing keys.
type SigningKeyList struct {
	CurrentKid string       `json:"current_kid" doc:"Kid of the key that signs; empty if there is none."`
	Keys       []SigningKey `json:"keys" doc:"In order of creation."`
}

// SigningKey is a key without its secret.
type SigningKey struct {
	Kid         string    `json:"kid" doc:"Name of the key, part of tokens."`
	State       string    `json:"state" enum:"active,verify_only,expired,revoked" doc:"State of the key."`
	CreatedAt   time.Time `json:"created_at,omitzero" doc:"When it was created."`
	VerifyUntil time.Time `json:"verify_until,omitzero" doc:"Until when it verifies; absent: no end, or revoked."`
	RevokedAt   time.Time `json:"revoked_at,omitzero" doc:"When it was revoked."`
}

// SeededKey is the answer to a seed. Its JSON has the fields of the outcome, even if false, and no others.
type SeededKey struct {
	Outcome string `json:"outcome" enum:"seeded,already_seeded" doc:"What happened."`
	Kid     string `json:"kid" doc:"Name of the key."`
	// SameSecret and State are set with OutcomeAlreadySeeded.
	SameSecret bool   `json:"same_secret,omitempty" doc:"For already_seeded: whether the secret is the stored one; false also if none is stored any more."`
	State      string `json:"state,omitempty" enum:"active,verify_only,expired,revoked" doc:"For already_seeded: the state of the key."`
}

// RotatedKey is the answer to a rotation. Its JSON has the fields of the outcome, even if 0 or false, and no others.
type RotatedKey struct {
	Outcome string `json:"outcome" enum:"rotated,noop" doc:"What happened; noop: the key was active."`
	// Kid is set with OutcomeNoop, the other fields with OutcomeRotated.
	Kid         string `json:"kid,omitempty" doc:"For noop: the key."`
	PreviousKid string `json:"previous_kid,omitempty" doc:"The key that signed before; absent if there was none."`
	NewKid      string `json:"new_kid,omitempty" doc:"The key that signs now."`
	PurgedCount int    `json:"purged_count,omitempty" doc:"Expired keys whose secret was removed."`
	Reactivated bool   `json:"reactivated,omitempty" doc:"The key existed and was valid."`
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
