package server

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveOperators() {
	handle(s, wire.CancelExecution, s.cancel)
	passShown(s, wire.ReplayExecution)
	passShown(s, wire.SetPriority)
	passShown(s, wire.HoldExecution)
	passShown(s, wire.ReleaseHold)
	handle(s, wire.RevokeLease, s.revoke)
	handle(s, wire.ClaimExecution, s.operatorClaim)
	passShown(s, wire.RetainExecution)
	passShown(s, wire.Unretain)
}

// passShown serves a command as the service performs it, and returns the execution in its usual view.
func passShown[Req any](s *Server, call wire.Call[Req, api.Execution]) {
	s.handle(call.Operation, func(ctx context.Context, x *exchange, r any) (answer, error) {
		return shownAfter(ask(ctx, s, x.by, call, r.(*Req)))
	})
}

// shownAfter answers with an execution after a change.
func shownAfter(x *api.Execution, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return shows(shown(x, "", "")), nil
}

// cancel cancels: with a lease for the worker that has it, which gets all of the execution, else for an operator (U45).
func (s *Server) cancel(ctx context.Context, x *exchange, r *wire.CancelRequest) (answer, error) {
	cancelled, err := ask(ctx, s, x.by, wire.CancelExecution, r)
	if err != nil || r.Body.Lease.IsZero() && r.LeaseHeader.IsZero() {
		return shownAfter(cancelled, err)
	}
	return shownAfter(s.execution(ctx, x, cancelled.ID, 0))
}

// revoke revokes a lease (U50). The reason why the execution could not be handed over has the form of this server's refusals.
func (s *Server) revoke(ctx context.Context, x *exchange, r *wire.RevokeRequest) (answer, error) {
	revocation, err := ask(ctx, s, x.by, wire.RevokeLease, r)
	if err != nil {
		return answer{}, err
	}
	revocation.HandToError = s.itemProblem(x, revocation.HandToError.Refusal())
	return shows(revocation), nil
}

// operatorClaim leases an execution to an operator (U51).
func (s *Server) operatorClaim(ctx context.Context, x *exchange, r *wire.OperatorClaimRequest) (answer, error) {
	claimed, err := ask(ctx, s, x.by, wire.ClaimExecution, r)
	return taskShown(claimed, r.Body.Encoding, err)
}
