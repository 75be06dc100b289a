package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// extendTries is how often an extension is planned again because the graph has changed meanwhile.
const extendTries = 16

// ExtendFlow adds nodes, members and edges to a flow, and may seal it (F14..F21). Codes: those of a submit, flow_not_found,
// flow_already_terminal, flow_sealed, stale_graph_revision, execution_not_found, partition_mismatch, execution_already_in_flow, name_taken,
// execution_not_in_flow, dependency_already_exists, edge_id_taken, join_already_decided, downstream_already_started, cycle_detected.
func (e *Graphs) ExtendFlow(ctx context.Context, c txn.Caller, x core.FlowExtension) (FlowAnswer, error) {
	if err := x.CheckShape(e.Cfg.Limits); err != nil {
		return FlowAnswer{}, err
	}
	for range extendTries {
		cmd, err := e.planExtension(ctx, c, x)
		if err != nil {
			return FlowAnswer{}, err
		}
		err = e.DoAlone(ctx, cmd)
		cmd.room.Settled(err == nil && !cmd.outdated && !cmd.replayed, err) // after an error the command may still be running, and write these
		if err != nil {
			return FlowAnswer{}, err
		}
		if !cmd.outdated {
			if cmd.replayed {
				c.Again()
			}
			return cmd.answer, nil
		}
	}
	return FlowAnswer{}, base.Errorf(base.CodeOverloaded, "others change the graph all the time").WithRetryAfter(100)
}

// extension is the command of ExtendFlow: what it adds, planned on a look at the graph that the transaction checks to be still true.
type extension struct {
	graphDelta
	x        core.FlowExtension
	seen     *core.Flow         // the flow as it was when the extension was planned
	kept     map[string]base.ID // nodes and members that exist already
	places   []core.EdgePlace   // where the request has the edges
	members  []newMember        // executions that become members
	top      base.UUID          // the execution above all flows that this one lies in, as long as it is in none; absent: there is none
	old      map[base.UUID]bool // members that exist already and that edges concern
	reached  [][2]string        // edges that a cycle through those may have
	short    []base.UUID        // members whose quorum the seal makes impossible
	unread   error              // some that cannot be read may be like those
	request  store.DocRef       // of a call that its key makes repeatable
	replayed bool
	outdated bool // the graph has changed since
	answer   FlowAnswer
}

// planExtension reads the graph and checks the request against it, in the order of F15.
func (e *Graphs) planExtension(ctx context.Context, c txn.Caller, x core.FlowExtension) (*extension, error) {
	f, err := e.ReadFlow(ctx, c, x.Flow)
	if err != nil {
		return nil, err
	}
	cmd := &extension{x: x, seen: f, kept: map[string]base.ID{}, old: map[base.UUID]bool{}}
	cmd.flow, cmd.root, cmd.list, cmd.output = f.ID, f.Root, "nodes", f.Output
	cmd.caller, cmd.e = c, e
	if f.OfChildren() {
		cmd.parent = f.Parent // it may wait for the members as for children that it spawned
	}
	if c.RequestKey != "" {
		cmd.request = txn.RequestRef(c, cmd.Name(), f.ID.UUID.String(), c.RequestKey)
	}
	return cmd, e.Prepare(ctx, cmd.request, func() error { return cmd.plan(ctx, f) })
}

// plan plans what the extension adds to a flow as it was read.
func (x *extension) plan(ctx context.Context, f *core.Flow) error {
	if err := x.open(f); err != nil {
		return err
	}
	known, err := x.e.namesOf(ctx, f.ID.UUID)
	if err != nil {
		return err
	}
	if err := x.planNodes(ctx, x.caller, known); err != nil {
		return err
	}
	if err = x.planMembers(ctx, known); err == nil {
		err = x.planEdges(ctx, known)
	}
	if err != nil {
		return x.before(ctx, len(x.nodes), err)
	}
	if x.x.Seal && f.Quorums {
		if x.short, x.unread, err = x.e.shortQuorums(ctx, f.ID.UUID); err != nil {
			return err
		}
	}
	return x.enter(ctx)
}

// open returns the refusal of a flow that takes no more members, or of a caller that expects another graph.
func (x *extension) open(f *core.Flow) error {
	if f.State == core.FlowOpen && f.Sealed && x.sealsOnly() {
		return f.Stale(x.x.Expected)
	}
	if err := f.NotOpen(); err != nil {
		return err
	}
	return f.Stale(x.x.Expected)
}

// sealsOnly reports whether the request adds nothing.
func (x *extension) sealsOnly() bool {
	return x.x.Seal && len(x.x.Nodes)+len(x.x.Members)+len(x.x.Edges) == 0
}

// memberNames finds the members of a flow by name and by id.
type memberNames struct {
	ids   map[string]base.ID
	names map[base.UUID]string
}

func (e *Graphs) namesOf(ctx context.Context, flow base.UUID) (*memberNames, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocMember, Owner: txn.Owner(flow)}}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	known := &memberNames{ids: map[string]base.ID{}, names: map[base.UUID]string{}}
	for i := range loaded.Scanned[0] {
		doc := &loaded.Scanned[0][i]
		m, err := readMember(doc)
		if err != nil {
			return nil, err
		}
		known.ids[doc.Key], known.names[m.id.UUID] = m.id, doc.Key
	}
	return known, nil
}

// find is the name of a member that is named by name or id.
func (m *memberNames) find(end string) (string, bool) {
	if _, ok := m.ids[end]; ok {
		return end, true
	}
	id, err := base.ParseID(end)
	if err != nil {
		return "", false
	}
	name, ok := m.names[id.UUID]
	return name, ok && id.Names(m.ids[name])
}

