package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) apiKeys() {
	on(s, wire.ListAPIKeys, s.listAPIKeys)
	on(s, wire.GetAPIKey, s.getAPIKey)
	on(s, wire.CreateAPIKey, s.createAPIKey)
	on(s, wire.InstallAPIKey, s.installAPIKey)
	on(s, wire.PatchAPIKey, s.patchAPIKey)
	on(s, wire.RevokeAPIKey, s.revokeAPIKey)
	on(s, wire.RotateAPIKey, s.rotateAPIKey)
}

// listAPIKeys lists the keys by id (U104).
func (s *Service) listAPIKeys(ctx context.Context, c Caller, r *wire.ListAPIKeysRequest) (api.Page[*api.APIKey], error) {
	return page(r.PageFields, apiKeyOf, func(cursor string, limit *int) ([]keyring.APIKey, string, error) {
		return s.engine.APIKeys(ctx, c.admin(), cursor, limit)
	})
}

// getAPIKey returns a key (U104).
func (s *Service) getAPIKey(ctx context.Context, c Caller, r *wire.ByKey) (api.APIKey, error) {
	return apiKeyShown(s.engine.APIKey(ctx, c.admin(), r.ID))
}

// createAPIKey makes a key and returns its secret (U104).
func (s *Service) createAPIKey(ctx context.Context, c Caller, r *wire.CreateAPIKeyRequest) (api.NewAPIKey, error) {
	return s.makeAPIKey(ctx, c, keyring.MintAPISecret(c.random), &r.Body.APIKeySettings, r.Body.AdminFields)
}

// installAPIKey makes a key with an existing secret.
func (s *Service) installAPIKey(ctx context.Context, c Caller, r *wire.InstallAPIKeyRequest) (api.NewAPIKey, error) {
	secret, err := keyring.ParseAPISecret(r.Secret)
	if err != nil {
		return api.NewAPIKey{}, err
	}
	return s.makeAPIKey(ctx, c, secret, &r.APIKeySettings, r.AdminFields)
}

func (s *Service) makeAPIKey(ctx context.Context, c Caller, secret keyring.APISecret, of *api.APIKeySettings, f wire.AdminFields) (api.NewAPIKey, error) {
	settings := keyring.APIKeySettings{
		Name: of.Name, Roles: of.Roles, Namespaces: of.Namespaces, Lanes: of.Lanes, ExpiresAt: base.TimeOf(of.ExpiresAt),
		MaxRequestsPerSecond: of.MaxRequestsPerSecond, MaxInFlight: of.MaxInFlight,
	}
	k, err := s.engine.CreateAPIKey(ctx, c.admin(), secret, settings, c.action(f, nil))
	return newAPIKey(k, secret, k.ID == secret.KeyID(), err)
}

// patchAPIKey changes the settings that are given (U104).
func (s *Service) patchAPIKey(ctx context.Context, c Caller, r *wire.PatchAPIKeyRequest) (api.APIKey, error) {
	b := &r.Body
	patch := keyring.APIKeyPatch{
		Name: b.Name, Roles: b.Roles, Namespaces: b.Namespaces, Lanes: b.Lanes, MaxRequestsPerSecond: b.MaxRequestsPerSecond, MaxInFlight: b.MaxInFlight,
	}
	if b.ExpiresAt != nil {
		at := base.TimeOf(*b.ExpiresAt)
		patch.ExpiresAt = &at
	}
	return apiKeyShown(s.engine.ChangeAPIKey(ctx, c.admin(), r.ID, patch, b.Force, c.action(b.AdminFields, r.IfMatch)))
}

// revokeAPIKey ends a key (U104).
func (s *Service) revokeAPIKey(ctx context.Context, c Caller, r *wire.RevokeAPIKeyRequest) (wire.None, error) {
	_, err := s.engine.RevokeAPIKey(ctx, c.admin(), r.ID, r.Force, c.action(r.Body, r.IfMatch))
	return wire.None{}, err
}

// rotateAPIKey gives a key a new secret and returns it (U104).
func (s *Service) rotateAPIKey(ctx context.Context, c Caller, r *wire.RotateAPIKeyRequest) (api.NewAPIKey, error) {
	secret := keyring.MintSecretOf(r.ID, [32]byte(c.random[:]))
	answer, err := s.engine.RotateAPIKey(ctx, c.admin(), secret, s.grace(r.Body.OverlapMS), c.action(r.Body.AdminFields, r.IfMatch))
	return newAPIKey(answer.Key, secret, answer.Present, err)
}

// grace returns how long a replaced secret stays valid.
func (s *Service) grace(given *int64) base.Millis {
	if given == nil {
		return millis(s.cfg.KeyGrace)
	}
	return *given
}

// newAPIKey returns a key with the secret, unless the key was made by an earlier call with another secret.
func newAPIKey(k keyring.APIKey, secret keyring.APISecret, own bool, err error) (api.NewAPIKey, error) {
	if err != nil {
		return api.NewAPIKey{}, err
	}
	made := api.NewAPIKey{APIKey: *apiKeyOf(k)}
	if own {
		made.Secret = secret.Reveal()
	}
	return made, nil
}

func apiKeyShown(k keyring.APIKey, err error) (api.APIKey, error) {
	if err != nil {
		return api.APIKey{}, err
	}
	return *apiKeyOf(k), nil
}

func apiKeyOf(k keyring.APIKey) *api.APIKey {
	return &api.APIKey{
		ID: k.ID, Revision: k.Revision, CreatedAt: k.CreatedAt.Std(), CreatedBy: k.CreatedBy, RotatedAt: k.RotatedAt.Std(),
		LastUsedAt: k.LastUsedAt.Std(), RevokedAt: k.RevokedAt.Std(),
		APIKeySettings: api.APIKeySettings{
			Name: k.Name, Roles: k.Roles, Namespaces: k.Namespaces, Lanes: k.Lanes, ExpiresAt: k.ExpiresAt.Std(),
			MaxRequestsPerSecond: k.MaxRequestsPerSecond, MaxInFlight: k.MaxInFlight,
		},
	}
}
