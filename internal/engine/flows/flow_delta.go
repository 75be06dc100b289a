package flows

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// graphDelta is what a request adds to a graph: nodes to be created, and edges between members by name. Submit, extend, spawn and the start of a
// sub-flow share it.
type graphDelta struct {
	e      *Graphs
	caller txn.Caller
	flow   base.ID
	root   base.ID // the outermost flow; absent: that flow
	parent base.ID // the execution that spawns the nodes; absent otherwise
	list   string  // what the request calls its nodes
	number []int   // where the request has the nodes; nil: as they come
	nodes  []plannedNode
	edges  []core.FlowEdge
	refs   map[string]core.NodeRef // of the nodes, and of members that edges name
	given  map[base.UUID]bool      // ids of edges that the caller gave
	output string
	taken  limits.TakenBudgets // by budgets that the nodes make
	inner  []innerNode         // nodes of sub-flows that need rows to be checked, in request order
	late   error               // why a node of a sub-flow could not be made now, unless the request is a repeat
	lateAt int                 // index of the node that has this sub-flow
	agreed bool                // the nodes were accepted with the flow around them: the bounds of the namespace were judged then
	wary   bool                // it has parts that only the transaction can judge
	hold   bool                // new classes are not registered before nothing was found against the request
	passed bool                // nothing was: they are, before the next try
	room   work.ReadyTaken     // of what may wait in the namespace
}

// plannedNode is a node on its way.
type plannedNode struct {
	node        *core.FlowNode
	id          base.ID
	cmd         *work.Submit
	fingerprint []byte // its fingerprint, where it is to be known again by its name (F39)
}

// innerNode is a node of a sub-flow that is checked with the request around it (F46): budgets that it is to make, and an id that it brings.
type innerNode struct {
	cmd   *work.Submit
	at    int    // index of the node of the request that it is inside of
	place string // in the request
}

// newGraphDelta checks the nodes by the rules of a single submit, in their order (F12), and gives them ids that share the N of the flow (F2).
func (e *Graphs) newGraphDelta(ctx context.Context, c txn.Caller, g *graphDelta, defaults *core.FlowNode, nodes []core.FlowNode, namespace string, by core.Submitter, trace *base.Trace) error {
	c.RequestKey = "" // it is that of the whole request
	g.e, g.caller, g.refs = e, c, map[string]core.NodeRef{}
	subs := make([]core.Submission, len(nodes))
	for i := range nodes {
		s := nodes[i].Submission(namespace, by.Name, defaults)
		s.CreatorKey = by.KeyID
		if s.Trace == nil {
			s.Trace = trace
		}
		id := base.ID{N: g.flow.N, UUID: e.Mint()}
		if s.ID != nil {
			if s.ID.Full && s.ID.N != g.flow.N {
				return core.AtPlace(base.Errorf(base.CodePartitionMismatch, "the id has partition %d, the flow %d", s.ID.N, g.flow.N).WithField("execution_id"), g.place(i))
			}
			id.UUID = s.ID.UUID
		}
		given := id.Given()
		s.ID, s.FlowID, s.ParentID = &given, g.flow, g.parent
		subs[i] = s
		g.nodes = append(g.nodes, plannedNode{node: &nodes[i], id: id})
		g.refs[nodes[i].Name] = core.NodeRef{Name: nodes[i].Name, ID: id}
	}
	items := make([]txn.SubmitItem, len(subs))
	cmds := e.CheckSubmits(ctx, c, subs, items, g.names())
	var brought map[base.UUID]bool
	for i := range items {
		if items[i].Err != nil {
			return g.before(ctx, i, core.AtPlace(items[i].Err, g.place(i)))
		}
		g.nodes[i].cmd = cmds[i]
		if nodes[i].ID == nil {
			continue
		}
		if brought[nodes[i].ID.UUID] {
			return core.AtPlace(base.Errorf(base.CodeIDConflict, "another node of the request has this id").WithField("execution_id"), g.place(i))
		}
		txn.SetIn(&brought, nodes[i].ID.UUID, true)
	}
	return nil
}

