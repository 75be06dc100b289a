package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/engine"
)

type embeddedWorkers struct{ client *embedded }

func (embeddedWorkers) sealed() {}

func (e embeddedWorkers) List(ctx context.Context, o ...WorkerFilter) iter.Seq2[*WorkerInfo, error] {
	options, err := single(o)
	return walk(err, options.Cursor, func(cursor string) (Page[*WorkerInfo], error) {
		options.Cursor = cursor
		return e.Page(ctx, options)
	})
}

func (e embeddedWorkers) Page(ctx context.Context, o ...WorkerFilter) (Page[*WorkerInfo], error) {
	options, err := single(o)
	if err != nil {
		return Page[*WorkerInfo]{}, err
	}
	workers, next, err := e.client.engine.Workers(ctx, e.client.asOperator(ctx), engine.WorkerQuery{
		Lane: options.Lane, Capability: options.Capability, State: options.State,
		Limit: limitOf(options.Limit), Cursor: options.Cursor,
	})
	if err != nil {
		return Page[*WorkerInfo]{}, publicError(err)
	}
	return pageOf(workers, workerOf, next), nil
}

func (e embeddedWorkers) Get(ctx context.Context, instanceID string) (*WorkerInfo, error) {
	view, err := e.client.engine.Worker(ctx, e.client.asOperator(ctx), instanceID)
	if err != nil {
		return nil, publicError(err)
	}
	return workerOf(view), nil
}

func (e embeddedWorkers) Leases(ctx context.Context, instanceID string) ([]*Execution, error) {
	views, err := e.client.engine.WorkerLeases(ctx, e.client.asOperator(ctx), instanceID)
	if err != nil {
		return nil, publicError(err)
	}
	all := make([]*Execution, len(views))
	for i, view := range views {
		all[i] = executionOf(view)
	}
	return all, nil
}

func (e embeddedWorkers) Drain(ctx context.Context, t WorkerTarget) error {
	return e.drain(ctx, t, true)
}

func (e embeddedWorkers) Undrain(ctx context.Context, t WorkerTarget) error {
	return e.drain(ctx, t, false)
}

// drain states what is to be, so that a repeat does no harm (L117).
func (e embeddedWorkers) drain(ctx context.Context, t WorkerTarget, on bool) error {
	if err := t.check(); err != nil {
		return err
	}
	_, err := untilKnown(ctx, e.client.clock, func() (None, error) {
		if t.Leaving && on {
			return None{}, e.client.engine.Leave(ctx, e.client.asWorker(ctx), t.InstanceID)
		}
		return None{}, e.client.engine.Drain(ctx, e.client.asOperator(ctx), t.WorkerID, t.InstanceID, on)
	})
	return err
}

func (e embeddedWorkers) MarkDead(ctx context.Context, instanceID string, o DeadOptions) error {
	_, err := untilKnown(ctx, e.client.clock, func() (None, error) {
		caller := e.client.asOperator(ctx)
		if o.own {
			caller = e.client.asWorker(ctx)
		}
		return None{}, e.client.engine.MarkDead(ctx, caller, instanceID, o.Reason, !o.KeepLeases)
	})
	return err
}

func workerOf(v engine.WorkerView) *WorkerInfo {
	w := v.Worker
	return &WorkerInfo{
		WorkerID: w.WorkerID, InstanceID: w.InstanceID, State: v.State, Namespaces: w.Namespaces, Lanes: w.Lanes, Kinds: w.Kinds,
		Capabilities: w.Capabilities, MaxConcurrent: w.MaxConcurrent, Version: w.Version, Labels: w.Labels,
		RegisteredAt: w.RegisteredAt.Std(), RegisteredBy: w.RegisteredBy, LastSeen: w.LastSeen.Std(), ExpiresAt: w.ExpiresAt().Std(), Leases: v.Leases,
	}
}
