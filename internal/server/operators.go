package server

import (
	"context"

	"github.com/flowfabric/flowfabric"
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
	pass(s, wire.PatchTags)
	passShown(s, wire.RetainExecution)
	passShown(s, wire.EndRetain)
	pass(s, wire.DeleteExecution)
}

// passShown serves a command as the service performs it, and returns the execution in its usual view.
func passShown[Req any](s *Server, call wire.Call[Req, flowfabric.Execution]) {
	s.handle(call.Operation, func(ctx context.Context, r any) (answer, error) { return shownAfter(ask(ctx, s, call, r.(*Req))) })
}

// shownAfter answers with an execution after a change.
func shownAfter(x *flowfabric.Execution, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return shows(shown(x, "", "")), nil
}

// cancel cancels: with a lease for the worker that has it, which gets all of the execution, else for an operator (U45).
func (s *Server) cancel(ctx context.Context, r *wire.CancelRequest) (answer, error) {
	cancelled, err := ask(ctx, s, wire.CancelExecution, r)
	if err != nil || r.Body.Lease.IsZero() && r.LeaseHeader.IsZero() {
		return shownAfter(cancelled, err)
	}
	return shownAfter(s.client.Get(ctx, cancelled.ID))
}

// revoke revokes a lease (U50). The reason why the execution could not be handed over has the form of this server's refusals.
func (s *Server) revoke(ctx context.Context, r *wire.RevokeRequest) (answer, error) {
	revocation, err := ask(ctx, s, wire.RevokeLease, r)
	if err != nil {
		return answer{}, err
	}
	revocation.HandToError = s.itemProblem(exchangeOf(ctx), revocation.HandToError.Refusal())
	return shows(revocation), nil
}

// operatorClaim leases an execution to an operator (U51).
func (s *Server) operatorClaim(ctx context.Context, r *wire.OperatorClaimRequest) (answer, error) {
	claimed, err := ask(ctx, s, wire.ClaimExecution, r)
	return taskShown(claimed, r.Body.Encoding, err)
}