// names counts the new names of the nodes; nil: they are not bounded.
func (g *graphDelta) names() *admin.NewNames {
	if g.agreed {
		return nil
	}
	return g.e.NewNames()
}

// before returns the first refusal of a request that is refused anyway: one of its first n nodes that could not be created now comes first (F12).
func (g *graphDelta) before(ctx context.Context, n int, refusal error) error {
	now, err := g.e.Present(ctx)
	if err != nil {
		return err
	}
	return cmp.Or(g.refusedAt(now, n), refusal)
}

// refusedAt returns why one of the first n nodes could not be created now.
func (g *graphDelta) refusedAt(now work.Present, n int) error {
	for i := range g.nodes[:n] {
		cmd := g.nodes[i].cmd
		if err := cmd.S.CheckTimes(now.Now); err != nil {
			return core.AtPlace(err, g.place(i))
		}
		if err := now.Refuses(cmd); err != nil {
			return core.AtPlace(err, g.place(i))
		}
		if cmd.Bound != nil {
			return core.AtPlace(cmd.Bound, g.place(i))
		}
	}
	return nil
}

// place returns where the request has a node that is to be created.
func (g *graphDelta) place(i int) string {
	if g.number != nil {
		i = g.number[i]
	}
	return g.listed(i)
}

// listed is a place in the request's list of nodes.
func (g *graphDelta) listed(i int) string { return fmt.Sprintf("%s[%d]", g.list, i) }

// Want adds what the nodes need: with care, whether their ids are free.
func (g *graphDelta) Want(w *store.Want, careful bool) {
	g.registerNow()
	for i := range g.nodes {
		g.nodes[i].cmd.Want(w, careful)
	}
	for i := range g.inner {
		if cmd := g.inner[i].cmd; careful && cmd.S.ID != nil {
			w.Executions = append(w.Executions, cmd.ID.UUID)
		}
	}
}

// Behind locks the budgets above those that the nodes make.
func (g *graphDelta) Behind(u *txn.Tx, w *store.Want) {
	for i := range g.nodes {
		g.nodes[i].cmd.Behind(u, w)
	}
	for i := range g.inner {
		g.inner[i].cmd.Behind(u, w)
	}
}

// check reports whether all nodes can be made now, those of sub-flows included. With u.redo set the request is to be tried again.
func (g *graphDelta) check(u *txn.Tx) error {
	g.taken = limits.TakenBudgets{}
	inner := g.inner
	for i := range g.nodes {
		if err := g.checkNode(u, i); err != nil || u.Redo != nil {
			return err
		}
		for ; len(inner) > 0 && inner[0].at == i; inner = inner[1:] {
			if err := g.checkInner(u, &inner[0]); err != nil || u.Redo != nil {
				return err
			}
		}
		if g.late != nil && g.lateAt == i {
			return refuseWithCare(u, g.late)
		}
	}
	return nil
}

func (g *graphDelta) checkNode(u *txn.Tx, i int) error {
	cmd := g.nodes[i].cmd
	if err := cmd.S.CheckTimes(u.Now); err != nil {
		return core.AtPlace(err, g.place(i))
	}
	err := cmd.RefusedBeside(u, g.taken)
	if u.Entries[cmd.ID.UUID] != nil {
		err = work.IDConflict()
	}
	if err != nil {
		return refuseWithCare(u, core.AtPlace(err, g.place(i)))
	}
	if u.Dict.Lanes[cmd.S.Lane] == nil && !cmd.Later {
		u.Redo = &store.Fault{Kind: store.Stale, Err: txn.ErrHeld}
		return nil
	}
	cmd.LostClass(u)
	return nil
}

