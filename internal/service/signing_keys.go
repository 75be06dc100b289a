package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) signingKeys() {
	on(s, wire.ListSigningKeys, s.listSigningKeys)
	on(s, wire.SeedSigningKey, s.seedSigningKey)
	on(s, wire.RotateSigningKey, s.rotateSigningKey)
	on(s, wire.RevokeSigningKey, s.revokeSigningKey)
	on(s, wire.RewrapSigningKeys, s.rewrapSigningKeys)
}

// listSigningKeys lists the keys that verify (U105).
func (s *Service) listSigningKeys(ctx context.Context, _ Caller, r *wire.ListSigningKeysRequest) (api.SigningKeyList, error) {
	found, err := s.engine.SigningKeys(ctx, r.IncludeRetired)
	if err != nil {
		return api.SigningKeyList{}, err
	}
	return api.SigningKeyList{CurrentKid: found.CurrentKid, Keys: each(found.Keys, signingKeyOf)}, nil
}

// seedSigningKey installs the first key (U105).
func (s *Service) seedSigningKey(ctx context.Context, c Caller, r *wire.SeedSigningKeyRequest) (api.SeededKey, error) {
	b := &r.Body
	out, err := s.engine.SeedSigningKey(ctx, c.admin(), b.Kid, b.SecretHex, c.action(b.AdminFields, nil))
	answer := api.SeededKey{Outcome: out.Outcome, Kid: out.Kid}
	if out.Outcome == api.OutcomeAlreadySeeded {
		answer.SameSecret, answer.State = out.SameSecret, out.State.String()
	}
	return answer, err
}

// rotateSigningKey makes another key the active one (U105).
func (s *Service) rotateSigningKey(ctx context.Context, c Caller, r *wire.RotateSigningKeyRequest) (api.RotatedKey, error) {
	b := &r.Body
	grace := s.grace(b.GraceMS)
	rotation := engine.Rotation{Kid: b.Kid, SecretHex: b.SecretHex, GraceMS: &grace}
	out, err := s.engine.RotateSigningKey(ctx, c.admin(), rotation, c.action(b.AdminFields, nil))
	if out.Outcome != api.OutcomeRotated {
		return api.RotatedKey{Outcome: out.Outcome, Kid: b.Kid}, err
	}
	return api.RotatedKey{
		Outcome: out.Outcome, NewKid: b.Kid, PreviousKid: out.PreviousKid, PurgedCount: out.PurgedCount, Reactivated: out.Reactivated,
	}, err
}

// revokeSigningKey revokes a key (U105).
func (s *Service) revokeSigningKey(ctx context.Context, c Caller, r *wire.RevokeSigningKeyRequest) (api.RevokedKey, error) {
	out, err := s.engine.RevokeSigningKey(ctx, c.admin(), r.Kid, r.Body.Force, c.action(r.Body.AdminFields, nil))
	return api.RevokedKey{Outcome: out.Outcome, Kid: out.Kid}, err
}

// rewrapSigningKeys seals all stored secrets under another master key (W24).
func (s *Service) rewrapSigningKeys(ctx context.Context, c Caller, r *wire.RewrapRequest) (int, error) {
	to, err := keyring.ParseMasterKey(r.MasterKey)
	if err != nil {
		return 0, err
	}
	return s.engine.RewrapSigningKeys(ctx, c.admin(), to, c.action(r.AdminFields, nil))
}

func signingKeyOf(k keyring.KeyView) api.SigningKey {
	return api.SigningKey{
		Kid: k.Kid, State: k.State.String(), CreatedAt: k.CreatedAt.Std(), VerifyUntil: k.VerifyUntil.Std(), RevokedAt: k.RevokedAt.Std(),
	}
}
