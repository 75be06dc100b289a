package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// keyCalls are the API keys of section 2.7.
var keyCalls = []*Operation{row(ListAPIKeys), row(CreateAPIKey), row(GetAPIKey), row(PatchAPIKey), row(RevokeAPIKey), row(RotateAPIKey)}

// The calls on API keys.
var (
	ListAPIKeys = Call[ListAPIKeysRequest, api.Page[*api.APIKey]]{&Operation{
		ID: "list_api_keys", Rule: "U104", Method: http.MethodGet, Path: "/v1/api-keys", Roles: Admin,
		Go: "Admin.APIKeys.List", Command: "api-keys list", Summary: "List API keys", Status: []int{http.StatusOK},
	}}
	CreateAPIKey = Call[CreateAPIKeyRequest, api.NewAPIKey]{&Operation{
		ID: "create_api_key", Rule: "U104", Method: http.MethodPost, Path: "/v1/api-keys", Roles: Admin,
		Go: "Admin.APIKeys.Create", Command: "api-keys create", Summary: "Create an API key; its secret is shown this once",
		Status: []int{http.StatusCreated}, Secret: true,
	}}
	GetAPIKey = Call[ByKey, api.APIKey]{&Operation{
		ID: "get_api_key", Rule: "U104", Method: http.MethodGet, Path: "/v1/api-keys/{id}", Roles: Admin,
		Go: "Admin.APIKeys.Get", Command: "api-keys get", Summary: "Show an API key", Status: []int{http.StatusOK},
	}}
	PatchAPIKey = Call[PatchAPIKeyRequest, api.APIKey]{&Operation{
		ID: "patch_api_key", Rule: "U104", Method: http.MethodPatch, Path: "/v1/api-keys/{id}", Roles: Admin,
		Audit: "change_api_key", Go: "Admin.APIKeys.Change", Command: "api-keys set", Summary: "Change an API key", Status: []int{http.StatusOK},
	}}
	RevokeAPIKey = Call[RevokeAPIKeyRequest, None]{&Operation{
		ID: "revoke_api_key", Rule: "U104", Method: http.MethodDelete, Path: "/v1/api-keys/{id}", Roles: Admin,
		Go: "Admin.APIKeys.Revoke", Command: "api-keys delete", Summary: "Revoke an API key", Status: []int{http.StatusNoContent},
	}}
	RotateAPIKey = Call[RotateAPIKeyRequest, api.NewAPIKey]{&Operation{
		ID: "rotate_api_key", Rule: "U104", Method: http.MethodPost, Path: "/v1/api-keys/{id}/rotate", Roles: Admin,
		Go: "Admin.APIKeys.Rotate", Command: "api-keys rotate", Summary: "Replace the secret of an API key; the old one stays valid for a while",
		Status: []int{http.StatusCreated}, Secret: true,
	}}
)

// ListAPIKeysRequest lists keys.
type ListAPIKeysRequest struct{ PageFields }

// ByKey identifies a key in the path.
type ByKey struct {
	ID string `path:"id" argument:"key_id" doc:"Id of the key."`
}

// AdminFields are in the body of every administrator's change.
type AdminFields struct {
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Reason, recorded in the audit log."`
}

// CreateAPIKeyRequest creates a key.
type CreateAPIKeyRequest struct {
	Body struct {
		api.APIKeySettings
		AdminFields
	}
}

// PatchAPIKeyRequest changes a key; absent fields are not changed.
type PatchAPIKeyRequest struct {
	ByKey
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		AdminFields
		api.APIKeyChange
	}
}

// RevokeAPIKeyRequest revokes a key.
type RevokeAPIKeyRequest struct {
	ByKey
	Force   bool      `query:"force" doc:"Even the last admin key for all namespaces."`
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    AdminFields
}

// RotateAPIKeyRequest replaces the secret of a key.
type RotateAPIKeyRequest struct {
	ByKey
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		AdminFields
		OverlapMS *int64 `json:"overlap_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"How long the old secret stays valid; default 86400000."`
	}
}
