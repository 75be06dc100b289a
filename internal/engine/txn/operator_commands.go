package txn

import (
	"context"
	"errors"
	"slices"

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
	err := e.operate(ctx, c, id, operation{
		name: "cancel", op: op, args: source, fence: f, view: &view,
		act: func(u *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			cmd := core.CancelCommand{Fence: f, Source: source, By: c.Principal, Reason: op.Reason}
			if f != nil {
				c.asWorker(x, fx)
				cmd.Recorded = u.record(x.ID.UUID, f.Epoch)
			}
			var err error
			already, err = x.Cancel(fx, cmd)
			return !already, err
		},
	})
	if err == nil && already && f != nil {
		c.Again()
	}
	return answered(&view, err)
}

// Replay runs a finished execution again (L109..L111), in a flow with what hangs on it (F54..F58).
func (e *Engine) Replay(ctx context.Context, c Caller, id base.GivenID, r ReplayRequest, op Operator) (View, error) {
	if err := core.CheckCascade(r.Cascade); err != nil {
		return View{}, err
	}
	for range extendTries {
		view, err := e.replay(ctx, c, id, r, op)
		if !errors.Is(err, errOutdated) {
			return view, err
		}
	}
	return View{}, base.Errorf(base.CodeOverloaded, "others change the graph all the time").WithRetryAfter(100)
}

func (e *Engine) replay(ctx context.Context, c Caller, id base.GivenID, r ReplayRequest, op Operator) (View, error) {
	_, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
	if err != nil {
		return View{}, err
	}
	var plan *graphReplay
	if x.Member != nil {
		if plan, err = e.planReplay(ctx, x, r); err != nil {
			return View{}, err
		}
	}
	var view View
	o := operation{
		name: "replay", op: op, args: r, view: &view, docs: replayDocs(id, r, plan),
		act: func(u *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			if err := core.CheckDeadline(r.DeadlineAt, u.Now); err != nil {
				return false, err
			}
			if err := u.checkSteps(x.ID.UUID, r); err != nil { // a refusal comes before the graph is opened (L78)
				return false, err
			}
			cmd := core.ReplayCommand{By: c.Principal, Reason: op.Reason, DeadlineAt: r.DeadlineAt, Lane: u.Lane(x)}
			err := u.Replay(x, fx, cmd, plan)
			if err == nil && r.KeepSteps {
				err = u.CarrySteps(x)
			}
			return true, err
		},
	}
	if plan != nil {
		o.also, o.locks = plan.also(), plan.behind()
	}
	return answered(&view, e.operate(ctx, c, id, o))
}

// Replay opens an execution again, with what its place in a flow requires. One that has ended in this unit is opened again in the next one, after
// its end was published.
func (u *Tx) Replay(x *core.Execution, fx *core.Effects, cmd core.ReplayCommand, plan *graphReplay) error {
	ent := u.Entries[x.ID.UUID]
	switch {
	case ent.JustEnded():
		return errOutdated
	case x.Member == nil:
		if err := x.Replay(fx, cmd); err != nil {
			return err
		}
		ent.ended = false
		return nil
	case plan == nil:
		return errOutdated // it became a member just now
	default:
		return plan.apply(u, x, fx, cmd)
	}
}

// replayDocs names the small records that a replay looks at: with keep_steps those of all that it opens again (L150).
func replayDocs(id base.GivenID, r ReplayRequest, plan *graphReplay) []store.DocRef {
	if !r.KeepSteps {
		return nil
	}
	docs := []store.DocRef{StepsRef(id.UUID)}
	if plan != nil {
		for _, below := range plan.below {
			docs = append(docs, StepsRef(below))
		}
	}
	return docs
}

// SetPriority changes the priority; in the queue it takes effect at once (L112).
func (e *Engine) SetPriority(ctx context.Context, c Caller, id base.GivenID, priority int, op Operator) (View, error) {
	var view View
	err := e.operate(ctx, c, id, operation{
		name: "set_priority", op: op, args: priority, view: &view,
		act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) { return x.SetPriority(fx, priority) },
	})
	return answered(&view, err)
}

