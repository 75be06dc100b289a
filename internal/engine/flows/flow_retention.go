package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	// removePage is how many members go in one transaction (L141).
	removePage = 500
)

// retireFlow arms the removal of a flow that has ended, with all its members (L140), for the earliest time at which any of them may be removed. How
// long all of them are kept is checked then.
func retireFlow(u *txn.Tx, f *core.Flow) {
	keep, ok := u.Engine.Cfg.Retention.Shortest()
	shorter := func(other base.Millis, set bool) {
		if set && (!ok || other < keep) {
			keep, ok = other, true
		}
	}
	for _, lane := range u.Dict.Lanes {
		shorter(lane.Settings.RetentionMS.Shortest())
	}
	if f.Keep != nil {
		shorter(*f.Keep, true)
	}
	if ok {
		u.AddTaskAt(taskRemoveFlow, taskArgs{Flow: f.ID.UUID}, txn.RemovalTimer(f.EndedAt.Add(keep), u.Now))
	}
}

// removeFlow removes a finished flow when the retention of all its members is over: first its record, then the members, in batches. Before that it
// arms itself again.
func (e *Graphs) removeFlow(ctx context.Context, t taskArgs) error {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{FlowRef(t.Flow)}})
	if err != nil {
		return err
	}
	doc, there := loaded.Docs[FlowRef(t.Flow)]
	if !there {
		return e.removeMembers(ctx, t.Flow)
	}
	f := &core.Flow{}
	if err := ReadDoc(&doc, f); err != nil {
		return err
	}
	at, ok, err := e.removableAt(ctx, f, loaded.Now)
	if err != nil || !ok {
		return err
	}
	if at > loaded.Now {
		return e.onFlowAlone(ctx, "retire_flow", f.ID, func(u *txn.Tx, _ *core.Flow) {
			u.AddTaskAt(taskRemoveFlow, taskArgs{Flow: t.Flow}, txn.RemovalTimer(at, u.Now))
		})
	}
	if err := e.dropFlow(ctx, f); err != nil {
		return err
	}
	return e.removeMembers(ctx, t.Flow)
}

// onFlowAlone runs a change of a flow for the engine itself.
func (e *Graphs) onFlowAlone(ctx context.Context, op string, id base.ID, act func(u *txn.Tx, f *core.Flow)) error {
	return e.Do(ctx, &onFlow{op: op, caller: txn.EngineCaller, id: id.Given(), act: func(u *txn.Tx, f *core.Flow, _ *core.Effects) error {
		act(u, f)
		return nil
	}})
}

// removableAt returns when a flow may be removed; ok is false while it may not, and then no look is needed before something happens to it.
func (e *Graphs) removableAt(ctx context.Context, f *core.Flow, now base.Time) (at base.Time, ok bool, err error) {
	if !f.Finished() {
		return 0, false, nil // its end arms it again, or that of its last member
	}
	if !f.Parent.IsZero() {
		parent, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{f.Parent.UUID}})
		if err != nil {
			return 0, false, err
		}
		if x := parent.Executions[f.Parent.UUID]; x != nil && x.Children != nil && x.Children.FlowID == f.ID {
			at = now.Add(lookForChildren) // it is removed after its parent
		}
	}
	ok = true
	dict, empty := e.Dict.Now(), true
	err = e.eachMember(ctx, f.ID.UUID, "", func(m walked) (bool, error) {
		x := m.x
		empty = false
		if edgesSettled(x, m.loaded) != nil {
			at = max(at, now.Add(lookForChildren))
		}
		var lane core.LaneSettings
		if l := dict.Lanes[x.Class.Lane]; l != nil {
			lane = l.Settings
		}
		own, removable := x.FlowRemovableAt(f, &lane, e.Cfg.Retention)
		at, ok = max(at, own), removable
		return ok, nil
	})
	if empty && err == nil {
		own, removable := f.RemovableAt(e.Cfg.Retention)
		at, ok = max(at, own), removable
	}
	return at, ok, err
}

// dropFlow removes the record of a flow, unless it was opened again.
func (e *Graphs) dropFlow(ctx context.Context, seen *core.Flow) error {
	return e.onFlowAlone(ctx, "remove_flow", seen.ID, func(u *txn.Tx, f *core.Flow) {
		if f.State.Terminal() && f.EndedAt == seen.EndedAt && f.LastMutationAt == seen.LastMutationAt { // otherwise its end, or a retained member, has armed it again
			dropFlow(u, f)
		}
	})
}

// removeMembers removes what a flow without a record has left.
func (e *Graphs) removeMembers(ctx context.Context, flow base.UUID) error {
	for {
		loaded, err := e.Store.Read(ctx, store.Want{
			Docs: []store.DocRef{FlowRef(flow)}, Scans: []store.Scan{
				{Kind: DocMember, Owner: txn.Owner(flow), Limit: removePage}, {Kind: docEdgeID, Owner: txn.Owner(flow), Limit: removePage},
			},
		})
		if err != nil {
			return err
		}
		if _, there := loaded.Docs[FlowRef(flow)]; there || len(loaded.Scanned[0])+len(loaded.Scanned[1]) == 0 {
			return nil
		}
		cmd := &membersRemoval{}
		for i := range loaded.Scanned[0] {
			m, err := readMember(&loaded.Scanned[0][i])
			if err != nil {
				return err
			}
			if m.erased != nil {
				cmd.erased = append(cmd.erased, m.id.UUID)
			} else {
				cmd.members = append(cmd.members, m.id.UUID)
			}
		}
		for _, docs := range loaded.Scanned {
			for i := range docs {
				cmd.docs = append(cmd.docs, docs[i].DocRef)
			}
		}
		if err := e.Do(ctx, cmd); err != nil {
			return err
		}
	}
}

// membersRemoval removes some members of a flow that is gone.
type membersRemoval struct {
	members []base.UUID
	erased  []base.UUID // those that were deleted before: their edges are left
	docs    []store.DocRef
}

func (r *membersRemoval) Name() string { return "remove_members" }

func (r *membersRemoval) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, r.members...)
}

func (r *membersRemoval) More(u *txn.Tx, w *store.Want) {
	for _, id := range r.members {
		u.WantRemovable(w, id)
	}
}

func (r *membersRemoval) Decide(u *txn.Tx) error {
	for _, id := range r.members {
		if ent := u.Entries[id]; ent != nil && ent.Exec.Status.Terminal() {
			u.Remove(ent)
		}
	}
	u.Changes.Remove = append(u.Changes.Remove, r.erased...)
	u.Changes.DropDocs = append(u.Changes.DropDocs, r.docs...)
	return nil
}
