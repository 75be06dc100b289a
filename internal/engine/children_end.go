package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// endChildren does what the end of a parent means for the flow below it: a children flow is sealed, and cancelled if that was asked for
// (F44); a sub-flow whose node has ended without it is cancelled (F48).
func (e *Engine) endChildren(ctx context.Context, t task) error {
	loaded, err := e.store.Read(ctx, store.Want{
		Docs: []store.DocRef{flowRef(t.Flow)}, Scans: []store.Scan{{Kind: docMember, Owner: owner(t.Flow), Limit: cancelPage}},
	})
	if err != nil {
		return err
	}
	doc, ok := loaded.Docs[flowRef(t.Flow)]
	if !ok {
		return nil
	}
	var f core.Flow
	if err := readDoc(&doc, &f); err != nil {
		return err
	}
	cmd := &parentEnd{parent: t.Execution, end: *t.End, flow: t.Flow, spawned: f.OfChildren()}
	switch {
	case !cmd.spawned || f.ChildrenCancelled(t.End.Status):
		cmd.members, err = memberIDs(loaded.Scanned[0])
	case f.Quorums && !f.Sealed:
		cmd.short, err = e.shortQuorums(ctx, t.Flow)
	}
	if err != nil {
		return err
	}
	return e.do(ctx, cmd)
}

// shortQuorums finds the members whose quorum a seal makes impossible (F24).
func (e *Engine) shortQuorums(ctx context.Context, flow core.UUID) (short []core.UUID, err error) {
	err = e.eachMember(ctx, flow, "", func(_ string, x *core.Execution, _ *store.Loaded) (bool, error) {
		if x.DueJoin(true) == core.JoinBroken {
			short = append(short, x.ID.UUID)
		}
		return true, nil
	})
	return short, err
}

// parentEnd is the end of a parent on its way to the flow below it.
type parentEnd struct {
	parent  core.UUID
	end     core.EndedRun
	flow    core.UUID
	spawned bool        // else it is a sub-flow
	members []core.UUID // those to be cancelled at once
	short   []core.UUID
}

func (p *parentEnd) name() string { return "end_children" }

func (p *parentEnd) want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, p.members...)
	w.Executions = append(w.Executions, p.short...)
	if !p.spawned {
		w.Executions = append(w.Executions, p.parent)
	}
}

func (p *parentEnd) flows(*unit) []core.UUID { return []core.UUID{p.flow} }

func (p *parentEnd) decide(u *unit) error {
	f := u.flow(p.flow)
	if f == nil {
		return nil
	}
	if !p.spawned {
		if node := u.entries[p.parent]; node != nil && p.needless(node.x) {
			p.cancel(u, f)
		}
		return nil
	}
	if fx := u.engineEffects(); !f.State.Terminal() && f.Seal(fx) {
		u.touchFlow(f)
		u.keep(fx)
		for _, id := range p.short {
			if ent := u.entries[id]; ent != nil {
				u.graph.reached = append(u.graph.reached, ent)
			}
		}
	}
	if u.openMembers(f) > 0 && f.ChildrenCancelled(p.end.Status) { // else it has ended by itself (F4)
		p.cancel(u, f)
	}
	return nil
}

// needless tells whether the sub-flow of a node is of no use any more: its run has ended, or the node was replayed and has another.
// One that was opened again from within goes on (F57).
func (p *parentEnd) needless(node *core.Execution) bool {
	if node.Children == nil || node.Children.FlowID.UUID != p.flow {
		return true
	}
	return node.Status.Terminal() && node.RunIndex() == p.end.Run
}

// cancel ends the members, by follow-up work where they are many.
func (p *parentEnd) cancel(u *unit, f *core.Flow) {
	ask := core.FlowCancelCommand{Policy: core.CancelAll, Reason: "the parent is " + p.end.Status.String(), By: engineCaller.Principal, Source: core.SourceParent}
	u.cancelGraph(f, ask, u.engineEffects(), p.members)
}
