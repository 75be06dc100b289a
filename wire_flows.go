package flowfabric

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of graphs to submit (U89, U90).

// MarshalJSON writes the flow as the HTTP API takes it. An input that could not be encoded is its error.
func (f Flow) MarshalJSON() ([]byte, error) {
	w, err := f.wire()
	if err != nil {
		return nil, err
	}
	return wire.Marshal(&w)
}

// UnmarshalJSON reads a flow as strictly as the HTTP API does: its errors have codes, and the path of the field at fault.
//
// Codes: invalid_json, unknown_field, missing_field, invalid_argument.
func (f *Flow) UnmarshalJSON(text []byte) error {
	var w wire.FlowSubmission
	if err := wire.DecodeJSON(text, &w); err != nil {
		return api.FaultsError(err)
	}
	read, err := flowFrom(&w)
	if err != nil {
		return err
	}
	*f = read
	return nil
}

func (f *Flow) wire() (wire.FlowSubmission, error) {
	part, err := graph{f.Defaults, f.Nodes, f.Edges, f.Output}.wire("")
	if err != nil {
		return wire.FlowSubmission{}, err
	}
	if err := checkOwnBudgets(f.Budgets); err != nil {
		return wire.FlowSubmission{}, err
	}
	w := wire.FlowSubmission{
		Kind: f.Kind, FlowID: string(f.ID), IdempotencyKey: f.IdempotencyKey, Defaults: part.Defaults, Nodes: part.Nodes, Edges: part.Edges, Output: part.Output,
		Tags: f.Tags, Budgets: f.Budgets,
	}
	if f.Unsealed {
		w.Seal = new(bool)
	}
	return w, nil
}

func flowFrom(w *wire.FlowSubmission) (Flow, error) {
	part, err := graphFrom("", wire.SubFlow{Defaults: w.Defaults, Nodes: w.Nodes, Edges: w.Edges, Output: w.Output})
	if err != nil {
		return Flow{}, err
	}
	f := Flow{
		ID: ID(w.FlowID), Kind: w.Kind, IdempotencyKey: w.IdempotencyKey, Defaults: part.defaults, Nodes: part.nodes, Edges: part.edges, Output: part.output,
		Unsealed: w.Seal != nil && !*w.Seal, Tags: w.Tags, Budgets: w.Budgets,
	}
	return f, checkLimits(w.Budgets)
}

// wire is the graph in the form of requests.
func (g graph) wire(place string) (wire.SubFlow, error) {
	edges := edgesOf(g.edges, g.nodes)
	w := wire.SubFlow{Nodes: make([]wire.FlowNode, len(g.nodes)), Edges: some(edges, Edge.wire), Output: g.output}
	if _, err := coreEdges(inPlace(place, "edges"), edges); err != nil {
		return w, err
	}
	if !g.defaults.isZero() {
		if _, err := g.defaults.coreDefaults(inPlace(place, "defaults")); err != nil {
			return w, err
		}
		fields, err := g.defaults.fields()
		if err != nil {
			return w, within(inPlace(place, "defaults"), err)
		}
		w.Defaults = &fields
	}
	for i := range g.nodes {
		at := nodeAt(place, i)
		if _, err := g.nodes[i].core(at); err != nil { // what only the client can refuse
			return w, err
		}
		var err error
		if w.Nodes[i], err = g.nodes[i].wire(at); err != nil {
			return w, err
		}
	}
	return w, nil
}

func graphFrom(place string, w wire.SubFlow) (graph, error) {
	g := graph{edges: some(w.Edges, edgeFrom), output: w.Output}
	if w.Defaults != nil {
		var err error
		if g.defaults, err = nodeFrom(inPlace(place, "defaults"), &wire.FlowNode{NodeFields: *w.Defaults}); err != nil {
			return g, err
		}
	}
	for i := range w.Nodes {
		node, err := nodeFrom(nodeAt(place, i), &w.Nodes[i])
		if err != nil {
			return g, err
		}
		g.nodes = append(g.nodes, node)
	}
	return g, nil
}

// fields are what a node has like a single submission.
func (n *Node) fields() (wire.NodeFields, error) {
	s := Submission{Kind: n.Kind, Input: n.Input, SubmitOptions: n.SubmitOptions}
	w, err := s.wire()
	if err != nil {
		return wire.NodeFields{}, err
	}
	f := wire.NodeFields{
		Kind: w.Kind, Lane: w.Lane, DelayUntil: w.DelayUntil, DeadlineAt: w.DeadlineAt, Tags: w.Tags, Policy: w.Policy, Requires: w.Requires,
		Quotas: w.Quotas, BudgetIDs: w.BudgetIDs, Estimate: w.Estimate, Budgets: w.Budgets, InputFields: w.InputFields,
	}
	if n.Priority != 0 || n.zeroPriority {
		f.Priority = &n.Priority
	}
	if n.Delay != 0 || n.zeroDelay {
		f.DelayMS = &w.DelayMS
	}
	return f, nil
}

