package wire

import "net/http"

// signingCalls are the signing keys of section 2.7.
var signingCalls = []*Operation{row(ListSigningKeys), row(SeedSigningKey), row(RotateSigningKey), row(RevokeSigningKey)}

// The calls on signing keys. None shows a secret.
var (
	ListSigningKeys = Call[ListSigningKeysRequest, SigningKeyList]{&Operation{
		ID: "list_signing_keys", Rule: "U105", Method: http.MethodGet, Path: "/v1/keys", Roles: Admin, Only: everywhere,
		Go: "Admin.SigningKeys.List", Command: "keys list", Summary: "List the keys that verify tokens", Status: []int{http.StatusOK},
	}}
	SeedSigningKey = Call[SeedSigningKeyRequest, SeededKey]{&Operation{
		ID: "seed_signing_key", Rule: "U105", Method: http.MethodPost, Path: "/v1/keys/seed", Roles: Admin, Only: everywhere,
		Go: "Admin.SigningKeys.Seed", Command: "keys seed", Summary: "Install the first signing key", Status: []int{http.StatusOK},
	}}
	RotateSigningKey = Call[RotateSigningKeyRequest, RotatedKey]{&Operation{
		ID: "rotate_signing_key", Rule: "U105", Method: http.MethodPost, Path: "/v1/keys/rotate", Roles: Admin, Only: everywhere,
		Go: "Admin.SigningKeys.Rotate", Command: "keys rotate", Summary: "Sign with another key; the former one verifies for a while",
		Status: []int{http.StatusOK},
	}}
	RevokeSigningKey = Call[RevokeSigningKeyRequest, RevokedKey]{&Operation{
		ID: "revoke_signing_key", Rule: "U105", Method: http.MethodPost, Path: "/v1/keys/{kid}/revoke", Roles: Admin, Only: everywhere,
		Go: "Admin.SigningKeys.Revoke", Command: "keys revoke", Summary: "End a signing key and every token of it", Status: []int{http.StatusOK},
	}}
)

// ListSigningKeysRequest lists signing keys.
type ListSigningKeysRequest struct {
	IncludeRetired bool `query:"include_retired" doc:"Also those that are past their time or were revoked."`
}

// SigningKeyList is all signing keys that were asked for.
type SigningKeyList struct {
	CurrentKid string       `json:"current_kid" doc:"Kid of the key that signs; empty when none does."`
	Keys       []SigningKey `json:"keys" doc:"In the order of their creation."`
}

// SigningKey is a signing key without its secret.
type SigningKey struct {
	Kid         string `json:"kid" doc:"Name of the key; stands in tokens."`
	State       string `json:"state" enum:"active,verify_only,expired,revoked" doc:"What it does."`
	CreatedAt   Time   `json:"created_at,omitzero" doc:"When it was made."`
	VerifyUntil Time   `json:"verify_until,omitzero" doc:"The last moment at which it verifies; absent: no end, or it was revoked."`
	RevokedAt   Time   `json:"revoked_at,omitzero" doc:"When it was revoked."`
}

// SeedSigningKeyRequest installs the first key.
type SeedSigningKeyRequest struct {
	Body struct {
		AdminFields
		Kid       string `json:"kid" required:"true" doc:"Name of the key, up to 64 letters, digits, dots, dashes and underscores."`
		SecretHex string `json:"secret_hex" required:"true" doc:"64 hexadecimal digits; never shown again."`
	}
}

// SeededKey is the answer to a seed.
type SeededKey struct {
	Outcome    string `json:"outcome" enum:"seeded,already_seeded" doc:"What happened."`
	Kid        string `json:"kid" doc:"Name of the key."`
	SameSecret *bool  `json:"same_secret,omitempty" doc:"Of already_seeded: whether the secret is the one that is held; false also when none is held any more."`
	State      string `json:"state,omitempty" enum:"active,verify_only,expired,revoked" doc:"Of already_seeded: the state of the key."`
}

// RotateSigningKeyRequest makes another key the active one.
type RotateSigningKeyRequest struct {
	Body struct {
		AdminFields
		Kid       string  `json:"kid" required:"true" doc:"Name of the key: a new one, or one that verifies."`
		SecretHex *string `json:"secret_hex,omitempty" doc:"64 hexadecimal digits; random, or those that are held, if absent."`
		GraceMS   *int64  `json:"grace_ms,omitempty" minimum:"0" maximum:"31536000000" doc:"The former key verifies for so long, up to a year; 86400000 if absent and nothing else is set."`
	}
}

// RotatedKey is the answer to a rotation.
type RotatedKey struct {
	Outcome     string `json:"outcome" enum:"rotated,noop" doc:"What happened; noop: the key was active."`
	Kid         string `json:"kid,omitempty" doc:"Of noop: the key."`
	PreviousKid string `json:"previous_kid,omitempty" doc:"The key that signed before; absent when none did."`
	NewKid      string `json:"new_kid,omitempty" doc:"The key that signs now."`
	PurgedCount *int   `json:"purged_count,omitempty" doc:"Keys that lost their secret because their time was over."`
	Reactivated *bool  `json:"reactivated,omitempty" doc:"The key was there, and verified."`
}

// RevokeSigningKeyRequest ends a key.
type RevokeSigningKeyRequest struct {
	Kid  string `path:"kid" doc:"Name of the key."`
	Body struct {
		AdminFields
		Force bool `json:"force,omitempty" doc:"Also the active one: then nothing is signed until the next seed or rotation."`
	}
}

// RevokedKey is the answer to a revocation.
type RevokedKey struct {
	Outcome string `json:"outcome" enum:"revoked,noop" doc:"What happened; noop: it was revoked before."`
	Kid     string `json:"kid" doc:"Name of the key."`
}
