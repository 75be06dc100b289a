package keyring

import (
	"crypto/hmac"
	"encoding/hex"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Ring is a key set with its secrets opened, for signing and verifying. It is valid for the version of the set that it was made from, and may be
// kept only while that is the stored version (W21). It is immutable. The zero value has no keys.
type Ring struct {
	set     KeySet
	secrets []KeySecret // by index in the set
}

// Open opens all secrets of the set, including that of the audit log. Errors are those of StoredSecret.Open: with master_key_required or
// master_key_mismatch a server must not start (W24).
func (s *KeySet) Open(master MasterKey) (*Ring, error) {
	ring := &Ring{set: *s, secrets: make([]KeySecret, len(s.Keys))}
	for i := range s.Keys {
		secret, err := s.Keys[i].open(master)
		if err != nil {
			return nil, err
		}
		ring.secrets[i] = secret
	}
	if _, err := s.AuditKey(master); err != nil {
		return nil, err
	}
	return ring, nil
}

// Version returns the version of the set.
func (r *Ring) Version() int64 { return r.set.Version }

// ActiveKid returns the kid of the key that signs. If there is none, everything that must sign returns signing_key_missing (W22).
func (r *Ring) ActiveKid() (string, error) {
	if active := r.set.active(); active != nil {
		return active.Kid, nil
	}
	return "", base.Errorf(base.CodeSigningKeyMissing, "no signing key is active").WithHint("use `POST /v1/keys/rotate`")
}

// Mint makes the token for the fields under the active key (W26); signing_key_missing.
func (r *Ring) Mint(f TokenFields) (Token, error) {
	kid, err := r.ActiveKid()
	if err != nil {
		return Token{}, err
	}
	secret, _ := r.secret(kid)
	return TokenOf(kid + ":" + hex.EncodeToString(secret.mac(kid, f))), nil
}

// secret returns the secret and the key of a kid.
func (r *Ring) secret(kid string) (KeySecret, *SigningKey) {
	for i := range r.set.Keys {
		if k := &r.set.Keys[i]; k.Kid == kid {
			return r.secrets[i], k
		}
	}
	return KeySecret{}, nil
}

// TokenFault is the cause of an invalid token. It is for the metric (W34) and never shown to the caller.
type TokenFault uint8

// The causes of W34, in the order in which they are checked. Zero is none.
const (
	TokenShape TokenFault = iota + 1
	TokenUnknownKid
	TokenExpiredKid
	TokenRevokedKid
	TokenUnknownTarget
	TokenMismatch
	TokenWrongExecution // found by a caller that knows for which execution the token was sent
)

var tokenFaultNames = [...]string{"", "shape", "unknown_kid", "expired_kid", "revoked_kid", "unknown_target", "mismatch", "wrong_execution"}

// String is the word of W34.
func (f TokenFault) String() string { return base.NameOf(tokenFaultNames[:], int(f)) }

// Verify returns nil if the token is that of the row, whose fields are nil if there is no such row (W33, steps 1 to 5). The error is missing_token
// for no token, without a fault, else InvalidToken with the fault. Neither the error nor the time taken shows whether key and row exist: without
// them a signature over placeholders is computed and compared.
func (r *Ring) Verify(now base.Time, token Token, row TokenFields) (TokenFault, error) {
	if token.Reveal() == "" {
		return 0, base.Errorf(base.CodeMissingToken, "a token is required").WithHint("send the token that was given with the waitpoint")
	}
	kid, digest, ok := token.parse()
	if !ok {
		return TokenShape, InvalidToken()
	}
	secret, fault := r.verifying(now, kid)
	if fault == 0 && row == nil {
		fault = TokenUnknownTarget
	}
	if fault != 0 {
		secret, row = placeholderKey()
	}
	signed := hmac.Equal(secret.mac(kid, row), digest[:])
	switch {
	case fault != 0:
		return fault, InvalidToken()
	case !signed:
		return TokenMismatch, InvalidToken()
	default:
		return 0, nil
	}
}

// verifying returns the secret that verifies tokens of a kid, or why there is none (W33, step 3).
func (r *Ring) verifying(now base.Time, kid string) (KeySecret, TokenFault) {
	secret, k := r.secret(kid)
	if k == nil {
		return KeySecret{}, TokenUnknownKid
	}
	switch k.StateAt(now) {
	case KeyRevoked:
		return KeySecret{}, TokenRevokedKid
	case KeyExpired:
		return KeySecret{}, TokenExpiredKid
	default:
		return secret, 0
	}
}

// placeholderKey returns what is signed if key or row do not exist, of the usual length.
func placeholderKey() (KeySecret, TokenFields) {
	return KeySecret{conceal(make([]byte, keySecretSize))}, WaitpointFields{Namespace: "default", Key: "placeholder", MintedAt: 1_000_000_000_000}
}

// InvalidToken is the one error for every invalid token (W33).
func InvalidToken() error {
	return base.Errorf(base.CodeInvalidToken, "the token is not valid").WithHint("check that the whole token was sent, to the right address")
}
