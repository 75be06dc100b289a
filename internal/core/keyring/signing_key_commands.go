package keyring

import (
	"encoding/hex"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Bounds of signing keys.
const (
	DefaultKeyGrace = base.Day // how long a key verifies after another has replaced it
	maxKeyGrace     = base.Year
	maxKid          = 64
)

// CheckKid requires 1..64 bytes of A-Z a-z 0-9 . _ - and returns invalid_kid otherwise, without the text, which may be a misplaced secret.
func CheckKid(kid string) error {
	if isKid(kid) {
		return nil
	}
	return base.Errorf(base.CodeInvalidKid, "must be 1..%d of A-Z a-z 0-9 . _ -", maxKid).WithField("kid")
}

func isKid(text string) bool {
	return len(text) >= 1 && len(text) <= maxKid && base.OnlyBytes(text, func(c byte) bool {
		return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
	})
}

// SeedCommand installs the first key (W14). It is made only by NewSeed and AutoSeed, so that it is always checked (W13).
type SeedCommand struct {
	kid    string
	secret KeySecret
}

// NewSeed checks the arguments of a seed: invalid_kid, invalid_secret_hex.
func NewSeed(kid, secretHex string) (SeedCommand, error) {
	if err := CheckKid(kid); err != nil {
		return SeedCommand{}, err
	}
	secret, err := ParseKeySecret(secretHex)
	return SeedCommand{kid: kid, secret: secret}, err
}

// AutoSeed returns the seed of a server without a configured key: a random one under the kid auto-<8 hex> (W23).
func AutoSeed(name [4]byte, random [keySecretSize]byte) (SeedCommand, error) {
	secret, err := MintKeySecret(random)
	return SeedCommand{kid: "auto-" + hex.EncodeToString(name[:]), secret: secret}, err
}

// SeedOutcome is the answer to a seed (W14).
type SeedOutcome struct {
	Outcome string `json:"outcome"` // seeded, already_seeded
	Kid     string `json:"kid"`

	// Set for already_seeded. SameSecret is false also if the secret was erased.
	SameSecret bool     `json:"same_secret,omitempty"`
	State      KeyState `json:"state,omitzero"`
	// OtherSecret reports that another secret is stored under the kid. A server that was configured with this one must not start (W23).
	OtherSecret bool `json:"other_secret,omitempty"`
}

// RotateCommand makes another key the active one (W15). It is made only by NewRotation, so that it is always checked (W13).
type RotateCommand struct {
	kid    string
	secret KeySecret
	given  bool // the secret was given, not drawn
	grace  base.Millis
}

// NewRotation checks the arguments of a rotate: invalid_kid, invalid_secret_hex, invalid_grace_ms. If secretHex is nil and the kid is new, the
// secret is made from the drawn bytes. An omitted grace is a day.
func NewRotation(kid string, secretHex *string, graceMS *base.Millis, drawn [keySecretSize]byte) (RotateCommand, error) {
	c := RotateCommand{kid: kid, given: secretHex != nil, grace: DefaultKeyGrace}
	if err := CheckKid(kid); err != nil {
		return RotateCommand{}, err
	}
	var err error
	if c.given {
		c.secret, err = ParseKeySecret(*secretHex)
	} else {
		c.secret, err = MintKeySecret(drawn)
	}
	if err != nil {
		return RotateCommand{}, err
	}
	if graceMS != nil {
		c.grace = *graceMS
	}
	if c.grace < 0 || c.grace > maxKeyGrace {
		return RotateCommand{}, base.Errorf(base.CodeInvalidGraceMS, "must be in 0..%d", maxKeyGrace).WithField("grace_ms")
	}
	return c, nil
}

// RotateOutcome is the answer to a rotate (W15, W16).
type RotateOutcome struct {
	Outcome string `json:"outcome"` // rotated, noop
	Kid     string `json:"kid,omitempty"`

	// Set for rotated.
	PreviousKid string `json:"previous_kid,omitempty"` // "": no key was active
	NewKid      string `json:"new_kid,omitempty"`
	PurgedCount int    `json:"purged_count,omitempty"`
	Reactivated bool   `json:"reactivated,omitempty"`
}

// RevokeOutcome is the answer to a revoke (W18).
type RevokeOutcome struct {
	Outcome string `json:"outcome"` // revoked, noop
	Kid     string `json:"kid"`
}

// The outcomes of changes of the key set.
const (
	OutcomeSeeded        = "seeded"
	OutcomeAlreadySeeded = "already_seeded"
	OutcomeRotated       = "rotated"
	OutcomeRevoked       = "revoked"
	OutcomeNoop          = "noop"
)
