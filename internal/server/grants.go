package server

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveGrants() {
	handle(s, wire.GrantWork, s.grantWork)
	handle(s, wire.ClaimGrant, s.claimGrant)
}

// grantWork promises work to a worker, waiting while there is none (U64). A server that drains promises none.
func (s *Server) grantWork(ctx context.Context, x *exchange, r *wire.GrantRequest) (answer, error) {
	b := &r.Body
	if err := s.mayGrant(ctx, x, b.ExecutionID, b.Lanes); err != nil {
		return answer{}, err
	}
	wait := b.Wait
	if b.ExecutionID != "" {
		wait = 0
	}
	grants := &wire.Grants{Grants: []api.RevealedGrant{}}
	err := s.take(ctx, x, wire.GrantWork.Operation, r, grants, wait)
	return shows(grants), err
}

// mayGrant refuses a key that is bound to other lanes.
func (s *Server) mayGrant(ctx context.Context, x *exchange, id api.ID, lanes []string) error {
	if id == "" {
		return x.mayWorkOn(lanes...)
	}
	return s.mayTake(ctx, x, id)
}

// claimGrant takes work that was promised (U65).
func (s *Server) claimGrant(ctx context.Context, x *exchange, r *wire.ClaimGrantRequest) (answer, error) {
	if id := api.GrantKeyOf(r.Body.GrantKey).ExecutionID(); id != "" {
		if err := s.mayTake(ctx, x, id); err != nil && !errors.Is(err, api.ErrNotFound) { // the verdict on the key itself reports that
			return answer{}, err
		}
	}
	claimed, err := ask(ctx, s, x.by, wire.ClaimGrant, r)
	return taskShown(claimed, r.Body.Encoding, err)
}
