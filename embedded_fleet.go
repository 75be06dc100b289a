package flowfabric

import (
	"context"
	"iter"
	"maps"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

type embeddedLanes struct{ client *embedded }

func (embeddedLanes) sealed() {}

func (e embeddedLanes) List(ctx context.Context) iter.Seq2[*Lane, error] {
	return walk(nil, "", func(cursor string) (Page[*Lane], error) { return e.Page(ctx, PageOptions{Cursor: cursor}) })
}

func (e embeddedLanes) Page(ctx context.Context, o ...PageOptions) (Page[*Lane], error) {
	options, err := single(o)
	if err != nil {
		return Page[*Lane]{}, err
	}
	lanes, next, err := e.client.engine.Lanes(ctx, e.client.asClient(ctx), options.Cursor, limitOf(options.Limit))
	if err != nil {
		return Page[*Lane]{}, publicError(err)
	}
	return pageOf(lanes, laneOf, next), nil
}

func (e embeddedLanes) Get(ctx context.Context, name string) (*Lane, error) {
	view, err := e.client.engine.GetLane(ctx, e.client.asClient(ctx), name)
	if err != nil {
		return nil, publicError(err)
	}
	return laneOf(view), nil
}

func (e embeddedLanes) Put(ctx context.Context, name string, s LaneSettings, o ...LaneAction) (*Lane, error) {
	settings := core.LaneSettings{
		State: core.LaneActive, MaxConcurrent: s.MaxConcurrent, AgeingMS: millis(s.Ageing), Fairness: s.Fairness,
		FairnessWeights: maps.Clone(s.FairnessWeights), RetentionMS: s.Retention.core(),
	}
	if s.State != "" {
		if err := settings.State.UnmarshalText([]byte(s.State)); err != nil {
			return nil, publicError(err)
		}
	}
	return e.change(ctx, o, func(op engine.Operator) (engine.LaneView, error) {
		return e.client.engine.PutLane(ctx, e.client.asOperator(ctx), name, settings, op)
	})
}

func (e embeddedLanes) Pause(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return e.setState(ctx, name, core.LanePaused, o)
}

func (e embeddedLanes) Resume(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return e.setState(ctx, name, core.LaneActive, o)
}

func (e embeddedLanes) Drain(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return e.setState(ctx, name, core.LaneDraining, o)
}

func (e embeddedLanes) Disable(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return e.setState(ctx, name, core.LaneDisabled, o)
}

func (e embeddedLanes) setState(ctx context.Context, name string, state core.LaneState, o []LaneAction) (*Lane, error) {
	return e.change(ctx, o, func(op engine.Operator) (engine.LaneView, error) {
		return e.client.engine.SetLaneState(ctx, e.client.asOperator(ctx), name, state, op)
	})
}

func (e embeddedLanes) change(ctx context.Context, o []LaneAction, do func(engine.Operator) (engine.LaneView, error)) (*Lane, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	op := engine.Operator{Reason: options.Reason, RequestKey: options.RequestKey, Revision: options.Revision}
	if op.RequestKey == "" {
		op.RequestKey = e.client.requestKey(ctx)
	}
	view, err := untilKnown(ctx, e.client.clock, func() (engine.LaneView, error) { return do(op) })
	if err != nil {
		return nil, err
	}
	return laneOf(view), nil
}

func laneOf(v engine.LaneView) *Lane {
	s := v.Lane.Settings
	lane := &Lane{
		Name: v.Lane.Name, Revision: v.Lane.Revision, Since: v.Lane.Since.Std(), RegisteredBy: v.Lane.RegisteredBy, AtLeast: v.AtLeast,
		Settings: LaneSettings{
			State: LaneState(s.State.String()), MaxConcurrent: s.MaxConcurrent, Ageing: duration(s.AgeingMS), Fairness: s.Fairness,
			FairnessWeights: maps.Clone(s.FairnessWeights), Retention: retentionOf(s.RetentionMS),
		},
		Counts: make(map[Status]int, len(v.Counts)), OldestReadyAt: v.OldestReady.Std(), Workers: v.Workers,
		Rates: LaneRates{Submitted: Rate(v.Rates.Submitted), Started: Rate(v.Rates.Started), Completed: Rate(v.Rates.Completed)},
	}
	for status, n := range v.Counts {
		lane.Counts[Status(status.String())] = n
	}
	return lane
}

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