// planNodes plans the nodes whose names are new; one that exists must be the same (F16).
func (x *extension) planNodes(ctx context.Context, c txn.Caller, known *memberNames) error {
	var fresh []core.FlowNode
	for i := range x.x.Nodes {
		node := &x.x.Nodes[i]
		if id, taken := known.ids[node.Name]; taken {
			if err := x.e.sameNode(ctx, id, node, &x.x.Defaults, x.seen); err != nil {
				return core.AtPlace(err, x.listed(i))
			}
			x.kept[node.Name] = id
			continue
		}
		fresh, x.number = append(fresh, *node), append(x.number, i)
	}
	if err := x.e.newGraphDelta(ctx, c, &x.graphDelta, &x.x.Defaults, fresh, x.seen.Namespace, x.submitter(c), x.x.Trace); err != nil {
		return err
	}
	if err := core.CheckNesting(x.seen.Depth, x.list, x.x.Nodes); err != nil {
		return err
	}
	return x.checkSubflows(ctx, c, fresh, func(there func(string) bool, check core.NodeCheck) error {
		return x.x.CheckNodes(x.seen.Namespace, x.submitter(c).Name, there, check)
	})
}

// checkSubflows checks the nodes of sub-flows of new nodes (F46); each iterates over the nodes of the request.
func (x *extension) checkSubflows(
	ctx context.Context, c txn.Caller, fresh []core.FlowNode, each func(there func(name string) bool, check core.NodeCheck) error,
) error {
	there := func(name string) bool { return !x.kept[name].IsZero() }
	return x.judgeSubflows(ctx, c, fresh, func(check core.NodeCheck) error { return each(there, check) })
}

// submitter returns the submitter of the new members: the caller, or the submitter of the flow if the engine itself extends it.
func (x *extension) submitter(c txn.Caller) core.Submitter {
	if c.Principal != "" {
		return c.Submitter()
	}
	return x.seen.Submitter()
}

// sameNode reports whether the member that has the name of a node is what the node asks for: name_taken.
func (e *Graphs) sameNode(ctx context.Context, id base.ID, node *core.FlowNode, defaults *core.FlowNode, f *core.Flow) error {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{id.UUID}, Inputs: true, Docs: []store.DocRef{subflowRef(id.UUID)}})
	if err != nil {
		return txn.PublicFault(err)
	}
	asked := node.Submission(f.Namespace, f.Creator, defaults)
	if err := asked.Normalize(work.AnySize); err != nil {
		return err
	}
	there := loaded.Executions[id.UUID]
	if there == nil || there.Member == nil {
		return nil
	}
	given := core.FlowNode{MayFail: there.Member.MayFail}
	if spec := there.Member.Join.JoinSpec; spec != (core.JoinSpec{}) {
		given.Join = &spec
	}
	if doc, ok := loaded.Docs[subflowRef(id.UUID)]; ok {
		given.Flow = &core.FlowSubmission{}
		if err := readSubflow(&doc, given.Flow); err != nil {
			return err
		}
	}
	stored := core.Submission{Lane: there.Class.Lane, Kind: there.Class.Kind, Input: there.Input, Policy: there.GivenPolicy()}
	if !slices.Equal(core.NodeFingerprint(&asked, node), core.NodeFingerprint(&stored, &given)) {
		return base.Errorf(base.CodeNameTaken, "another node is called %q", node.Name).WithField("name").With("execution_id", id.String())
	}
	return nil
}

// planEdges checks the edges as far as names allow, and leaves out those that exist already (F19).
func (x *extension) planEdges(ctx context.Context, known *memberNames) error {
	edges, err := x.x.CheckGraph(known.find)
	if err != nil {
		return err
	}
	return x.newEdges(ctx, known, edges)
}

// newEdges leaves out the edges that exist already, and finds the members that the others concern.
func (x *extension) newEdges(ctx context.Context, known *memberNames, edges []core.PlacedEdge) error {
	var want store.Want
	for i := range edges {
		for _, end := range []string{edges[i].From, edges[i].To} {
			if _, fresh := x.refs[end]; !fresh {
				x.refs[end] = core.NodeRef{Name: end, ID: known.ids[end]}
				x.old[known.ids[end].UUID] = true
			}
		}
		want.Docs = append(want.Docs, EdgeRef(x.refs[edges[i].From].ID.UUID, x.refs[edges[i].To].ID.UUID))
	}
	loaded, err := x.e.ReadIf(ctx, want)
	if err != nil {
		return txn.PublicFault(err)
	}
	for i := range edges {
		doc, there := loaded.Docs[want.Docs[i]]
		if !there {
			x.edges, x.places = append(x.edges, edges[i].FlowEdge), append(x.places, edges[i].EdgePlace)
			continue
		}
		var edge core.Edge
		if err := ReadDoc(&doc, &edge); err != nil {
			return err
		}
		if edge.Kind != edges[i].Kind || edge.Pass != edges[i].Pass {
			there := core.FlowEdge{ID: edge.ID, From: edge.From.Name, To: edge.To.Name, Kind: edge.Kind, Pass: edge.Pass}
			return core.DependencyExists(there).WithField(edges[i].Place(""))
		}
	}
	if err := x.checkInputs(ctx); err != nil {
		return err
	}
	if err := x.findReached(ctx); err != nil {
		return err
	}
	return x.seen.CheckGrowth(x.list, len(x.nodes)+len(x.members), len(x.edges))
}
