package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ReplayRequest says how a finished execution runs again (L109).
type ReplayRequest struct {
	DeadlineAt base.Time `json:"deadline_at,omitzero"`
	KeepSteps  bool      `json:"keep_steps,omitempty"`

	Cascade            string `json:"cascade,omitempty"`             // none (also ""), skipped, all: which descendants in its flow run again with it (F56)
	IgnoreDependencies bool   `json:"ignore_dependencies,omitempty"` // it runs though its join cannot be satisfied (F54)
}

// Cancel ends the execution as cancelled (L108). A fence makes it the lease holder's own cancel (L100).
func (e *Engine) Cancel(ctx context.Context, c Caller, id base.GivenID, f *core.Fence, source string, op Operator) (View, error) {
	if f != nil {
		if err := f.Validate(); err != nil {
			return View{}, err
		}
		source = "worker"
	}
	var view View
	already := false
	err := e.Operate(ctx, c, id, Operation{
		Name: "cancel", Op: op, Args: source, fence: f, View: &view,
		Act: func(u *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			cmd := core.CancelCommand{Fence: f, Source: source, By: c.Principal, Reason: op.Reason}
			if f != nil {
				c.AsWorker(x, fx)
				cmd.Recorded = u.Record(x.ID.UUID, f.Epoch)
			}
			var err error
			already, err = x.Cancel(fx, cmd)
			return !already, err
		},
	})
	if err == nil && already && f != nil {
		c.Again()
	}
	return Answered(&view, err)
}

// SetPriority changes the priority; in the queue it takes effect at once (L112).
func (e *Engine) SetPriority(ctx context.Context, c Caller, id base.GivenID, priority int, op Operator) (View, error) {
	var view View
	err := e.Operate(ctx, c, id, Operation{
		Name: "set_priority", Op: op, Args: priority, View: &view,
		Act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) { return x.SetPriority(fx, priority) },
	})
	return Answered(&view, err)
}

// Hold keeps the execution from being claimed until ReleaseHold (L115).
func (e *Engine) Hold(ctx context.Context, c Caller, id base.GivenID, op Operator) (View, error) {
	var view View
	err := e.Operate(ctx, c, id, Operation{
		Name: "hold", Op: op, View: &view,
		Act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			return x.PlaceHold(fx, c.Principal, op.Reason)
		},
	})
	return Answered(&view, err)
}

// ReleaseHold ends a hold (L115).
func (e *Engine) ReleaseHold(ctx context.Context, c Caller, id base.GivenID, op Operator) (View, error) {
	var view View
	err := e.Operate(ctx, c, id, Operation{
		Name: "release_hold", Op: op, View: &view,
		Act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) { return x.ReleaseHold(fx, op.Reason) },
	})
	return Answered(&view, err)
}

// SetTags replaces tags; a nil value deletes one (L116).
func (e *Engine) SetTags(ctx context.Context, c Caller, id base.GivenID, changes map[string]*string, op Operator) (base.Tags, error) {
	var view View
	err := e.Operate(ctx, c, id, Operation{
		Name: "set_tags", Op: op, Args: changes, View: &view,
		Act: func(u *Tx, x *core.Execution, fx *core.Effects) (bool, error) { return u.SetTags(x, fx, changes) },
	})
	if err != nil {
		return nil, err
	}
	return view.Execution.Tags, nil
}

// SetTags changes the tags. An execution that is blocked on a budget which no longer applies to it is unblocked (B6, L73): nothing would look at it
// while that budget has no room.
func (u *Tx) SetTags(x *core.Execution, fx *core.Effects, changes map[string]*string) (changed bool, err error) {
	if changed, err = x.SetTags(fx, changes); !changed || err != nil {
		return false, err
	}
	u.passUnreached(x, fx)
	return true, nil
}

// Retain keeps a finished execution from retention and delete, until a time or for ever (U54). For a member it takes the lock of the flow, so that
// the flow is not removed meanwhile.
func (e *Engine) Retain(ctx context.Context, c Caller, id base.GivenID, until base.Time, op Operator) (View, error) {
	_, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
	if err != nil {
		return View{}, err
	}
	var flow []base.UUID
	if x.Member != nil {
		flow = []base.UUID{x.FlowID.UUID}
	}
	var view View
	err = e.Operate(ctx, c, id, Operation{
		Name: "retain", Op: op, Args: until, View: &view, Locks: flow,
		After: func(u *Tx, ent *Row) { u.RetainedUntil(ent, until) },
		Act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			return true, x.SetRetain(fx, &core.Retain{Until: until, By: c.Principal, Reason: op.Reason})
		},
	})
	return Answered(&view, err)
}

// EndRetain lets retention have the execution again (U54).
func (e *Engine) EndRetain(ctx context.Context, c Caller, id base.GivenID, op Operator) (View, error) {
	var view View
	err := e.Operate(ctx, c, id, Operation{
		Name: "end_retain", Op: op, View: &view,
		After: func(u *Tx, ent *Row) {
			u.RetainedUntil(ent, u.Now)
		},
		Act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			changed := x.Retain != nil
			return changed, x.SetRetain(fx, nil)
		},
	})
	return Answered(&view, err)
}
