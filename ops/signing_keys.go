package ops

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// SigningKeys are the keys that sign the tokens of waitpoints and links, for the whole installation. At most one is active and
// signs; others verify the tokens that they signed until their time is over. Secrets are never shown. Changes take effect in
// every process at once.
//
// AdminAction.Revision is ignored unless a method says otherwise: keys have no revision.
type SigningKeys struct{ via transport.Transport }

// ListKeysOptions are the options of SigningKeys.List.
type ListKeysOptions struct {
	Retired bool // include keys that have expired or were revoked
}

// RotateKeyOptions are the options of SigningKeys.Rotate.
type RotateKeyOptions struct {
	AdminAction
	SecretHex *string        // of the new key; nil: a random one, or the stored one of a known key
	Grace     *time.Duration // how long the former key still verifies, up to a year; nil: the KeyGrace of the server, by default one day
}

// RevokeKeyOptions are the options of SigningKeys.Revoke.
type RevokeKeyOptions struct {
	AdminAction
	Force bool // revoke even the active key
}

// List returns the keys that verify now, in the order of their creation.
func (k SigningKeys) List(ctx context.Context, o ...ListKeysOptions) (api.SigningKeyList, error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.SigningKeyList{}, err
	}
	return calls.Value(transport.Call(ctx, k.via, wire.ListSigningKeys, &wire.ListSigningKeysRequest{IncludeRetired: options.Retired}, transport.Options{}))
}

// Seed installs the first key. The secret is 64 hexadecimal digits. If the kid is known, in any state, nothing changes.
//
// Codes: invalid_kid, invalid_secret_hex, seed_conflict while another key is active, idempotency_conflict, master_key_required,
// master_key_mismatch.
func (k SigningKeys) Seed(ctx context.Context, kid, secretHex string, o ...AdminAction) (api.SeededKey, error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.SeededKey{}, err
	}
	request := &wire.SeedSigningKeyRequest{}
	request.Body.Kid, request.Body.SecretHex, request.Body.AdminFields = kid, secretHex, options.wire()
	return calls.Value(transport.Call(ctx, k.via, wire.SeedSigningKey, request, transport.Options{Key: options.RequestKey}))
}

// Rotate makes another key the active one: a new key, or one that still verifies. The former key verifies for the grace of this
// call. Rotating to the active key succeeds and changes nothing.
//
// Codes: invalid_kid, invalid_secret_hex, invalid_grace_ms, rotation_conflict if the kid has a different secret, key_retired if
// the key was revoked or has expired, idempotency_conflict, master_key_required, master_key_mismatch.
func (k SigningKeys) Rotate(ctx context.Context, kid string, o ...RotateKeyOptions) (api.RotatedKey, error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.RotatedKey{}, err
	}
	request := &wire.RotateSigningKeyRequest{}
	request.Body.Kid, request.Body.SecretHex, request.Body.AdminFields = kid, options.SecretHex, options.wire()
	request.Body.GraceMS = givenMillis(options.Grace)
	return calls.Value(transport.Call(ctx, k.via, wire.RotateSigningKey, request, transport.Options{Key: options.RequestKey}))
}

// Revoke revokes a key: all its tokens become invalid at once. Revoking it again succeeds. Revoking the active key requires
// Force; afterwards nothing can be signed until the next Seed or Rotate.
//
// Codes: invalid_kid, key_not_found, key_active, idempotency_conflict.
func (k SigningKeys) Revoke(ctx context.Context, kid string, o ...RevokeKeyOptions) (api.RevokedKey, error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.RevokedKey{}, err
	}
	request := &wire.RevokeSigningKeyRequest{Kid: kid}
	request.Body.Force, request.Body.AdminFields = options.Force, options.wire()
	return calls.Value(transport.Call(ctx, k.via, wire.RevokeSigningKey, request, transport.Options{Key: options.RequestKey}))
}

// Rewrap seals all stored secrets under another master key, 32 bytes as hexadecimal digits or base64, and returns their number.
// This process uses the new key from then on; others on the same store cannot sign until they are restarted with it. Connect
// clients cannot: not_implemented.
//
// Codes: invalid_argument, master_key_required, master_key_mismatch.
func (k SigningKeys) Rewrap(ctx context.Context, masterKey string, o ...AdminAction) (int, error) {
	options, err := transport.Single(o)
	if err != nil {
		return 0, err
	}
	request := &wire.RewrapRequest{AdminFields: options.wire(), MasterKey: masterKey}
	return calls.Value(transport.Call(ctx, k.via, wire.RewrapSigningKeys, request, transport.Options{Key: options.RequestKey}))
}
