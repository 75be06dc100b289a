package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

func (x *extension) Name() string { return "extend_flow" }

// Want locks the executions that become members or that edges concern, before the flow.
func (x *extension) Want(w *store.Want, careful bool) {
	x.graphDelta.Want(w, careful)
	if !x.top.IsZero() {
		w.Executions = append(w.Executions, x.top)
	}
	for _, m := range x.members {
		w.Executions = append(w.Executions, m.ID.UUID)
	}
	for id := range x.old {
		w.Executions = append(w.Executions, id)
	}
	w.Executions = append(w.Executions, x.short...)
}

func (x *extension) Flows(*txn.Tx) []base.UUID { return []base.UUID{x.flow.UUID} }

// Graph reads what may have the ids of the edges, and the lists of upstreams.
func (x *extension) Graph(ctx context.Context, u *txn.Tx) error {
	var want store.Want
	for i := range x.edges {
		edge := &x.edges[i]
		if !edge.ID.IsZero() {
			want.Docs = append(want.Docs, edgeIDRef(x.flow.UUID, edge.ID))
		}
		if to := x.refs[edge.To].ID.UUID; x.old[to] || x.joining(to) {
			want.Docs = append(want.Docs, upstreamsRef(to))
		}
	}
	if err := lockFlows(ctx, u, nil, nil, want); err != nil {
		return err
	}
	return lookForRequest(ctx, u, x.request)
}

// lookForRequest loads the record of a call that is repeatable by its key.
func lookForRequest(ctx context.Context, u *txn.Tx, request store.DocRef) error {
	if request.Key == "" {
		return nil
	}
	return u.Load(ctx, store.Want{Docs: []store.DocRef{request}})
}

func (x *extension) Decide(u *txn.Tx) error {
	x.answer, x.outdated, x.replayed = FlowAnswer{}, false, false
	f := flow(u, x.flow.UUID)
	if f == nil {
		return flowNotFound(x.x.Flow)
	}
	var first FlowAnswer
	if again, err := u.Repeated(x.caller, x.request, x.requestFingerprint(), &first); again || err != nil {
		x.answer, x.replayed = first, err == nil
		return err
	}
	if err := x.open(f); err != nil {
		return err
	}
	if x.outdated = f.Revision != x.seen.Revision; x.outdated {
		return nil
	}
	if err := x.check(u); err != nil || u.Redo != nil {
		return err
	}
	if err := x.checkMembers(u, f); err != nil || x.outdated {
		return err
	}
	if err := x.checkEdges(u); err != nil {
		return err
	}
	if x.lacksClasses(u) {
		return nil
	}
	for i := range x.nodes {
		x.nodes[i].cmd.S.Budgets = f.Budgets // as they are under the lock (B6)
	}
	x.write(u, f)
	return nil
}

// fingerprint returns a fingerprint that distinguishes two calls under one request key.
func (x *extension) requestFingerprint() string {
	return txn.Fingerprint(x.x.Expected, x.x.Nodes, x.x.Members, x.x.Edges, x.x.Seal)
}

