package flows

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// endChildren applies the end of a parent to the flow below it: a children flow is sealed, and cancelled if that was requested (F44); a sub-flow
// whose node has ended without it is cancelled (F48).
func (e *Graphs) endChildren(ctx context.Context, t taskArgs) error {
	for range extendTries {
		cmd, err := e.planParentEnd(ctx, t)
		if err != nil || cmd == nil {
			return err
		}
		if err := e.endReadable(ctx, cmd); err != nil || !cmd.outdated {
			return err
		}
	}
	return graphBusy()
}

// endReadable runs the plan. If some children cannot be read, it ends the others and returns an error.
func (e *Graphs) endReadable(ctx context.Context, cmd *parentEnd) error {
	unread := e.Do(ctx, cmd)
	if base.CodeOf(unread) != base.CodeCorruption {
		return unread
	}
	var err error
	if cmd.members, err = e.readable(ctx, cmd.members); err != nil {
		return err
	}
	if cmd.short, err = e.readable(ctx, cmd.short); err != nil {
		return err
	}
	return cmp.Or(e.Do(ctx, cmd), unread)
}

// planParentEnd reads the flow below a parent that has ended; nil: there is none.
func (e *Graphs) planParentEnd(ctx context.Context, t taskArgs) (*parentEnd, error) {
	loaded, err := e.Store.Read(ctx, store.Want{
		Docs: []store.DocRef{FlowRef(t.Flow)}, Scans: []store.Scan{{Kind: DocMember, Owner: txn.Owner(t.Flow), Limit: cancelPage}},
	})
	if err != nil {
		return nil, err
	}
	doc, ok := loaded.Docs[FlowRef(t.Flow)]
	if !ok {
		return nil, nil
	}
	var f core.Flow
	if err := ReadDoc(&doc, &f); err != nil {
		return nil, err
	}
	cmd := &parentEnd{parent: t.Execution, end: *t.End, flow: t.Flow, seen: f.Revision, spawned: f.OfChildren()}
	switch {
	case !cmd.spawned || f.ChildrenCancelled(t.End.Status):
		cmd.members, err = memberIDs(loaded.Scanned[0])
	case f.Quorums && !f.Sealed:
		cmd.short, cmd.unread, err = e.shortQuorums(ctx, t.Flow)
	}
	return cmd, err
}

// shortQuorums finds the members whose quorum a seal makes impossible (F24). The result is valid as long as the revision of the graph is the same.
// unread is the error of a member that cannot be read: it may be one of them.
func (e *Graphs) shortQuorums(ctx context.Context, flow base.UUID) (short []base.UUID, unread, err error) {
	unread, err = e.eachReadable(ctx, flow, func(x *core.Execution) {
		if x.ShortQuorum() {
			short = append(short, x.ID.UUID)
		}
	})
	return short, unread, err
}

// judgeQuorums ends the members of a sealed flow whose quorum is out of reach and that could not be read when it was sealed. It fails as long as
// one of them cannot be read, and is then tried again.
func (e *Graphs) judgeQuorums(ctx context.Context, flow base.UUID) error {
	short, unread, err := e.shortQuorums(ctx, flow)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(short, cancelPage) {
		if err := e.Do(ctx, &quorumsShort{flow: flow, members: some}); err != nil {
			return err
		}
	}
	return unread
}

// quorumsShort decides the members of a sealed flow whose quorum is out of reach (F24).
type quorumsShort struct {
	flow    base.UUID
	members []base.UUID
}

func (q *quorumsShort) Name() string { return "seal_quorums" }

func (q *quorumsShort) Want(w *store.Want, _ bool) { w.Executions = append(w.Executions, q.members...) }

func (q *quorumsShort) Flows(*txn.Tx) []base.UUID { return []base.UUID{q.flow} }

func (q *quorumsShort) Decide(u *txn.Tx) error {
	if f := flow(u, q.flow); f == nil || !f.Sealed {
		return nil
	}
	reach(u, q.members)
	return nil
}

// reach marks the joins of members that the transaction has as due.
func reach(u *txn.Tx, members []base.UUID) {
	for _, id := range members {
		if ent := u.Entries[id]; ent != nil {
			graphOf(u).reached = append(graphOf(u).reached, ent)
		}
	}
}

// parentEnd is the end of a parent on its way to the flow below it.
type parentEnd struct {
	parent   base.UUID
	end      core.EndedRun
	flow     base.UUID
	seen     int64       // the revision of the graph when it was read
	spawned  bool        // else it is a sub-flow
	members  []base.UUID // those to be cancelled at once
	short    []base.UUID
	unread   error // the error of members that cannot be read, and that may have to be cancelled too
	outdated bool  // the graph has changed since
}

func (p *parentEnd) Name() string { return "end_children" }

func (p *parentEnd) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, p.members...)
	w.Executions = append(w.Executions, p.short...)
	if !p.spawned {
		w.Executions = append(w.Executions, p.parent)
	}
}

func (p *parentEnd) Flows(*txn.Tx) []base.UUID { return []base.UUID{p.flow} }

func (p *parentEnd) Decide(u *txn.Tx) error {
	p.outdated = false
	f := flow(u, p.flow)
	if f == nil {
		return nil
	}
	if !p.spawned {
		if node := u.Entries[p.parent]; node != nil && p.needless(node.Exec) {
			p.cancel(u, f)
		}
		return u.Broken[p.parent]
	}
	if p.outdated = f.NotOpen() == nil && f.Revision != p.seen; p.outdated {
		return nil
	}
	if fx := u.EngineEffects(); !f.State.Terminal() && f.Seal(fx) {
		touchFlow(u, f)
		u.Keep(fx)
		reach(u, p.short)
		if p.unread != nil {
			u.AddTask(taskSealQuorums, taskArgs{Flow: p.flow})
		}
	}
	if openMembers(u, f) > 0 && f.ChildrenCancelled(p.end.Status) { // otherwise it has ended by itself (F4)
		p.cancel(u, f)
	}
	return nil
}

// needless reports whether the sub-flow of a node is no longer needed: its run has ended, or the node was replayed and has another one. A sub-flow
// that was opened again from within continues (F57).
func (p *parentEnd) needless(node *core.Execution) bool {
	if node.Children == nil || node.Children.FlowID.UUID != p.flow {
		return true
	}
	return node.Status.Terminal() && node.RunIndex() == p.end.Run
}

// cancel ends the members, by follow-up work where they are many.
func (p *parentEnd) cancel(u *txn.Tx, f *core.Flow) {
	ask := core.FlowCancelCommand{Policy: core.CancelAll, Reason: "the parent is " + p.end.Status.String(), By: txn.EngineCaller.Principal, Source: core.SourceParent}
	cancelGraph(u, f, ask, u.EngineEffects(), p.members)
}
