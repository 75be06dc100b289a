package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) grants() {
	on(s, wire.GrantWork, s.grant)
	on(s, wire.ClaimGrant, s.claimGrant)
	on(s, wire.VerifyGrant, s.verifyGrant)
	on(s, wire.ReturnGrant, s.returnGrant)
}

// grant grants work to a worker, waiting while there is none (U64).
func (s *Service) grant(ctx context.Context, c Caller, r *wire.GrantRequest) (wire.Grants, error) {
	b := &r.Body.GrantRequest
	if b.ExecutionID != "" {
		return s.grantOne(ctx, c, b)
	}
	grants, err := s.engine.Grant(ctx, c.worker(), engine.ClaimRequest{
		WorkerID: b.WorkerID, InstanceID: b.InstanceID, Lanes: b.Lanes, Max: b.Max, Wait: b.Wait, Capabilities: b.Capabilities,
		Kinds: b.Kinds, Namespaces: b.Namespaces, LaneOrder: b.LaneOrder, GrantTTL: millis(b.GrantTTL), RequestKey: c.claimKey(),
		Repeat: c.Again,
	})
	return wire.Grants{Grants: each(grants, grantOf)}, err
}

func (s *Service) grantOne(ctx context.Context, c Caller, b *api.GrantRequest) (wire.Grants, error) {
	given, err := base.ParseID(string(b.ExecutionID))
	if err != nil {
		return wire.Grants{}, err
	}
	request := engine.TargetedRequest{
		WorkerID: b.WorkerID, InstanceID: b.InstanceID, Capabilities: b.Capabilities, GrantTTL: millis(b.GrantTTL), RequestKey: c.claimKey(),
	}
	switch len(b.Lanes) {
	case 0:
	case 1:
		request.Lane = b.Lanes[0]
	default:
		return wire.Grants{}, base.Invalid("lanes", "an execution is in one lane").WithHint("name none, or the one that it must be in")
	}
	grant, err := s.engine.GrantOne(ctx, c.worker(), given, request)
	if err != nil {
		return wire.Grants{}, err
	}
	return wire.Grants{Grants: []api.RevealedGrant{grantOf(grant)}}, nil
}

// grantOf converts a grant with its key, for the caller that requested it.
func grantOf(g engine.Grant) api.RevealedGrant {
	return api.RevealedGrant{ExecutionID: idOf(g.ID), PartitionKey: g.ID.Tag(), GrantKey: g.Key.Reveal(), ExpiresAt: g.ExpiresAt.Std()}
}

// claimGrant claims granted work (U65).
func (s *Service) claimGrant(ctx context.Context, c Caller, r *wire.ClaimGrantRequest) (api.Claimed, error) {
	b := &r.Body
	return wholeTask(s.engine.ClaimGrant(ctx, c.worker(), keyring.GrantKeyOf(b.GrantKey), engine.GrantClaim{
		WorkerID: b.WorkerID, InstanceID: b.InstanceID, TTL: millis(b.LeaseTTL),
	}))
}

// verifyGrant reports whether a key is valid (U65).
func (s *Service) verifyGrant(ctx context.Context, c Caller, r *wire.GrantKeyRequest) (wire.GrantVerified, error) {
	err := s.engine.VerifyGrant(ctx, c.worker(), keyring.GrantKeyOf(r.Body.GrantKey))
	return wire.GrantVerified{Valid: err == nil}, err
}

// returnGrant ends a grant early (U65).
func (s *Service) returnGrant(ctx context.Context, c Caller, r *wire.GrantKeyRequest) (wire.None, error) {
	who := c.worker()
	who.RequestKey = c.claimKey()
	return wire.None{}, s.engine.ReturnGrant(ctx, who, keyring.GrantKeyOf(r.Body.GrantKey))
}
