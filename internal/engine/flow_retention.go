package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	// lookForChildren is how long a finished execution is left alone whose children still run, and a flow that another needs.
	lookForChildren = core.Hour
	// removePage is how many members go in one transaction (L141).
	removePage = 500
)

// checkRemovable tells whether an execution may be removed for itself: by its own record, and by its children (L140).
func (u *unit) checkRemovable(x *core.Execution) error {
	if err := x.CheckRemovable(u.now); err != nil || x.Children == nil {
		return err
	}
	var f core.Flow
	if doc := u.doc(flowRef(x.Children.FlowID.UUID)); doc == nil || readDoc(doc, &f) != nil || f.State.Terminal() && f.Open == 0 {
		return nil
	}
	return core.Errorf(core.CodeRetained, "children of the execution have not ended").With("cause", "children").With("flow_id", f.ID.String())
}

// retireFlow arms the removal of a flow that has ended, with all its members (L140), for the earliest moment at which any of them may
// go. How long all of them are kept is looked at then.
func (u *unit) retireFlow(f *core.Flow) {
	keep, ok := u.e.cfg.Retention.Shortest()
	shorter := func(other core.Millis, set bool) {
		if set && (!ok || other < keep) {
			keep, ok = other, true
		}
	}
	for _, lane := range u.dict.lanes {
		shorter(lane.Settings.RetentionMS.Shortest())
	}
	if f.Keep != nil {
		shorter(*f.Keep, true)
	}
	if ok {
		u.addTaskAt(task{Kind: taskRemoveFlow, Flow: f.ID.UUID}, removalTimer(f.EndedAt.Add(keep), u.now))
	}
}

// removeFlow removes a finished flow when the time of all its members is over: first its record, then they, in batches. Before that it
// arms itself again.
func (e *Engine) removeFlow(ctx context.Context, t task) error {
	loaded, err := e.store.Read(ctx, store.Want{Docs: []store.DocRef{flowRef(t.Flow)}})
	if err != nil {
		return err
	}
	doc, there := loaded.Docs[flowRef(t.Flow)]
	if !there {
		return e.removeMembers(ctx, t.Flow)
	}
	f := &core.Flow{}
	if err := readDoc(&doc, f); err != nil {
		return err
	}
	at, ok, err := e.leavesAt(ctx, f, loaded.Now)
	if err != nil || !ok {
		return err
	}
	if at > loaded.Now {
		return e.onFlowAlone(ctx, "retire_flow", f.ID, func(u *unit, _ *core.Flow) {
			u.addTaskAt(task{Kind: taskRemoveFlow, Flow: t.Flow}, removalTimer(at, u.now))
		})
	}
	if err := e.dropFlow(ctx, f); err != nil {
		return err
	}
	return e.removeMembers(ctx, t.Flow)
}

// onFlowAlone runs a change of a flow for the engine itself.
func (e *Engine) onFlowAlone(ctx context.Context, op string, id core.ID, act func(u *unit, f *core.Flow)) error {
	return e.do(ctx, &onFlow{op: op, caller: engineCaller, id: id.Given(), act: func(u *unit, f *core.Flow, _ *core.Effects) error {
		act(u, f)
		return nil
	}})
}

// leavesAt is when a flow may go; ok is false while it may not, and nobody need look again before something happens to it.
func (e *Engine) leavesAt(ctx context.Context, f *core.Flow, now core.Time) (at core.Time, ok bool, err error) {
	if !f.State.Terminal() || f.Open > 0 {
		return 0, false, nil // its end arms it again, or that of its last member
	}
	if !f.Parent.IsZero() {
		parent, err := e.store.Read(ctx, store.Want{Executions: []core.UUID{f.Parent.UUID}})
		if err != nil {
			return 0, false, err
		}
		if x := parent.Executions[f.Parent.UUID]; x != nil && x.Children != nil && x.Children.FlowID == f.ID {
			at = now.Add(lookForChildren) // it goes after who needs it
		}
	}
	ok = true
	dict := e.dict.now()
	err = e.eachMember(ctx, f.ID.UUID, "", func(_ string, x *core.Execution, _ *store.Loaded) (bool, error) {
		var lane core.LaneSettings
		if l := dict.lanes[x.Class.Lane]; l != nil {
			lane = l.Settings
		}
		own, mortal := x.FlowLeavesAt(f, &lane, e.cfg.Retention)
		at, ok = max(at, own), mortal
		return ok, nil
	})
	return at, ok, err
}

// dropFlow removes the record of a flow, unless it was opened again.
func (e *Engine) dropFlow(ctx context.Context, seen *core.Flow) error {
	return e.onFlowAlone(ctx, "remove_flow", seen.ID, func(u *unit, f *core.Flow) {
		if f.State.Terminal() && f.EndedAt == seen.EndedAt {
			u.ch.DropDocs = append(u.ch.DropDocs, flowRef(f.ID.UUID), flowMarkRef(f))
			for _, budget := range f.Budgets { // those of flows around it stay
				u.addTask(task{Kind: taskLeaveBudget, Budget: budget.ID})
			}
		}
	})
}

// removeMembers removes what a flow without a record has left.
func (e *Engine) removeMembers(ctx context.Context, flow core.UUID) error {
	for {
		loaded, err := e.store.Read(ctx, store.Want{
			Docs: []store.DocRef{flowRef(flow)}, Scans: []store.Scan{
				{Kind: docMember, Owner: owner(flow), Limit: removePage}, {Kind: docEdgeID, Owner: owner(flow), Limit: removePage},
			},
		})
		if err != nil {
			return err
		}
		if _, there := loaded.Docs[flowRef(flow)]; there || len(loaded.Scanned[0])+len(loaded.Scanned[1]) == 0 {
			return nil
		}
		cmd := &membersRemoval{}
		if cmd.members, err = memberIDs(loaded.Scanned[0]); err != nil {
			return err
		}
		for _, docs := range loaded.Scanned {
			for i := range docs {
				cmd.docs = append(cmd.docs, docs[i].DocRef)
			}
		}
		if err := e.do(ctx, cmd); err != nil {
			return err
		}
	}
}

// membersRemoval removes some members of a flow that is gone.
type membersRemoval struct {
	members []core.UUID
	docs    []store.DocRef
}

func (r *membersRemoval) name() string { return "remove_members" }

func (r *membersRemoval) want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, r.members...)
}

func (r *membersRemoval) more(u *unit, w *store.Want) {
	for _, id := range r.members {
		u.wantRemovable(w, id)
	}
}

func (r *membersRemoval) decide(u *unit) error {
	for _, id := range r.members {
		if ent := u.entries[id]; ent != nil && ent.x.Status.Terminal() {
			u.remove(ent)
		}
	}
	u.ch.DropDocs = append(u.ch.DropDocs, r.docs...)
	return nil
}
