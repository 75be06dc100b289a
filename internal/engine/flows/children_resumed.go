package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// AttachChildren adds to the tasks that continue after a wait for children what ended the wait, and the children as they were then (F41). Like waits
// they are read after the leases are committed: the edges of a wait that is over do not change any more. Other tasks cost nothing.
func (e *Graphs) AttachChildren(ctx context.Context, tasks []txn.Task) error {
	var want store.Want
	for i := range tasks {
		if lacksChildren(&tasks[i]) {
			want.Docs = append(want.Docs, awaited(&tasks[i]))
		}
	}
	if len(want.Docs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Cfg.StoreTimeout)
	defer cancel()
	return e.Insist(ctx, func() error { return e.readChildren(ctx, tasks, want) })
}

// lacksChildren reports whether the task continues after a wait for children that has not been added to it yet.
func lacksChildren(t *txn.Task) bool {
	c := t.Execution.Children
	return t.ResumedFrom == core.InterruptedWaitingChildren && t.ChildrenCause == "" && c != nil && c.Wait != nil && c.Wait.Cause != ""
}

// awaited names the record of the children that the task waited for.
func awaited(t *txn.Task) store.DocRef {
	return AwaitedRef(t.Execution.ID.UUID, AwaitedKey(t.Execution.Children.Wait.Number))
}

func (e *Graphs) readChildren(ctx context.Context, tasks []txn.Task, want store.Want) error {
	lists, err := e.Store.Read(ctx, want)
	if err != nil {
		return err
	}
	var edges store.Want
	for i := range tasks {
		if lacksChildren(&tasks[i]) {
			list := lists.Docs[awaited(&tasks[i])]
			children, err := UpstreamsOf(&list)
			if err != nil {
				return err
			}
			for _, child := range children {
				edges.Docs = append(edges.Docs, EdgeRef(child, tasks[i].Execution.ID.UUID))
			}
		}
	}
	loaded, err := e.ReadIf(ctx, edges)
	if err != nil {
		return err
	}
	for i := range tasks {
		if t := &tasks[i]; lacksChildren(t) {
			list := lists.Docs[awaited(t)]
			children, _ := UpstreamsOf(&list) // which was read before
			if t.Children, err = childViews(loaded, children, t.Execution.ID.UUID); err != nil {
				return err
			}
			t.ChildrenCause = t.Execution.Children.Wait.Cause
		}
	}
	return nil
}

// childViews shows children by the edges that lead from them to their parent.
func childViews(loaded *store.Loaded, children []base.UUID, parent base.UUID) ([]txn.ChildView, error) {
	views := make([]txn.ChildView, 0, len(children))
	for _, child := range children {
		doc, ok := loaded.Docs[EdgeRef(child, parent)]
		if !ok {
			continue
		}
		var edge core.Edge
		if err := ReadDoc(&doc, &edge); err != nil {
			return nil, err
		}
		views = append(views, childView(edge.From, edge.End))
	}
	return views, nil
}
