package model

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// operatorCommand is every command of an operator on one execution, and the holder's own cancel.
type operatorCommand struct {
	Op       string
	C        engine.Caller
	ID       base.GivenID
	O        engine.Operator
	Fence    *core.Fence // of the holder's cancel
	Priority int
	Hold     bool
	Tags     map[string]*string
	Deadline base.Time
	Until    base.Time
	Keep     bool // keep_steps
	Result   *core.Payload
	Fail     core.FailCommand
}

func (c operatorCommand) op() string {
	if c.Op == "cancel" && c.Fence != nil {
		return "cancel by the holder"
	}
	return c.Op
}

// args is what a repeat with the same request key must say again.
func (c operatorCommand) args() any {
	return []any{c.Priority, c.Hold, c.Tags, c.Deadline, c.Until, c.Keep, c.Result, c.Fail.Class, c.Fail.Category, c.Fence != nil}
}

func (c operatorCommand) onModel(m *reference) (any, error) {
	if c.Fence != nil {
		if err := c.Fence.Validate(); err != nil {
			return nil, err
		}
	}
	if err := c.Fail.Normalize(); err != nil {
		return nil, err
	}
	return m.operate(c.C, c.Op, c.ID, c.O, c.args(), func(r *record, fx *core.Effects) (any, error) {
		answer, err := c.act(m, r, fx)
		if err != nil || answer != nil || c.Op == "delete" {
			return answer, err
		}
		return r.view(m, c.Op), nil // a repeat by its key is shown the same
	})
}

// view is what an operator is shown of the execution.
func (r *record) view(m *reference, op string) any {
	if op == "set_tags" {
		return shownTags(r.x.Tags)
	}
	return shown{Status: r.x.Status, Reason: r.x.Reason, Public: m.public(r.x), Mutated: r.x.LastMutationAt}
}

func (c operatorCommand) act(m *reference, r *record, fx *core.Effects) (any, error) {
	x, by, reason := r.x, c.C.Principal, c.O.Reason
	var err error
	switch c.Op {
	case "cancel":
		return nil, c.cancel(r, fx)
	case "replay":
		err = x.Replay(fx, core.ReplayCommand{By: by, Reason: reason, DeadlineAt: c.Deadline, Lane: m.lanes[x.Class.Lane]})
		if err == nil && c.Keep {
			first, kept := r.sees[x.RunIndex()-1]
			if !kept {
				first = x.RunIndex() - 1
			}
			r.sees[x.RunIndex()] = first
		}
	case "set_priority":
		_, err = x.SetPriority(fx, c.Priority)
	case "hold":
		_, err = x.PlaceHold(fx, by, reason)
	case "release_hold":
		_, err = x.ReleaseHold(fx, reason)
	case "revoke":
		return x.Revoke(fx, core.RevokeCommand{By: by, Reason: reason, Hold: c.Hold})
	case "set_tags":
		_, err = x.SetTags(fx, c.Tags)
	case "retain":
		r.kept = c.Until
		err = x.SetRetain(fx, &core.Retain{Until: c.Until, By: by, Reason: reason})
	case "end_retain":
		r.kept = m.now()
		err = x.SetRetain(fx, nil)
	case "complete_override":
		return x.Complete(fx, core.Completion{Override: true, Result: sized(c.Result)})
	case "fail_override":
		f := c.Fail
		f.Override = true
		return x.Fail(fx, f)
	case "delete":
		if err = x.CheckRemovable(m.now()); err == nil {
			x.EmitDeleted(fx, reason)
			m.remove(x.ID.UUID)
		}
	}
	return nil, err
}

func (c operatorCommand) cancel(r *record, fx *core.Effects) error {
	cmd := core.CancelCommand{Fence: c.Fence, By: c.C.Principal, Reason: c.O.Reason}
	if c.Fence != nil {
		fx.Actor.Type = "worker"
		if r.x.Attempt != nil {
			fx.Actor.ID = r.x.Attempt.WorkerID
		}
		cmd.Recorded = r.entry(c.Fence.Epoch)
	}
	_, err := r.x.Cancel(fx, cmd)
	return err
}

