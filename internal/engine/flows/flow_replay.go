package flows

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// errOutdated reports that a graph has changed since a replay of it was planned.
var errOutdated = errors.New("the graph has changed since it was looked at")

// graphReplay is the replay of a member: everything that it opens again, planned on a read of the graph that the transaction checks to be still
// valid.
type graphReplay struct {
	e *Graphs
	r work.ReplayRequest

	member base.UUID
	reach  []base.UUID // all descendants, where a cascade looks at them
	names  []string    // those of the descendants
	below  []base.UUID // those of them that the cascade opens again
	next   []base.UUID // where edges lead from the member and any of those
	flows  []replayedFlow

	tooLarge error // the refusal of a cascade that opens too much; others come before it (L109)
}

// replayedFlow is the member's flow, then those around it, with the nodes that they belong to (F57).
type replayedFlow struct {
	id       base.UUID
	revision int64
	ended    bool
	node     base.UUID // absent: it is a root, a children flow, or has not ended
}

// planReplay reads what the replay of a member concerns.
func (e *Graphs) planReplay(ctx context.Context, x *core.Execution, r work.ReplayRequest) (*graphReplay, error) {
	p := &graphReplay{e: e, r: r, member: x.ID.UUID}
	edges, err := e.edgesBelow(ctx, x.ID.UUID, r.Cascade)
	if err != nil {
		return nil, err
	}
	if r.Cascade == core.CascadeSkipped || r.Cascade == core.CascadeAll {
		if err := p.findBelow(ctx, edges); err != nil {
			return nil, err
		}
	}
	reopened, seen := map[base.UUID]bool{x.ID.UUID: true}, map[base.UUID]bool{}
	for _, id := range p.below {
		reopened[id] = true
	}
	for _, edge := range edges {
		if to := edge.To.ID.UUID; reopened[edge.From.ID.UUID] && !seen[to] {
			seen[to] = true
			p.next = append(p.next, to)
		}
	}
	err = p.findAround(ctx, x)
	if code := base.CodeOf(err); code == base.CodeFlowNotFound || code == base.CodeExecutionNotFound {
		err = txn.NotFound(x.ID.Given()) // its flow, or one around that, was removed since the member was read (L141)
	}
	return p, err
}

// edgesBelow reads the edges that lead from a member, with a cascade all that can be reached from it.
func (e *Graphs) edgesBelow(ctx context.Context, from base.UUID, cascade string) (all []core.Edge, err error) {
	seen := map[base.UUID]bool{from: true}
	for front := []base.UUID{from}; len(front) > 0; {
		var want store.Want
		for _, id := range front {
			want.Owned = append(want.Owned, EdgesOf(id))
		}
		loaded, err := e.ReadIf(ctx, want)
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		front = nil
		for _, owned := range want.Owned {
			for i := range loaded.Owned[owned] {
				var edge core.Edge
				if err := ReadDoc(&loaded.Owned[owned][i], &edge); err != nil {
					return nil, err
				}
				all = append(all, edge)
				if to := edge.To.ID.UUID; edge.Wait == 0 && !seen[to] && (cascade == core.CascadeSkipped || cascade == core.CascadeAll) {
					seen[to] = true
					front = append(front, to)
				}
			}
		}
	}
	return all, nil
}

// findBelow finds the descendants that the cascade opens again (F56).
func (p *graphReplay) findBelow(ctx context.Context, edges []core.Edge) error {
	seen := map[base.UUID]bool{}
	for _, edge := range edges {
		if to := edge.To.ID.UUID; edge.Wait == 0 && !seen[to] {
			seen[to] = true
			p.reach, p.names = append(p.reach, to), append(p.names, edge.To.Name)
		}
	}
	loaded, err := p.e.ReadIf(ctx, store.Want{Executions: p.reach})
	if err != nil {
		return txn.PublicFault(err)
	}
	p.below = p.opened(loaded.Executions)
	if len(p.below)+1 > core.MaxReplayed {
		p.tooLarge = base.Errorf(base.CodeReplayTooLarge, "the replay would open %d members again, at most %d", len(p.below)+1, core.MaxReplayed).
			With("limit", core.MaxReplayed)
		p.below = nil
	}
	return nil
}

// opened returns those of the descendants that the cascade opens again.
func (p *graphReplay) opened(found map[base.UUID]*core.Execution) (below []base.UUID) {
	for _, id := range p.reach {
		if x := found[id]; x != nil && (p.r.Cascade == core.CascadeAll || x.Status == core.Skipped) {
			below = append(below, id)
		}
	}
	return below
}

