package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// localCalls are operations that are not part of the HTTP API. They have types, but are not in the table.
var localCalls = []*Operation{row(InstallAPIKey), row(Authenticate), row(RecordRefusal), row(OnlyNamespace), row(RewrapSigningKeys)}

// Operations that only the process with the store can perform.
var (
	InstallAPIKey     = Call[InstallAPIKeyRequest, api.NewAPIKey]{&Operation{ID: "install_api_key", Method: http.MethodPost, Local: "installing a key that exists"}}
	Authenticate      = Call[AuthenticateRequest, api.APIKey]{&Operation{ID: "authenticate", Method: http.MethodGet, Local: "finding the key of a secret"}}
	RecordRefusal     = Call[RecordRefusalRequest, None]{&Operation{ID: "record_refusal", Method: http.MethodPost, Local: "writing into the audit log"}}
	OnlyNamespace     = Call[ByNamespace, bool]{&Operation{ID: "only_namespace", Method: http.MethodGet, Local: "looking at all namespaces"}}
	RewrapSigningKeys = Call[RewrapRequest, int]{&Operation{ID: "rewrap_signing_keys", Method: http.MethodPost, Local: "exchanging the master key"}}
)

// InstallAPIKeyRequest creates a key with a given secret.
type InstallAPIKeyRequest struct {
	api.APIKeySettings
	AdminFields
	Secret string
}

// AuthenticateRequest finds the key of a secret.
type AuthenticateRequest struct{ Secret string }

// RecordRefusalRequest writes a refusal into the audit log.
type RecordRefusalRequest struct {
	Namespace string // "": that of the caller
	Action    string // that was requested, as the audit log calls it
	Entity    string
	EntityID  string
	Code      string // role_required, namespace_forbidden
}

// RewrapRequest encrypts all stored secrets with another master key.
type RewrapRequest struct {
	AdminFields
	MasterKey string
}
