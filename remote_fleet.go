package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteLanes struct{ client *remote }

func (remoteLanes) sealed() {}

func (r remoteLanes) List(ctx context.Context) iter.Seq2[*Lane, error] {
	return walk(nil, "", func(cursor string) (Page[*Lane], error) { return r.Page(ctx, PageOptions{Cursor: cursor}) })
}

func (r remoteLanes) Page(ctx context.Context, o ...PageOptions) (Page[*Lane], error) {
	options, err := single(o)
	if err != nil {
		return Page[*Lane]{}, err
	}
	request := &wire.ListLanesRequest{PageFields: pageFields(options.Limit, options.Cursor)}
	return onePage(ctx, r.client, wire.ListLanes, request, func(w wire.Lane) *Lane { return laneFrom(&w) })
}

func (r remoteLanes) Get(ctx context.Context, name string) (*Lane, error) {
	return oneLane(ctx, r.client, wire.GetLane, &wire.ByLane{Lane: name}, "")
}

func (r remoteLanes) Put(ctx context.Context, name string, s LaneSettings, o ...LaneAction) (*Lane, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.PutLaneRequest{ByLane: wire.ByLane{Lane: name}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.LaneSettings, request.Body.Reason = s.wire(), options.Reason
	return oneLane(ctx, r.client, wire.PutLane, request, options.RequestKey)
}

func (r remoteLanes) Pause(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return r.act(ctx, wire.PauseLane, name, o)
}

func (r remoteLanes) Resume(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return r.act(ctx, wire.ResumeLane, name, o)
}

func (r remoteLanes) Drain(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return r.act(ctx, wire.DrainLane, name, o)
}

func (r remoteLanes) Disable(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return r.act(ctx, wire.DisableLane, name, o)
}

func (r remoteLanes) act(ctx context.Context, c wire.Call[wire.LaneActionRequest, wire.Lane], name string, o []LaneAction) (*Lane, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.LaneActionRequest{ByLane: wire.ByLane{Lane: name}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.Reason = options.Reason
	return oneLane(ctx, r.client, c, request, options.RequestKey)
}

// oneLane makes a call that answers a lane.
func oneLane[Req any](ctx context.Context, r *remote, c wire.Call[Req, wire.Lane], request *Req, key string) (*Lane, error) {
	answer, err := call(ctx, r, c, request, sending{key: key})
	if err != nil {
		return nil, err
	}
	return laneFrom(answer), nil
}

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
