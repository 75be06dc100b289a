package flows

import (
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Replay runs a finished execution again (L109..L111), in a flow with what hangs on it (F54..F58).
func (e *Graphs) Replay(ctx context.Context, c txn.Caller, id base.GivenID, r work.ReplayRequest, op txn.Operator) (txn.View, error) {
	if err := core.CheckCascade(r.Cascade); err != nil {
		return txn.View{}, err
	}
	for range extendTries {
		view, err := e.replay(ctx, c, id, r, op)
		if !errors.Is(err, errOutdated) {
			return view, err
		}
	}
	return txn.View{}, base.Errorf(base.CodeOverloaded, "others change the graph all the time").WithRetryAfter(100)
}

func (e *Graphs) replay(ctx context.Context, c txn.Caller, id base.GivenID, r work.ReplayRequest, op txn.Operator) (txn.View, error) {
	_, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
	if err != nil {
		return txn.View{}, err
	}
	var plan *graphReplay
	if x.Member != nil {
		if plan, err = e.planReplay(ctx, x, r); err != nil {
			return txn.View{}, err
		}
	}
	var view txn.View
	o := admin.Operation{
		Name: "replay", Op: op, Args: r, View: &view, Docs: replayDocs(id, r, plan),
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			if err := core.CheckDeadline(r.DeadlineAt, u.Now); err != nil {
				return false, err
			}
			if err := work.CheckSteps(u, x.ID.UUID, r); err != nil { // a refusal comes before the graph is opened (L78)
				return false, err
			}
			cmd := core.ReplayCommand{By: c.Principal, Reason: op.Reason, DeadlineAt: r.DeadlineAt, Lane: u.Lane(x)}
			err := Replay(u, x, fx, cmd, plan)
			if err == nil && r.KeepSteps {
				err = work.CarrySteps(u, x)
			}
			return true, err
		},
	}
	if plan != nil {
		o.Also, o.Locks = plan.also(), plan.Behind()
	}
	return txn.Answered(&view, e.Operate(ctx, c, id, o))
}

// Replay opens an execution again, with what its place in a flow requires. One that has ended in this transaction is opened again in the next one,
// after its end was published.
func Replay(u *txn.Tx, x *core.Execution, fx *core.Effects, cmd core.ReplayCommand, plan *graphReplay) error {
	ent := u.Entries[x.ID.UUID]
	switch {
	case ent.JustEnded():
		return errOutdated
	case x.Member == nil:
		if err := x.Replay(fx, cmd); err != nil {
			return err
		}
		ent.Ended = false
		return nil
	case plan == nil:
		return errOutdated // it became a member just now
	default:
		return plan.apply(u, x, fx, cmd)
	}
}

// replayDocs names the small records that a replay looks at: with keep_steps those of all that it opens again (L150).
func replayDocs(id base.GivenID, r work.ReplayRequest, plan *graphReplay) []store.DocRef {
	if !r.KeepSteps {
		return nil
	}
	docs := []store.DocRef{work.StepsRef(id.UUID)}
	if plan != nil {
		for _, below := range plan.below {
			docs = append(docs, work.StepsRef(below))
		}
	}
	return docs
}

// Delete removes a finished execution with all its rows, and the flows below it with theirs (U55, L140, L141).
func (e *Graphs) Delete(ctx context.Context, c txn.Caller, id base.GivenID, op txn.Operator) error {
	for range extendTries {
		if err := e.deleteOne(ctx, c, id, op); !errors.Is(err, errOutdated) {
			return err
		}
	}
	return graphBusy()
}

func (e *Graphs) deleteOne(ctx context.Context, c txn.Caller, id base.GivenID, op txn.Operator) error {
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
	return e.Operate(ctx, c, id, admin.Operation{
		Name: "delete", Op: op, Removes: true, Locks: slices.Concat(below.flows, around),
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			if err := checkDeletable(u, x, around); err != nil {
				return false, err
			}
			ctx, cancel := u.Engine.Bounded()
			defer cancel()
			if err := below.covers(x); err != nil {
				return false, err
			}
			if err := below.check(ctx, u); err != nil {
				return false, err
			}
			x.EmitDeleted(fx, op.Reason)
			below.drop(u)
			delete(u, u.Entries[x.ID.UUID])
			return true, nil
		},
	})
}
