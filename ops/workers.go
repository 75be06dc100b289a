package ops

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Workers shows and controls the registered worker instances.
type Workers struct{ via transport.Transport }

// WorkerFilter selects instances. The zero value: the live ones.
type WorkerFilter struct {
	Lane       string
	Capability string
	State      string // "live" (default), "draining", "dead", "all"
	Limit      int    // of a page; 0: 100, above 1000 counts as 1000
	Cursor     string // NextCursor of the page before, with the same filter
}

// WorkerTarget identifies one instance, or all instances of a worker.
type WorkerTarget struct {
	WorkerID   string
	InstanceID string
	// Leaving means that the single instance is about to stop on its own, as a Worker does: its drain ends when it registers
	// again, and is not recorded as an operator's action. An instance that somebody else registered is drained as without it.
	Leaving bool
}

// check refuses a target that names no worker, or two.
func (t WorkerTarget) check() error {
	switch {
	case (t.WorkerID == "") == (t.InstanceID == ""):
		return calls.Refuse(base.CodeInvalidArgument, "give a worker or an instance").At("worker_id", "set WorkerID or InstanceID, not both")
	case t.Leaving && t.InstanceID == "":
		return calls.Refuse(base.CodeInvalidArgument, "only an instance can be leaving").At("worker_id", "set InstanceID")
	default:
		return nil
	}
}

// DeadOptions are the options of MarkDead.
type DeadOptions struct {
	Reason     string
	KeepLeases bool // its leases stay valid until they expire; otherwise they expire at once
}

// List iterates over the instances by id. Codes: invalid_argument, invalid_cursor.
func (w Workers) List(ctx context.Context, o ...WorkerFilter) iter.Seq2[*api.Worker, error] {
	options, err := transport.Single(o)
	return calls.Walk(err, options.Cursor, func(cursor string) (api.Page[*api.Worker], error) {
		options.Cursor = cursor
		return w.Page(ctx, options)
	})
}

// Page returns one page of the instances. Codes: invalid_argument, invalid_cursor.
func (w Workers) Page(ctx context.Context, o ...WorkerFilter) (api.Page[*api.Worker], error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Page[*api.Worker]{}, err
	}
	request := &wire.ListWorkersRequest{
		PageFields: calls.PageFields(options.Limit, options.Cursor), Lane: options.Lane, Capability: options.Capability, State: options.State,
	}
	return calls.Value(transport.Call(ctx, w.via, wire.ListWorkers, request, transport.Options{}))
}

// Get returns one instance. Codes: worker_not_registered.
func (w Workers) Get(ctx context.Context, instanceID string) (*api.Worker, error) {
	return transport.Call(ctx, w.via, wire.GetWorker, byInstance(instanceID), transport.Options{})
}

// Leases returns the executions that the instance runs. Codes: worker_not_registered.
func (w Workers) Leases(ctx context.Context, instanceID string) ([]*api.Execution, error) {
	return calls.Collect(calls.Walk(nil, "", func(cursor string) (api.Page[*api.Execution], error) {
		request := &wire.ListWorkerLeasesRequest{ByInstance: *byInstance(instanceID), PageFields: calls.PageFields(calls.FullPage, cursor)}
		return calls.Value(transport.Call(ctx, w.via, wire.ListWorkerLeases, request, transport.Options{}))
	}))
}

// Drain makes workers take nothing new and finish what they have. Codes: worker_not_registered.
func (w Workers) Drain(ctx context.Context, t WorkerTarget) error {
	err := t.check()
	switch {
	case err != nil:
	case t.InstanceID != "":
		_, err = transport.Call(ctx, w.via, wire.DrainWorker, &wire.DrainWorkerRequest{ByInstance: *byInstance(t.InstanceID), Leaving: t.Leaving}, transport.Options{})
	default:
		_, err = transport.Call(ctx, w.via, wire.DrainWorkers, &wire.ByWorker{WorkerID: t.WorkerID}, transport.Options{})
	}
	return err
}

// Undrain undoes Drain. Codes: worker_not_registered.
func (w Workers) Undrain(ctx context.Context, t WorkerTarget) error {
	err := t.check()
	switch {
	case err != nil:
	case t.InstanceID != "":
		_, err = transport.Call(ctx, w.via, wire.UndrainWorker, byInstance(t.InstanceID), transport.Options{})
	default:
		_, err = transport.Call(ctx, w.via, wire.UndrainWorkers, &wire.ByWorker{WorkerID: t.WorkerID}, transport.Options{})
	}
	return err
}

// MarkDead declares an instance dead. Codes: worker_not_registered.
func (w Workers) MarkDead(ctx context.Context, instanceID string, o DeadOptions) error {
	request := &wire.MarkDeadRequest{ByInstance: *byInstance(instanceID)}
	take := !o.KeepLeases
	request.Body.Reason, request.Body.TakeLeases = o.Reason, &take
	_, err := transport.Call(ctx, w.via, wire.MarkWorkerDead, request, transport.Options{})
	return err
}

func byInstance(id string) *wire.ByInstance { return &wire.ByInstance{Instance: id} }
