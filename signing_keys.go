package flowfabric

import (
	"context"
	"time"
)

// SigningKeys are the keys that sign tokens of waitpoints and links, for the whole installation. At most one is active, and signs;
// others verify what they signed until their time is over. Nobody is ever shown a secret. What is done to them holds in every
// process at once.
//
// Where nothing is said of it, AdminAction.Revision does not count: keys have no revision.
type SigningKeys interface {
	// List shows the keys that verify now, in the order of their creation.
	List(ctx context.Context, o ...ListKeysOptions) (SigningKeyList, error)
	// Seed installs the first key. The secret is 64 hexadecimal digits. A kid that is known, in whatever state, changes nothing.
	//
	// Codes: invalid_kid, invalid_secret_hex, seed_conflict while another key is active, idempotency_conflict, master_key_required,
	// master_key_mismatch.
	Seed(ctx context.Context, kid, secretHex string, o ...AdminAction) (SeedResult, error)
	// Rotate makes another key the active one: a new one, or one that verifies yet. The former one verifies for the grace of this
	// call. Rotating to the active key is a success that changes nothing.
	//
	// Codes: invalid_kid, invalid_secret_hex, invalid_grace_ms, rotation_conflict when another secret is held under the kid,
	// key_retired when the key was revoked or is past its time, idempotency_conflict, master_key_required, master_key_mismatch.
	Rotate(ctx context.Context, kid string, o ...RotateKeyOptions) (RotateResult, error)
	// Revoke ends a key: every token of it is dead at once. A second time is a success. The active one is revoked by force alone, and
	// then nothing can be signed until the next Seed or Rotate.
	//
	// Codes: invalid_kid, key_not_found, key_active, idempotency_conflict.
	Revoke(ctx context.Context, kid string, o ...RevokeKeyOptions) (RevokeResult, error)
	// Rewrap seals all stored secrets under another master key, 32 bytes as hexadecimal digits or base64, and tells how many there
	// are. This process goes on with it; others on the same store sign no more until they are started with it. Connect clients
	// cannot: not_implemented.
	//
	// Codes: invalid_argument, master_key_required, master_key_mismatch.
	Rewrap(ctx context.Context, masterKey string, o ...AdminAction) (int, error)

	sealed()
}

// ListKeysOptions say which signing keys are listed.
type ListKeysOptions struct {
	Retired bool // also those that are past their time or were revoked
}

// RotateKeyOptions say how a signing key is replaced.
type RotateKeyOptions struct {
	AdminAction
	SecretHex *string        // of the new key; nil: a random one, or that which is held
	Grace     *time.Duration // how long the former key verifies, up to a year; nil: what the server is set to (KeyGrace), a day by default
}

// RevokeKeyOptions say how a signing key is revoked.
type RevokeKeyOptions struct {
	AdminAction
	Force bool // also the active one
}

// The states of a signing key.
const (
	KeyActive     = "active"      // it signs and verifies
	KeyVerifyOnly = "verify_only" // it verifies until VerifyUntil
	KeyExpired    = "expired"     // past its time
	KeyRevoked    = "revoked"
)

// SigningKeyList is what SigningKeys.List shows.
type SigningKeyList struct {
	CurrentKid string // of the active key; "": none is
	Keys       []SigningKey
}

// SigningKey is a key without its secret.
type SigningKey struct {
	Kid         string
	State       string
	CreatedAt   time.Time
	VerifyUntil time.Time // the last moment at which it verifies; zero: no end, or it was revoked
	RevokedAt   time.Time
}

// The outcomes of changes of signing keys.
const (
	OutcomeSeeded        = "seeded"
	OutcomeAlreadySeeded = "already_seeded"
	OutcomeRotated       = "rotated"
	OutcomeRevoked       = "revoked"
	OutcomeNoop          = "noop"
)

// SeedResult is the answer to SigningKeys.Seed.
type SeedResult struct {
	Outcome string // OutcomeSeeded, OutcomeAlreadySeeded
	Kid     string
	// Of OutcomeAlreadySeeded.
	SameSecret bool   // false also when the secret is no longer held
	State      string // of the key
}

// RotateResult is the answer to SigningKeys.Rotate.
type RotateResult struct {
	Outcome string // OutcomeRotated, OutcomeNoop
	Kid     string // that was rotated to
	// Of OutcomeRotated.
	PreviousKid string // "": no key was active
	PurgedCount int    // keys that lost their secret because their time was over
	Reactivated bool   // the key was there, and verified
}

// RevokeResult is the answer to SigningKeys.Revoke.
type RevokeResult struct {
	Outcome string // OutcomeRevoked, OutcomeNoop
	Kid     string
}
