package server

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric"
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
	err := s.client.Workers().Drain(ctx, flowfabric.WorkerTarget{InstanceID: r.Instance, Leaving: r.Leaving})
	if err != nil {
		return answer{}, err
	}
	return s.getWorker(ctx, &r.ByInstance)
}

// undrainOne takes that back (U103).
func (s *Server) undrainOne(ctx context.Context, r *wire.ByInstance) (answer, error) {
	err := s.client.Workers().Undrain(ctx, flowfabric.WorkerTarget{InstanceID: r.Instance})
	if err != nil {
		return answer{}, err
	}
	return s.getWorker(ctx, r)
}

// drainAll tells all instances of a worker (U103).
func (s *Server) drainAll(ctx context.Context, r *wire.DrainWorkersRequest) (answer, error) {
	err := s.client.Workers().Drain(ctx, flowfabric.WorkerTarget{WorkerID: r.WorkerID})
	return shows(wire.Drained{WorkerID: r.WorkerID, Drain: true}), err
}

// markDead says that an instance is gone (U103).
func (s *Server) markDead(ctx context.Context, r *wire.MarkDeadRequest) (answer, error) {
	keep := r.Body.TakeLeases != nil && !*r.Body.TakeLeases
	if err := s.client.Workers().MarkDead(ctx, r.Instance, flowfabric.DeadOptions{Reason: r.Body.Reason, KeepLeases: keep}); err != nil {
		return answer{}, err
	}
	return s.getWorker(ctx, &r.ByInstance)
}

// ownInstance tells whether the caller itself registered what a call would steer, and whether it works for the caller's namespaces
// alone.
func (s *Server) ownInstance(ctx context.Context, x *exchange) (bool, error) {
	if instance := x.r.PathValue("instance"); instance != "" {
		worker, err := s.client.Workers().Get(ctx, instance)
		return err == nil && x.caller.owns(worker), err
	}
	workerID := x.r.URL.Query().Get("worker_id")
	for worker, err := range s.client.Workers().List(ctx, flowfabric.WorkerFilter{State: "all"}) {
		if err != nil {
			return false, err
		}
		if worker.WorkerID == workerID && !x.caller.owns(worker) {
			return false, nil
		}
	}
	return true, nil
}

// owns tells whether the caller registered the instance, as what it is now.
func (c *caller) owns(worker *flowfabric.WorkerInfo) bool {
	return worker.RegisteredBy == c.Name && (c.everywhere || c.covers(worker.Namespaces))
}

// covers tells whether the caller may act in all of these namespaces; none given are all there are.
func (c *caller) covers(namespaces []string) bool {
	return len(namespaces) > 0 && !slices.ContainsFunc(namespaces, func(n string) bool { return !slices.Contains(c.Namespaces, n) })
}
