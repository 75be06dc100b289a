package keyring

import (
	"crypto/subtle"
	"encoding/hex"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// KeySet holds all signing keys of the installation (W13..W25). It is one record, so that changes are serialized (W19). Commands do not change
// copies of the set. The zero value is the set without keys.
type KeySet struct {
	Version int64        `json:"version"` // incremented by every change; an opened Ring is valid for one version (W21)
	Keys    []SigningKey `json:"keys"`    // in order of creation; none is ever removed, so that no kid is reused
	Audit   StoredSecret `json:"-"`       // the key of the audit log, stored here so that the master key is replaced for all secrets at once
}

// SigningKey is one key of the set.
type SigningKey struct {
	Kid         string       `json:"kid"`
	State       KeyState     `json:"state"` // as stored; StateAt returns the one that is shown
	Secret      StoredSecret `json:"secret,omitzero"`
	CreatedAt   base.Time    `json:"created_at"`
	VerifyUntil base.Time    `json:"verify_until,omitzero"` // of verify_only: the last moment at which it verifies
	RevokedAt   base.Time    `json:"revoked_at,omitzero"`
}

// KeyState is the state of a signing key.
type KeyState uint8

// The states of a key. Expired is never stored: it is shown for verify_only past its time.
const (
	KeyActive KeyState = iota + 1
	KeyVerifyOnly
	KeyRevoked
	KeyExpired
)

var keyStateNames = [...]string{"", "active", "verify_only", "revoked", "expired"}

// String is the word for the state.
func (s KeyState) String() string { return base.NameOf(keyStateNames[:], int(s)) }

// MarshalText writes the word for the state.
func (s KeyState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word for a state; anything else is invalid_argument.
func (s *KeyState) UnmarshalText(text []byte) error {
	n, ok := base.ValueOf(keyStateNames[:], string(text))
	if !ok {
		return base.Invalid("state", "not a state of a signing key")
	}
	*s = KeyState(n)
	return nil
}

// verifies reports whether tokens of a key in this state are valid and the key may become active.
func (s KeyState) verifies() bool { return s == KeyActive || s == KeyVerifyOnly }

// StateAt returns the state shown at a moment. A key without a secret never verifies again, even if the clock was set back.
func (k *SigningKey) StateAt(now base.Time) KeyState {
	if k.State == KeyVerifyOnly && (k.VerifyUntil < now || k.Secret.IsZero()) {
		return KeyExpired
	}
	return k.State
}

// row returns the id to which the secret of the key is sealed (W24). Secrets of other kinds have other prefixes.
func (k *SigningKey) row() string { return "signing_key/" + k.Kid }

// open returns the secret of the key; zero if it was erased.
func (k *SigningKey) open(master MasterKey) (KeySecret, error) {
	raw, err := k.Secret.Open(master, k.row())
	switch {
	case err != nil || raw == nil:
		return KeySecret{}, err
	case len(raw) != keySecretSize:
		return KeySecret{}, base.Errorf(base.CodeCorruption, "the secret of key %s has %d bytes", k.Kid, len(raw))
	}
	return KeySecret{conceal(raw)}, nil
}

// find returns the key of that kid, or nil.
func (s *KeySet) find(kid string) *SigningKey {
	return s.first(func(k *SigningKey) bool { return k.Kid == kid })
}

// active returns the key that signs, or nil.
func (s *KeySet) active() *SigningKey {
	return s.first(func(k *SigningKey) bool { return k.State == KeyActive })
}

func (s *KeySet) first(is func(*SigningKey) bool) *SigningKey {
	for i := range s.Keys {
		if is(&s.Keys[i]) {
			return &s.Keys[i]
		}
	}
	return nil
}

// KeyList is the set as it is shown (W20).
type KeyList struct {
	CurrentKid string    `json:"current_kid"` // empty when no key is active
	Keys       []KeyView `json:"keys"`        // in the order of their creation
}

// KeyView is a key as it is shown: without its secret.
type KeyView struct {
	Kid         string    `json:"kid"`
	State       KeyState  `json:"state"`
	CreatedAt   base.Time `json:"created_at"`
	VerifyUntil base.Time `json:"verify_until,omitzero"`
	RevokedAt   base.Time `json:"revoked_at,omitzero"`
}

// List lists the keys that can verify now and, with retired, also the former ones (W20).
func (s *KeySet) List(now base.Time, retired bool) KeyList {
	list := KeyList{Keys: []KeyView{}}
	if active := s.active(); active != nil {
		list.CurrentKid = active.Kid
	}
	for i := range s.Keys {
		k := &s.Keys[i]
		if state := k.StateAt(now); retired || state.verifies() {
			list.Keys = append(list.Keys, KeyView{
				Kid: k.Kid, State: state, CreatedAt: k.CreatedAt, VerifyUntil: k.VerifyUntil, RevokedAt: k.RevokedAt,
			})
		}
	}
	return list
}

// KeySecret is the secret of a signing key: 32 bytes. It is never printed. The zero value is no secret.
type KeySecret struct{ concealed }

const keySecretSize = 32

// ParseKeySecret reads 64 hexadecimal digits in either case whose bytes are not all equal; else invalid_secret_hex.
func ParseKeySecret(digits string) (KeySecret, error) {
	if len(digits) == 2*keySecretSize {
		if raw, err := hex.DecodeString(digits); err == nil && !allEqual(raw) {
			return KeySecret{conceal(raw)}, nil
		}
	}
	return KeySecret{}, base.Errorf(base.CodeInvalidSecretHex, "must be %d hexadecimal digits, of bytes that are not all equal", 2*keySecretSize).
		WithField("secret_hex").WithHint("generate one with `openssl rand -hex %d`", keySecretSize)
}

// MintKeySecret makes a secret from random bytes. Bytes that are all equal are not random: internal.
func MintKeySecret(random [keySecretSize]byte) (KeySecret, error) {
	if allEqual(random[:]) {
		return KeySecret{}, base.Errorf(base.CodeInternal, "the random bytes for a secret are all equal")
	}
	return KeySecret{conceal(random[:])}, nil
}

func allEqual(bytes []byte) bool {
	return !slices.ContainsFunc(bytes, func(b byte) bool { return b != bytes[0] })
}

func (s KeySecret) equal(o KeySecret) bool {
	return subtle.ConstantTimeCompare(s.reveal(), o.reveal()) == 1
}
