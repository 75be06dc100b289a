package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) work() {
	on(s, wire.RegisterWorker, s.register)
	on(s, wire.HeartbeatWorker, s.heartbeat)
	on(s, wire.ClaimWork, s.claim)
	on(s, wire.ClaimResumed, s.targeted(s.engine.ClaimResumed))
	on(s, wire.ReclaimExecution, s.targeted(s.engine.Reclaim))
	on(s, wire.ClaimExecution, s.operatorClaim)
}

// claimKey returns the key by which a repeat of a claim is recognised while its leases are held.
func (c *Caller) claimKey() string { return cmp.Or(c.RequestKey, c.Key) }

// register registers an instance (U60).
func (s *Service) register(ctx context.Context, c Caller, r *wire.RegisterRequest) (api.RegisterResult, error) {
	b := &r.Body.Registration
	a, err := s.engine.Register(ctx, c.worker(), core.Registration{
		WorkerID: b.WorkerID, InstanceID: b.InstanceID, Namespaces: b.Namespaces, Lanes: b.Lanes, Kinds: b.Kinds,
		Capabilities: b.Capabilities, MaxConcurrent: b.MaxConcurrent, LivenessTTLMS: millis(b.LivenessTTL), Version: b.Version, Labels: b.Labels,
	})
	if err != nil {
		return api.RegisterResult{}, err
	}
	return api.RegisterResult{Outcome: a.Outcome, ExpiresAt: a.ExpiresAt.Std(), Drain: a.Drain, DrainedBy: a.DrainedBy}, nil
}

// heartbeat keeps an instance and its leases alive (U61).
func (s *Service) heartbeat(ctx context.Context, c Caller, r *wire.HeartbeatRequest) (api.Heartbeat, error) {
	refs := make([]engine.LeaseRef, len(r.Body.Leases))
	for i := range r.Body.Leases {
		var err error
		if refs[i], err = leaseRef(&r.Body.Leases[i]); err != nil {
			return api.Heartbeat{}, ofLease(i, err)
		}
	}
	a, err := s.engine.Heartbeat(ctx, c.worker(), r.Instance, refs)
	if err != nil {
		return api.Heartbeat{}, err
	}
	return api.Heartbeat{Registered: a.Registered, ExpiresAt: a.ExpiresAt.Std(), Drain: a.Drain, DrainedBy: a.DrainedBy, Leases: each(a.Leases, renewalOf)}, nil
}

func leaseRef(h *wire.HeldLease) (engine.LeaseRef, error) {
	id, err := base.ParseID(h.ExecutionID)
	if err != nil {
		return engine.LeaseRef{}, err
	}
	fence, err := fenceOf(h.LeaseRef)
	return engine.LeaseRef{ID: id, Fence: fence}, err
}

// ofLease names the lease of a heartbeat that a refusal is about.
func ofLease(index int, err error) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return refusal.WithField(fmt.Sprintf("leases[%d].%s", index, cmp.Or(strings.TrimPrefix(refusal.Field, "lease."), "execution_id")))
}

func renewalOf(item engine.RenewItem) api.Renewal {
	return api.Renewal{ExpiresAt: item.Lease.ExpiresAt.Std(), TTL: duration(item.Lease.TTL), Drain: item.Drain, Err: api.AsError(item.Err)}
}

// claim claims work, waiting while there is none (U62).
func (s *Service) claim(ctx context.Context, c Caller, r *wire.ClaimRequest) (api.ClaimAnswer, error) {
	b := &r.Body.ClaimRequest
	a, err := s.engine.Claim(ctx, c.worker(), engine.ClaimRequest{
		WorkerID: b.WorkerID, InstanceID: b.InstanceID, Lanes: b.Lanes, Max: b.Max, Wait: b.Wait, Capabilities: b.Capabilities,
		Kinds: b.Kinds, Namespaces: b.Namespaces, LaneOrder: b.LaneOrder, TTL: millis(b.LeaseTTL), RequestKey: c.claimKey(),
		Repeat: c.Again,
	})
	if err != nil {
		return api.ClaimAnswer{}, err
	}
	claimed := api.ClaimAnswer{Tasks: make([]*api.Claimed, len(a.Tasks)), Drain: a.Drain, ServerTime: a.Now.Std()}
	for i, task := range a.Tasks {
		claimed.Tasks[i] = claimedOf(task)
		if !r.Body.Brief {
			fillIn(claimed.Tasks[i], task)
		}
	}
	return claimed, nil
}

// targeted claims one particular execution (U63).
func (s *Service) targeted(
	take func(context.Context, engine.Caller, base.GivenID, engine.TargetedRequest) (engine.Task, error),
) func(context.Context, Caller, *wire.TargetedClaimRequest) (api.Claimed, error) {
	return func(ctx context.Context, c Caller, r *wire.TargetedClaimRequest) (api.Claimed, error) {
		given, err := base.ParseID(r.ID)
		if err != nil {
			return api.Claimed{}, err
		}
		b := &r.Body.TargetedClaim
		return wholeTask(take(ctx, c.worker(), given, engine.TargetedRequest{
			WorkerID: b.WorkerID, InstanceID: b.InstanceID, Capabilities: b.Capabilities, Lane: b.Lane, TTL: millis(b.LeaseTTL), RequestKey: c.claimKey(),
		}))
	}
}

// operatorWorker is the worker of an operator's claim unless it names another (S35).
const operatorWorker = "operator"

// operatorClaim leases an execution to an operator (U51).
func (s *Service) operatorClaim(ctx context.Context, c Caller, r *wire.OperatorClaimRequest) (api.Claimed, error) {
	b := &r.Body
	given, op, err := c.command(r.ID, b.ActionFields)
	if err != nil {
		return api.Claimed{}, err
	}
	return wholeTask(s.engine.OperatorClaim(ctx, c.operator(), given, engine.TargetedRequest{
		WorkerID: cmp.Or(b.WorkerID, operatorWorker), InstanceID: cmp.Or(b.WorkerInstanceID, operatorWorker), TTL: b.LeaseTTLMS,
		RequestKey: op.RequestKey, Force: b.Force, Reason: op.Reason, Expect: op.Expect,
	}))
}

// wholeTask converts a task with all its fields.
func wholeTask(t engine.Task, err error) (api.Claimed, error) {
	if err != nil {
		return api.Claimed{}, err
	}
	claimed := claimedOf(t)
	fillIn(claimed, t)
	return *claimed, nil
}
