package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteWorkers struct{ client *remote }

func (remoteWorkers) sealed() {}

func (r remoteWorkers) List(ctx context.Context, o ...WorkerFilter) iter.Seq2[*WorkerInfo, error] {
	options, err := single(o)
	return walk(err, options.Cursor, func(cursor string) (Page[*WorkerInfo], error) {
		options.Cursor = cursor
		return r.Page(ctx, options)
	})
}

func (r remoteWorkers) Page(ctx context.Context, o ...WorkerFilter) (Page[*WorkerInfo], error) {
	options, err := single(o)
	if err != nil {
		return Page[*WorkerInfo]{}, err
	}
	request := &wire.ListWorkersRequest{
		PageFields: pageFields(options.Limit, options.Cursor), Lane: options.Lane, Capability: options.Capability, State: options.State,
	}
	return onePage(ctx, r.client, wire.ListWorkers, request, func(w wire.Worker) *WorkerInfo { return workerFrom(&w) })
}

func (r remoteWorkers) Get(ctx context.Context, instanceID string) (*WorkerInfo, error) {
	answer, err := call(ctx, r.client, wire.GetWorker, &wire.ByInstance{Instance: instanceID}, sending{})
	if err != nil {
		return nil, err
	}
	return workerFrom(answer), nil
}

func (r remoteWorkers) Leases(ctx context.Context, instanceID string) ([]*Execution, error) {
	return collect(walk(nil, "", func(cursor string) (Page[*Execution], error) {
		request := &wire.ListWorkerLeasesRequest{ByInstance: wire.ByInstance{Instance: instanceID}, PageFields: pageFields(fullPage, cursor)}
		return onePage(ctx, r.client, wire.ListWorkerLeases, request, func(w wire.Execution) *Execution { return executionFrom(&w) })
	}))
}

func (r remoteWorkers) Drain(ctx context.Context, t WorkerTarget) error {
	if err := t.check(); err != nil {
		return err
	}
	if t.InstanceID != "" {
		_, err := call(ctx, r.client, wire.DrainWorker, &wire.DrainWorkerRequest{ByInstance: wire.ByInstance{Instance: t.InstanceID}, Leaving: t.Leaving}, sending{})
		return err
	}
	_, err := call(ctx, r.client, wire.DrainWorkers, &wire.DrainWorkersRequest{WorkerID: t.WorkerID}, sending{})
	return err
}

// Undrain of a worker takes the drain back from each of its instances: there is no call for all of them.
func (r remoteWorkers) Undrain(ctx context.Context, t WorkerTarget) error {
	if err := t.check(); err != nil {
		return err
	}
	if t.InstanceID != "" {
		return r.tell(ctx, wire.UndrainWorker, t.InstanceID)
	}
	found := false
	for instance, err := range r.List(ctx, WorkerFilter{State: "all"}) {
		if err == nil && instance.WorkerID == t.WorkerID {
			found = true
			err = r.tell(ctx, wire.UndrainWorker, instance.InstanceID)
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return newError(core.CodeWorkerNotRegistered, "no instance of %q is registered", t.WorkerID)
	}
	return nil
}

func (r remoteWorkers) tell(ctx context.Context, c wire.Call[wire.ByInstance, wire.Worker], instanceID string) error {
	_, err := call(ctx, r.client, c, &wire.ByInstance{Instance: instanceID}, sending{})
	return err
}

func (r remoteWorkers) MarkDead(ctx context.Context, instanceID string, o DeadOptions) error {
	request := &wire.MarkDeadRequest{ByInstance: wire.ByInstance{Instance: instanceID}}
	take := !o.KeepLeases
	request.Body.Reason, request.Body.TakeLeases = o.Reason, &take
	_, err := call(ctx, r.client, wire.MarkWorkerDead, request, sending{})
	return err
}
