package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The classes of the nodes of a request are registered in a transaction of their own, before the one that checks the request under its locks. A
// request that is refused there must change nothing. Therefore the store is read first: as long as that shows no reason to refuse, the new classes
// are registered at once, which saves the batch another try. Otherwise the transaction decides, and requests another try if only classes are
// missing.

// classify finds the classes of the nodes. look is what would show that the request is a repeat, or refused.
func (g *graphDelta) classify(ctx context.Context, look store.Want) error {
	return g.e.Classify(ctx, g.submits(), func() bool {
		g.hold = !g.agreed && g.doubtful(ctx, look)
		return g.hold
	})
}

// submits are the nodes as submits.
func (g *graphDelta) submits() []*work.Submit {
	cmds := make([]*work.Submit, len(g.nodes))
	for i := range g.nodes {
		cmds[i] = g.nodes[i].cmd
	}
	return cmds
}

// doubtful reports whether the request may be refused, or be a repeat. What cannot be decided without locks, such as whether the names of its
// budgets are free, is doubtful.
func (g *graphDelta) doubtful(ctx context.Context, look store.Want) bool {
	if g.late != nil || g.wary || len(g.inner) > 0 {
		return true
	}
	for i := range g.nodes {
		if len(g.nodes[i].cmd.Budgets.List) > 0 {
			return true
		}
		if g.nodes[i].node.ID != nil {
			look.Executions = append(look.Executions, g.nodes[i].id.UUID)
		}
	}
	look.SkipUnreadable = true
	found, err := g.e.Store.Read(ctx, look)
	if err != nil || len(found.Executions)+len(found.Unreadable)+len(found.NotIngested)+len(found.Keys)+len(found.Docs) > 0 {
		return true
	}
	dict, err := g.e.Dict.At(ctx, found.Dictionary)
	return err != nil || g.refusedAt(work.Present{Now: found.Now, Dict: dict}, len(g.nodes)) != nil
}

// lacksClasses reports whether only classes are missing, and requests another try. In a try that is not careful it is not known yet whether ids are
// free.
func (g *graphDelta) lacksClasses(u *txn.Tx) bool {
	if !g.hold {
		return false
	}
	g.passed = u.Careful
	u.Redo = &store.Fault{Kind: store.Conflict, Err: txn.ErrHeld}
	return true
}

// registerNow registers the classes that waited until no reason to refuse was found. If that fails, the next check requests another try.
func (g *graphDelta) registerNow() {
	if !g.hold || !g.passed {
		return
	}
	g.hold = false
	cmds := g.submits()
	for _, cmd := range cmds {
		cmd.Later = false
	}
	_ = g.e.Classify(g.e.Background(), cmds, func() bool { return false })
}

// takeRoom counts the nodes that wait for workers at once, including those of sub-flows that begin at once. Later nodes are part of what was
// accepted. repeats reports whether the request is a repeat, which adds nothing.
func (g *graphDelta) takeRoom(ctx context.Context, atOnce int, repeats func() (bool, error)) error {
	if len(g.nodes) == 0 {
		return nil
	}
	first := g.nodes[0].cmd
	room, refusal := g.e.Ready.Take(ctx, first.S.Namespace, first.Space, atOnce)
	if refusal == nil {
		g.room = room
		return nil
	}
	if repeat, err := repeats(); repeat || err != nil {
		return err
	}
	return refusal
}

// look returns the rows that show whether the submit is a repeat, or whether its key or id belongs to another one.
func (s *submitFlow) look() (w store.Want) {
	if s.s.ID != nil {
		w.Docs = append(w.Docs, FlowRef(s.flow.UUID))
	}
	if s.s.IdempotencyKey != "" {
		w.Keys = append(w.Keys, s.key())
	}
	if s.request.Key != "" {
		w.Docs = append(w.Docs, s.request)
	}
	return w
}

// repeats reports whether the key or id of the submit exists already. It does not see a first
// try that is still under way: such a repeat gets its answer when it is sent again.
func (s *submitFlow) repeats(ctx context.Context) (bool, error) {
	look := s.look()
	if len(look.Docs)+len(look.Keys) == 0 {
		return false, nil
	}
	found, err := s.e.Store.Read(ctx, look)
	if err != nil {
		return false, txn.PublicFault(err)
	}
	row, keyed := found.Keys[s.key()]
	doc, asked := found.Docs[s.request]
	_, named := found.Docs[FlowRef(s.flow.UUID)]
	return named || keyed && row.ExpiresAt > found.Now || asked && s.request.Key != "" && doc.ExpiresAt > found.Now, nil
}

// enter lets the nodes of a checked submit in: if there is room for those that wait at once, their classes are found.
func (s *submitFlow) enter(ctx context.Context) error {
	if err := s.takeRoom(ctx, s.s.AtOnce(), func() (bool, error) { return s.repeats(ctx) }); err != nil {
		return err
	}
	s.wary = len(s.budgets.List) > 0
	err := s.classify(ctx, s.look())
	if err != nil {
		s.room.Back()
	}
	return err
}

// enterDry is enter for a submit that is only checked: it takes no room and registers no class.
func (s *submitFlow) enterDry(ctx context.Context) error {
	err := s.takeRoom(ctx, s.s.AtOnce(), func() (bool, error) { return s.repeats(ctx) })
	s.room.Back()
	s.room, s.hold = work.ReadyTaken{}, true
	for _, cmd := range s.submits() {
		if !cmd.Unresolved() && cmd.Bound == nil {
			class := cmd.Refs.Class(&cmd.S)
			cmd.Class, cmd.Later = &class, true
		}
	}
	return err
}

// enter lets the nodes of a planned extension in. Those that were there already are not among them.
func (x *extension) enter(ctx context.Context) error {
	x.wary = len(x.old)+len(x.members) > 0
	if err := x.takeRoom(ctx, core.NodesAtOnce(x.fresh(), x.edges), func() (bool, error) { return false, nil }); err != nil {
		return err
	}
	err := x.classify(ctx, store.Want{})
	if err != nil {
		x.room.Back()
		x.room = work.ReadyTaken{} // a repeat of a recorded request does not need it
	}
	return err
}

// fresh are the nodes that are yet to be made.
func (x *extension) fresh() []core.FlowNode {
	nodes := make([]core.FlowNode, len(x.nodes))
	for i := range x.nodes {
		nodes[i] = *x.nodes[i].node
	}
	return nodes
}
