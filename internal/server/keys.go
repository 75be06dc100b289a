package server

import (
	"context"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// keysOf are the API keys of a client.
type keysOf struct{ client *flowfabric.Client }

// Authenticate finds the key of a secret.
func (k keysOf) Authenticate(ctx context.Context, secret string) (Key, error) {
	key, err := k.client.Admin().APIKeys().Authenticate(ctx, secret)
	if err != nil {
		return Key{}, err
	}
	return Key{
		ID: key.ID, Name: key.Name, Roles: key.Roles, Namespaces: key.Namespaces, Lanes: key.Lanes,
		MaxRequestsPerSecond: key.MaxRequestsPerSecond, MaxInFlight: key.MaxInFlight,
	}, nil
}

// ofKeys reports whether the route is about API keys.
func (r *route) ofKeys() bool { return strings.HasPrefix(r.Path, wire.ListAPIKeys.Path) }

func (s *Server) serveKeys() {
	pass(s, wire.ListAPIKeys)
	handle(s, wire.CreateAPIKey, s.createKey)
	pass(s, wire.GetAPIKey)
	handle(s, wire.PatchAPIKey, s.changeKey)
	pass(s, wire.RevokeAPIKey)
	pass(s, wire.RotateAPIKey)
}

// createKey makes a key and returns its secret (U104).
func (s *Server) createKey(ctx context.Context, r *wire.CreateAPIKeyRequest) (answer, error) {
	key, err := ask(ctx, s, wire.CreateAPIKey, r)
	if err != nil {
		return answer{}, err
	}
	s.open.again()
	return shows(key).with("Location", "/v1/api-keys/"+key.ID), nil
}

// changeKey changes the settings that are given (U104).
func (s *Server) changeKey(ctx context.Context, r *wire.PatchAPIKeyRequest) (answer, error) {
	key, err := ask(ctx, s, wire.PatchAPIKey, r)
	s.open.again()
	return shows(key), err
}
