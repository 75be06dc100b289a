package keyring

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// APIKey is the record of an API key (U119). It stores a digest of the secret, never the secret.
type APIKey struct {
	ID string `json:"key_id"`
	APIKeySettings
	Revision   int64     `json:"revision"`
	CreatedAt  base.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by"`
	RotatedAt  base.Time `json:"rotated_at,omitzero"`
	LastUsedAt base.Time `json:"last_used_at,omitzero"`
	RevokedAt  base.Time `json:"revoked_at,omitzero"`

	Hash     []byte    `json:"hash,omitempty"`     // of the present secret
	OldHash  []byte    `json:"old_hash,omitempty"` // of the one before, which works until OldUntil
	OldUntil base.Time `json:"old_until,omitzero"`
}

// APIKeySettings state what a key may do (U104).
type APIKeySettings struct {
	Name                 string    `json:"name"`       // of the principal; several keys may belong to one principal
	Roles                []string  `json:"roles"`      // read, submit, work, operate, admin (U122)
	Namespaces           []string  `json:"namespaces"` // or * alone: everywhere
	Lanes                []string  `json:"lanes,omitempty"`
	ExpiresAt            base.Time `json:"expires_at,omitzero"`
	MaxRequestsPerSecond int       `json:"max_requests_per_second,omitempty"` // 0: no limit
	MaxInFlight          int       `json:"max_in_flight,omitempty"`           // 0: no limit
}

// Everywhere stands for all namespaces in a key, and for the chain of rows that belong to no namespace in the audit log.
const Everywhere = "*"

// Bounds of API keys.
const (
	DefaultOverlap  = base.Day // how long the old secret stays valid after a rotation
	maxOverlap      = 30 * base.Day
	keyUsedInterval = base.Minute // minimum interval between two writes of last_used_at (U119)
)

// apiKeyRoles are the roles of U122.
var apiKeyRoles = []string{"read", "submit", "work", "operate", "admin"}

