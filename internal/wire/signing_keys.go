package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// signingCalls are the signing keys of section 2.7.
var signingCalls = []*Operation{row(ListSigningKeys), row(SeedSigningKey), row(RotateSigningKey), row(RevokeSigningKey)}

// Operations on signing keys. None shows a secret.
var (
	ListSigningKeys = Call[ListSigningKeysRequest, api.SigningKeyList]{&Operation{
		ID: "list_signing_keys", Rule: "U105", Method: http.MethodGet, Path: "/v1/keys", Roles: Admin, Only: everywhere,
		Go: "Admin.SigningKeys.List", Command: "keys list", Summary: "List signing keys that are still valid", Status: []int{http.StatusOK},
	}}
	SeedSigningKey = Call[SeedSigningKeyRequest, api.SeededKey]{&Operation{
		ID: "seed_signing_key", Rule: "U105", Method: http.MethodPost, Path: "/v1/keys/seed", Roles: Admin, Only: everywhere,
		Go: "Admin.SigningKeys.Seed", Command: "keys seed", Summary: "Install the first signing key", Status: []int{http.StatusOK},
	}}
	RotateSigningKey = Call[RotateSigningKeyRequest, api.RotatedKey]{&Operation{
		ID: "rotate_signing_key", Rule: "U105", Method: http.MethodPost, Path: "/v1/keys/rotate", Roles: Admin, Only: everywhere,
		Go: "Admin.SigningKeys.Rotate", Command: "keys rotate", Summary: "Sign with another key; the previous one verifies for a while",
		Status: []int{http.StatusOK},
	}}
	RevokeSigningKey = Call[RevokeSigningKeyRequest, api.RevokedKey]{&Operation{
		ID: "revoke_signing_key", Rule: "U105", Method: http.MethodPost, Path: "/v1/keys/{kid}/revoke", Roles: Admin, Only: everywhere,
		Go: "Admin.SigningKeys.Revoke", Command: "keys revoke", Summary: "Revoke a signing key and every token signed with it", Status: []int{http.StatusOK},
	}}
)

// ListSigningKeysRequest lists signing keys.
type ListSigningKeysRequest struct {
	IncludeRetired bool `query:"include_retired" doc:"Also expired and revoked keys."`
}

// SeedSigningKeyRequest installs the first key.
type SeedSigningKeyRequest struct {
	Body struct {
		AdminFields
		Kid       string `json:"kid" required:"true" doc:"Name of the key, up to 64 letters, digits, dots, dashes and underscores."`
		SecretHex string `json:"secret_hex" required:"true" doc:"64 hexadecimal digits; never shown again."`
	}
}

// RotateSigningKeyRequest makes another key the active one.
type RotateSigningKeyRequest struct {
	Body struct {
		AdminFields
		Kid       string  `json:"kid" required:"true" doc:"Name of the key: a new one, or a valid one."`
		SecretHex *string `json:"secret_hex,omitempty" doc:"64 hexadecimal digits; if absent, random or the stored ones."`
		GraceMS   *int64  `json:"grace_ms,omitempty" minimum:"0" maximum:"31536000000" doc:"How long the previous key verifies, up to a year; default 86400000 or the server's setting."`
	}
}

// RevokeSigningKeyRequest revokes a key.
type RevokeSigningKeyRequest struct {
	Kid  string `path:"kid" doc:"Name of the key."`
	Body struct {
		AdminFields
		Force bool `json:"force,omitempty" doc:"Even the active one: signing then fails until the next seed or rotation."`
	}
}
