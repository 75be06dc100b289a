package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) lanes() {
	on(s, wire.ListLanes, s.listLanes)
	on(s, wire.GetLane, s.getLane)
	on(s, wire.PutLane, s.putLane)
	on(s, wire.PauseLane, s.setLaneState(core.LanePaused))
	on(s, wire.ResumeLane, s.setLaneState(core.LaneActive))
	on(s, wire.DrainLane, s.setLaneState(core.LaneDraining))
	on(s, wire.DisableLane, s.setLaneState(core.LaneDisabled))
	on(s, wire.Nudge, s.nudge)
}

// nudge makes the engine look for work now (U118).
func (s *Service) nudge(ctx context.Context, c Caller, r *wire.NudgeRequest) (wire.None, error) {
	for i, lane := range r.Body.Lanes {
		var refusal *base.Error
		if errors.As(base.CheckLane(lane), &refusal) {
			return wire.None{}, refusal.WithField(fmt.Sprintf("lanes[%d]", i))
		}
	}
	return wire.None{}, s.engine.Nudge(ctx, c.client(), r.Body.Lanes...)
}

// listLanes lists the lanes by name (U100).
func (s *Service) listLanes(ctx context.Context, c Caller, r *wire.ListLanesRequest) (api.Page[*api.Lane], error) {
	return page(r.PageFields, laneOf, func(cursor string, limit *int) ([]engine.LaneView, string, error) {
		return s.engine.Lanes(ctx, c.client(), cursor, limit)
	})
}

// getLane returns a lane (U100).
func (s *Service) getLane(ctx context.Context, c Caller, r *wire.ByLane) (api.Lane, error) {
	return laneShown(s.engine.GetLane(ctx, c.client(), r.Lane))
}

// putLane sets all settings of a lane (U100).
func (s *Service) putLane(ctx context.Context, c Caller, r *wire.PutLaneRequest) (api.Lane, error) {
	b := &r.Body
	settings := core.LaneSettings{
		State: core.LaneActive, MaxConcurrent: b.MaxConcurrent, AgeingMS: millis(b.Ageing), Fairness: b.Fairness,
		FairnessWeights: maps.Clone(b.FairnessWeights), RetentionMS: CoreRetention(b.Retention),
	}
	var err error
	if settings.Retry, err = defaultRetryOf(b.DefaultPolicy); err != nil {
		return api.Lane{}, err
	}
	if b.State != "" {
		if err := settings.State.UnmarshalText([]byte(b.State)); err != nil {
			return api.Lane{}, err
		}
	}
	return laneShown(s.engine.PutLane(ctx, c.operator(), r.Lane, settings, c.laneAction(b.Reason, r.IfMatch)))
}

// setLaneState sets only the state of a lane (U100).
func (s *Service) setLaneState(state core.LaneState) func(context.Context, Caller, *wire.LaneActionRequest) (api.Lane, error) {
	return func(ctx context.Context, c Caller, r *wire.LaneActionRequest) (api.Lane, error) {
		return laneShown(s.engine.SetLaneState(ctx, c.operator(), r.Lane, state, c.laneAction(r.Body.Reason, r.IfMatch)))
	}
}

// laneAction returns the options of a command on a lane. Its repeat is identified by the key of the request (U13).
func (c *Caller) laneAction(reason string, revision *wire.Revision) engine.Operator {
	return engine.Operator{Reason: reason, RequestKey: cmp.Or(c.RequestKey, c.Key), Revision: (*int64)(revision)}
}

func laneShown(v engine.LaneView, err error) (api.Lane, error) {
	if err != nil {
		return api.Lane{}, err
	}
	return *laneOf(v), nil
}

func laneOf(v engine.LaneView) *api.Lane {
	s := v.Lane.Settings
	return &api.Lane{
		Name: v.Lane.Name, Revision: v.Lane.Revision, Since: v.Lane.Since.Std(), RegisteredBy: v.Lane.RegisteredBy, AtLeast: v.AtLeast,
		LaneSettings: api.LaneSettings{
			State: api.LaneState(s.State.String()), MaxConcurrent: s.MaxConcurrent, Ageing: duration(s.AgeingMS), Fairness: s.Fairness,
			FairnessWeights: maps.Clone(s.FairnessWeights), Retention: RetentionOf(s.RetentionMS),
			DefaultPolicy: defaultPolicyShown(s.Retry),
		},
		Counts: countsOf(v.Counts), OldestReadyAt: v.OldestReady.Std(), Workers: v.Workers,
		Rates: api.LaneRates{Submitted: api.Rate(v.Rates.Submitted), Started: api.Rate(v.Rates.Started), Completed: api.Rate(v.Rates.Completed)},
	}
}

// defaultRetryOf checks the default policy of a lane or a worker; nil if it says nothing.
func defaultRetryOf(p *api.DefaultPolicy) (*core.RetryPolicy, error) {
	text, err := p.Text()
	if err != nil || len(text) == 0 {
		return nil, api.Within("default_policy", err)
	}
	retry, err := core.ParseDefaultPolicy(text)
	var refusal *base.Error
	if errors.As(err, &refusal) {
		field := "default_policy"
		if refusal.Field != "" && refusal.Field != "policy" {
			field += "." + refusal.Field
		}
		return nil, placedAt(err, refusal, field)
	}
	return retry, err
}

// defaultPolicyShown returns the default policy of a lane with every field; nil if it has none.
func defaultPolicyShown(retry *core.RetryPolicy) *api.DefaultPolicy {
	if retry == nil {
		return nil
	}
	text, err := retry.Filled().MarshalJSON()
	if err != nil {
		return nil
	}
	shown := new(api.DefaultPolicy)
	_ = shown.UnmarshalJSON(text) // never fails
	return shown
}

// countsOf returns counts by status; nil if there are none.
func countsOf(counts map[core.Status]int) map[api.Status]int {
	if len(counts) == 0 {
		return nil
	}
	shown := make(map[api.Status]int, len(counts))
	for status, n := range counts {
		shown[api.Status(status.String())] = n
	}
	return shown
}
