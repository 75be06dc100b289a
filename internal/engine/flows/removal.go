package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// lookForChildren is how long a finished execution is left alone whose children still run, and a flow that another needs.
const lookForChildren = base.Hour

// CheckRemovable checks whether an execution may be removed: by its own record, and by the flows below it, which the transaction has locked (FlowsBelow).
// A flow that is not finished has running children, or follow-up work that is to end it (L140).
func CheckRemovable(u *txn.Tx, x *core.Execution) error {
	if err := x.CheckRemovable(u.Now); err != nil {
		return err
	}
	return checkBelow(u, x)
}

// checkBelow is the refusal of the removal of an execution by the flows below it.
func checkBelow(u *txn.Tx, x *core.Execution) error {
	for _, id := range x.FlowsBelow() {
		f := flow(u, id.UUID)
		if doc := u.Doc(FlowRef(id.UUID)); f == nil && doc != nil { // what cannot be read is not gone
			return ReadDoc(doc, &core.Flow{})
		}
		if f != nil && !f.Finished() {
			return base.Errorf(base.CodeRetained, "children of the execution have not ended").With("cause", "children").With("flow_id", f.ID.String())
		}
	}
	return nil
}

// FlowsBelow returns the flows that belong to an execution, as WantRemovable has found them: a removal locks them, so that no member of theirs is
// opened again meanwhile. Flows that cannot be read are left out: they only keep the execution from being removed.
func FlowsBelow(u *txn.Tx, id base.UUID) (flows []base.UUID) {
	ent := u.Entries[id]
	if ent == nil || !ent.Exec.Status.Terminal() {
		return nil
	}
	for _, below := range ent.Exec.FlowsBelow() {
		if doc := u.Doc(FlowRef(below.UUID)); doc != nil && ReadDoc(doc, &core.Flow{}) == nil {
			flows = append(flows, below.UUID)
		}
	}
	return flows
}

// wantBelow adds the records of the flows below an execution that is to be removed.
func wantBelow(_ *txn.Tx, ent *txn.Row, w *store.Want) {
	for _, below := range ent.Exec.FlowsBelow() {
		w.Docs = append(w.Docs, FlowRef(below.UUID))
	}
}

// vanished finds the members among some executions whose flow is removed: their own rows follow (L141). The members of such a flow have all ended.
func (e *Graphs) vanished(ctx context.Context, xs []*core.Execution) (map[base.UUID]bool, error) {
	var want store.Want
	seen := map[base.UUID]bool{}
	for _, x := range xs {
		if x != nil && x.Member != nil && x.Status.Terminal() && !seen[x.FlowID.UUID] {
			seen[x.FlowID.UUID] = true
			want.Docs = append(want.Docs, FlowRef(x.FlowID.UUID))
		}
	}
	loaded, err := e.ReadIf(ctx, want)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	gone := map[base.UUID]bool{}
	for _, x := range xs {
		if x != nil && seen[x.FlowID.UUID] {
			_, there := loaded.Docs[FlowRef(x.FlowID.UUID)]
			gone[x.ID.UUID] = !there
		}
	}
	return gone, nil
}

// removal removes one finished execution whose time is over (L139..L141).
type removal struct{ id base.UUID }

func (r *removal) Name() string { return "remove" }

func (r *removal) Want(want *store.Want, _ bool) { want.Executions = append(want.Executions, r.id) }

func (r *removal) More(u *txn.Tx, want *store.Want) { u.WantRemovable(want, r.id) }

func (r *removal) Flows(u *txn.Tx) []base.UUID { return FlowsBelow(u, r.id) }

func (r *removal) Decide(u *txn.Tx) error {
	ent := u.Entries[r.id]
	if ent == nil || !ent.Exec.Status.Terminal() {
		return nil
	}
	at, ok := u.RemoveAt(ent.Exec)
	switch {
	case !ok:
	case at > u.Now:
		u.Timer(txn.TimerRetain, txn.RoundUp(at, base.Second), r.id)
	case ent.Exec.Member != nil:
		u.AddTask(taskRemoveFlow, taskArgs{Flow: ent.Exec.FlowID.UUID})
	case ent.Exec.CheckRemovable(u.Now) != nil:
		if until := ent.Exec.Retain.Until; until != 0 {
			u.Timer(txn.TimerRetain, txn.RoundUp(until, base.Second), r.id)
		}
	case CheckRemovable(u, ent.Exec) != nil:
		u.Timer(txn.TimerRetain, txn.RoundUp(u.Now.Add(lookForChildren), base.Minute), r.id)
	default:
		u.Remove(ent)
	}
	return nil
}

func (e *Graphs) sweepRetained(ctx context.Context, t store.Timer) error {
	for ids := range slices.Chunk(t.IDs, txn.SweepChunk) {
		cmds := make([]txn.Command, len(ids))
		for i, id := range ids {
			cmds[i] = &removal{id: id}
		}
		if err := e.Quarantine(ctx, t, ids, e.DoAll(ctx, cmds)); err != nil {
			return err
		}
	}
	return nil
}
