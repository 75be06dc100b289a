package core

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestF12_every_fault_of_the_graph_is_refused_at_its_place(t *testing.T) {
	t.Parallel()
	join := func(s JoinSpec) func(*FlowSubmission) { return func(f *FlowSubmission) { f.Nodes[3].Join = &s } }
	refuse(t, []flowFault{
		{base.CodeDuplicateName, "nodes[2].name", func(s *FlowSubmission) { s.Nodes[2].Name = "a" }},
		{base.CodeUnknownName, "edges[1].from", func(s *FlowSubmission) { s.Edges[1].From = "x" }},
		{base.CodeUnknownName, "edges[1].to", func(s *FlowSubmission) { s.Edges[1].To = "x" }},
		{base.CodeUnknownName, "nodes[3].after[1]", func(s *FlowSubmission) { s.Nodes[3].After[1] = "x" }},
		{base.CodeUnknownName, "output", func(s *FlowSubmission) { s.Output = "x" }},
		{base.CodeSelfReferencingEdge, "edges[1]", func(s *FlowSubmission) { s.Edges[1].From = "c" }},
		{base.CodeSelfReferencingEdge, "nodes[3].after[1]", func(s *FlowSubmission) { s.Nodes[3].After[1] = "d" }},
		{base.CodeDependencyAlreadyExists, "edges[1]", func(s *FlowSubmission) { s.Edges[1].To = "b" }},
		{base.CodeDependencyAlreadyExists, "edges[1]", func(s *FlowSubmission) { s.Edges[1] = FlowEdge{From: "a", To: "b", Pass: "other"} }},
		{base.CodeDependencyAlreadyExists, "nodes[3].after[0]", func(s *FlowSubmission) { s.Edges[1] = FlowEdge{From: "b", To: "d"} }},
		{base.CodeEdgeIDTaken, "edges[1].edge_id", func(s *FlowSubmission) { s.Edges[0].ID, s.Edges[1].ID = base.UUID{1}, base.UUID{1} }},
		{base.CodeDuplicateName, "edges[1].pass", func(s *FlowSubmission) {
			s.Edges = []FlowEdge{{From: "b", To: "c", Pass: "x"}, {From: "a", To: "c", Pass: "x"}}
		}},
		{base.CodeDuplicateName, "nodes[3].after[1]", func(s *FlowSubmission) { s.Edges[0] = FlowEdge{From: "a", To: "d", Pass: "c"} }},
		{base.CodeCycleDetected, "nodes[3].after[0]", func(s *FlowSubmission) { s.Edges[0] = FlowEdge{From: "d", To: "b"} }},
		{base.CodeJoinWithoutEdges, "nodes[0].join", func(s *FlowSubmission) { s.Nodes[0].Join = &JoinSpec{Policy: AnyOf} }},
		{base.CodeJoinWithoutEdges, "nodes[0].join", func(s *FlowSubmission) { s.Nodes[0].Join = &JoinSpec{Policy: Quorum} }},
		{base.CodeInvalidJoin, "nodes[3].join.k", join(JoinSpec{Policy: Quorum})},
		{base.CodeInvalidJoin, "nodes[3].join.k", join(JoinSpec{Policy: Quorum, K: -1})},
		{base.CodeInvalidJoin, "nodes[3].join.k", join(JoinSpec{Policy: AnyOf, K: 1})},
		{base.CodeQuorumExceedsEdges, "nodes[3].join.k", join(JoinSpec{Policy: Quorum, K: 3})},
		{"", "", join(JoinSpec{Policy: Quorum, K: 2, OnSatisfied: CancelRemaining})},
		{"", "", func(s *FlowSubmission) { s.Output = "d" }},
	})
}

func TestF12_faults_are_told_in_the_order_shape_names_edges_joins_and_outside_first(t *testing.T) {
	t.Parallel()
	inner := diamond()
	inner.Nodes[1].Name = "a"
	s := diamond()
	s.Nodes = append(s.Nodes, FlowNode{Name: "sub", Flow: inner}, FlowNode{Name: "a", Kind: "k", Join: &JoinSpec{}})
	s.Edges = append(s.Edges, FlowEdge{From: "a", To: "a", Kind: "sometimes"}, FlowEdge{From: "x", To: "x"}, FlowEdge{From: "b", To: "a"})
	steps := []struct {
		code  base.Code
		field string
		mend  func()
	}{
		{base.CodeInvalidFlow, "edges[2].kind", func() { s.Edges[2].Kind = AnyTerminal }},
		{base.CodeDuplicateName, "nodes[5].name", func() { s.Nodes[5].Name = "e" }},
		{base.CodeUnknownName, "edges[3].from", func() { s.Edges[3].From, s.Edges[3].To = "e", "e" }},
		{base.CodeSelfReferencingEdge, "edges[2]", func() { s.Edges[2].To = "d" }},
		{base.CodeSelfReferencingEdge, "edges[3]", func() { s.Edges[3] = s.Edges[2] }},
		{base.CodeCycleDetected, "edges[4]", func() { s.Edges = s.Edges[:3] }},
		{base.CodeJoinWithoutEdges, "nodes[5].join", func() { s.Nodes[5].Join = nil }},
		{base.CodeDuplicateName, "nodes[4].flow.nodes[1].name", func() { inner.Nodes[1].Name = "b" }},
	}
	for _, step := range steps {
		copied := *s
		expect(t, checkFlow(&copied), step.code, step.field)
		step.mend()
	}
	expect(t, checkFlow(s), "", "")
}

