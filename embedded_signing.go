package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

type embeddedSigning struct{ client *embedded }

func (embeddedSigning) sealed() {}

func (e embeddedAdmin) SigningKeys() SigningKeys { return embeddedSigning(e) }

func (e embeddedSigning) List(ctx context.Context, o ...ListKeysOptions) (SigningKeyList, error) {
	options, err := single(o)
	if err != nil {
		return SigningKeyList{}, err
	}
	found, err := e.client.engine.SigningKeys(ctx, options.Retired)
	if err != nil {
		return SigningKeyList{}, publicError(err)
	}
	return SigningKeyList{CurrentKid: found.CurrentKid, Keys: each(found.Keys, signingKeyOf)}, nil
}

func signingKeyOf(k core.KeyView) SigningKey {
	return SigningKey{
		Kid: k.Kid, State: k.State.String(), CreatedAt: k.CreatedAt.Std(), VerifyUntil: k.VerifyUntil.Std(), RevokedAt: k.RevokedAt.Std(),
	}
}

func (e embeddedSigning) Seed(ctx context.Context, kid, secretHex string, o ...AdminAction) (SeedResult, error) {
	options, err := single(o)
	if err != nil {
		return SeedResult{}, err
	}
	how := e.client.action(ctx, options)
	out, err := untilKnown(ctx, e.client.clock, func() (core.SeedOutcome, error) {
		return e.client.engine.SeedSigningKey(ctx, e.client.asAdmin(ctx), kid, secretHex, how)
	})
	if err != nil {
		return SeedResult{}, err
	}
	return SeedResult{Outcome: out.Outcome, Kid: out.Kid, SameSecret: out.SameSecret, State: out.State.String()}, nil
}

func (e embeddedSigning) Rotate(ctx context.Context, kid string, o ...RotateKeyOptions) (RotateResult, error) {
	options, err := single(o)
	if err != nil {
		return RotateResult{}, err
	}
	grace := millis(e.client.keyGrace())
	if options.Grace != nil {
		grace = millis(*options.Grace)
	}
	rotation, how := engine.Rotation{Kid: kid, SecretHex: options.SecretHex, GraceMS: &grace}, e.client.action(ctx, options.AdminAction)
	out, err := untilKnown(ctx, e.client.clock, func() (core.RotateOutcome, error) {
		return e.client.engine.RotateSigningKey(ctx, e.client.asAdmin(ctx), rotation, how)
	})
	if err != nil {
		return RotateResult{}, err
	}
	return RotateResult{Outcome: out.Outcome, Kid: kid, PreviousKid: out.PreviousKid, PurgedCount: out.PurgedCount, Reactivated: out.Reactivated}, nil
}

func (e embeddedSigning) Revoke(ctx context.Context, kid string, o ...RevokeKeyOptions) (RevokeResult, error) {
	options, err := single(o)
	if err != nil {
		return RevokeResult{}, err
	}
	how := e.client.action(ctx, options.AdminAction)
	out, err := untilKnown(ctx, e.client.clock, func() (core.RevokeOutcome, error) {
		return e.client.engine.RevokeSigningKey(ctx, e.client.asAdmin(ctx), kid, options.Force, how)
	})
	return RevokeResult{Outcome: out.Outcome, Kid: out.Kid}, err
}

func (e embeddedSigning) Rewrap(ctx context.Context, masterKey string, o ...AdminAction) (int, error) {
	options, err := single(o)
	if err != nil {
		return 0, err
	}
	to, err := core.ParseMasterKey(masterKey)
	if err != nil {
		return 0, publicError(err)
	}
	how := e.client.action(ctx, options)
	return untilKnown(ctx, e.client.clock, func() (int, error) { return e.client.engine.RewrapSigningKeys(ctx, e.client.asAdmin(ctx), to, how) })
}

// masterKey is the one that Open was given; none when it was given none.
func (cfg OpenConfig) masterKey() (core.MasterKey, error) {
	if cfg.MasterKey == "" {
		return core.MasterKey{}, nil
	}
	return core.ParseMasterKey(cfg.MasterKey)
}

// signingKey is the one that Open was given to seed; nil when it was given none.
func (cfg OpenConfig) signingKey() (*core.SeedCommand, error) {
	if cfg.SigningKid == "" && cfg.SigningSecret == "" {
		return nil, nil
	}
	seed, err := core.NewSeed(cfg.SigningKid, cfg.SigningSecret)
	return &seed, err
}
