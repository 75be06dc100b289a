package flows

import (
	"context"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// AwaitedRef names the record of a list of children of a parent.
func AwaitedRef(parent base.UUID, key string) store.DocRef {
	return store.DocRef{Kind: docUpstreams, Owner: txn.Owner(parent), Key: key}
}

// AwaitedKey is the key of the list of those that a numbered wait of the current run is about.
func AwaitedKey(number int) string { return "wait/" + strconv.Itoa(number) }

// awaitedDoc lists children.
func awaitedDoc(ref store.DocRef, children []core.AwaitedChild) store.Doc {
	doc := store.Doc{DocRef: ref}
	for i := range children {
		doc.Data = append(doc.Data, children[i].ID.UUID[:]...)
	}
	return doc
}

// putWaitEdge writes an edge of a wait, in place of that of an earlier one.
func putWaitEdge(u *txn.Tx, edge core.Edge) {
	ent := graphOf(u).edges[edgeKey{edge.From.ID.UUID, edge.To.ID.UUID}]
	if ent == nil {
		ent = &edgeEntry{edge: edge}
		keepEdge(u, ent)
	}
	ent.edge = edge
	touchEdge(u, ent)
}

// withoutOldWaits leaves out edges of waits that are over: what the children do now does not concern the parent, which may be running and must not
// be locked for it.
func withoutOldWaits(ctx context.Context, u *txn.Tx, list []*resolution) ([]*resolution, error) {
	var parents []base.UUID
	for _, r := range list {
		if r.edge.edge.Wait != 0 {
			parents = append(parents, r.edge.edge.To.ID.UUID)
		}
	}
	if len(parents) == 0 {
		return list, nil
	}
	found, err := peek(ctx, u, parents)
	if err != nil {
		return nil, err
	}
	var kept []*resolution
	for _, r := range list {
		parent := found[r.edge.edge.To.ID.UUID]
		if r.edge.edge.Wait == 0 || parent != nil && !parent.ChildrenWaitOver(r.edge.edge.Wait) {
			kept = append(kept, r)
		}
	}
	return kept, nil
}

// endChildrenWait ends the wait of a parent if the children that have ended decide it (F41). It reports whether it did.
func endChildrenWait(u *txn.Tx, ent *txn.Row) bool {
	fx := u.EngineEffects()
	fx.Now = max(fx.Now, ent.Exec.Latest())
	if !ent.Exec.DueChildren(fx) {
		return false
	}
	u.Touch(ent)
	u.Keep(fx)
	wait := ent.Exec.Children.Wait
	state := wait.Join.State
	countJoin(u, wait.Join.Policy, state)
	if wait.Join.OnSatisfied == core.CancelRemaining && wait.Join.Pending() > 0 {
		leaveUnneeded(u, ent.Exec, AwaitedKey(wait.Number), state == core.JoinHeld)
	}
	return true
}

// leaveUnneeded adds follow-up work that ends those of the listed children that are no longer waited for (F30).
func leaveUnneeded(u *txn.Tx, parent *core.Execution, list string, satisfied bool) {
	u.AddTask(taskCancelLosers, taskArgs{Execution: parent.ID.UUID, Flow: parent.Children.FlowID.UUID, Cursor: list, Satisfied: satisfied, Since: u.Now})
}

// cancelUnneeded does the same for a wait that was decided before it began.
func cancelUnneeded(u *txn.Tx, parent *core.Execution, children []core.AwaitedChild, satisfied bool) {
	var open []core.AwaitedChild
	for i := range children {
		if children[i].End == nil {
			open = append(open, children[i])
		}
	}
	if len(open) == 0 {
		return
	}
	key := lostPrefix + u.Engine.Mint().String()
	u.PutDoc(awaitedDoc(AwaitedRef(parent.ID.UUID, key), open))
	leaveUnneeded(u, parent, key, satisfied)
}

// lostPrefix is the prefix of the key of a list that is needed once.
const lostPrefix = "lost/"

// cancelUnneededChildren ends children that a decided wait no longer needs, with all that leads only to them (F30, F31).
func (e *Graphs) cancelUnneededChildren(ctx context.Context, t taskArgs, parent *core.Execution) error {
	list := AwaitedRef(t.Execution, t.Cursor)
	if parent != nil && parent.Children != nil && parent.Children.FlowID.UUID == t.Flow { // otherwise it was replayed since
		if err := e.cancelBranches(ctx, t.Satisfied, t.Since, list); err != nil {
			return err
		}
	}
	if len(t.Cursor) < len(lostPrefix) || t.Cursor[:len(lostPrefix)] != lostPrefix {
		return nil
	}
	return e.Write(ctx, "task_done", &store.Changes{DropDocs: []store.DocRef{list}})
}
