package core

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// GrantKey is the text that lets one worker claim one execution: pg:<tag>:<uuid>:<expires_ms>:<kid>:<64 hex> (S28). It may be any text
// that somebody sent. It is never stored: a record keeps its SHA-256 (S29). Printed by accident it hides itself: only Reveal tells it.
// The zero value is none.
type GrantKey struct{ concealed }

// GrantKeyOf is a text as somebody sent it.
func GrantKeyOf(text string) GrantKey {
	if text == "" {
		return GrantKey{}
	}
	return GrantKey{conceal([]byte(text))}
}

// Reveal is the whole text, for the one who may have it.
func (k GrantKey) Reveal() string { return string(k.reveal()) }

// hash is what a record keeps of the key.
func (k GrantKey) hash() []byte {
	sum := sha256.Sum256(k.reveal())
	return sum[:]
}

// hashes tells, in constant time, whether the key is the one of which that was kept.
func (k GrantKey) hashes(to []byte) bool { return hmac.Equal(k.hash(), to) }

const grantPrefix = "pg:"

// grantParts are what a key says of itself. Nothing of it is proved.
type grantParts struct {
	target  string // tag and UUID
	expires Time
	kid     string
	digits  string
}

// split takes the key apart from the right, since the tag has a colon of its own (S30 step 1).
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
	p.target, p.expires = rest, Time(expires)
	return p, err == nil && decimal(p.expires) == number
}

// id is the execution that the key names, in its full form only (S30 step 3).
func (p grantParts) id() (ID, bool) {
	given, err := ParseID(p.target)
	return given.ID(), err == nil && given.Full
}

// Target is the execution that the key says it is for; false when it names none. It does not say that the key is good.
func (k GrantKey) Target() (ID, bool) {
	p, ok := k.split()
	if !ok {
		return ID{}, false
	}
	return p.id()
}

// GrantFields are those of a grant key.
type GrantFields struct {
	ExecutionID ID
	WorkerID    string
	InstanceID  string
	ExpiresAt   Time
}

func (GrantFields) purpose() string { return "claim_grant" }

func (f GrantFields) fields() []string {
	return []string{f.ExecutionID.Tag(), f.ExecutionID.UUID.String(), f.WorkerID, f.InstanceID, decimal(f.ExpiresAt)}
}

// Tag is the partition of the id as a grant shows it: {fp:N}.
func (id ID) Tag() string { return "{fp:" + strconv.Itoa(int(id.N)) + "}" }

// signGrant makes the key of fields under one of the ring's secrets.
func signGrant(secret KeySecret, kid string, f GrantFields) GrantKey {
	digits := hex.EncodeToString(secret.mac(kid, f))
	return GrantKeyOf(grantPrefix + f.ExecutionID.Full() + ":" + decimal(f.ExpiresAt) + ":" + kid + ":" + digits)
}

// VerifyGrant reports whether the key opens the grant that is out for the execution it names, in the order of S30. x is that execution, its
// due timers applied; nil: there is none. Errors: grant_malformed, grant_expired, grant_unknown_kid, grant_unknown,
// grant_signature_mismatch.
func (r *KeyRing) VerifyGrant(now Time, key GrantKey, x *Execution) error {
	p, ok := key.split()
	if !ok {
		return grantMalformed()
	}
	if p.expires <= now {
		return Errorf(CodeGrantExpired, "the grant ended at %s", p.expires).WithHint("ask for a new grant")
	}
	id, ok := p.id()
	if !ok {
		return grantMalformed()
	}
	secret, fault := r.verifying(now, p.kid)
	if fault != 0 {
		return Errorf(CodeGrantUnknownKid, "no key of that id signs grants, or verifies them any more").WithHint("ask for a new grant")
	}
	if x == nil || x.ID != id || x.Grant == nil {
		return grantUnknown()
	}
	signed := secret.mac(p.kid, GrantFields{ExecutionID: id, WorkerID: x.Grant.WorkerID, InstanceID: x.Grant.InstanceID, ExpiresAt: p.expires})
	if !hmac.Equal([]byte(hex.EncodeToString(signed)), []byte(p.digits)) {
		return grantMismatch()
	}
	if !key.hashes(x.Grant.Hash) {
		return grantUnknown() // signed well, and superseded
	}
	return nil
}

func grantMalformed() error {
	return Errorf(CodeGrantMalformed, "not a grant key").WithField("grant_key").WithHint("give the whole key as it was issued")
}

func grantUnknown() error {
	return Errorf(CodeGrantUnknown, "no such grant is out").WithHint("it was used, returned or ended: ask for a new grant")
}

func grantMismatch() error {
	return Errorf(CodeGrantSignatureMismatch, "the grant is not for this worker, or the key was changed").
		WithHint("use the key as it was issued, as the worker and instance that it was issued for")
}
