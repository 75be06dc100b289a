package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Bounds of what one transaction does for a graph; the rest is follow-up work (F28).
const (
	edgesAtOnce  = 256 // of one member that has ended
	roundsAtOnce = 16  // of skips that lead to skips
)

// advanceFlows applies the end of every member that has ended in this transaction, whatever ended it, to its graph: its edges are resolved, joins
// decided, members that cannot run any more are skipped, and a flow ends with its last member (F4, F28).
func advanceFlows(ctx context.Context, u *txn.Tx) error {
	u.Advancing = true
	err := advance(ctx, u)
	u.Advancing = false // but not if it panics
	return err
}

func advance(ctx context.Context, u *txn.Tx) error {
	resolved, reached := graphOf(u).left, graphOf(u).reached
	graphOf(u).left, graphOf(u).reached = nil, nil
	if err := decideJoins(ctx, u, reached); err != nil {
		return err
	}
	for round := 0; ; round++ {
		ended := endedMembers(u)
		if len(ended)+len(resolved) == 0 {
			break
		}
		if err := lockFlowsOf(ctx, u, ended); err != nil {
			return err
		}
		for _, ent := range ended {
			resolved = append(resolved, memberEnded(u, ent, round < roundsAtOnce && !u.Leaves)...)
		}
		if err := resolveEdges(ctx, u, resolved); err != nil {
			return err
		}
		resolved = nil
	}
	beginSubflows(u)
	return endFlows(ctx, u)
}

// endedMembers returns the members that have ended in this transaction and are not counted in their flows yet, each once.
func endedMembers(u *txn.Tx) (ended []*txn.Row) {
	for _, ent := range u.Order {
		if !ent.JustEnded() || ent.Advanced || ent.Removed {
			continue
		}
		leaveChildren(u, ent)
		if ent.Exec.Member != nil {
			ended = append(ended, ent)
		}
	}
	return ended
}

// openMembers returns how many members of a flow are open. Members that have ended in this transaction may not be counted in the flow yet.
func openMembers(u *txn.Tx, f *core.Flow) int {
	open := f.Open
	for _, ent := range u.Order {
		if ent.JustEnded() && !ent.Advanced && !ent.Removed && ent.Exec.Member != nil && ent.Exec.FlowID == f.ID {
			open--
		}
	}
	return open
}

// leaveChildren marks the end of an execution as handled, and leaves its children to follow-up work.
func leaveChildren(u *txn.Tx, ent *txn.Row) {
	ent.Advanced = true
	if ent.Exec.Children != nil && !ent.Followed { // flow_only touches no member (F49)
		u.AddTask(taskEndChildren, taskArgs{Execution: ent.Exec.ID.UUID, Flow: ent.Exec.Children.FlowID.UUID, End: endOf(ent.Exec)})
	}
	ent.Followed = false
}

func endOf(x *core.Execution) *core.EndedRun {
	end := x.EndedRun()
	return &end
}

// lockFlowsOf locks the flows of members and loads the edges that lead from them.
func lockFlowsOf(ctx context.Context, u *txn.Tx, members []*txn.Row) error {
	var flows, from []base.UUID
	for _, ent := range members {
		if id := ent.Exec.FlowID.UUID; graphOf(u).flows[id] == nil && !slices.Contains(flows, id) {
			flows = append(flows, id)
		}
		parent := !ent.Exec.ParentID.IsZero() || ent.Exec.Member.Late // one may wait for it
		if (ent.Exec.Member.Out > 0 || parent) && !ent.Created {
			from = append(from, ent.Exec.ID.UUID)
		}
	}
	return lockFlows(ctx, u, flows, from, store.Want{})
}

// resolution is an edge that the end of its upstream is about to resolve.
type resolution struct {
	edge *edgeEntry
	end  core.EndedRun
}