// complete reports whether the cascade is still the planned one under the lock of the flow: a member that was skipped since, or opened again by
// another replay, changes neither the revision of the graph nor the state of its flow.
func (p *graphReplay) complete(ctx context.Context, u *txn.Tx) (bool, error) {
	if p.r.Cascade != core.CascadeSkipped {
		return true, nil // all are opened again, whatever they are
	}
	found, err := peek(ctx, u, p.reach)
	if err != nil {
		return false, err
	}
	now := p.opened(found)
	if p.tooLarge != nil {
		return len(now)+1 > core.MaxReplayed, nil
	}
	return slices.Equal(now, p.below), nil
}

// findAround finds the flows around the member: a finished sub-flow is opened again with its node, outwards to the root (F57).
func (p *graphReplay) findAround(ctx context.Context, x *core.Execution) error {
	for id := x.FlowID; ; {
		f, err := p.e.ReadFlow(ctx, txn.EngineCaller, id.Given())
		if err != nil {
			return err
		}
		around := replayedFlow{id: f.ID.UUID, revision: f.Revision, ended: f.State.Terminal()}
		if f.OfChildren() || f.Parent.IsZero() || !f.State.Terminal() {
			p.flows = append(p.flows, around)
			return nil
		}
		_, node, err := p.e.ReadOne(ctx, txn.EngineCaller, f.Parent.Given(), store.Want{Executions: []base.UUID{f.Parent.UUID}})
		if err != nil {
			return err
		}
		if node.Children == nil || node.Children.FlowID != f.ID { // the node has another sub-flow since
			p.flows = append(p.flows, around)
			return nil
		}
		around.node = f.Parent.UUID
		p.flows = append(p.flows, around)
		edges, err := p.e.edgesBelow(ctx, node.ID.UUID, core.CascadeNone)
		if err != nil {
			return err
		}
		for _, edge := range edges {
			p.next = append(p.next, edge.To.ID.UUID)
		}
		id = node.FlowID
	}
}

// also are the further executions that the replay locks.
func (p *graphReplay) also() []base.UUID {
	all := slices.Concat(p.below, p.next)
	for _, f := range p.flows {
		if !f.node.IsZero() {
			all = append(all, f.node)
		}
	}
	return all
}

// Behind are the flows that it locks.
func (p *graphReplay) Behind() (flows []base.UUID) {
	for _, f := range p.flows {
		flows = append(flows, f.id)
	}
	return flows
}

// apply replays the member. Everything is checked before anything changes (L109).
func (p *graphReplay) apply(u *txn.Tx, x *core.Execution, fx *core.Effects, cmd core.ReplayCommand) error {
	ctx, cancel := u.Engine.Bounded()
	defer cancel()
	for _, f := range p.flows {
		if known := flow(u, f.id); known == nil || known.Revision != f.revision || known.State.Terminal() != f.ended {
			return errOutdated
		}
	}
	f := flow(u, x.FlowID.UUID)
	if !x.Status.Terminal() {
		return x.CheckReplay(u.Now, cmd)
	}
	if err := f.CheckReplayable(); err != nil {
		return err
	}
	if err := x.CheckReplay(u.Now, cmd); err != nil {
		return err
	}
	if same, err := p.complete(ctx, u); err != nil || !same {
		return cmp.Or(err, errOutdated)
	}
	if err := p.checkErased(ctx, u, x); err != nil {
		return err
	}
	reopened := append([]base.UUID{x.ID.UUID}, p.below...)
	if err := lockFlows(ctx, u, nil, p.sources(), store.Want{}); err != nil {
		return err
	}
	rejoin, err := p.rejoin(ctx, u, f, x, reopened)
	if err != nil {
		return err
	}
	if p.tooLarge != nil {
		return p.tooLarge
	}
	cmd.Rejoin, cmd.Cascade = rejoin, p.r.Cascade
	if err := p.checkBelow(u, cmd, &cmd.Reopened); err != nil {
		return err
	}
	if err := p.reopen(ctx, u, x, fx, cmd); err != nil {
		u.Discard()
		return err
	}
	return nil
}

// sources are the members whose outgoing edges the replay looks at.
func (p *graphReplay) sources() []base.UUID {
	all := append([]base.UUID{p.member}, p.below...)
	for _, f := range p.flows {
		if !f.node.IsZero() {
			all = append(all, f.node)
		}
	}
	return all
}