// Normalize sorts the lists and checks every setting: invalid_argument.
func (s *APIKeySettings) Normalize() error {
	checks := [...]error{
		base.RefuseText("name", base.CheckPerson(s.Name, 256)),
		required("roles", s.Roles),
		base.CheckNames("roles", &s.Roles, len(apiKeyRoles), checkRole),
		required("namespaces", s.Namespaces),
		s.checkNamespaces(),
		base.CheckNames("lanes", &s.Lanes, base.MaxNames, func(text string) string { return base.CheckGraphic(text, 64) }),
		base.CheckRange("max_requests_per_second", s.MaxRequestsPerSecond),
		base.CheckRange("max_in_flight", s.MaxInFlight),
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

func required(field string, list []string) error {
	if len(list) == 0 {
		return base.Invalid(field, "is required")
	}
	return nil
}

func checkRole(text string) string {
	if slices.Contains(apiKeyRoles, text) {
		return ""
	}
	return "is not read, submit, work, operate or admin"
}

func (s *APIKeySettings) checkNamespaces() error {
	if slices.Contains(s.Namespaces, Everywhere) {
		s.Namespaces = []string{Everywhere}
		return nil
	}
	return base.CheckNames("namespaces", &s.Namespaces, base.MaxNames, base.CheckNameText)
}

// Everywhere reports whether the key is valid for all namespaces.
func (s *APIKeySettings) Everywhere() bool { return slices.Contains(s.Namespaces, Everywhere) }

// APIKeyPatch changes settings of a key; nil fields are left unchanged.
type APIKeyPatch struct {
	Name                 *string    `json:"name,omitempty"`
	Roles                *[]string  `json:"roles,omitempty"`
	Namespaces           *[]string  `json:"namespaces,omitempty"`
	Lanes                *[]string  `json:"lanes,omitempty"`
	ExpiresAt            *base.Time `json:"expires_at,omitempty"`
	MaxRequestsPerSecond *int       `json:"max_requests_per_second,omitempty"`
	MaxInFlight          *int       `json:"max_in_flight,omitempty"`
}

// of returns the settings with the patch applied.
func (p APIKeyPatch) of(s APIKeySettings) APIKeySettings {
	set(&s.Name, p.Name)
	set(&s.Roles, p.Roles)
	set(&s.Namespaces, p.Namespaces)
	set(&s.Lanes, p.Lanes)
	set(&s.ExpiresAt, p.ExpiresAt)
	set(&s.MaxRequestsPerSecond, p.MaxRequestsPerSecond)
	set(&s.MaxInFlight, p.MaxInFlight)
	return s
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// NewAPIKey makes the record of a key. The settings must be normalized. An expiry in the past is invalid_argument.
func NewAPIKey(now base.Time, by string, secret APISecret, s APIKeySettings) (APIKey, error) {
	if err := checkEnd(s.ExpiresAt, now); err != nil {
		return APIKey{}, err
	}
	return APIKey{ID: secret.id, APIKeySettings: s, Revision: 1, CreatedAt: now, CreatedBy: by, Hash: secret.hash()}, nil
}

func checkEnd(at, now base.Time) error {
	if at.Reached(now) {
		return base.Invalid("expires_at", "has passed already")
	}
	return nil
}

// Is reports whether secret is the key's present secret, as in a repeated create.
func (k *APIKey) Is(secret APISecret) bool {
	return subtle.ConstantTimeCompare(k.Hash, secret.hash()) == 1
}

// Change applies a patch to the settings. Errors: invalid_argument, key_retired.
func (k *APIKey) Change(now base.Time, p APIKeyPatch) error {
	if k.RevokedAt != 0 {
		return k.retired()
	}
	s := p.of(k.APIKeySettings)
	if err := s.Normalize(); err != nil {
		return err
	}
	if s.ExpiresAt != k.ExpiresAt {
		if err := checkEnd(s.ExpiresAt, now); err != nil {
			return err
		}
	}
	k.APIKeySettings = s
	k.Revision++
	return nil
}

// AdministersAll reports whether the key may administer all namespaces now.
func (k *APIKey) AdministersAll(now base.Time) bool {
	return k.RevokedAt == 0 && !k.ExpiresAt.Reached(now) && k.Everywhere() && k.IsAdmin()
}

// IsAdmin reports whether the key has the role admin.
func (s *APIKeySettings) IsAdmin() bool { return slices.Contains(s.Roles, "admin") }

// LastAdminKey is the refusal to remove the last key that administers all namespaces.
func LastAdminKey(id string) error {
	return base.Errorf(base.CodeLastAdminKey, "no other API key than %s administers all namespaces", id).WithField("force").
		WithHint("create another admin key for * first, or set `force`")
}

// Rotate gives the key a new secret. The old secret stays valid for overlap. Errors: invalid_argument, key_retired.
func (k *APIKey) Rotate(now base.Time, secret APISecret, overlap base.Millis) error {
	switch {
	case k.RevokedAt != 0:
		return k.retired()
	case overlap < 0 || overlap > maxOverlap:
		return base.Invalid("overlap_ms", "must be in 0..%d", maxOverlap)
	}
	k.OldHash, k.OldUntil = k.Hash, now.Add(overlap)
	k.Hash, k.RotatedAt = secret.hash(), now
	k.Revision++
	return nil
}

// Revoke ends the key permanently. Revoking a revoked key changes nothing.
func (k *APIKey) Revoke(now base.Time) (changed bool) {
	if k.RevokedAt != 0 {
		return false
	}
	k.RevokedAt = now
	k.Revision++
	return true
}

// Accept returns nil if secret belongs to a valid key. An unknown key (nil receiver) and a wrong secret both return invalid_credentials and take
// the same time; api_key_revoked and api_key_expired are returned only to a caller with the right secret.
func (k *APIKey) Accept(now base.Time, secret APISecret) error {
	given := secret.hash()
	present, old := make([]byte, len(given)), make([]byte, len(given))
	if k != nil {
		copy(present, k.Hash)
		if now < k.OldUntil {
			copy(old, k.OldHash)
		}
	}
	if subtle.ConstantTimeCompare(present, given)|subtle.ConstantTimeCompare(old, given) == 0 {
		return BadCredentials()
	}
	switch {
	case k.RevokedAt != 0:
		return base.Errorf(base.CodeAPIKeyRevoked, "the API key was revoked").With("revoked_at", k.RevokedAt.String())
	case k.ExpiresAt.Reached(now):
		return base.Errorf(base.CodeAPIKeyExpired, "the API key has expired").With("expires_at", k.ExpiresAt.String())
	default:
		return nil
	}
}

// retired is the refusal to change a revoked key. It describes that key, not the credential of the caller.
func (k *APIKey) retired() error {
	return base.Errorf(base.CodeKeyRetired, "the key was revoked").With("revoked_at", k.RevokedAt.String()).WithHint("create another key")
}

// BadCredentials is the one error for every invalid credential.
func BadCredentials() error {
	return base.Errorf(base.CodeInvalidCredentials, "the API key is not valid").WithHint("check that the whole key was sent")
}

// Used records that the key was used. It reports whether the record changed enough to be written.
func (k *APIKey) Used(now base.Time) (changed bool) {
	if k.LastUsedAt != 0 && now.Sub(k.LastUsedAt) < keyUsedInterval {
		return false
	}
	k.LastUsedAt = now
	return true
}

// Shown returns the key without its digests.
func (k APIKey) Shown() APIKey {
	k.Hash, k.OldHash = nil, nil
	return k
}

// APISecret is a complete API key as the client sends it: ffk_<id>_<secret> (U119). Printing it shows only its id.
type APISecret struct{ id, text string }

// The parts of a secret's text.
const (
	secretPrefix = "ffk_"
	keyIDLength  = 12
	secretLength = 43
)

// secretAlphabet encodes ids so that they are easy to read aloud and to select.
var secretAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// MintAPISecret makes a new secret of 40 random bytes: 60 bits of id and 256 of secret.
func MintAPISecret(random [40]byte) APISecret {
	return secretOf(secretAlphabet.EncodeToString(random[:8])[:keyIDLength], random[8:])
}

// MintSecretOf makes a new secret of 32 random bytes for the key that has this id.
func MintSecretOf(id string, random [32]byte) APISecret { return secretOf(id, random[:]) }

func secretOf(id string, random []byte) APISecret {
	return APISecret{id: id, text: secretPrefix + id + "_" + base64.RawURLEncoding.EncodeToString(random)}
}

// ParseAPISecret parses a key sent by a client; invalid_credentials.
func ParseAPISecret(text string) (APISecret, error) {
	const idEnd = len(secretPrefix) + keyIDLength
	if len(text) != idEnd+1+secretLength || text[:len(secretPrefix)] != secretPrefix || text[idEnd] != '_' {
		return APISecret{}, BadCredentials()
	}
	id := text[len(secretPrefix):idEnd]
	raw, err := base.DecodeURLText(text[idEnd+1:])
	if err != nil || !isKeyID(id) {
		return APISecret{}, BadCredentials()
	}
	return secretOf(id, raw), nil
}

func isKeyID(text string) bool {
	return len(text) == keyIDLength && base.OnlyBytes(text, func(c byte) bool { return 'a' <= c && c <= 'z' || '2' <= c && c <= '7' })
}

// KeyID returns the id of the key.
func (s APISecret) KeyID() string { return s.id }

// Reveal returns the complete text. It must be shown only to the holder of the key.
func (s APISecret) Reveal() string { return s.text }

// String hides the secret.
func (s APISecret) String() string { return secretPrefix + s.id + "_…" }

// GoString hides the secret.
func (s APISecret) GoString() string { return s.String() }

func (s APISecret) hash() []byte {
	sum := sha256.Sum256([]byte(s.text))
	return sum[:]
}
