package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteSigning struct{ client *remote }

func (remoteSigning) sealed() {}

func (r remoteAdmin) SigningKeys() SigningKeys { return remoteSigning(r) }

func (r remoteSigning) List(ctx context.Context, o ...ListKeysOptions) (SigningKeyList, error) {
	options, err := single(o)
	if err != nil {
		return SigningKeyList{}, err
	}
	answer, err := call(ctx, r.client, wire.ListSigningKeys, &wire.ListSigningKeysRequest{IncludeRetired: options.Retired}, sending{})
	if err != nil {
		return SigningKeyList{}, err
	}
	return signingKeyListFrom(answer), nil
}

func (r remoteSigning) Seed(ctx context.Context, kid, secretHex string, o ...AdminAction) (SeedResult, error) {
	options, err := single(o)
	if err != nil {
		return SeedResult{}, err
	}
	request := &wire.SeedSigningKeyRequest{}
	request.Body.Kid, request.Body.SecretHex, request.Body.AdminFields = kid, secretHex, options.wire()
	answer, err := call(ctx, r.client, wire.SeedSigningKey, request, sending{key: options.RequestKey})
	if err != nil {
		return SeedResult{}, err
	}
	return seedResultFrom(answer), nil
}

func (r remoteSigning) Rotate(ctx context.Context, kid string, o ...RotateKeyOptions) (RotateResult, error) {
	options, err := single(o)
	if err != nil {
		return RotateResult{}, err
	}
	request := &wire.RotateSigningKeyRequest{}
	request.Body.Kid, request.Body.SecretHex, request.Body.AdminFields = kid, options.SecretHex, options.wire()
	if options.Grace != nil {
		grace := millis(*options.Grace)
		request.Body.GraceMS = &grace
	}
	answer, err := call(ctx, r.client, wire.RotateSigningKey, request, sending{key: options.RequestKey})
	if err != nil {
		return RotateResult{}, err
	}
	return rotateResultFrom(answer), nil
}

func (r remoteSigning) Revoke(ctx context.Context, kid string, o ...RevokeKeyOptions) (RevokeResult, error) {
	options, err := single(o)
	if err != nil {
		return RevokeResult{}, err
	}
	request := &wire.RevokeSigningKeyRequest{Kid: kid}
	request.Body.Force, request.Body.AdminFields = options.Force, options.wire()
	answer, err := call(ctx, r.client, wire.RevokeSigningKey, request, sending{key: options.RequestKey})
	if err != nil {
		return RevokeResult{}, err
	}
	return RevokeResult(*answer), nil
}

func (r remoteSigning) Rewrap(context.Context, string, ...AdminAction) (int, error) {
	return 0, serversOwn("exchanging the master key")
}
