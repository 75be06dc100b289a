package flowfabric

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/service"
)

// Graphs as the engine takes them. Refusals name the place: nodes[3].lane.

// core is the flow for the rules to check. The id must be set.
func (f *Flow) core(namespace string) (core.FlowSubmission, error) {
	s, err := f.graph().core("")
	if err != nil {
		return s, err
	}
	id, err := parseID(f.ID)
	if err != nil {
		return s, err
	}
	if err := checkOwnBudgets(f.Budgets); err != nil {
		return s, err
	}
	s.ID, s.Namespace, s.Kind, s.IdempotencyKey, s.Unsealed, s.Tags = &id, namespace, f.Kind, f.IdempotencyKey, f.Unsealed, maps.Clone(f.Tags)
	if len(f.Budgets) > 0 {
		if s.Budgets, err = json.Marshal(f.Budgets); err != nil {
			return s, err
		}
	}
	return s, nil
}

// bare refuses what a flow that is made empty, or stands in the place of a node, does not have.
func (f *Flow) bare(place string, allowed ...string) error {
	given := map[string]bool{
		"flow_id": f.ID != "", "kind": f.Kind != "", "idempotency_key": f.IdempotencyKey != "", "defaults": !f.Defaults.isZero(), "nodes": len(f.Nodes) > 0,
		"edges": len(f.Edges) > 0, "output": f.Output != "", "seal": f.Unsealed, "tags": len(f.Tags) > 0, "budgets": len(f.Budgets) > 0,
	}
	for _, name := range allowed {
		delete(given, name)
	}
	for _, name := range []string{"flow_id", "kind", "idempotency_key", "defaults", "nodes", "edges", "output", "seal", "tags", "budgets"} {
		if given[name] {
			return newError(core.CodeInvalidFlow, "it has no %s of its own", name).At(inPlace(place, name), "leave it out")
		}
	}
	return nil
}

// graph is what flows, their parts and their extensions have in common.
type graph struct {
	defaults Node
	nodes    []Node
	edges    []Edge
	output   string
}

func (f *Flow) graph() graph { return graph{f.Defaults, f.Nodes, f.Edges, f.Output} }

func (x *FlowExtension) graph() graph {
	return graph{defaults: x.Defaults, nodes: x.Nodes, edges: x.Edges}
}

func (g graph) core(place string) (core.FlowSubmission, error) {
	s := core.FlowSubmission{Output: g.output, Nodes: make([]core.FlowNode, len(g.nodes))}
	var err error
	if s.Defaults, err = g.defaults.coreDefaults(inPlace(place, "defaults")); err != nil {
		return s, err
	}
	for i := range g.nodes {
		if s.Nodes[i], err = g.nodes[i].core(nodeAt(place, i)); err != nil {
			return s, err
		}
	}
	s.Edges, err = coreEdges(inPlace(place, "edges"), edgesOf(g.edges, g.nodes))
	return s, err
}

func coreEdges(place string, edges []Edge) ([]core.FlowEdge, error) {
	all := make([]core.FlowEdge, len(edges))
	for i, e := range edges {
		id, err := uuidOf("edge_id", e.ID)
		if err != nil {
			return nil, within(fmt.Sprintf("%s[%d]", place, i), err)
		}
		all[i] = core.FlowEdge{ID: id, From: e.From, To: e.To, Kind: core.EdgeKind(e.Kind), Pass: e.Pass}
	}
	return all, nil
}

// isZero reports whether nothing is said.
func (n *Node) isZero() bool {
	s := Submission{Kind: n.Kind, Input: n.Input, SubmitOptions: n.SubmitOptions}
	return n.Name == "" && s.isZero() && n.Join == (Join{}) && len(n.Inbound) == 0 && !n.Optional && n.Flow == nil && n.err == nil && !n.zeroPriority && !n.zeroDelay
}

func (s *Submission) isZero() bool {
	return s.Kind == "" && s.Input.IsNothing() && s.Input.Problem("input") == nil && s.ID == "" && s.Lane == "" && s.IdempotencyKey == "" && s.Priority == 0 &&
		s.Delay == 0 && s.StartAt.IsZero() && s.Deadline.IsZero() && len(s.Tags)+len(s.Requires)+len(s.BudgetIDs)+len(s.Estimate)+len(s.Budgets)+len(s.Quotas) == 0 &&
		s.Policy == nil
}