// memberEnded counts the end of a member in its flow and returns the edges that are resolved in this transaction. The others are left to follow-up
// work.
func memberEnded(u *txn.Tx, ent *txn.Row, now bool) (list []*resolution) {
	f := flow(u, ent.Exec.FlowID.UUID)
	if f == nil {
		u.Engine.QuietLog.Error("a member has ended whose flow is not there", "execution_id", ent.Exec.ID, "flow_id", ent.Exec.FlowID)
		return nil
	}
	f.MemberEnded(ent.Exec)
	touchFlow(u, f)
	if f.State.Terminal() && f.Open == 0 { // it was cancelled alone, and its last member has ended now (L140)
		retireFlow(u, f)
	}
	end := ent.Exec.EndedRun()
	for _, edge := range graphOf(u).from[ent.Exec.ID.UUID] {
		if edge.edge.State != core.EdgePending {
			continue
		}
		if !now || len(list) == edgesAtOnce {
			leaveEdges(u, ent.Exec.ID.UUID, end)
			break
		}
		list = append(list, &resolution{edge: edge, end: end})
	}
	return list
}

// leaveEdges leaves the pending edges of a member that has ended to follow-up work.
func leaveEdges(u *txn.Tx, from base.UUID, end core.EndedRun) {
	u.AddTask(taskResolveEdges, taskArgs{Execution: from, End: &end})
}

// resolveEdges locks the downstreams of edges that are free, resolves their edges, and decides what follows. The others are left to follow-up work.
func resolveEdges(ctx context.Context, u *txn.Tx, list []*resolution) error {
	if len(list) == 0 {
		return nil
	}
	list, err := withoutOldWaits(ctx, u, list)
	if err != nil {
		return err
	}
	if err := takeDownstreams(ctx, u, list); err != nil {
		return err
	}
	var reached []*txn.Row
	left := map[base.UUID]bool{}
	for _, r := range list {
		from, to := r.edge.edge.From.ID.UUID, r.edge.edge.To.ID.UUID
		down := u.Entries[to]
		if down == nil && (u.Held[to] || u.Broken[to] != nil) {
			if !left[from] {
				left[from] = true
				leaveEdges(u, from, r.end)
			}
			continue
		}
		if !r.edge.edge.Resolve(r.end, u.Now) {
			continue
		}
		touchEdge(u, r.edge)
		if down == nil || down.Removed {
			continue
		}
		u.At("advance", to)
		u.Settle(down)
		down.Exec.EdgeResolved(&r.edge.edge)
		u.Touch(down)
		reached = append(reached, down)
	}
	return decideJoins(ctx, u, reached)
}

// takeDownstreams locks the downstreams of edges that are not locked yet, those that are free.
func takeDownstreams(ctx context.Context, u *txn.Tx, list []*resolution) error {
	want := store.Want{SkipLocked: true, SkipUnreadable: true}
	for _, r := range list {
		if id := r.edge.edge.To.ID.UUID; u.Entries[id] == nil && !u.Held[id] {
			want.Executions = append(want.Executions, id)
		}
	}
	return u.Load(ctx, want)
}

// decideJoins decides the joins of members that edges or a seal have reached, as far as they can be decided, each once (F25).
func decideJoins(ctx context.Context, u *txn.Tx, reached []*txn.Row) error {
	var due []*dueJoin
	seen := make(map[*txn.Row]bool, len(reached))
	for _, ent := range reached {
		if seen[ent] {
			continue
		}
		seen[ent] = true
		if endChildrenWait(u, ent) {
			continue
		}
		f := flow(u, ent.Exec.FlowID.UUID)
		if f == nil {
			continue // a wait for children: the parent is of another flow
		}
		switch state := ent.Exec.DueJoin(f.Sealed); state {
		case core.JoinHeld, core.JoinBroken:
			due = append(due, &dueJoin{ent: ent, state: state, sealed: f.Sealed})
		}
	}
	if err := loadInbound(ctx, u, due); err != nil {
		return err
	}
	for _, d := range due {
		u.At("advance", d.ent.Exec.ID.UUID)
		decideJoin(u, d)
	}
	return nil
}