// checkInner checks what only rows tell of a node of a sub-flow. Nothing of it is inserted with the request, so that only a careful try can find
// what is taken.
func (g *graphDelta) checkInner(u *txn.Tx, n *innerNode) error {
	if !u.Careful {
		u.Redo = &store.Fault{Kind: store.Conflict, Err: txn.ErrHeld}
		return nil
	}
	if n.cmd.S.ID != nil && u.Entries[n.cmd.ID.UUID] != nil {
		return core.AtPlace(work.IDConflict(), n.place)
	}
	return core.AtPlace(n.cmd.CheckBudgets(u, g.taken), n.place)
}

// refuseWithCare returns the refusal of a request. It must be known first that it is no repeat (L80, F11): if the try is not careful, it requests
// another one.
func refuseWithCare(u *txn.Tx, refusal error) error {
	if u.Careful {
		return refusal
	}
	u.Redo = &store.Fault{Kind: store.Conflict, Err: txn.ErrHeld}
	return nil
}

// judgeSubflows checks the nodes of sub-flows of the nodes (F46) as if each were submitted separately now (F12); each iterates over the nodes of the
// request. What refuses one only at this time is kept in late, because a repeat must not get it (F11), and what takes rows to decide in inner.
func (g *graphDelta) judgeSubflows(ctx context.Context, c txn.Caller, nodes []core.FlowNode, each func(check core.NodeCheck) error) error {
	if !slices.ContainsFunc(nodes, func(n core.FlowNode) bool { return n.Flow != nil }) {
		return nil
	}
	now, err := g.e.Present(ctx)
	if err != nil {
		return err
	}
	c.RequestKey = ""
	at, names := -1, g.names()
	err = each(func(place string, inside bool, s *core.Submission) error {
		if !inside {
			at++
		}
		if inside && s.ID != nil && s.ID.Full && s.ID.N != g.flow.N {
			return base.Errorf(base.CodePartitionMismatch, "the id has partition %d, the flow %d", s.ID.N, g.flow.N).WithField("execution_id")
		}
		cmd, err := g.e.CheckSubmit(ctx, c, *s, names)
		if err != nil {
			return err
		}
		if err := cmd.S.CheckTimes(now.Now); err != nil {
			return err
		}
		if refusal := cmp.Or(now.Refuses(cmd), cmd.Bound); refusal != nil {
			g.late, g.lateAt = core.AtPlace(refusal, place), at
			return refusal
		}
		if inside && !g.agreed && (cmd.S.ID != nil || len(cmd.Budgets.List) > 0) {
			g.inner = append(g.inner, innerNode{cmd: cmd, at: at, place: place})
		}
		return nil
	})
	g.allowParents(nil)
	if g.late != nil {
		return nil
	}
	return err
}

// allowParents accepts budgets of sub-flows whose parents the request makes itself, own among them: those exist when the sub-flow begins.
func (g *graphDelta) allowParents(own []limits.OwnBudget) {
	made := map[string]bool{}
	note := func(budgets []limits.OwnBudget) {
		for i := range budgets {
			made[budgets[i].Definition.Name], made[budgets[i].ID.String()] = true, true
		}
	}
	note(own)
	for i := range g.nodes {
		note(g.nodes[i].cmd.Budgets.List)
	}
	for i := range g.inner {
		for j := range g.inner[i].cmd.Budgets.List {
			if own := &g.inner[i].cmd.Budgets.List[j]; own.Orphan != nil && made[own.Definition.Parent] {
				own.Orphan = nil
			}
		}
		note(g.inner[i].cmd.Budgets.List)
	}
}

