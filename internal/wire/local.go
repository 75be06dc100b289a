package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// localCalls are operations that are not part of the HTTP API. They have types, but are not in the table.
var localCalls = []*Operation{row(InstallAPIKey), row(RewrapSigningKeys)}

// Operations that only the process with the store can perform.
var (
	InstallAPIKey     = Call[InstallAPIKeyRequest, api.NewAPIKey]{&Operation{ID: "install_api_key", Method: http.MethodPost, Local: "installing a key that exists"}}
	RewrapSigningKeys = Call[RewrapRequest, int]{&Operation{ID: "rewrap_signing_keys", Method: http.MethodPost, Local: "exchanging the master key"}}
)

// InstallAPIKeyRequest creates a key with a given secret.
type InstallAPIKeyRequest struct {
	api.APIKeySettings
	AdminFields
	Secret string
}

// RewrapRequest encrypts all stored secrets with another master key.
type RewrapRequest struct {
	AdminFields
	MasterKey string
}
