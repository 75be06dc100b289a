package wire

import "net/http"

// keyCalls are the API keys of section 2.7.
var keyCalls = []*Operation{row(ListAPIKeys), row(CreateAPIKey), row(GetAPIKey), row(PatchAPIKey), row(RevokeAPIKey), row(RotateAPIKey)}

// The calls on API keys.
var (
	ListAPIKeys = Call[ListAPIKeysRequest, Page[APIKey]]{&Operation{
		ID: "list_api_keys", Rule: "U104", Method: http.MethodGet, Path: "/v1/api-keys", Roles: Admin,
		Go: "Admin.APIKeys.List", Command: "api-keys list", Summary: "List the API keys", Status: []int{http.StatusOK},
	}}
	CreateAPIKey = Call[CreateAPIKeyRequest, NewAPIKey]{&Operation{
		ID: "create_api_key", Rule: "U104", Method: http.MethodPost, Path: "/v1/api-keys", Roles: Admin,
		Go: "Admin.APIKeys.Create", Command: "api-keys create", Summary: "Create an API key; its secret is shown this once",
		Status: []int{http.StatusCreated}, Secret: true,
	}}
	GetAPIKey = Call[ByKey, APIKey]{&Operation{
		ID: "get_api_key", Rule: "U104", Method: http.MethodGet, Path: "/v1/api-keys/{id}", Roles: Admin,
		Go: "Admin.APIKeys.Get", Command: "api-keys get", Summary: "Show an API key", Status: []int{http.StatusOK},
	}}
	PatchAPIKey = Call[PatchAPIKeyRequest, APIKey]{&Operation{
		ID: "patch_api_key", Rule: "U104", Method: http.MethodPatch, Path: "/v1/api-keys/{id}", Roles: Admin,
		Audit: "change_api_key", Go: "Admin.APIKeys.Change", Command: "api-keys set", Summary: "Change an API key", Status: []int{http.StatusOK},
	}}
	RevokeAPIKey = Call[RevokeAPIKeyRequest, None]{&Operation{
		ID: "revoke_api_key", Rule: "U104", Method: http.MethodDelete, Path: "/v1/api-keys/{id}", Roles: Admin,
		Go: "Admin.APIKeys.Revoke", Command: "api-keys delete", Summary: "Revoke an API key", Status: []int{http.StatusNoContent},
	}}
	RotateAPIKey = Call[RotateAPIKeyRequest, NewAPIKey]{&Operation{
		ID: "rotate_api_key", Rule: "U104", Method: http.MethodPost, Path: "/v1/api-keys/{id}/rotate", Roles: Admin,
		Go: "Admin.APIKeys.Rotate", Command: "api-keys rotate", Summary: "Give an API key a new secret; the old one works on for a while",
		Status: []int{http.StatusCreated}, Secret: true,
	}}
)

// ListAPIKeysRequest lists keys.
type ListAPIKeysRequest struct{ PageFields }

// ByKey names a key in the path.
type ByKey struct {
	ID string `path:"id" argument:"key_id" doc:"Id of the key."`
}

// APIKeySettings are what a key may do.
type APIKeySettings struct {
	Name                 string   `json:"name" required:"true" maxLength:"256" doc:"Name of the principal."`
	Roles                []string `json:"roles" required:"true" minItems:"1" maxItems:"5" enum:"read,submit,work,operate,admin" doc:"What it may do."`
	Namespaces           []string `json:"namespaces" required:"true" minItems:"1" doc:"Where it may do it; * is everywhere."`
	Lanes                []string `json:"lanes,omitempty" doc:"Lanes that it may work on; all if absent."`
	ExpiresAt            Time     `json:"expires_at,omitzero" doc:"When it stops working; never if absent."`
	MaxRequestsPerSecond int      `json:"max_requests_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Requests a second over all servers; 0: no limit."`
	MaxInFlight          int      `json:"max_in_flight,omitempty" minimum:"0" maximum:"1000000" doc:"Requests at a time; 0: no limit."`
}

// APIKey is a key without its secret.
type APIKey struct {
	KeyID string `json:"key_id" doc:"Id of the key."`
	APIKeySettings
	Revision   int64  `json:"revision" doc:"Counts the changes of the key."`
	CreatedAt  Time   `json:"created_at,omitzero" doc:"When it was created."`
	CreatedBy  string `json:"created_by,omitempty" doc:"Who created it."`
	RotatedAt  Time   `json:"rotated_at,omitzero" doc:"When it last got a new secret."`
	LastUsedAt Time   `json:"last_used_at,omitzero" doc:"When it was last used, to the minute."`
	RevokedAt  Time   `json:"revoked_at,omitzero" doc:"When it was revoked."`
}

// NewAPIKey is a key with its secret.
type NewAPIKey struct {
	APIKey
	Secret string `json:"secret" doc:"The whole key as it is sent; shown this once."`
}

// AdminFields are what the body of every administrator's change takes.
type AdminFields struct {
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Why; stands in the audit log."`
}

// CreateAPIKeyRequest creates a key.
type CreateAPIKeyRequest struct {
	Body struct {
		APIKeySettings
		AdminFields
	}
}

// PatchAPIKeyRequest changes a key; what is absent stays.
type PatchAPIKeyRequest struct {
	ByKey
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    struct {
		AdminFields
		Force                bool      `json:"force,omitempty" doc:"Also if no key is left that administers all namespaces."`
		Name                 *string   `json:"name,omitempty" maxLength:"256" doc:"Name of the principal."`
		Roles                *[]string `json:"roles,omitempty" enum:"read,submit,work,operate,admin" doc:"What it may do."`
		Namespaces           *[]string `json:"namespaces,omitempty" doc:"Where it may do it; * is everywhere."`
		Lanes                *[]string `json:"lanes,omitempty" doc:"Lanes that it may work on; empty: all."`
		ExpiresAt            *Time     `json:"expires_at,omitempty" doc:"When it stops working."`
		MaxRequestsPerSecond *int      `json:"max_requests_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Requests a second over all servers; 0: no limit."`
		MaxInFlight          *int      `json:"max_in_flight,omitempty" minimum:"0" maximum:"1000000" doc:"Requests at a time; 0: no limit."`
	}
}

// RevokeAPIKeyRequest revokes a key.
type RevokeAPIKeyRequest struct {
	ByKey
	Force   bool      `query:"force" doc:"Also the last key that administers all namespaces."`
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    AdminFields
}

// RotateAPIKeyRequest gives a key a new secret.
type RotateAPIKeyRequest struct {
	ByKey
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    struct {
		AdminFields
		OverlapMS *int64 `json:"overlap_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"The old secret works on for so long; 86400000 if absent."`
	}
}