// checkEdges judges the edges whose downstreams exist already, in the order of F19.
func (x *extension) checkEdges(u *txn.Tx) error {
	inbound := map[base.UUID]int{}
	for i := range x.edges {
		edge := &x.edges[i]
		if !edge.ID.IsZero() && u.Doc(edgeIDRef(x.flow.UUID, edge.ID)) != nil {
			return base.Errorf(base.CodeEdgeIDTaken, "another edge has the id %s", edge.ID).WithField(x.places[i].Place("edge_id"))
		}
		to := x.refs[edge.To].ID.UUID
		ent := u.Entries[to]
		if ent == nil {
			continue // it is yet to be made
		}
		if _, err := UpstreamsOf(u.Doc(upstreamsRef(to))); err != nil {
			return err
		}
		u.Settle(ent)
		inbound[to]++
		switch {
		case ent.Exec.Member != nil && ent.Exec.Member.Join.State.Decided():
			return base.Errorf(base.CodeJoinAlreadyDecided, "the join of %s is decided", edge.To).
				WithField(x.places[i].Place("")).With("state", ent.Exec.Member.Join.State.String())
		case ent.Exec.Started() || ent.Exec.Status == core.Suspended || ent.Exec.Children != nil: // a flow node has started with its sub-flow
			return base.Errorf(base.CodeDownstreamAlreadyStarted, "%s has started already: it is %s", edge.To, ent.Exec.Status).
				WithField(x.places[i].Place("")).With("status", ent.Exec.Status.String())
		}
		if n := joinOf(ent.Exec).N + inbound[to]; n > core.MaxInboundEdges {
			return base.Errorf(base.CodeFlowLimitExceeded, "%d edges would lead to %s, at most %d", n, edge.To, core.MaxInboundEdges).
				WithField(x.places[i].Place("to")).With("limit", core.MaxInboundEdges)
		}
	}
	return x.checkCycle()
}

func joinOf(x *core.Execution) core.Join {
	if x.Member == nil {
		return core.Join{}
	}
	return x.Member.Join
}

// write creates everything that is new.
func (x *extension) write(u *txn.Tx, f *core.Flow) {
	fx := u.Effects(x.caller)
	before := f.Edges
	u.Changes.Dictionary = u.Dict.Version
	for _, m := range x.members {
		ent := u.Entries[m.ID.UUID]
		ent.Exec.JoinFlow(f, m.Name)
		f.AddMember(ent.Exec)
		limits.ReachBelow(u, ent.Exec, f.Budgets)
		u.Changes.NewDocs = append(u.Changes.NewDocs, memberDoc(f.ID.UUID, m.Name, m.ID))
		u.Touch(ent)
		u.NoteChange(ent.Exec)
		if ent.JustEnded() { // its time was over just now: that end is counted with the member
			leaveChildren(u, ent)
		}
	}
	made := x.graphDelta.write(u, f, func(id base.UUID) *core.EndedRun {
		if ent := u.Entries[id]; ent != nil && !ent.Created && ent.Exec.Status.Terminal() {
			return endOf(ent.Exec)
		}
		return nil
	})
	graphOf(u).reached = append(graphOf(u).reached, made...)
	x.noteOutgoing(u)
	x.gateMembers(u, f)
	x.finish(u, f, fx, f.Edges-before)
}

// noteOutgoing counts new edges in the upstreams that exist already.
func (x *extension) noteOutgoing(u *txn.Tx) {
	out := map[base.UUID]int{}
	for i := range x.edges {
		out[x.refs[x.edges[i].From].ID.UUID]++
	}
	for id, n := range out {
		if ent := u.Entries[id]; ent != nil && !ent.Created {
			ent.Exec.AddOutgoing(n)
			u.Touch(ent)
		}
	}
}

// gateMembers gives members that exist already their new edges: they wait now, unless those decide their joins (F21).
func (x *extension) gateMembers(u *txn.Tx, f *core.Flow) {
	inbound := map[base.UUID][]core.Edge{}
	for i := range x.edges {
		to := x.refs[x.edges[i].To].ID.UUID
		if ent := u.Entries[to]; ent == nil || ent.Created {
			continue
		}
		edge := x.edge(&x.edges[i])
		if from := u.Entries[edge.From.ID.UUID]; from != nil && from.Exec.Status.Terminal() {
			edge.Resolve(from.Exec.EndedRun(), u.Now)
		}
		inbound[to] = append(inbound[to], edge)
	}
	for to, edges := range inbound {
		ent := u.Entries[to]
		from, _ := UpstreamsOf(u.Doc(upstreamsRef(to))) // checkEdges has read it
		for i := range edges {
			ent.Exec.EdgeAdded(&edges[i])
			from = append(from, edges[i].From.ID.UUID)
			createEdge(u, edges[i])
			x.markEdgeID(u, f, &edges[i])
		}
		f.Edges += len(edges)
		u.PutDoc(upstreamsDoc(to, from))
		if ent.Exec.DueJoin(f.Sealed || x.x.Seal) == core.JoinPending {
			fx := u.EngineEffects()
			ent.Exec.Gated(fx)
			u.Keep(fx)
		}
		u.Touch(ent)
		graphOf(u).reached = append(graphOf(u).reached, ent)
	}
}

