package server

import (
	"context"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveSigningKeys() {
	handle(s, wire.ListSigningKeys, s.listSigningKeys)
	handle(s, wire.SeedSigningKey, s.seedSigningKey)
	handle(s, wire.RotateSigningKey, s.rotateSigningKey)
	handle(s, wire.RevokeSigningKey, s.revokeSigningKey)
}

// listSigningKeys shows the keys that verify (U105).
func (s *Server) listSigningKeys(ctx context.Context, r *wire.ListSigningKeysRequest) (answer, error) {
	list, err := s.client.Admin().SigningKeys().List(ctx, flowfabric.ListKeysOptions{Retired: r.IncludeRetired})
	return unstored(list), err
}

// seedSigningKey installs the first key (U105).
func (s *Server) seedSigningKey(ctx context.Context, r *wire.SeedSigningKeyRequest) (answer, error) {
	result, err := s.client.Admin().SigningKeys().Seed(ctx, r.Body.Kid, r.Body.SecretHex, adminAction(r.Body.AdminFields, nil))
	return unstored(result), err
}

// rotateSigningKey makes another key the active one (U105).
func (s *Server) rotateSigningKey(ctx context.Context, r *wire.RotateSigningKeyRequest) (answer, error) {
	result, err := s.client.Admin().SigningKeys().Rotate(ctx, r.Body.Kid, flowfabric.RotateKeyOptions{
		AdminAction: adminAction(r.Body.AdminFields, nil), SecretHex: r.Body.SecretHex, Grace: durationOf(r.Body.GraceMS),
	})
	return unstored(result), err
}

// revokeSigningKey ends a key (U105).
func (s *Server) revokeSigningKey(ctx context.Context, r *wire.RevokeSigningKeyRequest) (answer, error) {
	result, err := s.client.Admin().SigningKeys().Revoke(ctx, r.Kid, flowfabric.RevokeKeyOptions{
		AdminAction: adminAction(r.Body.AdminFields, nil), Force: r.Body.Force,
	})
	return unstored(result), err
}

// unstored shows what tells of secrets: it holds none, and still nobody on the way keeps it.
func unstored(body any) answer { return shows(body).with("Cache-Control", "no-store") }