// Hold keeps the execution from being claimed until ReleaseHold (L115).
func (e *Engine) Hold(ctx context.Context, c Caller, id base.GivenID, op Operator) (View, error) {
	var view View
	err := e.operate(ctx, c, id, operation{
		name: "hold", op: op, view: &view,
		act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			return x.PlaceHold(fx, c.Principal, op.Reason)
		},
	})
	return answered(&view, err)
}

// ReleaseHold ends a hold (L115).
func (e *Engine) ReleaseHold(ctx context.Context, c Caller, id base.GivenID, op Operator) (View, error) {
	var view View
	err := e.operate(ctx, c, id, operation{
		name: "release_hold", op: op, view: &view,
		act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) { return x.ReleaseHold(fx, op.Reason) },
	})
	return answered(&view, err)
}

// SetTags replaces tags; a nil value deletes one (L116).
func (e *Engine) SetTags(ctx context.Context, c Caller, id base.GivenID, changes map[string]*string, op Operator) (base.Tags, error) {
	var view View
	err := e.operate(ctx, c, id, operation{
		name: "set_tags", op: op, args: changes, view: &view,
		act: func(u *Tx, x *core.Execution, fx *core.Effects) (bool, error) { return u.SetTags(x, fx, changes) },
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
	err = e.operate(ctx, c, id, operation{
		name: "retain", op: op, args: until, view: &view, locks: flow,
		after: func(u *Tx, ent *Row) { u.RetainedUntil(ent, until) },
		act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			return true, x.SetRetain(fx, &core.Retain{Until: until, By: c.Principal, Reason: op.Reason})
		},
	})
	return answered(&view, err)
}

// EndRetain lets retention have the execution again (U54).
func (e *Engine) EndRetain(ctx context.Context, c Caller, id base.GivenID, op Operator) (View, error) {
	var view View
	err := e.operate(ctx, c, id, operation{
		name: "end_retain", op: op, view: &view,
		after: func(u *Tx, ent *Row) {
			u.RetainedUntil(ent, u.Now)
		},
		act: func(_ *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			changed := x.Retain != nil
			return changed, x.SetRetain(fx, nil)
		},
	})
	return answered(&view, err)
}

// Delete removes a finished execution with all its rows, and the flows below it with theirs (U55, L140, L141).
func (e *Engine) Delete(ctx context.Context, c Caller, id base.GivenID, op Operator) error {
	for range extendTries {
		if err := e.deleteOne(ctx, c, id, op); !errors.Is(err, errOutdated) {
			return err
		}
	}
	return graphBusy()
}

func (e *Engine) deleteOne(ctx context.Context, c Caller, id base.GivenID, op Operator) error {
	below := erasure{e: e}
	var around []base.UUID
	_, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
	if err == nil && x.Status.Terminal() {
		var flows []base.UUID
		for _, flow := range x.FlowsBelow() {
			flows = append(flows, flow.UUID)
		}
		if err := below.find(ctx, flows); err != nil {
			return err
		}
		if around, err = e.flowsAround(ctx, x); err != nil {
			return err
		}
	}
	return e.operate(ctx, c, id, operation{
		name: "delete", op: op, removes: true, locks: slices.Concat(below.flows, around),
		act: func(u *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			if err := u.checkDeletable(x, around); err != nil {
				return false, err
			}
			ctx, cancel := context.WithTimeout(u.Engine.background(), storeTimeout)
			defer cancel()
			if err := below.covers(x); err != nil {
				return false, err
			}
			if err := below.check(ctx, u); err != nil {
				return false, err
			}
			x.EmitDeleted(fx, op.Reason)
			below.drop(u)
			u.delete(u.Entries[x.ID.UUID])
			return true, nil
		},
	})
}
