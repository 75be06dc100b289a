package work

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
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
func (e *Work) Cancel(ctx context.Context, c txn.Caller, id base.GivenID, f *core.Fence, source string, op txn.Operator) (txn.View, error) {
	if f != nil {
		if err := f.Validate(); err != nil {
			return txn.View{}, err
		}
		source = "worker"
	}
	var view txn.View
	already := false
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "cancel", Op: op, Args: source, Fence: f, View: &view,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
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
	return txn.Answered(&view, err)
}

// SetPriority changes the priority; in the queue it takes effect at once (L112).
func (e *Work) SetPriority(ctx context.Context, c txn.Caller, id base.GivenID, priority int, op txn.Operator) (txn.View, error) {
	var view txn.View
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "set_priority", Op: op, Args: priority, View: &view,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) { return x.SetPriority(fx, priority) },
	})
	return txn.Answered(&view, err)
}

// Hold keeps the execution from being claimed until ReleaseHold (L115).
func (e *Work) Hold(ctx context.Context, c txn.Caller, id base.GivenID, op txn.Operator) (txn.View, error) {
	var view txn.View
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "hold", Op: op, View: &view,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			return x.PlaceHold(fx, c.Principal, op.Reason)
		},
	})
	return txn.Answered(&view, err)
}

// ReleaseHold ends a hold (L115).
func (e *Work) ReleaseHold(ctx context.Context, c txn.Caller, id base.GivenID, op txn.Operator) (txn.View, error) {
	var view txn.View
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "release_hold", Op: op, View: &view,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			return x.ReleaseHold(fx, op.Reason)
		},
	})
	return txn.Answered(&view, err)
}

// SetTags replaces tags; a nil value deletes one (L116).
func (e *Work) SetTags(ctx context.Context, c txn.Caller, id base.GivenID, changes map[string]*string, op txn.Operator) (base.Tags, error) {
	var view txn.View
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "set_tags", Op: op, Args: changes, View: &view,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) { return SetTags(u, x, fx, changes) },
	})
	if err != nil {
		return nil, err
	}
	return view.Execution.Tags, nil
}

// SetTags changes the tags. An execution that is blocked on a budget which no longer applies to it is unblocked (B6, L73): nothing would look at it
// while that budget has no room.
func SetTags(u *txn.Tx, x *core.Execution, fx *core.Effects, changes map[string]*string) (changed bool, err error) {
	if changed, err = x.SetTags(fx, changes); !changed || err != nil {
		return false, err
	}
	limits.PassUnreached(u, x, fx)
	return true, nil
}

// Retain keeps a finished execution from retention and delete, until a time or for ever (U54). For a member it takes the lock of the flow, so that
// the flow is not removed meanwhile.
func (e *Work) Retain(ctx context.Context, c txn.Caller, id base.GivenID, until base.Time, op txn.Operator) (txn.View, error) {
	_, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
	if err != nil {
		return txn.View{}, err
	}
	var flow []base.UUID
	if x.Member != nil {
		flow = []base.UUID{x.FlowID.UUID}
	}
	var view txn.View
	err = e.Operate(ctx, c, id, admin.Operation{
		Name: "retain", Op: op, Args: until, View: &view, Locks: flow,
		After: func(u *txn.Tx, ent *txn.Row) { u.RetainedUntil(ent, until) },
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			return true, x.SetRetain(fx, &core.Retain{Until: until, By: c.Principal, Reason: op.Reason})
		},
	})
	return txn.Answered(&view, err)
}

// Unretain lets retention have the execution again (U54).
func (e *Work) Unretain(ctx context.Context, c txn.Caller, id base.GivenID, op txn.Operator) (txn.View, error) {
	var view txn.View
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "end_retain", Op: op, View: &view,
		After: func(u *txn.Tx, ent *txn.Row) {
			u.RetainedUntil(ent, u.Now)
		},
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			changed := x.Retain != nil
			return changed, x.SetRetain(fx, nil)
		},
	})
	return txn.Answered(&view, err)
}