// dueJoin is a join that is about to be decided.
type dueJoin struct {
	ent     *txn.Row
	state   core.JoinState
	sealed  bool
	inbound []core.Edge
}

// decideJoin lets a member run or skips it.
func decideJoin(u *txn.Tx, d *dueJoin) {
	x, fx := d.ent.Exec, u.EngineEffects()
	fx.Now = max(fx.Now, x.Latest())
	if d.state == core.JoinBroken {
		x.BreakJoin(fx, d.sealed, impossibleOf(d.inbound))
	} else {
		inputs := core.FreezeInputs(d.inbound)
		if len(inputs) > 0 {
			u.PutDoc(docOf(inputsRef(x.ID.UUID), inputs))
		}
		x.HoldJoin(fx, len(inputs) > 0)
	}
	u.Touch(d.ent)
	u.Keep(fx)
	countJoin(u, x.Member.Join.Policy, d.state)
	followJoin(u, x)
}

// followJoin adds the follow-up work that a decided join requires besides its member.
func followJoin(u *txn.Tx, x *core.Execution) {
	if x.Member.Join.OnSatisfied == core.CancelRemaining && x.Member.Join.Pending() > 0 {
		u.AddTask(taskCancelLosers, taskArgs{Execution: x.ID.UUID})
	}
}

// beginSubflows adds follow-up work for the sub-flows of nodes that have passed the gate in this transaction, whatever the cause (F46).
func beginSubflows(u *txn.Tx) {
	for _, ent := range u.Order {
		if ent.Exec.AwaitsSubflow() && ent.Waited != core.WaitingForSubflow {
			ent.Waited = core.WaitingForSubflow
			u.AddTask(taskBeginSubflow, taskArgs{Execution: ent.Exec.ID.UUID})
		}
	}
}

// impossibleOf returns the upstreams whose ends made a join impossible.
func impossibleOf(inbound []core.Edge) (names []string) {
	for i := range inbound {
		if inbound[i].State == core.EdgeImpossible {
			names = append(names, inbound[i].From.Name)
		}
	}
	slices.Sort(names)
	return names
}

// loadInbound loads the edges into members whose joins are due, where they are needed: to name what made the join impossible, or to freeze inputs.
// Edges that the transaction has already stay as it left them.
func loadInbound(ctx context.Context, u *txn.Tx, due []*dueJoin) error {
	var whole []base.UUID
	for _, d := range due {
		if d.state == core.JoinBroken || d.ent.Exec.Member.Join.Passes {
			whole = append(whole, d.ent.Exec.ID.UUID)
		}
	}
	if err := loadInto(ctx, u, whole); err != nil {
		return err
	}
	for _, d := range due {
		for _, edge := range graphOf(u).into[d.ent.Exec.ID.UUID] {
			d.inbound = append(d.inbound, edge.edge)
		}
	}
	return nil
}

// loadInto loads all edges of the graph that lead to members which the transaction has.
func loadInto(ctx context.Context, u *txn.Tx, members []base.UUID) error {
	var missing []base.UUID
	var want store.Want
	for _, to := range members {
		if len(graphOf(u).into[to]) < u.Entries[to].Exec.Member.Join.N {
			missing = append(missing, to)
			if u.Docs[upstreamsRef(to)] == nil {
				want.Docs = append(want.Docs, upstreamsRef(to))
			}
		}
	}
	if err := u.Load(ctx, want); err != nil {
		return err
	}
	want = store.Want{}
	for _, to := range missing {
		upstreams, err := UpstreamsOf(u.Doc(upstreamsRef(to)))
		if err != nil {
			return err
		}
		for _, from := range upstreams {
			if graphOf(u).edges[edgeKey{from, to}] == nil {
				want.Docs = append(want.Docs, EdgeRef(from, to))
			}
		}
	}
	return lockFlows(ctx, u, nil, nil, want)
}
