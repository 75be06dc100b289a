package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// GrantKey is the text that lets one worker claim one execution: pg:<tag>:<uuid>:<expires_ms>:<kid>:<64 hex> (S28). A key sent by a client may be
// any text. It is never stored: a record keeps its SHA-256 (S29). Printing hides it: only Reveal returns it. The zero value is no key.
type GrantKey struct{ concealed }

// GrantKeyOf returns a key sent by a client, unverified.
func GrantKeyOf(text string) GrantKey {
	if text == "" {
		return GrantKey{}
	}
	return GrantKey{conceal([]byte(text))}
}

// Reveal returns the complete text. It must be shown only to the holder of the grant.
func (k GrantKey) Reveal() string { return string(k.reveal()) }

// Hash returns the digest that a record keeps of the key.
func (k GrantKey) Hash() []byte {
	sum := sha256.Sum256(k.reveal())
	return sum[:]
}

// Hashes reports, in constant time, whether to is the digest of the key.
func (k GrantKey) Hashes(to []byte) bool { return hmac.Equal(k.Hash(), to) }

const grantPrefix = "pg:"

// grantParts are the parts of a key. None of them is verified.
type grantParts struct {
	target  string // tag and UUID
	expires base.Time
	kid     string
	digits  string
}

// split splits the key from the right, since the tag contains a colon (S30 step 1).
func (k GrantKey) split() (p grantParts, ok bool) {
	rest, found := strings.CutPrefix(k.Reveal(), grantPrefix)
	if !found {
		return p, false
	}
	var number string
	for _, part := range []*string{&p.digits, &p.kid, &number} {
		at := strings.LastIndexByte(rest, ':')
		if at < 0 {
			return p, false
		}
		rest, *part = rest[:at], rest[at+1:]
	}
	expires, err := strconv.ParseInt(number, 10, 64)
	p.target, p.expires = rest, base.Time(expires)
	return p, err == nil && decimal(p.expires) == number
}

// id returns the execution that the key names, which must be in full form (S30 step 3).
func (p grantParts) id() (base.ID, bool) {
	given, err := base.ParseID(p.target)
	return given.ID(), err == nil && given.Full
}

// Target returns the execution that the key names; false if it names none. The key is not verified.
func (k GrantKey) Target() (base.ID, bool) {
	p, ok := k.split()
	if !ok {
		return base.ID{}, false
	}
	return p.id()
}

// GrantFields are the signed fields of a grant key.
type GrantFields struct {
	ExecutionID base.ID
	WorkerID    string
	InstanceID  string
	ExpiresAt   base.Time
}

func (GrantFields) purpose() string { return "claim_grant" }

func (f GrantFields) fields() []string {
	return []string{f.ExecutionID.Tag(), f.ExecutionID.UUID.String(), f.WorkerID, f.InstanceID, decimal(f.ExpiresAt)}
}

// signGrant makes the key for the fields under one of the ring's secrets.
func signGrant(secret KeySecret, kid string, f GrantFields) GrantKey {
	digits := hex.EncodeToString(secret.mac(kid, f))
	return GrantKeyOf(grantPrefix + f.ExecutionID.Full() + ":" + decimal(f.ExpiresAt) + ":" + kid + ":" + digits)
}

// MintGrant makes the key for the fields under the active key (S28) and returns the active key's kid; signing_key_missing.
func (r *Ring) MintGrant(f GrantFields) (key GrantKey, kid string, err error) {
	if kid, err = r.ActiveKid(); err != nil {
		return GrantKey{}, "", err
	}
	secret, _ := r.secret(kid)
	return signGrant(secret, kid, f), kid, nil
}

// MintGrantAgain makes the key for the fields under a kid that signed it before; false if the kid does not verify any more.
func (r *Ring) MintGrantAgain(now base.Time, kid string, f GrantFields) (GrantKey, bool) {
	secret, fault := r.verifying(now, kid)
	if fault != 0 {
		return GrantKey{}, false
	}
	return signGrant(secret, kid, f), true
}

// IssuedGrant is what a record keeps of an outstanding grant: for whom it is, and the digest of its key.
type IssuedGrant struct {
	WorkerID, InstanceID string
	Hash                 []byte
}

// VerifyGrant returns nil if the key belongs to the outstanding grant of the execution that it names, checking in the order of S30. issued returns
// that grant, nil if there is none, and is called only with the key's execution. Errors: grant_malformed, grant_expired, grant_unknown_kid,
// grant_unknown, grant_signature_mismatch.
func (r *Ring) VerifyGrant(now base.Time, key GrantKey, issued func(base.ID) *IssuedGrant) error {
	p, ok := key.split()
	if !ok {
		return grantMalformed()
	}
	if p.expires <= now {
		return base.Errorf(base.CodeGrantExpired, "the grant ended at %s", p.expires).WithHint("ask for a new grant")
	}
	id, ok := p.id()
	if !ok {
		return grantMalformed()
	}
	secret, fault := r.verifying(now, p.kid)
	if fault != 0 {
		return base.Errorf(base.CodeGrantUnknownKid, "no key of that id signs grants, or verifies them any more").WithHint("ask for a new grant")
	}
	grant := issued(id)
	if grant == nil {
		return grantUnknown()
	}
	signed := secret.mac(p.kid, GrantFields{ExecutionID: id, WorkerID: grant.WorkerID, InstanceID: grant.InstanceID, ExpiresAt: p.expires})
	if !hmac.Equal([]byte(hex.EncodeToString(signed)), []byte(p.digits)) {
		return GrantMismatch()
	}
	if !key.Hashes(grant.Hash) {
		return grantUnknown() // validly signed, but superseded
	}
	return nil
}

func grantMalformed() error {
	return base.Errorf(base.CodeGrantMalformed, "not a grant key").WithField("grant_key").WithHint("give the whole key as it was issued")
}

func grantUnknown() error {
	return base.Errorf(base.CodeGrantUnknown, "no such grant is out").WithHint("it was used, returned or ended: ask for a new grant")
}

// GrantMismatch is the error for a grant of another worker, or a key that was changed.
func GrantMismatch() error {
	return base.Errorf(base.CodeGrantSignatureMismatch, "the grant is not for this worker, or the key was changed").
		WithHint("use the key as it was issued, as the worker and instance that it was issued for")
}