// rejoin computes the join of the member again if it was skipped (F54); nil: it stays as it is.
func (p *graphReplay) rejoin(ctx context.Context, u *txn.Tx, f *core.Flow, x *core.Execution, reopened []base.UUID) (*core.Rejoin, error) {
	if x.Status != core.Skipped {
		return nil, nil
	}
	inbound, err := p.inboundAgain(ctx, u, x, reopened)
	if err != nil {
		return nil, err
	}
	join := x.Member.Recount(inbound)
	if join.Verdict(f.Sealed) != core.JoinBroken {
		return &core.Rejoin{Join: join}, nil
	}
	if p.r.IgnoreDependencies {
		return &core.Rejoin{Join: join, Override: true}, nil
	}
	return nil, base.Errorf(base.CodeDependenciesImpossible, "the join of %s cannot be satisfied", x.Member.Name).
		With("upstreams", impossibleOf(inbound)).WithHint("replay those first, or ignore dependencies")
}

// inboundAgain returns the edges that lead to a member, computed again from their upstreams: edges of an upstream that is opened again wait (F54).
func (p *graphReplay) inboundAgain(ctx context.Context, u *txn.Tx, x *core.Execution, reopened []base.UUID) ([]core.Edge, error) {
	if err := loadInto(ctx, u, []base.UUID{x.ID.UUID}); err != nil {
		return nil, err
	}
	var from []base.UUID
	for _, ent := range graphOf(u).into[x.ID.UUID] {
		from = append(from, ent.edge.From.ID.UUID)
	}
	upstreams, err := peek(ctx, u, from)
	if err != nil {
		return nil, err
	}
	var inbound []core.Edge
	for _, ent := range graphOf(u).into[x.ID.UUID] {
		edge := ent.edge
		switch up := edge.From.ID.UUID; {
		case slices.Contains(reopened, up) && up != x.ID.UUID:
			edge.Recompute(nil, u.Now)
		case upstreams[up] != nil: // else it was deleted, and the edge has its end
			edge.Recompute(upstreams[up], u.Now)
		}
		inbound = append(inbound, edge)
	}
	return inbound, nil
}

// checkBelow checks whether everything that the cascade reaches can be opened again (F56), and collects the names. That a member is running is
// reported before other refusals (L109).
func (p *graphReplay) checkBelow(u *txn.Tx, cmd core.ReplayCommand, names *[]string) error {
	var ended []*core.Execution
	for _, id := range p.below {
		ent := u.Entries[id]
		if ent == nil {
			return errOutdated
		}
		u.Settle(ent)
		x := ent.Exec
		switch {
		case ent.JustEnded(): // it is not counted in its flow yet
			return errOutdated
		case p.r.Cascade == core.CascadeSkipped && x.Status != core.Skipped:
			return errOutdated
		case x.Status.Terminal():
			ended = append(ended, x)
		case x.Status != core.Blocked:
			return base.Errorf(base.CodeDescendantActive, "%s is %s", x.Member.Name, x.Status).With("name", x.Member.Name).With("status", x.Status.String())
		}
	}
	for _, x := range ended {
		each := core.ReplayCommand{By: cmd.By, Reason: cmd.Reason, Lane: u.Lane(x)}
		if err := x.CheckReplay(u.Now, each); err != nil {
			return core.AtMember(err, x.Member.Name)
		}
		if err := work.CheckSteps(u, x.ID.UUID, p.r); err != nil {
			return core.AtMember(err, x.Member.Name)
		}
		*names = append(*names, x.Member.Name)
	}
	slices.Sort(*names)
	return nil
}

// reopen opens everything again: the nodes around, the descendants, the member itself; then the edges that lead from them.
func (p *graphReplay) reopen(ctx context.Context, u *txn.Tx, x *core.Execution, fx *core.Effects, cmd core.ReplayCommand) error {
	reopened := append([]base.UUID{x.ID.UUID}, p.below...)
	if err := p.reopenAround(u, x, fx, cmd); err != nil {
		return err
	}
	f := flow(u, x.FlowID.UUID)
	skipped := x.Status == core.Skipped
	f.MemberReopened(x)
	if err := x.Replay(fx, cmd); err != nil {
		return err
	}
	if err := p.resetEdges(u, reopened); err != nil {
		return err
	}
	for _, id := range p.below {
		if err := p.reopenOne(ctx, u, f, u.Entries[id], cmd, reopened); err != nil {
			return err
		}
	}
	touchFlow(u, f)
	if skipped {
		if err := p.writeInbound(ctx, u, x, reopened); err != nil {
			return err
		}
	}
	graphOf(u).reached = append(graphOf(u).reached, u.Entries[x.ID.UUID])
	u.Entries[x.ID.UUID].Ended = false
	if cmd.Rejoin != nil && cmd.Rejoin.Override {
		takeInputs(u, x)
		followJoin(u, x) // a join that stays as it was decides nothing again (F30)
	}
	return nil
}

