package server

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveWorkers() {
	handle(s, wire.ListWorkerLeases, s.listWorkerLeases)
	steer(s, wire.DrainWorker)
	steer(s, wire.UndrainWorker)
	steer(s, wire.MarkWorkerDead)
	steer(s, wire.DrainWorkers)
	steer(s, wire.UndrainWorkers)
}

// steer serves an operation that steers workers (U103) as the service does it. This much is compiled for each call.
func steer[Req, Ans any](s *Server, call wire.Call[Req, Ans]) {
	handle(s, call, func(ctx context.Context, x *exchange, r *Req) (answer, error) {
		a, err := ask(ctx, s, x.steering(), call, r)
		return shows(a), err
	})
}

// listWorkerLeases lists what an instance runs (U102).
func (s *Server) listWorkerLeases(ctx context.Context, x *exchange, r *wire.ListWorkerLeasesRequest) (answer, error) {
	all, err := ask(ctx, s, x.by, wire.ListWorkerLeases, r)
	if err != nil {
		return answer{}, err
	}
	summaries := make([]any, len(all.Items))
	for i, x := range all.Items {
		summaries[i] = shown(x, wire.ViewSummary, "")
	}
	return pageOf(summaries, r.PageFields, "leases of "+r.Instance)
}

// ownInstance reports whether the caller itself registered what a call would steer, and whether it works for the caller's namespaces
// alone.
func (s *Server) ownInstance(ctx context.Context, x *exchange) (bool, error) {
	if instance := x.r.PathValue("instance"); instance != "" {
		return s.owns(ctx, x, instance)
	}
	workerID := x.r.URL.Query().Get("worker_id")
	workers, err := everything(func(cursor string) (*api.Page[*api.Worker], error) {
		return ask(ctx, s, x.by, wire.ListWorkers, &wire.ListWorkersRequest{State: "all", PageFields: wire.PageFields{Cursor: cursor}})
	})
	if err != nil {
		return false, err
	}
	for _, worker := range workers {
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
	request := &wire.ByInstance{Instance: instance}
	if _, err := ask(ctx, s, x.by, wire.GetWorker, request); err != nil {
		return false, err
	}
	worker, err := ask(ctx, s, x.asOwner(), wire.GetWorker, request)
	if api.CodeOf(err) == "worker_not_registered" {
		return false, nil // it is another's
	}
	return err == nil && (x.caller.everywhere || x.caller.covers(worker.Namespaces)), err
}

// steering returns for whom a call that controls workers is performed: a call that is permitted because the caller owns them does
// not affect those of others, even if they change owners meanwhile.
func (x *exchange) steering() service.Caller {
	if x.under == wire.OwnInstance {
		return x.asOwner()
	}
	return x.by
}

// asOwner returns the caller for calls that find only instances of its own key.
func (x *exchange) asOwner() service.Caller {
	by := x.acting()
	by.OwnInstances = true
	return by
}

// covers reports whether the caller may act in all of these namespaces; none given are all there are.
func (c *caller) covers(namespaces []string) bool {
	return len(namespaces) > 0 && !slices.ContainsFunc(namespaces, func(n string) bool { return !slices.Contains(c.Namespaces, n) })
}
