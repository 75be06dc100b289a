package service

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) operate() {
	on(s, wire.CancelExecution, s.cancel)
	on(s, wire.ReplayExecution, s.replay)
	on(s, wire.SetPriority, s.setPriority)
	on(s, wire.HoldExecution, s.onExecution(s.engine.Hold))
	on(s, wire.ReleaseHold, s.onExecution(s.engine.ReleaseHold))
	on(s, wire.RevokeLease, s.revoke)
	on(s, wire.RetainExecution, s.retain)
	on(s, wire.Unretain, s.onExecution(s.engine.Unretain))
	on(s, wire.DeleteExecution, s.deleteExecution)
}

// command converts the arguments of an operator's command on an execution; invalid_id, invalid_argument.
func (c *Caller) command(id string, f wire.ActionFields) (base.GivenID, engine.Operator, error) {
	given, err := base.ParseID(id)
	if err != nil {
		return given, engine.Operator{}, err
	}
	op, err := c.operation(f.Reason, f.Expect)
	return given, op, err
}

// act performs an operator's command on an execution and returns the execution after it.
func act(c *Caller, id string, f wire.ActionFields, do func(base.GivenID, engine.Operator) (engine.View, error)) (api.Execution, error) {
	given, op, err := c.command(id, f)
	if err != nil {
		return api.Execution{}, err
	}
	view, err := do(given, op)
	if err != nil {
		return api.Execution{}, err
	}
	return *ExecutionOf(view), nil
}

// onExecution is a command whose only content is the action (U48, U54).
func (s *Service) onExecution(
	do func(context.Context, engine.Caller, base.GivenID, engine.Operator) (engine.View, error),
) func(context.Context, Caller, *wire.ActionRequest) (api.Execution, error) {
	return func(ctx context.Context, c Caller, r *wire.ActionRequest) (api.Execution, error) {
		return act(&c, r.ID, r.Body, func(id base.GivenID, op engine.Operator) (engine.View, error) { return do(ctx, c.operator(), id, op) })
	}
}

// The sources of a cancellation.
const (
	byOperator = "operator"
	byWorker   = "worker"
)

// cancel ends an execution (U45): with a lease for the worker that has it, else for an operator.
func (s *Service) cancel(ctx context.Context, c Caller, r *wire.CancelRequest) (api.Execution, error) {
	lease, err := wire.PickLease(r.Body.Lease, r.LeaseHeader)
	switch {
	case err != nil:
		return api.Execution{}, api.FaultsError(err)
	case !lease.IsZero() && r.Body.Expect != nil:
		return api.Execution{}, base.Errorf(base.CodeInvalidArgument, "the lease says already what is expected").
			WithField("expect").WithHint("give a lease or what is expected")
	case !lease.IsZero():
		view, err := s.cancelLeased(ctx, c, r.FencedByID, wire.LeaseField{Lease: r.Body.Lease}, r.Body.Reason)
		if err != nil {
			return api.Execution{}, err
		}
		return *ExecutionOf(view), nil
	}
	return act(&c, r.ID, r.Body.ActionFields, func(id base.GivenID, op engine.Operator) (engine.View, error) {
		return s.engine.Cancel(ctx, c.operator(), id, nil, byOperator, op)
	})
}

// cancelLeased ends an execution for the worker that has its lease. Without a lease validation refuses it.
func (s *Service) cancelLeased(ctx context.Context, c Caller, r wire.FencedByID, body wire.LeaseField, reason string) (engine.View, error) {
	id, fence, err := fenced(r, body)
	if err != nil {
		return engine.View{}, err
	}
	return s.engine.Cancel(ctx, c.worker(), id, &fence, byWorker, engine.Operator{Reason: reason})
}

// replay runs a finished execution again (U46).
func (s *Service) replay(ctx context.Context, c Caller, r *wire.ReplayRequest) (api.Execution, error) {
	return act(&c, r.ID, r.Body.ActionFields, func(id base.GivenID, op engine.Operator) (engine.View, error) {
		return s.engine.Replay(ctx, c.operator(), id, replayOf(r.Body.ReplayFields), op)
	})
}

func replayOf(f wire.ReplayFields) engine.ReplayRequest {
	return engine.ReplayRequest{
		DeadlineAt: base.TimeOf(f.DeadlineAt.Time), KeepSteps: f.KeepSteps, Cascade: f.Cascade, IgnoreDependencies: f.IgnoreDependencies,
	}
}

// setPriority changes the order of waiting executions (U47).
func (s *Service) setPriority(ctx context.Context, c Caller, r *wire.SetPriorityRequest) (api.Execution, error) {
	return act(&c, r.ID, r.Body.ActionFields, func(id base.GivenID, op engine.Operator) (engine.View, error) {
		return s.engine.SetPriority(ctx, c.operator(), id, r.Body.Priority, op)
	})
}

// revoke revokes a lease (U50). The answer contains the key of a grant that it may have issued.
func (s *Service) revoke(ctx context.Context, c Caller, r *wire.RevokeRequest) (api.RevealedRevocation, error) {
	given, op, err := c.command(r.ID, r.Body.ActionFields)
	if err != nil {
		return api.RevealedRevocation{}, err
	}
	request := engine.RevokeRequest{Hold: r.Body.Hold}
	if h := r.Body.Handoff; h != nil {
		request.Handoff = &engine.Handoff{WorkerID: h.WorkerID, InstanceID: h.InstanceID, Capabilities: h.Capabilities, GrantTTL: millis(h.GrantTTL)}
	}
	revoked, err := s.engine.Revoke(ctx, c.operator(), given, request, op)
	if err != nil {
		return api.RevealedRevocation{}, err
	}
	return revocationOf(revoked), nil
}

func revocationOf(a engine.Revoked) api.RevealedRevocation {
	r := api.RevealedRevocation{Outcome: a.Outcome, Cause: a.Cause, LeaseID: a.LeaseID.String(), Epoch: a.Epoch}
	if a.Grant != nil {
		grant := grantOf(*a.Grant)
		r.Grant = &grant
	}
	var refusal *api.Error
	if a.Refused != nil && errors.As(api.AsError(a.Refused), &refusal) {
		r.Cause, r.HandToError = refusal.Code, refusal.Problem()
	}
	return r
}

// retain keeps an execution from retention and deletion (U54).
func (s *Service) retain(ctx context.Context, c Caller, r *wire.RetainRequest) (api.Execution, error) {
	b := &r.Body
	if b.Reason == "" {
		return api.Execution{}, base.Invalid("reason", "a reason is required").WithHint("say why the execution must be kept")
	}
	return act(&c, r.ID, wire.ActionFields{Reason: b.Reason, Expect: b.Expect}, func(id base.GivenID, op engine.Operator) (engine.View, error) {
		return s.engine.Retain(ctx, c.operator(), id, base.TimeOf(b.Until.Time), op)
	})
}

// deleteExecution removes a finished execution and all its data (U55).
func (s *Service) deleteExecution(ctx context.Context, c Caller, r *wire.ActionRequest) (wire.None, error) {
	given, op, err := c.command(r.ID, r.Body)
	if err != nil {
		return wire.None{}, err
	}
	return wire.None{}, s.engine.Delete(ctx, c.operator(), given, op)
}
