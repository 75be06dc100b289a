package wire

import (
	"context"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// localCalls are operations that are not part of the HTTP API. They have types, but are not in the table.
var localCalls = []*Operation{row(InstallAPIKey), row(RewrapSigningKeys), row(OpenStream)}

// Operations that only the process with the store can perform.
var (
	InstallAPIKey     = Call[InstallAPIKeyRequest, api.NewAPIKey]{&Operation{ID: "install_api_key", Method: http.MethodPost, Local: "installing a key that exists"}}
	RewrapSigningKeys = Call[RewrapRequest, int]{&Operation{ID: "rewrap_signing_keys", Method: http.MethodPost, Local: "exchanging the master key"}}
	// OpenStream follows streams for one reader over many pages, which a server pushes.
	OpenStream = Call[OpenStreamRequest, StreamReader]{&Operation{ID: "open_stream", Method: http.MethodGet, Local: "an open reader of streams"}}
)

// InstallAPIKeyRequest creates a key with a given secret.
type InstallAPIKeyRequest struct {
	api.APIKeySettings
	AdminFields
	Secret string
}

// OpenStreamRequest follows one attempt, or the attempts of an execution.
type OpenStreamRequest struct {
	ByID
	N        string // the attempt; "": those that Follow says
	Follow   string
	From, To string // of one attempt
	FrameFields
}

// StreamReader is a reader of streams. It is used by one goroutine at a time.
type StreamReader struct {
	// Next returns what follows, waiting for it; done is set if nothing ever does.
	Next func(ctx context.Context, wait time.Duration) (page *api.FramePage, done bool, err error)
}

// RewrapRequest encrypts all stored secrets with another master key.
type RewrapRequest struct {
	AdminFields
	MasterKey string
}
