package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Graphs in the form of the engine. Refusals carry the path of the field: nodes[3].lane.

// coreFlow converts a graph to submit for validation. Its id must be set.
func coreFlow(w *wire.FlowSubmission, namespace string) (core.FlowSubmission, error) {
	s, err := CoreGraph(graphOf(w))
	if err != nil {
		return s, err
	}
	id, err := base.ParseID(w.FlowID)
	if err != nil {
		return s, err
	}
	if err := checkBudgets(w.Budgets); err != nil {
		return s, err
	}
	s.ID, s.Namespace, s.Kind, s.IdempotencyKey, s.Unsealed, s.Tags = &id, namespace, w.Kind, w.IdempotencyKey, unsealed(w), maps.Clone(w.Tags)
	if len(w.Budgets) > 0 {
		if s.Budgets, err = json.Marshal(w.Budgets); err != nil {
			return s, err
		}
	}
	return s, nil
}

func graphOf(w *wire.FlowSubmission) wire.SubFlow {
	return wire.SubFlow{Defaults: w.Defaults, Nodes: w.Nodes, Edges: w.Edges, Output: w.Output}
}

func unsealed(w *wire.FlowSubmission) bool { return w.Seal != nil && !*w.Seal }

// checkBare refuses fields that an empty flow must not have.
func checkBare(w *wire.FlowSubmission) error {
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"idempotency_key", w.IdempotencyKey != ""},
		{"defaults", w.Defaults != nil},
		{"nodes", len(w.Nodes) > 0},
		{"edges", len(w.Edges) > 0},
		{"output", w.Output != ""},
		{"seal", unsealed(w)},
		{"budgets", len(w.Budgets) > 0},
	} {
		if part.given {
			return base.Errorf(base.CodeInvalidFlow, "it has no %s of its own", part.name).WithField(part.name).WithHint("leave it out")
		}
	}
	return nil
}

// checkBudgets refuses budgets that cannot be created with an execution or a flow, and names the invalid one.
func checkBudgets(all []api.BudgetDefinition) error {
	return cmp.Or(api.CheckLimits(all), api.CheckResets(all))
}

// CoreGraph converts a graph for validation: nodes, defaults, edges and output.
func CoreGraph(w wire.SubFlow) (core.FlowSubmission, error) { return coreGraph("", &w) }

func coreGraph(place string, w *wire.SubFlow) (core.FlowSubmission, error) {
	s := core.FlowSubmission{Output: w.Output, Nodes: make([]core.FlowNode, len(w.Nodes))}
	var err error
	if w.Defaults != nil {
		if s.Defaults, err = coreWork(w.Defaults); err != nil {
			return s, api.Within(inPlace(place, "defaults"), err)
		}
	}
	for i := range w.Nodes {
		if s.Nodes[i], err = coreNode(fmt.Sprintf("%s[%d]", inPlace(place, "nodes"), i), &w.Nodes[i]); err != nil {
			return s, err
		}
	}
	s.Edges, err = coreEdges(inPlace(place, "edges"), w.Edges)
	return s, err
}

// inPlace returns the path of a field within a place.
func inPlace(place, field string) string {
	if place == "" {
		return field
	}
	return place + "." + field
}

func coreEdges(place string, edges []wire.FlowEdge) ([]core.FlowEdge, error) {
	all := make([]core.FlowEdge, len(edges))
	for i, e := range edges {
		all[i] = core.FlowEdge{From: e.From, To: e.To, Kind: core.EdgeKind(e.Kind), Pass: e.Pass}
		if e.EdgeID == "" {
			continue
		}
		var err error
		if all[i].ID, err = uuidOf("edge_id", e.EdgeID); err != nil {
			return nil, api.Within(fmt.Sprintf("%s[%d]", place, i), err)
		}
	}
	return all, nil
}

func coreNode(place string, w *wire.FlowNode) (core.FlowNode, error) {
	node, err := coreWork(&w.NodeFields)
	if err != nil {
		return node, api.Within(place, err)
	}
	node.Name, node.MayFail, node.After = w.Name, w.MayFail, w.After
	if node.ID, err = givenID(api.ID(w.ExecutionID)); err != nil {
		return node, api.Within(place, err)
	}
	if w.Join != nil {
		spec, err := coreJoin(w.Join)
		if err != nil {
			return node, api.Within(place+".join", err)
		}
		node.Join = &spec
	}
	if w.Flow == nil {
		return node, nil
	}
	inner, err := coreGraph(place+".flow", w.Flow)
	node.Flow = &inner
	return node, err
}

// coreWork converts the fields that a node shares with a single submission.
func coreWork(f *wire.NodeFields) (core.FlowNode, error) {
	policy, err := policyOfNode(f).text()
	if err != nil {
		return core.FlowNode{}, err
	}
	node := core.FlowNode{
		Kind: f.Kind, Lane: f.Lane, PolicyJSON: policy, Tags: maps.Clone(f.Tags), Priority: copied(f.Priority), DelayMS: copied(f.DelayMS),
		DelayUntil: base.TimeOf(f.DelayUntil), DeadlineAt: base.TimeOf(f.DeadlineAt),
	}
	if !f.Input.IsNothing() {
		input := CorePayload(f.Input)
		node.Input = &input
	}
	return node, nil
}

// copied returns a pointer to a copy: validation changes its arguments.
func copied[T any](value *T) *T {
	if value == nil {
		return nil
	}
	own := *value
	return &own
}

// coreJoin converts a join; invalid_join.
func coreJoin(w *wire.JoinSpec) (core.JoinSpec, error) {
	spec := core.JoinSpec{K: w.K}
	if w.OnSatisfied == wire.CancelRemaining {
		spec.OnSatisfied = core.CancelRemaining
	}
	if w.Policy == "" {
		return spec, nil
	}
	policy, ok := core.ParseJoinPolicy(w.Policy)
	if !ok {
		return spec, base.Errorf(base.CodeInvalidJoin, "%q is not a policy of a join", w.Policy).WithField("policy").WithHint("use all_of, any_of or quorum")
	}
	spec.Policy = policy
	return spec, nil
}

// coreExtension converts the additions to a graph for validation.
func coreExtension(r *wire.ExtendFlowRequest) (core.FlowExtension, error) {
	flow, err := base.ParseID(r.ID)
	if err != nil {
		return core.FlowExtension{}, err
	}
	part, err := CoreGraph(wire.SubFlow{Defaults: r.Body.Defaults, Nodes: r.Body.Nodes, Edges: r.Body.Edges})
	if err != nil {
		return core.FlowExtension{}, err
	}
	more := core.FlowExtension{
		Flow: flow, Expected: (*int64)(r.IfMatch), Defaults: part.Defaults, Nodes: part.Nodes, Edges: part.Edges, Seal: r.Body.Seal,
	}
	for i, m := range r.Body.Members {
		member, err := base.ParseID(m.ExecutionID)
		if err != nil {
			return more, api.Within(fmt.Sprintf("members[%d].execution_id", i), err)
		}
		more.Members = append(more.Members, core.FlowMember{ID: member, Name: m.Name})
	}
	return more, nil
}