// write makes the nodes and the edges that lead to them. upstream is how an upstream that exists already has ended; nil: it has not.
func (g *graphDelta) write(u *txn.Tx, f *core.Flow, upstream func(base.UUID) *core.EndedRun) (made []*txn.Row) {
	inbound := map[string][]core.Edge{}
	out := map[string]int{}
	for i := range g.edges {
		edge := g.edge(&g.edges[i])
		if end := upstream(edge.From.ID.UUID); end != nil {
			edge.Resolve(*end, u.Now)
		}
		inbound[edge.To.Name] = append(inbound[edge.To.Name], edge)
		out[edge.From.Name]++
	}
	for i := range g.nodes {
		p := &g.nodes[i]
		p.cmd.S.Member = g.membership(p, inbound[p.node.Name], out[p.node.Name])
		p.cmd.Write(u, nil)
		ent := u.Entries[p.id.UUID]
		f.AddMember(ent.Exec)
		member := memberDoc(f.ID.UUID, p.node.Name, p.id)
		member.Data = p.fingerprint
		u.Changes.NewDocs = append(u.Changes.NewDocs, member)
		if p.node.Flow != nil {
			u.Changes.NewDocs = append(u.Changes.NewDocs, subflowDoc(p.id.UUID, p.node.Flow))
		}
		g.writeEdges(u, f, ent, inbound[p.node.Name])
		made = append(made, ent)
	}
	return made
}

// edge is an edge to be made, as yet pending.
func (g *graphDelta) edge(given *core.FlowEdge) core.Edge {
	id := given.ID
	if id.IsZero() {
		id = g.e.Mint()
	} else {
		txn.SetIn(&g.given, id, true)
	}
	return core.Edge{ID: id, FlowID: g.flow, From: g.refs[given.From], To: g.refs[given.To], Kind: given.Kind, Pass: given.Pass, State: core.EdgePending}
}

// membership is the place of a node in the graph.
func (g *graphDelta) membership(p *plannedNode, inbound []core.Edge, out int) *core.Membership {
	m := &core.Membership{
		Name: p.node.Name, Root: g.root, MayFail: p.node.MayFail, Output: p.node.Name == g.output, Subflow: p.node.Flow != nil, Out: out,
	}
	if g.root.IsZero() {
		m.Root = g.flow
	}
	if p.node.Join != nil {
		m.Join.JoinSpec = *p.node.Join
	}
	for i := range inbound {
		m.AddInbound(&inbound[i])
	}
	return m
}

// writeEdges files the edges that lead to a member that has none yet.
func (g *graphDelta) writeEdges(u *txn.Tx, f *core.Flow, ent *txn.Row, inbound []core.Edge) {
	if len(inbound) == 0 {
		return
	}
	from := make([]base.UUID, len(inbound))
	for i := range inbound {
		from[i] = inbound[i].From.ID.UUID
		createEdge(u, inbound[i])
		g.markEdgeID(u, f, &inbound[i])
	}
	f.Edges += len(inbound)
	u.Changes.NewDocs = append(u.Changes.NewDocs, upstreamsDoc(ent.Exec.ID.UUID, from))
}

// markEdgeID makes sure that an edge id given by a caller is unique in the flow.
func (g *graphDelta) markEdgeID(u *txn.Tx, f *core.Flow, edge *core.Edge) {
	if g.given[edge.ID] {
		u.Changes.NewDocs = append(u.Changes.NewDocs, docOf(edgeIDRef(f.ID.UUID, edge.ID), [2]base.UUID{edge.From.ID.UUID, edge.To.ID.UUID}))
	}
}

// subflowDoc keeps the definition of a sub-flow until it begins, and for a replay of its node (F57).
func subflowDoc(node base.UUID, s *core.FlowSubmission) store.Doc {
	data, _ := json.Marshal(s)
	return store.Doc{DocRef: subflowRef(node), Data: data}
}

// readSubflow reads the definition of a sub-flow. Codes: corruption.
func readSubflow(doc *store.Doc, s *core.FlowSubmission) error {
	if err := json.Unmarshal(doc.Data, s); err != nil {
		return txn.Corrupt("sub-flow", err)
	}
	return nil
}

// sameFingerprint reports whether two requests ask for the same; one that is unknown is another.
func sameFingerprint(a, b []byte) bool { return len(a) > 0 && bytes.Equal(a, b) }