// finish counts the change, seals, and answers.
func (x *extension) finish(u *txn.Tx, f *core.Flow, fx *core.Effects, edges int) {
	added := len(x.nodes) + len(x.members)
	sealed := x.x.Seal && !f.Sealed
	if x.answer.Created = added+edges > 0 || sealed; !x.answer.Created {
		x.answer = x.answered(f)
		x.record(u)
		return
	}
	for i := range x.nodes {
		if join := x.nodes[i].node.Join; join != nil && join.Policy == core.Quorum {
			f.Quorums = true
		}
	}
	if added+edges > 0 {
		f.Extended(fx, added, edges)
	} else {
		f.Revision++
	}
	if sealed {
		f.Seal(fx)
		reach(u, x.short)
		if x.unread != nil {
			u.AddTask(taskSealQuorums, taskArgs{Flow: f.ID.UUID})
		}
	}
	touchFlow(u, f)
	u.Keep(fx)
	x.answer = x.answered(f)
	x.answer.Created = true
	x.record(u)
}

// record stores the answer for a repeat, with the flow as it is now: the request itself may end it.
func (x *extension) record(u *txn.Tx) {
	u.Advanced = append(u.Advanced, func() { u.RecordRequest(x.request, x.requestFingerprint(), x.answer) })
}

// answered returns the flow and the executions that the request named.
func (x *extension) answered(f *core.Flow) FlowAnswer {
	answer := FlowAnswer{Flow: f, Members: map[string]base.ID{}}
	for name, id := range x.kept {
		answer.Members[name] = id
	}
	for i := range x.nodes {
		answer.Members[x.nodes[i].node.Name] = x.nodes[i].id
	}
	for _, m := range x.members {
		answer.Members[m.Name] = m.ID
	}
	return answer
}

// SetJoin sets how many of its edges a member needs, while no edge leads to it (F18). Codes: flow_not_found, execution_not_in_flow, invalid_join,
// flow_already_terminal, flow_sealed, join_already_fixed.
func (e *Graphs) SetJoin(ctx context.Context, c txn.Caller, flow base.GivenID, member string, spec core.JoinSpec) (j JoinView, changed bool, err error) {
	if err := spec.Check(""); err != nil {
		return JoinView{}, false, err
	}
	if _, err := e.ReadFlow(ctx, c, flow); err != nil {
		return JoinView{}, false, err
	}
	x, err := e.member(ctx, c, flow, member)
	if err != nil {
		return JoinView{}, false, err
	}
	cmd := &joinSetting{onFlow: onFlow{op: "set_join", caller: c, id: flow}, member: x.ID.UUID}
	cmd.act = func(u *txn.Tx, f *core.Flow, fx *core.Effects) error {
		ent := u.Entries[cmd.member]
		if ent == nil {
			return notInFlow(member)
		}
		var err error
		if changed, err = ent.Exec.SetJoin(fx, f, spec); err != nil || !changed {
			j = JoinView{Join: ent.Exec.Member.Join}
			return err
		}
		u.Touch(ent)
		touchFlow(u, f)
		j = JoinView{Join: ent.Exec.Member.Join}
		return nil
	}
	if err := e.DoAlone(ctx, cmd); err != nil {
		return JoinView{}, false, err
	}
	return j, changed, nil
}

// joinSetting is the command of SetJoin.
type joinSetting struct {
	onFlow
	member base.UUID
}

func (s *joinSetting) Want(w *store.Want, _ bool) { w.Executions = append(w.Executions, s.member) }
