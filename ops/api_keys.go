package ops

import (
	"context"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// APIKeys are the credentials of a server's callers.
type APIKeys struct{ via transport.Transport }

// CreateKeyOptions are the options of APIKeys.Create.
type CreateKeyOptions struct {
	AdminAction        // a new key has no revision
	Secret      string // a complete key, "ffk_…", to install instead of a new one; installing the same key again succeeds
}

// RevokeAPIKeyOptions are the options of APIKeys.Revoke.
type RevokeAPIKeyOptions struct {
	AdminAction
	Force bool // revoke even the last key that administers all namespaces
}

// RotateOptions are the options of APIKeys.Rotate.
type RotateOptions struct {
	AdminAction
	Overlap *time.Duration // how long the old secret stays valid, up to 30 days; nil: the KeyGrace of the server, by default one day
}

// List iterates over the keys by id.
func (k APIKeys) List(ctx context.Context) iter.Seq2[*api.APIKey, error] {
	return calls.Walk(nil, "", func(cursor string) (api.Page[*api.APIKey], error) {
		return k.Page(ctx, api.PageOptions{Cursor: cursor})
	})
}

// Page returns one page of the keys. Codes: invalid_cursor.
func (k APIKeys) Page(ctx context.Context, o ...api.PageOptions) (api.Page[*api.APIKey], error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Page[*api.APIKey]{}, err
	}
	return calls.Value(transport.Call(ctx, k.via, wire.ListAPIKeys, &wire.ListAPIKeysRequest{PageFields: calls.PageFields(options.Limit, options.Cursor)}, transport.Options{}))
}

// Get returns a key. Codes: api_key_not_found.
func (k APIKeys) Get(ctx context.Context, id string) (*api.APIKey, error) {
	return transport.Call(ctx, k.via, wire.GetAPIKey, &wire.ByKey{ID: id}, transport.Options{})
}

// Create makes a key and returns its secret, which cannot be read again. A call that repeats a request key returns the key made
// by the first call, without the secret.
//
// Codes: invalid_argument, namespace_forbidden, invalid_credentials and id_conflict for a given Secret, which Connect clients
// cannot install: not_implemented.
func (k APIKeys) Create(ctx context.Context, s api.APIKeySettings, o ...CreateKeyOptions) (*api.NewAPIKey, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	how := transport.Options{Key: options.RequestKey}
	if options.Secret != "" {
		request := &wire.InstallAPIKeyRequest{APIKeySettings: s, AdminFields: options.wire(), Secret: options.Secret}
		return transport.Call(ctx, k.via, wire.InstallAPIKey, request, how)
	}
	request := &wire.CreateAPIKeyRequest{}
	request.Body.APIKeySettings, request.Body.AdminFields = s, options.wire()
	return transport.Call(ctx, k.via, wire.CreateAPIKey, request, how)
}

// Change changes the settings that are given. The change takes effect at once in this process, and within five seconds in others.
//
// Codes: api_key_not_found, key_retired for a revoked key, invalid_argument, namespace_forbidden, precondition_failed,
// last_admin_key if no key would be left that administers all namespaces.
func (k APIKeys) Change(ctx context.Context, id string, c api.APIKeyChange, o ...AdminAction) (*api.APIKey, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.PatchAPIKeyRequest{ByKey: wire.ByKey{ID: id}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.APIKeyChange, request.Body.AdminFields = c, options.wire()
	return transport.Call(ctx, k.via, wire.PatchAPIKey, request, transport.Options{Key: options.RequestKey})
}

// Revoke invalidates a key permanently. Revoking it again succeeds.
//
// Codes: api_key_not_found, precondition_failed, last_admin_key if no other key administers all namespaces.
func (k APIKeys) Revoke(ctx context.Context, id string, o ...RevokeAPIKeyOptions) error {
	options, err := transport.Single(o)
	if err != nil {
		return err
	}
	request := &wire.RevokeAPIKeyRequest{
		ByKey: wire.ByKey{ID: id}, Force: options.Force, IfMatch: (*wire.Revision)(options.Revision), Body: options.wire(),
	}
	_, err = transport.Call(ctx, k.via, wire.RevokeAPIKey, request, transport.Options{Key: options.RequestKey})
	return err
}

// Rotate gives a key a new secret and returns it; it cannot be read again. The old secret stays valid for the overlap. A call
// that repeats a request key returns no secret.
//
// Codes: api_key_not_found, key_retired for a revoked key, invalid_argument, precondition_failed.
func (k APIKeys) Rotate(ctx context.Context, id string, o ...RotateOptions) (*api.NewAPIKey, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.RotateAPIKeyRequest{ByKey: wire.ByKey{ID: id}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.AdminFields, request.Body.OverlapMS = options.wire(), givenMillis(options.Overlap)
	return transport.Call(ctx, k.via, wire.RotateAPIKey, request, transport.Options{Key: options.RequestKey})
}

// givenMillis converts an optional duration to milliseconds; nil stays nil.
func givenMillis(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := calls.Millis(*d)
	return &ms
}