func (n *Node) wire(place string) (wire.FlowNode, error) {
	w := wire.FlowNode{Name: n.Name, ExecutionID: string(n.ID), MayFail: n.Optional, After: n.after()}
	var err error
	if w.NodeFields, err = n.fields(); err != nil {
		return w, within(place, err)
	}
	if n.Join != (Join{}) {
		spec := joinWire(n.Join)
		w.Join = &spec
	}
	if n.Flow != nil {
		inner, err := graph{n.Flow.Defaults, n.Flow.Nodes, n.Flow.Edges, n.Flow.Output}.wire(place + ".flow")
		if err != nil {
			return w, err
		}
		w.Flow = &inner
	}
	return w, nil
}

func nodeFrom(place string, w *wire.FlowNode) (Node, error) {
	f := &w.NodeFields
	s := wire.Submission{
		Kind: f.Kind, ExecutionID: w.ExecutionID, Lane: f.Lane, DelayUntil: f.DelayUntil, DeadlineAt: f.DeadlineAt, Tags: f.Tags, Policy: f.Policy,
		Requires: f.Requires, FairnessKey: f.FairnessKey, Quotas: f.Quotas, BudgetIDs: f.BudgetIDs, Estimate: f.Estimate, Budgets: f.Budgets,
		InputFields: f.InputFields,
	}
	if f.Priority != nil {
		s.Priority = *f.Priority
	}
	if f.DelayMS != nil {
		s.DelayMS = *f.DelayMS
	}
	read, err := submissionFrom(&s, policyFrom)
	if err != nil {
		return Node{}, within(place, err)
	}
	n := Node{
		Name: w.Name, Kind: read.Kind, Input: read.Input, SubmitOptions: read.SubmitOptions, Optional: w.MayFail,
		zeroPriority: f.Priority != nil && *f.Priority == 0, zeroDelay: f.DelayMS != nil && *f.DelayMS == 0,
	}
	for _, name := range w.After {
		n.Inbound = append(n.Inbound, Edge{From: name, To: w.Name, Kind: OnSuccess, Pass: name})
	}
	if w.Join != nil {
		n.Join = joinFrom(*w.Join)
	}
	if w.Flow != nil {
		inner, err := graphFrom(place+".flow", *w.Flow)
		if err != nil {
			return Node{}, err
		}
		n.Flow = &Flow{Defaults: inner.defaults, Nodes: inner.nodes, Edges: inner.edges, Output: inner.output}
	}
	return n, nil
}

func (e Edge) wire() wire.FlowEdge {
	return wire.FlowEdge{EdgeID: e.ID, From: e.From, To: e.To, Kind: string(e.Kind), Pass: e.Pass}
}

func edgeFrom(w wire.FlowEdge) Edge {
	return Edge{ID: w.EdgeID, From: w.From, To: w.To, Kind: EdgeKind(w.Kind), Pass: w.Pass}
}

func joinWire(j Join) wire.JoinSpec {
	w := wire.JoinSpec{Policy: string(j.Policy), K: j.K}
	if j.CancelRemaining {
		w.OnSatisfied = wire.CancelRemaining
	}
	return w
}

// joinFrom reads a join that was given, be it the default.
func joinFrom(w wire.JoinSpec) Join {
	j := Join{Policy: JoinPolicy(w.Policy), K: w.K, CancelRemaining: w.OnSatisfied == wire.CancelRemaining}
	if j.Policy == "" {
		j.Policy = JoinAll
	}
	return j
}

// MarshalJSON writes the extension as the HTTP API takes it, without the revision, which is a header there.
func (x FlowExtension) MarshalJSON() ([]byte, error) {
	w, err := x.wire()
	if err != nil {
		return nil, err
	}
	return wire.Marshal(&w)
}

// UnmarshalJSON reads an extension as strictly as the HTTP API does: its errors have codes, and the path of the field at fault.
//
// Codes: invalid_json, unknown_field, missing_field, invalid_argument.
func (x *FlowExtension) UnmarshalJSON(text []byte) error {
	var w wire.FlowExtension
	if err := wire.DecodeJSON(text, &w); err != nil {
		return api.FaultsError(err)
	}
	part, err := graphFrom("", wire.SubFlow{Defaults: w.Defaults, Nodes: w.Nodes, Edges: w.Edges})
	if err != nil {
		return err
	}
	*x = FlowExtension{
		Defaults: part.defaults, Nodes: part.nodes, Edges: part.edges, Seal: w.Seal,
		Members: some(w.Members, func(m wire.NewMember) Membership { return Membership{ID: ID(m.ExecutionID), Name: m.Name} }),
	}
	return nil
}

func (x *FlowExtension) wire() (wire.FlowExtension, error) {
	part, err := graph{defaults: x.Defaults, nodes: x.Nodes, edges: x.Edges}.wire("")
	if err != nil {
		return wire.FlowExtension{}, err
	}
	return wire.FlowExtension{
		Defaults: part.Defaults, Nodes: noneIfEmpty(part.Nodes), Edges: part.Edges, Seal: x.Seal,
		Members: some(x.Members, func(m Membership) wire.NewMember { return wire.NewMember{ExecutionID: string(m.ID), Name: m.Name} }),
	}, nil
}
