package flows

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// asked returns what the wait asks for, whether its usage is booked already, and every refusal that is left: a call that creates children calls it
// before it does so (L78).
func (w *childrenWait) asked(u *txn.Tx, ent *txn.Row) (ask core.ChildrenWaitCommand, booked bool, err error) {
	ask = w.ask
	ask.Recorded = u.Record(ent.Exec.ID.UUID, ask.Fence.Epoch)
	if _, err := ent.Exec.RepeatsChildrenWait(u.Effects(w.caller), ask.Fence, ask.Recorded); err != nil {
		return ask, false, err
	}
	if ask.TimeoutMS > 0 {
		if doc := u.Doc(w.timeoutRef()); doc != nil {
			if err := ReadDoc(doc, &ask.Before); err != nil {
				return ask, false, err
			}
		}
	}
	if booked, err = u.Repeated(w.caller, w.request, w.requestFingerprint(), nil); booked { // a repeat books nothing again
		ask.Usage = nil
	}
	return ask, booked, err
}

// fingerprint returns a fingerprint that distinguishes two waits under one request key.
func (w *childrenWait) requestFingerprint() string {
	return txn.Fingerprint(w.names, w.ask.Join, w.ask.Kind, w.ask.TimeoutMS, w.ask.Usage)
}

// judge answers at once, or creates the wait with one edge per child (L96). spawned is the number of children that the same call has created.
func (w *childrenWait) judge(u *txn.Tx, ent *txn.Row, spawned int) error {
	w.first = nil
	ask, booked, err := w.asked(u, ent)
	if err != nil {
		return err
	}
	ask.Spawned, ask.Mint, ask.Children = spawned, u.Engine.Mint, w.awaited(u)
	var got core.ChildrenWaitAnswer
	err = u.Apply(w.caller, ent, func(x *core.Execution, fx *core.Effects) (_ bool, err error) {
		w.caller.AsWorker(x, fx)
		got, err = x.WaitForChildren(fx, ask)
		return !got.Repeated && (got.Waiting || len(ask.Usage) > 0), err
	})
	if err != nil {
		return err
	}
	if !booked && len(ask.Usage) > 0 {
		u.RecordRequest(w.request, w.requestFingerprint(), nil)
	}
	w.answered(u, ent, &ask, got)
	return nil
}

// awaited are the children as they are under the lock of their flow.
func (w *childrenWait) awaited(u *txn.Tx) []core.AwaitedChild {
	all := make([]core.AwaitedChild, len(w.children))
	for i, ref := range w.children {
		all[i].NodeRef = ref
		x := w.peeked[ref.ID.UUID]
		if ent := u.Entries[ref.ID.UUID]; ent != nil {
			x = ent.Exec
		}
		if x != nil && x.Status.Terminal() {
			all[i].End = endOf(x)
		}
	}
	return all
}

// answered writes the records of a wait, and sets the answer.
func (w *childrenWait) answered(u *txn.Tx, ent *txn.Row, ask *core.ChildrenWaitCommand, got core.ChildrenWaitAnswer) {
	parent := ent.Exec.ID.UUID
	if got.Repeated {
		w.first, w.answer = &got.Recorded, ChildrenWaitAnswer{Waiting: true}
		w.caller.Again()
		return
	}
	if !got.Waiting {
		w.answer = ChildrenWaitAnswer{State: got.State, Children: make([]txn.ChildView, len(ask.Children))}
		for i := range ask.Children {
			w.answer.Children[i] = childView(ask.Children[i].NodeRef, ask.Children[i].End)
		}
		if ask.Join.OnSatisfied == core.CancelRemaining && got.State != core.WaitTimedOut {
			cancelUnneeded(u, ent.Exec, ask.Children, got.State == core.WaitSatisfied)
		}
		return
	}
	w.answer = ChildrenWaitAnswer{Waiting: true}
	for i := range got.Edges {
		putWaitEdge(u, got.Edges[i])
	}
	u.PutDoc(awaitedDoc(AwaitedRef(parent, AwaitedKey(got.Recorded.Wait)), ask.Children))
	if got.TimeoutAt != 0 && ask.Before == 0 {
		u.PutDoc(docOf(w.timeoutRef(), got.TimeoutAt))
	}
}

// childView is a child as its parent sees it.
func childView(ref core.NodeRef, end *core.EndedRun) txn.ChildView {
	view := txn.ChildView{Name: ref.Name, ID: ref.ID}
	if end != nil {
		view.Outcome, view.Result, view.FailureReason = end.Status, end.Result, end.Reason
	}
	return view
}