func TestF24_a_quorum_above_its_edges_is_refused_only_in_a_sealed_submit(t *testing.T) {
	t.Parallel()
	s := diamond()
	s.Nodes[3].Join = &JoinSpec{Policy: Quorum, K: 3}
	s.Unsealed = true
	expect(t, checkFlow(s), "", "")
	s.Unsealed = false
	err := asError(t, checkFlow(s))
	if err.Code != base.CodeQuorumExceedsEdges || err.Details["edges"] != 2 {
		t.Errorf("%+v", err)
	}
}

func TestF36_inputs_may_share_a_name_unless_all_edges_count(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		join *JoinSpec
		code base.Code
	}{
		{nil, base.CodeDuplicateName},
		{&JoinSpec{OnSatisfied: CancelRemaining}, base.CodeDuplicateName},
		{&JoinSpec{Policy: AnyOf}, ""},
		{&JoinSpec{Policy: Quorum, K: 1}, ""},
	} {
		s := diamond()
		s.Nodes[3] = FlowNode{Name: "d", Kind: "k", Join: c.join}
		s.Edges = append(s.Edges, FlowEdge{From: "b", To: "d", Pass: "x"}, FlowEdge{From: "c", To: "d", Pass: "x"}, FlowEdge{From: "b", To: "a", Pass: "x"})
		s.Edges = s.Edges[1:]
		expect(t, checkFlow(s), c.code, "edges[2].pass")
	}
}

func TestF9_U150_after_passes_the_result_of_the_upstream_under_its_name_and_joins_the_other_edges_once(t *testing.T) {
	t.Parallel()
	s := diamond()
	s.Nodes[3].After = []string{"b", "c", "b"}
	s.Edges = append(s.Edges, s.Edges[0], FlowEdge{From: "b", To: "d", Pass: "b", ID: base.UUID{7}}, FlowEdge{From: "b", To: "d", Pass: "b", ID: base.UUID{8}})
	if err := checkFlow(s); err != nil {
		t.Fatal(err)
	}
	want := []FlowEdge{
		{From: "a", To: "b", Kind: SuccessOnly},
		{From: "a", To: "c", Kind: AnyTerminal, Pass: "image"},
		{From: "b", To: "d", Kind: SuccessOnly, Pass: "b", ID: base.UUID{7}},
		{From: "c", To: "d", Kind: SuccessOnly, Pass: "c"},
	}
	if got := s.AllEdges(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestF19_a_refused_edge_tells_of_the_edge_or_the_cycle_in_its_way(t *testing.T) {
	t.Parallel()
	s := diamond()
	s.Edges[1].ID = base.UUID{7}
	s.Edges = append(s.Edges, FlowEdge{From: "a", To: "c", Kind: FailureOnly})
	edge := asError(t, checkFlow(s)).Details["edge"].(map[string]any)
	if edge["from"] != "a" || edge["to"] != "c" || edge["kind"] != "any_terminal" || edge["pass"] != "image" || edge["edge_id"] != (base.UUID{7}).String() {
		t.Errorf("%v", edge)
	}
	s.Edges[2] = FlowEdge{From: "d", To: "a"}
	err := asError(t, checkFlow(s))
	if cycle := err.Details["cycle"].([]string); !slices.Equal(cycle, []string{"a", "b", "d", "a"}) || err.Field != "edges[2]" {
		t.Errorf("%v %v", cycle, err)
	}
	long := make([]string, 10_000)
	for i := range long {
		long[i] = "name"
	}
	if err := CycleDetected(long); len(err.Message) > 300 || len(err.Details["cycle"].([]string)) != len(long) {
		t.Errorf("%d characters", len(err.Message))
	}
}

func TestF18_a_join_has_a_k_if_and_only_if_it_is_a_quorum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		join  JoinSpec
		field string // "" when accepted
	}{
		{JoinSpec{}, ""},
		{JoinSpec{OnSatisfied: CancelRemaining}, ""},
		{JoinSpec{Policy: AnyOf, OnSatisfied: CancelRemaining}, ""},
		{JoinSpec{Policy: Quorum, K: 1}, ""},
		{JoinSpec{Policy: Quorum}, "k"},
		{JoinSpec{K: 2}, "k"},
		{JoinSpec{Policy: AnyOf, K: 1}, "k"},
		{JoinSpec{Policy: Quorum + 1}, "policy"},
		{JoinSpec{OnSatisfied: CancelRemaining + 1}, "on_satisfied"},
	} {
		code := base.CodeInvalidJoin
		if c.field == "" {
			code = ""
		}
		expect(t, c.join.Check(""), code, c.field)
		expect(t, c.join.Check("nodes[1].join"), code, "nodes[1].join."+c.field)
	}
}

