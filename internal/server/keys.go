package server

import (
	"context"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// keysOf are the API keys of a client.
type keysOf struct{ client flowfabric.Client }

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
	handle(s, wire.ListAPIKeys, s.listKeys)
	handle(s, wire.CreateAPIKey, s.createKey)
	handle(s, wire.GetAPIKey, s.getKey)
	handle(s, wire.PatchAPIKey, s.changeKey)
	handle(s, wire.RevokeAPIKey, s.revokeKey)
	handle(s, wire.RotateAPIKey, s.rotateKey)
}

// listKeys lists the keys by id (U104).
func (s *Server) listKeys(ctx context.Context, r *wire.ListAPIKeysRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[*flowfabric.APIKey], error) {
		return s.client.Admin().APIKeys().Page(ctx, o)
	})
}

// createKey makes a key and shows its secret (U104).
func (s *Server) createKey(ctx context.Context, r *wire.CreateAPIKeyRequest) (answer, error) {
	b := r.Body
	key, err := s.client.Admin().APIKeys().Create(ctx, flowfabric.APIKeySettings{
		Name: b.Name, Roles: b.Roles, Namespaces: b.Namespaces, Lanes: b.Lanes, ExpiresAt: b.ExpiresAt.Time,
		MaxRequestsPerSecond: b.MaxRequestsPerSecond, MaxInFlight: b.MaxInFlight,
	}, flowfabric.CreateKeyOptions{AdminAction: adminAction(b.AdminFields, nil)})
	if err != nil {
		return answer{}, err
	}
	s.open.again()
	return shows(key).with("Location", "/v1/api-keys/"+key.ID), nil
}

// getKey shows a key (U104).
func (s *Server) getKey(ctx context.Context, r *wire.ByKey) (answer, error) {
	key, err := s.client.Admin().APIKeys().Get(ctx, r.ID)
	return shows(key), err
}

// changeKey changes what is given (U104).
func (s *Server) changeKey(ctx context.Context, r *wire.PatchAPIKeyRequest) (answer, error) {
	b := r.Body
	change := flowfabric.APIKeyChange{
		Name: b.Name, Roles: b.Roles, Namespaces: b.Namespaces, Lanes: b.Lanes,
		MaxRequestsPerSecond: b.MaxRequestsPerSecond, MaxInFlight: b.MaxInFlight, Force: b.Force,
	}
	if b.ExpiresAt != nil {
		change.ExpiresAt = &b.ExpiresAt.Time
	}
	key, err := s.client.Admin().APIKeys().Change(ctx, r.ID, change, adminAction(b.AdminFields, r.IfMatch))
	s.open.again()
	return shows(key), err
}

// adminAction is what every administrator's change carries. Its request key is that of the request, which the client finds by itself.
func adminAction(f wire.AdminFields, revision *wire.Revision) flowfabric.AdminAction {
	return flowfabric.AdminAction{Reason: f.Reason, Revision: revisionOf(revision)}
}

// revokeKey ends a key (U104).
func (s *Server) revokeKey(ctx context.Context, r *wire.RevokeAPIKeyRequest) (answer, error) {
	how := flowfabric.RevokeAPIKeyOptions{AdminAction: adminAction(r.Body, r.IfMatch), Force: r.Force}
	return nothing(), s.client.Admin().APIKeys().Revoke(ctx, r.ID, how)
}

// rotateKey gives a key a new secret and shows it (U104).
func (s *Server) rotateKey(ctx context.Context, r *wire.RotateAPIKeyRequest) (answer, error) {
	options := flowfabric.RotateOptions{AdminAction: adminAction(r.Body.AdminFields, r.IfMatch), Overlap: durationOf(r.Body.OverlapMS)}
	key, err := s.client.Admin().APIKeys().Rotate(ctx, r.ID, options)
	return shows(key), err
}
