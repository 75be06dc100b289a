package server

import (
	"context"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// keyOf returns what an API key allows.
func keyOf(k *api.APIKey) *Key {
	return &Key{
		ID: k.ID, Name: k.Name, Roles: k.Roles, Namespaces: k.Namespaces, Lanes: k.Lanes,
		MaxRequestsPerSecond: k.MaxRequestsPerSecond, MaxInFlight: k.MaxInFlight,
	}
}

// ofKeys reports whether the route is about API keys.
func (r *route) ofKeys() bool { return strings.HasPrefix(r.Path, wire.ListAPIKeys.Path) }

func (s *Server) serveKeys() {
	handle(s, wire.CreateAPIKey, s.createKey)
	handle(s, wire.PatchAPIKey, s.changeKey)
}

// createKey makes a key and returns its secret (U104).
func (s *Server) createKey(ctx context.Context, x *exchange, r *wire.CreateAPIKeyRequest) (answer, error) {
	key, err := ask(ctx, s, x.by, wire.CreateAPIKey, r)
	if err != nil {
		return answer{}, err
	}
	s.open.again()
	return shows(key).with("Location", "/v1/api-keys/"+key.ID), nil
}

// changeKey changes the settings that are given (U104).
func (s *Server) changeKey(ctx context.Context, x *exchange, r *wire.PatchAPIKeyRequest) (answer, error) {
	key, err := ask(ctx, s, x.by, wire.PatchAPIKey, r)
	s.open.again()
	return shows(key), err
}