func TestF14_an_extension_joins_new_and_old_members_by_name_or_id(t *testing.T) {
	t.Parallel()
	old, member, node := base.UUID{1}, base.UUID{2}, base.UUID{3}
	known := func(end string) (string, bool) { return "old", end == "old" || end == old.String() }
	x := &FlowExtension{
		Nodes:   []FlowNode{{Name: "n", Kind: "k", ID: &base.GivenID{UUID: node}, After: []string{"old", member.String()}}},
		Members: []FlowMember{{ID: base.GivenID{UUID: member}, Name: "m"}},
		Edges: []FlowEdge{
			{From: old.String(), To: base.IDOf(member).String()}, {From: "old", To: "m"}, {From: old.String(), To: node.String(), Pass: "old"},
		},
	}
	if err := x.CheckShape(base.DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	got, err := x.CheckGraph(known)
	want := []FlowEdge{
		{From: "old", To: "m", Kind: SuccessOnly}, {From: "old", To: "n", Kind: SuccessOnly, Pass: "old"}, {From: "m", To: "n", Kind: SuccessOnly, Pass: "m"},
	}
	if err != nil || !slices.Equal(flowEdges(got), want) {
		t.Fatalf("%+v %v", flowEdges(got), err)
	}
	for i, place := range []string{"edges[0].pass", "edges[2].pass", "nodes[0].after[1]"} {
		if at := got[i].Place("pass"); at != place {
			t.Errorf("%s, not %s", at, place)
		}
	}
}

func TestF15_F19_F38_faults_of_an_extension_or_spawn_are_refused_at_their_place(t *testing.T) {
	t.Parallel()
	quorum := &JoinSpec{Policy: Quorum, K: 3}
	for _, c := range []struct {
		code  base.Code
		field string
		x     FlowExtension
	}{
		{base.CodeDuplicateName, "[1].name", FlowExtension{Nodes: []FlowNode{{Name: "n"}, {Name: "n"}}}},
		{base.CodeSelfReferencingEdge, "edges[0]", FlowExtension{Edges: []FlowEdge{{From: "x", To: "x"}}}},
		{base.CodeSelfReferencingEdge, "edges[0]", FlowExtension{Edges: []FlowEdge{{From: "old", To: base.UUID{1}.String()}}}},
		{base.CodeExecutionNotInFlow, "edges[0].from", FlowExtension{Edges: []FlowEdge{{From: "x", To: "old"}}}},
		{base.CodeExecutionNotInFlow, "edges[0].to", FlowExtension{Edges: []FlowEdge{{From: "old", To: base.UUID{5}.String()}}}},
		{base.CodeExecutionNotInFlow, "[0].after[0]", FlowExtension{Nodes: []FlowNode{{Name: "n", After: []string{"x"}}}}},
		{base.CodeDependencyAlreadyExists, "[0].after[0]", FlowExtension{Nodes: []FlowNode{{Name: "n", After: []string{"old"}}}, Edges: []FlowEdge{{From: "old", To: "n"}}}},
		{base.CodeDuplicateName, "edges[1].pass", FlowExtension{
			Nodes: []FlowNode{{Name: "n"}, {Name: "o"}},
			Edges: []FlowEdge{{From: "old", To: "o", Pass: "x"}, {From: "n", To: "o", Pass: "x"}},
		}},
		{base.CodeJoinWithoutEdges, "[0].join", FlowExtension{Nodes: []FlowNode{{Name: "n", Join: quorum}}}},
		{base.CodeInvalidJoin, "[0].join.k", FlowExtension{Nodes: []FlowNode{{Name: "n", Join: &JoinSpec{K: 1}, After: []string{"old"}}}}},
		{base.CodeDuplicateName, "[0].flow.nodes[1].name", FlowExtension{Nodes: []FlowNode{{Name: "n", Flow: &FlowSubmission{Nodes: []FlowNode{{Name: "n"}, {Name: "n"}}}}}}},
		// Open flows take quorums whose edges are still to come (F24), and who was a member before has edges from then (F16).
		{"", "", FlowExtension{Nodes: []FlowNode{{Name: "n", Join: quorum, After: []string{"old"}}}}},
		{"", "", FlowExtension{Nodes: []FlowNode{{Name: "old", Join: quorum}}}},
	} {
		known := func(end string) (string, bool) { return "old", end == "old" || end == base.UUID{1}.String() }
		inNodes, inChildren := c.field, c.field
		if c.field != "" && c.field[0] == '[' {
			inNodes, inChildren = "nodes"+c.field, "children"+c.field
		}
		_, err := c.x.CheckGraph(known)
		expect(t, err, c.code, inNodes)
		spawn := FlowSpawn{Children: c.x.Nodes, Edges: c.x.Edges}
		_, err = spawn.CheckGraph(known)
		expect(t, err, c.code, inChildren)
	}
	x := FlowExtension{Nodes: []FlowNode{{Name: "n"}}, Members: []FlowMember{{Name: "n"}}}
	_, err := x.CheckGraph(func(string) (string, bool) { return "", false })
	expect(t, err, base.CodeDuplicateName, "members[0].name")
}
