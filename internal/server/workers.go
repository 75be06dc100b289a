package server

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveWorkers() {
	handle(s, wire.ListWorkers, s.listWorkers)
	handle(s, wire.GetWorker, s.getWorker)
	handle(s, wire.ListWorkerLeases, s.listWorkerLeases)
	handle(s, wire.DrainWorker, s.drainOne)
	handle(s, wire.UndrainWorker, s.undrainOne)
	handle(s, wire.MarkWorkerDead, s.markDead)
	handle(s, wire.DrainWorkers, s.drainAll)
}

// listWorkers lists instances by id (U102).
func (s *Server) listWorkers(ctx context.Context, r *wire.ListWorkersRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[*flowfabric.WorkerInfo], error) {
		return s.client.Workers().Page(ctx, flowfabric.WorkerFilter{
			Lane: r.Lane, Capability: r.Capability, State: r.State, Limit: o.Limit, Cursor: o.Cursor,
		})
	})
}

// getWorker shows an instance (U102).
func (s *Server) getWorker(ctx context.Context, r *wire.ByInstance) (answer, error) {
	worker, err := s.client.Workers().Get(ctx, r.Instance)
	return shows(worker), err
}

// listWorkerLeases lists what an instance runs (U102).
func (s *Server) listWorkerLeases(ctx context.Context, r *wire.ListWorkerLeasesRequest) (answer, error) {
	all, err := s.client.Workers().Leases(ctx, r.Instance)
	if err != nil {
		return answer{}, err
	}
	summaries := make([]any, len(all))
	for i, x := range all {
		summaries[i] = shown(x, wire.ViewSummary, "")
	}
	return pageOf(summaries, r.PageFields, "leases of "+r.Instance)
}

// drainOne tells an instance to take nothing new (U103).
func (s *Server) drainOne(ctx context.Context, r *wire.DrainWorkerRequest) (answer, error) {
	ctx = steering(ctx)
	err := s.client.Workers().Drain(ctx, flowfabric.WorkerTarget{InstanceID: r.Instance, Leaving: r.Leaving})
	if err != nil {
		return answer{}, err
	}
	return s.getWorker(ctx, &r.ByInstance)
}

// undrainOne takes that back (U103).
func (s *Server) undrainOne(ctx context.Context, r *wire.ByInstance) (answer, error) {
	ctx = steering(ctx)
	err := s.client.Workers().Undrain(ctx, flowfabric.WorkerTarget{InstanceID: r.Instance})
	if err != nil {
		return answer{}, err
	}
	return s.getWorker(ctx, r)
}

// drainAll tells all instances of a worker (U103).
func (s *Server) drainAll(ctx context.Context, r *wire.DrainWorkersRequest) (answer, error) {
	err := s.client.Workers().Drain(steering(ctx), flowfabric.WorkerTarget{WorkerID: r.WorkerID})
	return shows(wire.Drained{WorkerID: r.WorkerID, Drain: true}), err
}

// markDead says that an instance is gone (U103).
func (s *Server) markDead(ctx context.Context, r *wire.MarkDeadRequest) (answer, error) {
	ctx = steering(ctx)
	keep := r.Body.TakeLeases != nil && !*r.Body.TakeLeases
	if err := s.client.Workers().MarkDead(ctx, r.Instance, flowfabric.DeadOptions{Reason: r.Body.Reason, KeepLeases: keep}); err != nil {
		return answer{}, err
	}
	return s.getWorker(ctx, &r.ByInstance)
}

// ownInstance reports whether the caller itself registered what a call would steer, and whether it works for the caller's namespaces
// alone.
func (s *Server) ownInstance(ctx context.Context, x *exchange) (bool, error) {
	if instance := x.r.PathValue("instance"); instance != "" {
		return s.owns(ctx, x, instance)
	}
	workerID := x.r.URL.Query().Get("worker_id")
	for worker, err := range s.client.Workers().List(ctx, flowfabric.WorkerFilter{State: "all"}) {
		if err != nil {
			return false, err
		}
		if worker.WorkerID != workerID {
			continue
		}
		if own, err := s.owns(ctx, x, worker.InstanceID); !own || err != nil {
			return false, err
		}
	}
	return true, nil
}

// owns reports whether the caller's key registered the instance, as what it is now. An instance that is not there is
// worker_not_registered.
func (s *Server) owns(ctx context.Context, x *exchange, instance string) (bool, error) {
	if _, err := s.client.Workers().Get(ctx, instance); err != nil {
		return false, err
	}
	worker, err := s.client.Workers().Get(x.actingAsOwner(ctx), instance)
	if flowfabric.CodeOf(err) == "worker_not_registered" {
		return false, nil // it is another's
	}
	return err == nil && (x.caller.everywhere || x.caller.covers(worker.Namespaces)), err
}

// steering is a context for a call that steers workers: one that the caller may make as their owner reaches no other's, also if they
// change hands meanwhile.
func steering(ctx context.Context) context.Context {
	if x := exchangeOf(ctx); x.under == wire.OwnInstance {
		return x.actingAsOwner(ctx)
	}
	return ctx
}

// actingAsOwner is acting for calls that find only instances of the caller's own key.
func (x *exchange) actingAsOwner(ctx context.Context) context.Context {
	who, _ := principal.From(x.acting(ctx))
	who.OwnInstances = true
	return principal.With(ctx, who)
}

// covers reports whether the caller may act in all of these namespaces; none given are all there are.
func (c *caller) covers(namespaces []string) bool {
	return len(namespaces) > 0 && !slices.ContainsFunc(namespaces, func(n string) bool { return !slices.Contains(c.Namespaces, n) })
}
