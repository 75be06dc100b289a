package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// closedLane is the name of a lane that takes no work.
func (w *world) closedLane() string {
	w.t.Helper()
	w.lane("closed", core.LaneSettings{State: core.LaneDisabled})
	return "closed"
}

func TestF12_a_lane_that_takes_no_work_is_named_at_its_node(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		closed := w.closedLane()
		bad := func() []core.FlowNode {
			nodes := nodesNamed("a", "b")
			nodes[1].Lane = closed
			return nodes
		}
		_, err := w.e.SubmitFlow(w.ctx(), client, core.FlowSubmission{Kind: "k", Nodes: bad()})
		same(t, "submit", refused(t, err, base.CodeLaneNotAccepting).Field, "nodes[1].lane")
		_, err = w.e.CheckFlow(w.ctx(), client, core.FlowSubmission{Kind: "k", Nodes: bad()})
		same(t, "check", refused(t, err, base.CodeLaneNotAccepting).Field, "nodes[1].lane")
		_, err = w.e.SubmitFlow(w.ctx(), client, core.FlowSubmission{Kind: "k", Nodes: []core.FlowNode{{Name: "n", Flow: &core.FlowSubmission{Nodes: bad()}}}})
		same(t, "sub-flow", refused(t, err, base.CodeLaneNotAccepting).Field, "nodes[0].flow.nodes[1].lane")
		_, err = w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", Lane: closed})
		same(t, "single submit", refused(t, err, base.CodeLaneNotAccepting).Field, "lane")
		task := w.parent()
		r := spawnOf(task)
		r.Children = bad()
		same(t, "spawn", refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeLaneNotAccepting).Field, "children[1].lane")
		r.Children = []core.FlowNode{{Name: "n", Flow: &core.FlowSubmission{Nodes: bad()}}}
		same(t, "sub-flow of a child (F46)", refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeLaneNotAccepting).Field, "children[0].flow.nodes[1].lane")
		same(t, "children", w.get(given(task)).Children, nil)
	})
}

func TestF15_F16_refused_nodes_and_members_of_an_extension_have_their_place_in_the_request(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		closed := w.closedLane()
		flow := w.emptyFlow()
		w.extend(flow, core.FlowExtension{Nodes: nodesNamed("a")})
		elsewhere := base.ID{N: flow.Flow.ID.N ^ 1, UUID: base.UUID{7}}.Given()
		for _, c := range []struct {
			code  base.Code
			place string
			node  core.FlowNode
		}{
			{base.CodeInvalidArgument, "nodes[1].lane", core.FlowNode{Name: "n", Kind: "k", Lane: "no lane"}},
			{base.CodeLaneNotAccepting, "nodes[1].lane", core.FlowNode{Name: "n", Kind: "k", Lane: closed}},
			{base.CodePartitionMismatch, "nodes[1].execution_id", core.FlowNode{Name: "n", Kind: "k", ID: &elsewhere}},
			{base.CodeInvalidArgument, "nodes[1].flow.nodes[0].lane", core.FlowNode{Name: "n", Flow: &core.FlowSubmission{Nodes: []core.FlowNode{{Name: "x", Kind: "k", Lane: "no lane"}}}}},
			{base.CodeNameTaken, "nodes[1].name", core.FlowNode{Name: "a", Kind: "other"}},
		} {
			before := nodesNamed("a")
			if c.node.Name == "a" {
				before = nodesNamed("new")
			}
			same(t, "place", w.extendErr(flow, core.FlowExtension{Nodes: append(before, c.node)}, c.code).Field, c.place)
		}
		lone := base.ID{N: flow.Flow.ID.N, UUID: drawUUID()}.Given()
		w.submit(core.Submission{Kind: "lone", ID: &lone})
		same(t, "member", w.extendErr(flow, core.FlowExtension{Members: []core.FlowMember{
			{ID: lone, Name: "lone"}, {ID: base.IDOf(base.UUID{9}).Given(), Name: "missing"},
		}}, base.CodeExecutionNotFound).Field, "members[1]")
	})
}

func TestF19_refused_edges_of_an_extension_have_their_place_in_the_request(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		taken := base.UUID{1, 2, 3}
		flow := w.emptyFlow()
		w.extend(flow, core.FlowExtension{
			Nodes: nodesNamed("a", "b", "c", "up", "decided", "begun"),
			Edges: []core.FlowEdge{{ID: taken, From: "a", To: "b", Pass: "it"}, {From: "b", To: "c"}, {From: "up", To: "decided"}},
		})
		w.workOff("up", 1, succeeds)
		w.takeKind("begun", 1)
		for _, c := range []struct {
			code  base.Code
			place string
			edge  core.FlowEdge
		}{
			{base.CodeExecutionNotInFlow, "edges[1].to", core.FlowEdge{From: "a", To: "missing"}},
			{base.CodeDependencyAlreadyExists, "edges[1]", core.FlowEdge{From: "a", To: "b", Kind: core.AnyTerminal, Pass: "it"}},
			{base.CodeEdgeIDTaken, "edges[1].edge_id", core.FlowEdge{ID: taken, From: "a", To: "c"}},
			{base.CodeDuplicateName, "edges[1].pass", core.FlowEdge{From: "up", To: "b", Pass: "it"}},
			{base.CodeJoinAlreadyDecided, "edges[1]", core.FlowEdge{From: "a", To: "decided"}},
			{base.CodeDownstreamAlreadyStarted, "edges[1]", core.FlowEdge{From: "a", To: "begun"}},
			{base.CodeCycleDetected, "edges[1]", core.FlowEdge{From: "c", To: "a"}},
		} {
			same(t, fmt.Sprintf("place of %v", c.edge), w.extendErr(flow, core.FlowExtension{Edges: []core.FlowEdge{{From: "b", To: "c"}, c.edge}}, c.code).Field, c.place)
		}
		nodes := nodesNamed("new", "a")
		nodes[1].After = []string{"c"}
		same(t, "an edge by after", w.extendErr(flow, core.FlowExtension{Nodes: nodes}, base.CodeCycleDetected).Field, "nodes[1].after[0]")
	})
}

func TestF12_F16_an_execution_is_named_once_in_a_request(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		nodes := nodesNamed("a", "b")
		nodes[0].ID = &base.GivenID{UUID: drawUUID()}
		nodes[1].ID = nodes[0].ID
		_, err := w.e.SubmitFlow(w.ctx(), client, core.FlowSubmission{Kind: "k", Nodes: nodes})
		same(t, "submit", refused(t, err, base.CodeIDConflict).Field, "nodes[1].execution_id")
		flow := w.emptyFlow()
		same(t, "extend", w.extendErr(flow, core.FlowExtension{Nodes: nodes}, base.CodeIDConflict).Field, "nodes[1].execution_id")
		task := w.parent()
		r := spawnOf(task)
		r.Children = nodes
		same(t, "spawn", refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeIDConflict).Field, "children[1].execution_id")
		lone := base.ID{N: flow.Flow.ID.N, UUID: drawUUID()}.Given()
		w.submit(core.Submission{Kind: "lone", ID: &lone})
		for second, code := range map[string]base.Code{"y": base.CodeExecutionAlreadyInFlow, "x": base.CodeDuplicateName} {
			w.extendErr(flow, core.FlowExtension{Members: []core.FlowMember{{ID: lone, Name: "x"}, {ID: lone, Name: second}}}, code)
		}
		same(t, "it is no member", w.get(lone).Member, nil)
	})
}
