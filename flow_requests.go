package flowfabric

import (
	"cmp"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Graphs in the form of requests, and their JSON (U89, U90). Errors carry the path of the field, such as nodes[3].lane.

// MarshalJSON writes the flow in the form of the HTTP API. It returns the error of an input that could not be encoded.
func (f Flow) MarshalJSON() ([]byte, error) {
	w, err := f.wire()
	if err != nil {
		return nil, err
	}
	return wire.Marshal(&w)
}

// UnmarshalJSON reads a flow as strictly as the HTTP API does: its errors have codes and the path of the invalid field.
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
	if err := api.CheckResets(f.Budgets); err != nil {
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

func (f *Flow) request() (*wire.SubmitFlowRequest, error) {
	w, err := f.wire()
	if err != nil {
		return nil, err
	}
	request := &wire.SubmitFlowRequest{}
	request.Body.FlowSubmission = w
	return request, nil
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
	return f, api.CheckLimits(w.Budgets)
}

// graph holds the fields that flows, sub-flows and extensions have in common.
type graph struct {
	defaults Node
	nodes    []Node
	edges    []Edge
	output   string
}

// wire converts the graph to the form of requests. It refuses what that form cannot express.
func (g graph) wire(place string) (wire.SubFlow, error) {
	w := wire.SubFlow{Nodes: make([]wire.FlowNode, len(g.nodes)), Edges: some(edgesOf(g.edges, g.nodes), Edge.wire), Output: g.output}
	if !g.defaults.isZero() {
		fields, err := g.defaults.defaults(inPlace(place, "defaults"))
		if err != nil {
			return w, err
		}
		w.Defaults = &fields
	}
	for i := range g.nodes {
		var err error
		if w.Nodes[i], err = g.nodes[i].wire(nodeAt(place, i)); err != nil {
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

// defaults converts the defaults of nodes.
func (n *Node) defaults(place string) (wire.NodeFields, error) {
	if n.Name != "" || n.ID != "" || n.Join != (Join{}) || len(n.Inbound) > 0 || n.Optional || n.Flow != nil {
		return wire.NodeFields{}, calls.Refuse(base.CodeInvalidFlow, "defaults have no name, id, edges, join or flow").At(place, "give kind, input, lane, priority, times, tags, policy")
	}
	return n.fields(place)
}

// fields converts the fields that a node shares with a single submission.
func (n *Node) fields(place string) (wire.NodeFields, error) {
	if n.err != nil {
		return wire.NodeFields{}, api.Within(place, n.err)
	}
	if n.IdempotencyKey != "" {
		return wire.NodeFields{}, calls.Refuse(base.CodeInvalidFlow, "a node is known by its name").At(place+".idempotency_key", "leave the key out")
	}
	if err := cmp.Or(n.Input.Problem("input"), api.CheckOptions(&n.SubmitOptions)); err != nil {
		return wire.NodeFields{}, api.Within(place, err)
	}
	f := wire.NodeFields{
		Kind: n.Kind, Lane: n.Lane, DelayUntil: n.StartAt, DeadlineAt: n.Deadline, Tags: n.Tags, Policy: n.Policy, Requires: n.Requires,
		FairnessKey: n.FairnessKey, Quotas: n.Quotas, BudgetIDs: n.BudgetIDs, Estimate: n.Estimate, Budgets: n.Budgets, Input: n.Input,
	}
	if n.Priority != 0 || n.zeroPriority {
		f.Priority = &n.Priority
	}
	if n.Delay != 0 || n.zeroDelay {
		delay := calls.Millis(n.Delay)
		f.DelayMS = &delay
	}
	return f, nil
}

func (n *Node) wire(place string) (wire.FlowNode, error) {
	w := wire.FlowNode{Name: n.Name, ExecutionID: string(n.ID), MayFail: n.Optional, After: n.after()}
	var err error
	if w.NodeFields, err = n.fields(place); err != nil {
		return w, err
	}
	if n.Join != (Join{}) {
		spec := joinWire(n.Join)
		w.Join = &spec
	}
	if n.Flow == nil {
		return w, nil
	}
	if err := n.Flow.partOnly(place + ".flow"); err != nil {
		return w, err
	}
	inner, err := graph{n.Flow.Defaults, n.Flow.Nodes, n.Flow.Edges, n.Flow.Output}.wire(place + ".flow")
	w.Flow = &inner
	return w, err
}

// partOnly refuses fields that a flow used as a node must not have.
func (f *Flow) partOnly(place string) error {
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"flow_id", f.ID != ""},
		{"kind", f.Kind != ""},
		{"idempotency_key", f.IdempotencyKey != ""},
		{"seal", f.Unsealed},
		{"tags", len(f.Tags) > 0},
		{"budgets", len(f.Budgets) > 0},
	} {
		if part.given {
			return calls.Refuse(base.CodeInvalidFlow, "it has no %s of its own", part.name).At(inPlace(place, part.name), "leave it out")
		}
	}
	return nil
}

func nodeFrom(place string, w *wire.FlowNode) (Node, error) {
	f := &w.NodeFields
	if err := api.CheckLimits(f.Budgets); err != nil {
		return Node{}, api.Within(place, err)
	}
	n := Node{
		Name: w.Name, Kind: f.Kind, Input: f.Input, Optional: w.MayFail, zeroPriority: f.Priority != nil && *f.Priority == 0, zeroDelay: f.DelayMS != nil && *f.DelayMS == 0,
		SubmitOptions: SubmitOptions{
			ID: ID(w.ExecutionID), Lane: f.Lane, StartAt: f.DelayUntil, Deadline: f.DeadlineAt, Tags: f.Tags, Policy: f.Policy.Read(),
			Requires: f.Requires, FairnessKey: f.FairnessKey, Quotas: f.Quotas, BudgetIDs: f.BudgetIDs, Estimate: f.Estimate, Budgets: f.Budgets,
		},
	}
	if f.Priority != nil {
		n.Priority = *f.Priority
	}
	if f.DelayMS != nil {
		n.Delay = duration(*f.DelayMS)
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

// joinFrom converts an explicit join, including the default one.
func joinFrom(w wire.JoinSpec) Join {
	j := Join{Policy: JoinPolicy(w.Policy), K: w.K, CancelRemaining: w.OnSatisfied == wire.CancelRemaining}
	if j.Policy == "" {
		j.Policy = JoinAll
	}
	return j
}

// MarshalJSON writes the extension in the form of the HTTP API, without the revision, which is a header there.
func (x FlowExtension) MarshalJSON() ([]byte, error) {
	w, err := x.wire()
	if err != nil {
		return nil, err
	}
	return wire.Marshal(&w)
}

// UnmarshalJSON reads an extension as strictly as the HTTP API does: its errors have codes and the path of the invalid field.
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
		Members: some(w.Members, func(m wire.NewMember) api.Membership { return api.Membership{ID: ID(m.ExecutionID), Name: m.Name} }),
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
		Members: some(x.Members, func(m api.Membership) wire.NewMember { return wire.NewMember{ExecutionID: string(m.ID), Name: m.Name} }),
	}, nil
}

// isZero reports whether no field is set.
func (n *Node) isZero() bool {
	o := &n.SubmitOptions
	return n.Name == "" && n.Kind == "" && n.Input.IsNothing() && n.Input.Problem("input") == nil && n.Join == (Join{}) && len(n.Inbound) == 0 && !n.Optional &&
		n.Flow == nil && n.err == nil && !n.zeroPriority && !n.zeroDelay && o.ID == "" && o.Lane == "" && o.IdempotencyKey == "" && o.Priority == 0 && o.Delay == 0 &&
		o.StartAt.IsZero() && o.Deadline.IsZero() && o.FairnessKey == "" && o.Policy == nil &&
		len(o.Tags)+len(o.Requires)+len(o.BudgetIDs)+len(o.Estimate)+len(o.Budgets)+len(o.Quotas) == 0
}

// nodeAt returns the path of a node.
func nodeAt(place string, i int) string { return fmt.Sprintf("%s[%d]", inPlace(place, "nodes"), i) }

// inPlace returns the path of a field within a place.
func inPlace(place, field string) string {
	if place == "" {
		return field
	}
	return place + "." + field
}

// noneIfEmpty returns nil for an empty list.
func noneIfEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
