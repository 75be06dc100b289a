package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) workers() {
	on(s, wire.ListWorkers, s.listWorkers)
	on(s, wire.GetWorker, s.getWorker)
	on(s, wire.DrainWorker, s.drainWorker)
	on(s, wire.UndrainWorker, s.undrainWorker)
	on(s, wire.MarkWorkerDead, s.markWorkerDead)
	on(s, wire.DrainWorkers, s.drainWorkers)
	on(s, wire.UndrainWorkers, s.undrainWorkers)
}

// listWorkers lists instances by id (U102).
func (s *Service) listWorkers(ctx context.Context, c Caller, r *wire.ListWorkersRequest) (api.Page[*api.Worker], error) {
	return page(r.PageFields, workerOf, func(cursor string, limit *int) ([]engine.WorkerView, string, error) {
		return s.engine.Workers(ctx, c.operator(), engine.WorkerQuery{
			Lane: r.Lane, Capability: r.Capability, State: r.State, Limit: limit, Cursor: cursor,
		})
	})
}

// getWorker returns an instance (U102).
func (s *Service) getWorker(ctx context.Context, c Caller, r *wire.ByInstance) (api.Worker, error) {
	view, err := s.engine.Worker(ctx, c.operator(), r.Instance)
	if err != nil {
		return api.Worker{}, err
	}
	return *workerOf(view), nil
}

// drainWorker makes an instance take nothing new (U103). It sets a state, so that a repeat is harmless (L117). Only the owner of an instance says
// that it is leaving: an operator who says so of another's drains it.
func (s *Service) drainWorker(ctx context.Context, c Caller, r *wire.DrainWorkerRequest) (api.Worker, error) {
	if r.Leaving {
		owner := c.worker()
		owner.OwnInstances = true
		if err := s.engine.Leave(ctx, owner, r.Instance); base.CodeOf(err) != base.CodeWorkerNotRegistered {
			return s.workerAfter(ctx, c, &r.ByInstance, err)
		}
	}
	return s.workerAfter(ctx, c, &r.ByInstance, s.engine.Drain(ctx, c.operator(), "", r.Instance, true))
}

// undrainWorker undoes drainWorker (U103).
func (s *Service) undrainWorker(ctx context.Context, c Caller, r *wire.ByInstance) (api.Worker, error) {
	return s.workerAfter(ctx, c, r, s.engine.Drain(ctx, c.operator(), "", r.Instance, false))
}

// markWorkerDead declares an instance dead (U103).
func (s *Service) markWorkerDead(ctx context.Context, c Caller, r *wire.MarkDeadRequest) (api.Worker, error) {
	who := c.operator()
	if c.AsWorker {
		who = c.worker()
	}
	if r.Leaving {
		return s.workerAfter(ctx, c, &r.ByInstance, s.engine.SignOff(ctx, who, r.Instance, r.Body.Reason))
	}
	take := r.Body.TakeLeases == nil || *r.Body.TakeLeases
	return s.workerAfter(ctx, c, &r.ByInstance, s.engine.MarkDead(ctx, who, r.Instance, r.Body.Reason, take))
}

// drainWorkers makes all instances of a worker take nothing new (U103).
func (s *Service) drainWorkers(ctx context.Context, c Caller, r *wire.ByWorker) (api.Drained, error) {
	err := s.engine.Drain(ctx, c.operator(), r.WorkerID, "", true)
	return api.Drained{WorkerID: r.WorkerID, Drain: true}, err
}

// undrainWorkers undoes drainWorkers (U103).
func (s *Service) undrainWorkers(ctx context.Context, c Caller, r *wire.ByWorker) (api.Drained, error) {
	err := s.engine.Drain(ctx, c.operator(), r.WorkerID, "", false)
	return api.Drained{WorkerID: r.WorkerID}, err
}

// workerAfter returns an instance as a command has left it, unless the command failed.
func (s *Service) workerAfter(ctx context.Context, c Caller, r *wire.ByInstance, err error) (api.Worker, error) {
	if err != nil {
		return api.Worker{}, err
	}
	return s.getWorker(ctx, c, r)
}

func workerOf(v engine.WorkerView) *api.Worker {
	w := v.Worker
	return &api.Worker{
		WorkerID: w.WorkerID, InstanceID: w.InstanceID, State: v.State, DrainedBy: w.DrainAsked, Namespaces: w.Namespaces, Lanes: w.Lanes, Kinds: w.Kinds,
		Capabilities: w.Capabilities, MaxConcurrent: w.MaxConcurrent, Version: w.Version, Labels: w.Labels,
		RegisteredAt: w.RegisteredAt.Std(), RegisteredBy: w.RegisteredBy, LastSeen: w.LastSeen.Std(), ExpiresAt: w.ExpiresAt().Std(), Leases: v.Leases,
	}
}
