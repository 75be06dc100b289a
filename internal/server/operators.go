package server

import (
	"context"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveOperators() {
	handle(s, wire.CancelExecution, s.cancel)
	handle(s, wire.ReplayExecution, s.replay)
	handle(s, wire.SetPriority, s.setPriority)
	handle(s, wire.HoldExecution, s.hold)
	handle(s, wire.ReleaseHold, s.releaseHold)
	handle(s, wire.RevokeLease, s.revoke)
	handle(s, wire.ClaimExecution, s.operatorClaim)
	pass(s, wire.PatchTags)
	handle(s, wire.RetainExecution, s.retain)
	handle(s, wire.EndRetain, s.endRetain)
	handle(s, wire.DeleteExecution, s.delete)
}

// actionOf is what every operator's command carries. Its request key is that of the request, which the client finds by itself.
func actionOf(f wire.ActionFields) flowfabric.Action {
	return flowfabric.Action{Reason: f.Reason, Expect: expectOf(f.Expect)}
}

func expectOf(e *wire.Expect) flowfabric.Expect {
	if e == nil {
		return flowfabric.Expect{}
	}
	return flowfabric.Expect{Status: flowfabric.Status(e.Status), LeaseID: e.LeaseID, LeaseEpoch: e.LeaseEpoch}
}

// shownAfter answers with an execution after a change.
func shownAfter(x *flowfabric.Execution, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return shows(shown(x, "", "")), nil
}

// cancel cancels: with a lease for the worker that has it, else for an operator (U45).
func (s *Server) cancel(ctx context.Context, r *wire.CancelRequest) (answer, error) {
	lease, err := wire.PickLease(r.Body.Lease, r.LeaseHeader)
	if err != nil {
		return answer{}, err
	}
	id := flowfabric.ID(r.ID)
	if lease.IsZero() {
		return shownAfter(s.client.Cancel(ctx, id, r.Body.Reason, flowfabric.CancelOptions{Expect: expectOf(r.Body.Expect)}))
	}
	if r.Body.Expect != nil {
		return answer{}, refuse("invalid_argument", "the lease says already what is expected").at("/expect").hint("give a lease or what is expected")
	}
	if _, err := s.do(ctx, flowfabric.WorkItem{Op: flowfabric.OpCancel, ID: id, Lease: leaseOf(lease), Reason: r.Body.Reason}); err != nil {
		return answer{}, err
	}
	return shownAfter(s.client.Get(ctx, id))
}

// replay opens a finished execution again (U46).
func (s *Server) replay(ctx context.Context, r *wire.ReplayRequest) (answer, error) {
	return shownAfter(s.client.Operate().Replay(ctx, flowfabric.ID(r.ID), flowfabric.ReplayOptions{
		Action: actionOf(r.Body.ActionFields), Deadline: r.Body.DeadlineAt.Time, KeepSteps: r.Body.KeepSteps,
		Cascade: flowfabric.Cascade(r.Body.Cascade), IgnoreDependencies: r.Body.IgnoreDependencies,
	}))
}

// setPriority changes the priority (U47).
func (s *Server) setPriority(ctx context.Context, r *wire.SetPriorityRequest) (answer, error) {
	return shownAfter(s.client.Operate().SetPriority(ctx, flowfabric.ID(r.ID), r.Body.Priority, actionOf(r.Body.ActionFields)))
}

// hold keeps an execution from starting (U48).
func (s *Server) hold(ctx context.Context, r *wire.ActionRequest) (answer, error) {
	return shownAfter(s.client.Operate().Hold(ctx, flowfabric.ID(r.ID), actionOf(r.Body)))
}

// releaseHold ends a hold (U48).
func (s *Server) releaseHold(ctx context.Context, r *wire.ActionRequest) (answer, error) {
	return shownAfter(s.client.Operate().ReleaseHold(ctx, flowfabric.ID(r.ID), actionOf(r.Body)))
}

// revoke takes a lease away (U50).
func (s *Server) revoke(ctx context.Context, r *wire.RevokeRequest) (answer, error) {
	revocation, err := s.client.Operate().Revoke(ctx, flowfabric.ID(r.ID), flowfabric.RevokeOptions{
		Action: actionOf(r.Body.ActionFields), Hold: r.Body.Hold, HandTo: handToOf(r.Body.HandTo),
	})
	return shows(s.revocationShown(exchangeOf(ctx), revocation)), err
}

// operatorClaim leases an execution to an operator (U51).
func (s *Server) operatorClaim(ctx context.Context, r *wire.OperatorClaimRequest) (answer, error) {
	claimed, err := s.client.Operate().Claim(ctx, flowfabric.ID(r.ID), flowfabric.OperatorClaim{
		Action: actionOf(r.Body.ActionFields), WorkerID: r.Body.WorkerID, InstanceID: r.Body.WorkerInstanceID,
		LeaseTTL: millis(r.Body.LeaseTTLMS), Force: r.Body.Force,
	})
	return taskShown(claimed, r.Body.Encoding, err)
}

// retain keeps an execution from retention (U54).
func (s *Server) retain(ctx context.Context, r *wire.RetainRequest) (answer, error) {
	return shownAfter(s.client.Operate().Retain(ctx, flowfabric.ID(r.ID), flowfabric.RetainOptions{
		Action: flowfabric.Action{Reason: r.Body.Reason, Expect: expectOf(r.Body.Expect)}, Until: r.Body.Until.Time,
	}))
}

// endRetain ends what retain began (U54).
func (s *Server) endRetain(ctx context.Context, r *wire.ActionRequest) (answer, error) {
	return shownAfter(s.client.Operate().EndRetain(ctx, flowfabric.ID(r.ID), actionOf(r.Body)))
}

// delete removes a finished execution (U55).
func (s *Server) delete(ctx context.Context, r *wire.ActionRequest) (answer, error) {
	return nothing(), s.client.Operate().Delete(ctx, flowfabric.ID(r.ID), actionOf(r.Body))
}
