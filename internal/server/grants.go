package server

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveGrants() {
	handle(s, wire.GrantWork, s.grantWork)
	handle(s, wire.ClaimGrant, s.claimGrant)
	handle(s, wire.VerifyGrant, s.verifyGrant)
	handle(s, wire.ReturnGrant, s.returnGrant)
}

// grantWork promises work to a worker, waiting while there is none (U64). A server that drains promises none.
func (s *Server) grantWork(ctx context.Context, r *wire.GrantRequest) (answer, error) {
	b := r.Body
	id := flowfabric.ID(b.ExecutionID)
	if err := s.mayGrant(ctx, id, b.Lanes); err != nil {
		return answer{}, err
	}
	request := flowfabric.GrantRequest{
		WorkerID: b.WorkerID, InstanceID: b.WorkerInstanceID, Lanes: b.Lanes, Max: b.Max, Wait: millis(b.WaitMS), Capabilities: b.Capabilities,
		Kinds: b.Kinds, Namespaces: b.Namespaces, LaneOrder: b.LaneOrder, ExecutionID: id, GrantTTL: millis(b.GrantTTLMS),
		Repeat: exchangeOf(ctx).isRepeat(),
	}
	var grants []flowfabric.Grant
	ask := func(ctx context.Context) (err error) {
		grants, err = s.client.Work().Grant(ctx, request)
		return err
	}
	var err error
	switch {
	case s.drains() && request.Repeat: // its empty answer would be on record nowhere
		err = refuse("shutting_down", "the server takes no work any more")
	case s.drains():
	case request.Wait > 0 && id == "":
		_, err = s.until(ctx, s.claims, request.Wait+claimSlack, ask)
	default:
		err = ask(ctx)
	}
	if err != nil {
		return answer{}, err
	}
	shown := wire.Grants{Grants: make([]wire.Grant, len(grants))}
	for i, grant := range grants {
		shown.Grants[i] = grantShown(grant)
	}
	return shows(shown), nil
}

// grantShown is a grant with its key, for whoever asked for it.
func grantShown(g flowfabric.Grant) wire.Grant {
	return wire.Grant{
		ExecutionID: string(g.ExecutionID), PartitionKey: g.PartitionKey, GrantKey: g.Key.Reveal(), ExpiresAt: wire.Time{Time: g.ExpiresAt},
	}
}

// mayGrant refuses a key that is bound to other lanes.
func (s *Server) mayGrant(ctx context.Context, id flowfabric.ID, lanes []string) error {
	if id == "" {
		return exchangeOf(ctx).mayWorkOn(lanes...)
	}
	return s.mayTake(ctx, id)
}

// claimGrant takes work that was promised (U65).
func (s *Server) claimGrant(ctx context.Context, r *wire.ClaimGrantRequest) (answer, error) {
	b := r.Body
	key := flowfabric.GrantKeyOf(b.GrantKey)
	if id := key.ExecutionID(); id != "" {
		if err := s.mayTake(ctx, id); err != nil && !errors.Is(err, flowfabric.ErrNotFound) { // of which the key's own verdict tells
			return answer{}, err
		}
	}
	claimed, err := s.client.Work().ClaimGrant(ctx, key, flowfabric.GrantClaim{
		WorkerID: b.WorkerID, InstanceID: b.WorkerInstanceID, LeaseTTL: millis(b.LeaseTTLMS),
	})
	return taskShown(claimed, b.Encoding, err)
}

// verifyGrant reports whether a key is good (U65).
func (s *Server) verifyGrant(ctx context.Context, r *wire.GrantKeyRequest) (answer, error) {
	if err := s.client.Work().VerifyGrant(ctx, flowfabric.GrantKeyOf(r.Body.GrantKey)); err != nil {
		return answer{}, err
	}
	return shows(wire.GrantVerified{Valid: true}), nil
}

// returnGrant gives a grant back (U65).
func (s *Server) returnGrant(ctx context.Context, r *wire.GrantKeyRequest) (answer, error) {
	return nothing(), s.client.Work().ReturnGrant(ctx, flowfabric.GrantKeyOf(r.Body.GrantKey))
}