// reopenAround opens the flows around the member, and the nodes that they belong to (F57, F58).
func (p *graphReplay) reopenAround(u *txn.Tx, x *core.Execution, fx *core.Effects, cmd core.ReplayCommand) error {
	name := x.Member.Name
	for _, around := range p.flows {
		f := flow(u, around.id)
		f.Reopen(fx, name, p.cascade())
		touchFlow(u, f)
		if around.node.IsZero() {
			return nil
		}
		ent := u.Entries[around.node]
		if ent == nil || ent.JustEnded() || ent.Exec.Children == nil || ent.Exec.Children.FlowID.UUID != around.id {
			return errOutdated // the last: it was replayed since, and has another sub-flow
		}
		outer := flow(u, ent.Exec.FlowID.UUID)
		if outer == nil {
			return errOutdated
		}
		if err := outer.CheckReplayable(); err != nil {
			return err
		}
		if !ent.Exec.Status.Terminal() {
			return nil // the end of its sub-flow has not been applied to it yet
		}
		outer.MemberReopened(ent.Exec)
		if err := ent.Exec.ReopenNode(fx, cmd.By, cmd.Reason); err != nil {
			return err
		}
		ent.Ended = false
		u.Touch(ent)
		if err := p.resetEdges(u, []base.UUID{ent.Exec.ID.UUID}); err != nil {
			return err
		}
		name = ent.Exec.Member.Name
	}
	return nil
}

func (p *graphReplay) cascade() string {
	if p.r.Cascade == "" {
		return core.CascadeNone
	}
	return p.r.Cascade
}

// resetEdges makes the edges wait again that lead from reopened members into pending joins (F55). An edge that is not in the plan belongs to a
// parent that has started to wait since.
func (p *graphReplay) resetEdges(u *txn.Tx, reopened []base.UUID) error {
	for _, id := range reopened {
		for _, edge := range graphOf(u).from[id] {
			to := edge.edge.To.ID.UUID
			down := u.Entries[to]
			if down == nil && !slices.Contains(p.next, to) {
				return errOutdated
			}
			if down != nil && down.Exec.Reopen(&edge.edge) {
				touchEdge(u, edge)
				u.Touch(down)
			}
		}
	}
	return nil
}

// reopenOne opens a descendant again: its join starts pending, over its edges as they are now (F56).
func (p *graphReplay) reopenOne(ctx context.Context, u *txn.Tx, f *core.Flow, ent *txn.Row, cmd core.ReplayCommand, reopened []base.UUID) error {
	if !ent.Exec.Status.Terminal() {
		return nil
	}
	inbound, err := p.inboundAgain(ctx, u, ent.Exec, reopened)
	if err != nil {
		return err
	}
	f.MemberReopened(ent.Exec)
	fx := u.EngineEffects()
	each := core.ReplayCommand{By: cmd.By, Reason: cmd.Reason, Lane: u.Lane(ent.Exec), Rejoin: &core.Rejoin{Join: ent.Exec.Member.Recount(inbound)}}
	if err := ent.Exec.Replay(fx, each); err != nil {
		return err
	}
	u.Keep(fx)
	u.Touch(ent)
	ent.Ended = false
	setInbound(u, ent.Exec.ID.UUID, inbound)
	graphOf(u).reached = append(graphOf(u).reached, ent)
	if !p.r.KeepSteps {
		return nil
	}
	return work.CarrySteps(u, ent.Exec)
}

// writeInbound writes the edges that lead to the member as its join was computed from.
func (p *graphReplay) writeInbound(ctx context.Context, u *txn.Tx, x *core.Execution, reopened []base.UUID) error {
	inbound, err := p.inboundAgain(ctx, u, x, reopened)
	if err == nil {
		setInbound(u, x.ID.UUID, inbound)
	}
	return err
}

// takeInputs gives a member that continues without its join the inputs that exist (F54).
func takeInputs(u *txn.Tx, x *core.Execution) {
	var inbound []core.Edge
	for _, ent := range graphOf(u).into[x.ID.UUID] {
		inbound = append(inbound, ent.edge)
	}
	if inputs := core.FreezeInputs(inbound); len(inputs) > 0 {
		u.PutDoc(docOf(inputsRef(x.ID.UUID), inputs))
		x.TakeInputs()
	}
}

// setInbound sets the edges that lead to a member.
func setInbound(u *txn.Tx, to base.UUID, inbound []core.Edge) {
	for i, ent := range graphOf(u).into[to] {
		ent.edge = inbound[i]
		touchEdge(u, ent)
	}
}
