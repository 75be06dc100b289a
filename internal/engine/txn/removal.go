package txn

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// LookForChildren is how long a finished execution is left alone whose children still run, and a flow that another needs.
const LookForChildren = base.Hour

// CheckRemovable checks whether an execution may be removed: by its own record, and by the flows below it, which the unit has locked (flowsBelow).
// A flow that is not finished has running children, or follow-up work that is to end it (L140).
func (u *Tx) CheckRemovable(x *core.Execution) error {
	if err := x.CheckRemovable(u.Now); err != nil {
		return err
	}
	return u.CheckBelow(x)
}

// CheckBelow is the refusal of the removal of an execution by the flows below it.
func (u *Tx) CheckBelow(x *core.Execution) error {
	for _, id := range x.FlowsBelow() {
		f := u.Engine.Graphs.Locked(u, id.UUID)
		if doc := u.Doc(FlowRef(id.UUID)); f == nil && doc != nil { // what cannot be read is not gone
			return ReadDoc(doc, &core.Flow{})
		}
		if f != nil && !f.Finished() {
			return base.Errorf(base.CodeRetained, "children of the execution have not ended").With("cause", "children").With("flow_id", f.ID.String())
		}
	}
	return nil
}

// FlowsBelow returns the flows that belong to an execution, as wantRemovable has found them: a removal locks them, so that no member of theirs is
// opened again meanwhile. Flows that cannot be read are left out: they only keep the execution from being removed.
func (u *Tx) FlowsBelow(id base.UUID) (flows []base.UUID) {
	ent := u.Entries[id]
	if ent == nil || !ent.Exec.Status.Terminal() {
		return nil
	}
	for _, flow := range ent.Exec.FlowsBelow() {
		if doc := u.Doc(FlowRef(flow.UUID)); doc != nil && ReadDoc(doc, &core.Flow{}) == nil {
			flows = append(flows, flow.UUID)
		}
	}
	return flows
}

// WantRemovable adds the rows that the removal of an execution needs: the flows below it, and what the rooms keep beside it.
func (u *Tx) WantRemovable(w *store.Want, id base.UUID) {
	ent := u.Entries[id]
	if ent == nil {
		return
	}
	for _, want := range u.Engine.points.removable {
		want(u, ent, w)
	}
	for _, flow := range ent.Exec.FlowsBelow() {
		w.Docs = append(w.Docs, FlowRef(flow.UUID))
	}
}