// coreDefaults are what nodes have that leave it out.
func (n *Node) coreDefaults(place string) (core.FlowNode, error) {
	if n.Name != "" || n.ID != "" || n.Join != (Join{}) || len(n.Inbound) > 0 || n.Optional || n.Flow != nil {
		return core.FlowNode{}, newError(core.CodeInvalidFlow, "defaults have no name, id, edges, join or flow").At(place, "give kind, input, lane, priority, times, tags, policy")
	}
	return n.core(place)
}

func (n *Node) core(place string) (core.FlowNode, error) {
	node := core.FlowNode{Name: n.Name, MayFail: n.Optional, After: n.after()}
	if n.err != nil {
		return node, within(place, n.err)
	}
	if n.IdempotencyKey != "" {
		return node, newError(core.CodeInvalidFlow, "a node is known by its name").At(place+".idempotency_key", "leave the key out")
	}
	if err := n.workInto(&node); err != nil {
		return node, within(place, err)
	}
	spec, err := joinSpec(n.Join)
	if err != nil {
		return node, within(place+".join", err)
	}
	if n.Join != (Join{}) {
		node.Join = &spec
	}
	if n.Flow == nil {
		return node, nil
	}
	if err := n.Flow.bare(place+".flow", "defaults", "nodes", "edges", "output"); err != nil {
		return node, err
	}
	inner, err := n.Flow.graph().core(place + ".flow")
	node.Flow = &inner
	return node, err
}

// workInto converts what a node has like a single submission.
func (n *Node) workInto(node *core.FlowNode) error {
	if err := n.Input.Problem("input"); err != nil {
		return err
	}
	policy, err := encodePolicy(n.Policy, n.short())
	if err != nil {
		return err
	}
	if n.ID != "" {
		id, err := parseID(n.ID)
		if err != nil {
			return err
		}
		node.ID = &id
	}
	node.Kind, node.Lane, node.PolicyJSON, node.Tags = n.Kind, n.Lane, policy, maps.Clone(n.Tags)
	node.DelayUntil, node.DeadlineAt = core.TimeOf(n.StartAt), core.TimeOf(n.Deadline)
	if !n.Input.IsNothing() {
		input := service.CorePayload(n.Input)
		node.Input = &input
	}
	if n.Priority != 0 || n.zeroPriority {
		priority := n.Priority
		node.Priority = &priority
	}
	if n.Delay != 0 || n.zeroDelay {
		delay := millis(n.Delay)
		node.DelayMS = &delay
	}
	return nil
}

// joinSpec reads the words of a join; invalid_join.
func joinSpec(j Join) (core.JoinSpec, error) {
	spec := core.JoinSpec{K: j.K}
	if j.CancelRemaining {
		spec.OnSatisfied = core.CancelRemaining
	}
	if j.Policy == "" {
		return spec, nil
	}
	policy, ok := core.ParseJoinPolicy(string(j.Policy))
	if !ok {
		return spec, newError(core.CodeInvalidJoin, "%q is not a policy of a join", j.Policy).At("policy", "use all_of, any_of or quorum")
	}
	spec.Policy = policy
	return spec, nil
}

// core is the extension for the rules to check.
func (x *FlowExtension) core(id ID) (core.FlowExtension, error) {
	flow, err := parseID(id)
	if err != nil {
		return core.FlowExtension{}, err
	}
	part, err := x.graph().core("")
	if err != nil {
		return core.FlowExtension{}, err
	}
	more := core.FlowExtension{Flow: flow, Expected: x.Revision, Defaults: part.Defaults, Nodes: part.Nodes, Edges: part.Edges, Seal: x.Seal}
	for i, m := range x.Members {
		member, err := parseID(m.ID)
		if err != nil {
			return more, within(fmt.Sprintf("members[%d].execution_id", i), err)
		}
		more.Members = append(more.Members, core.FlowMember{ID: member, Name: m.Name})
	}
	return more, nil
}

// nodeAt is the path of a node.
func nodeAt(place string, i int) string { return fmt.Sprintf("%s[%d]", inPlace(place, "nodes"), i) }

// inPlace is the path of a field in a place.
func inPlace(place, field string) string {
	if place == "" {
		return field
	}
	return place + "." + field
}

// within says in which place of a request a field at fault stands.
func within(place string, err error) error {
	var refusal *Error
	if !errors.As(err, &refusal) {
		return err
	}
	named := *refusal
	switch {
	case named.Field == "":
		named.Field = place
	case place != "":
		named.Field = place + "." + named.Field
	}
	return &named
}