// shown is the part of a view that is compared with the answer; the rest is in the record.
type shown struct {
	Status  core.Status
	Reason  core.Reason
	Public  string
	Mutated base.Time
}

func shownTags(tags base.Tags) base.Tags {
	if tags == nil {
		return base.Tags{}
	}
	return tags
}

func (c operatorCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	var view engine.View
	var err error
	switch c.Op {
	case "cancel":
		view, err = on.e.Cancel(ctx, c.C, c.ID, c.Fence, "", c.O)
	case "replay":
		view, err = on.e.Replay(ctx, c.C, c.ID, engine.ReplayRequest{DeadlineAt: c.Deadline, KeepSteps: c.Keep}, c.O)
	case "set_priority":
		view, err = on.e.SetPriority(ctx, c.C, c.ID, c.Priority, c.O)
	case "hold":
		view, err = on.e.Hold(ctx, c.C, c.ID, c.O)
	case "release_hold":
		view, err = on.e.ReleaseHold(ctx, c.C, c.ID, c.O)
	case "retain":
		view, err = on.e.Retain(ctx, c.C, c.ID, c.Until, c.O)
	case "end_retain":
		view, err = on.e.Unretain(ctx, c.C, c.ID, c.O)
	case "revoke":
		answer, err := on.e.Revoke(ctx, c.C, c.ID, engine.RevokeRequest{Hold: c.Hold}, c.O)
		return answer.RevokeAnswer, err
	case "set_tags":
		tags, err := on.e.SetTags(ctx, c.C, c.ID, c.Tags, c.O)
		return shownTags(tags), err
	case "complete_override":
		return on.e.CompleteOverride(ctx, c.C, c.ID, c.Result, c.O)
	case "fail_override":
		return on.e.FailOverride(ctx, c.C, c.ID, c.Fail, c.O)
	case "delete":
		return nil, on.e.Delete(ctx, c.C, c.ID, c.O)
	}
	if err != nil {
		return nil, err
	}
	public, _ := core.Derive(view.Execution, view.Lane)
	return shown{Status: view.Execution.Status, Reason: view.Execution.Reason, Public: public, Mutated: view.Execution.LastMutationAt}, nil
}

// laneCommand changes a lane.
type laneCommand struct {
	C        engine.Caller
	Name     string
	Settings *core.LaneSettings // nil: only the state
	State    core.LaneState
	O        engine.Operator
}

func (c laneCommand) op() string {
	switch {
	case c.Name == fairLane:
		return "put a fair lane"
	case c.Settings != nil:
		return "put_lane"
	default:
		return "set_lane_state"
	}
}

func (c laneCommand) onModel(m *reference) (any, error) {
	if c.Settings == nil && m.lanes[c.Name] == nil {
		return nil, base.Errorf(base.CodeLaneNotFound, "no lane")
	}
	lane := m.lane(c.Name, "put_lane")
	settings := lane.Settings
	if c.Settings != nil {
		settings = *c.Settings
		if err := settings.Normalize(); err != nil {
			return nil, err
		}
	} else {
		settings.State = c.State
	}
	before := lane.Settings
	fx := m.effects(c.C)
	lane.Change(fx, settings, c.O.Reason)
	m.lanesOf = append(m.lanesOf, fx.Events...)
	lane.Counting = lane.Counting || before.MaxConcurrent == 0 && settings.MaxConcurrent > 0
	return settings, nil
}

func (c laneCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	var view engine.LaneView
	var err error
	if c.Settings != nil {
		view, err = on.e.PutLane(ctx, c.C, c.Name, *c.Settings, c.O)
	} else {
		view, err = on.e.SetLaneState(ctx, c.C, c.Name, c.State, c.O)
	}
	return view.Lane.Settings, err
}
