package core

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// diamond is a -> b, c -> d, where d is drawn by after.
func diamond() *FlowSubmission {
	return &FlowSubmission{
		Kind: "release",
		Nodes: []FlowNode{
			{Name: "a", Kind: "build"}, {Name: "b", Kind: "test"}, {Name: "c", Kind: "test"}, {Name: "d", Kind: "deploy", After: []string{"b", "c"}},
		},
		Edges: []FlowEdge{{From: "a", To: "b"}, {From: "a", To: "c", Kind: AnyTerminal, Pass: "image"}},
	}
}

// inside wraps a flow as the sub-flow of the second node of another.
func inside(s *FlowSubmission) *FlowSubmission {
	return &FlowSubmission{Kind: "outer", Nodes: []FlowNode{{Name: "first", Kind: "k"}, {Name: "second", Flow: s}}}
}

func checkFlow(s *FlowSubmission) error {
	if err := s.CheckShape(base.DefaultLimits()); err != nil {
		return err
	}
	return s.CheckGraph()
}

type flowFault struct {
	code   base.Code
	field  string
	change func(*FlowSubmission)
}

// refuse holds every fault against a flow and against the same flow inside another, where the place stands in front.
func refuse(t *testing.T, faults []flowFault) {
	t.Helper()
	for _, f := range faults {
		s := diamond()
		f.change(s)
		expect(t, checkFlow(s), f.code, f.field)
		s = diamond()
		f.change(s)
		expect(t, checkFlow(inside(s)), f.code, "nodes[1].flow."+f.field)
	}
}

func TestF9_shape_fills_in_what_was_left_out_and_writes_to_nothing_of_the_caller(t *testing.T) {
	t.Parallel()
	inner := diamond()
	inner.Kind = ""
	given := inside(inner)
	given.Nodes = append(given.Nodes, FlowNode{Name: "third", Kind: "k", After: []string{"first", "second"}})
	given.Edges = []FlowEdge{{From: "first", To: "second"}}
	s := *given
	if err := checkFlow(&s); err != nil {
		t.Fatal(err)
	}
	if s.Namespace != "default" || s.Edges[0].Kind != SuccessOnly || s.Nodes[1].Flow.Kind != "second" || s.Nodes[1].Flow.Edges[0].Kind != SuccessOnly {
		t.Errorf("%+v", s)
	}
	if given.Edges[0].Kind != "" || given.Nodes[1].Flow != inner || inner.Kind != "" || inner.Edges[0].Kind != "" {
		t.Errorf("the caller's own was changed: %+v", given)
	}
	if err := checkFlow(&s); err != nil {
		t.Errorf("what passed once is refused: %v", err)
	}
	if err := checkFlow(&FlowSubmission{Kind: "k"}); err != nil {
		t.Errorf("F3: an empty flow is refused: %v", err)
	}
}

func TestF12_every_fault_of_shape_is_refused_at_its_place(t *testing.T) {
	t.Parallel()
	refuse(t, []flowFault{
		{base.CodeInvalidFlow, "kind", func(s *FlowSubmission) { s.Kind = "a b" }},
		{base.CodeInvalidFlow, "kind", func(s *FlowSubmission) { s.Kind = strings.Repeat("k", 129) }},
		{base.CodeInvalidTagKey, `tags["ff.x"]`, func(s *FlowSubmission) { s.Tags = base.Tags{"ff.x": ""} }},
		{base.CodeInvalidFlow, "nodes[2].name", func(s *FlowSubmission) { s.Nodes[2].Name = "" }},
		{base.CodeInvalidFlow, "nodes[2].name", func(s *FlowSubmission) { s.Nodes[2].Name = strings.Repeat("n", 65) }},
		{base.CodeInvalidFlow, "nodes[2].name", func(s *FlowSubmission) { s.Nodes[2].Name = "a:b" }},
		{base.CodeInvalidFlow, "nodes[2].name", func(s *FlowSubmission) { s.Nodes[2].Name = ".b" }},
		{base.CodeInvalidFlow, "nodes[2].name", func(s *FlowSubmission) { s.Nodes[2].Name = "ä" }},
		{base.CodeInvalidFlow, "nodes[3].after[1]", func(s *FlowSubmission) { s.Nodes[3].After = []string{"b", ""} }},
		{base.CodeInvalidFlow, "nodes[0].kind", func(s *FlowSubmission) { s.Nodes[0].Kind = "" }},
		{base.CodeInvalidFlow, "nodes[0].flow", func(s *FlowSubmission) { s.Nodes[0].Flow = &FlowSubmission{} }},
		{base.CodeInvalidFlow, "nodes[0].input", func(s *FlowSubmission) {
			s.Nodes[0] = FlowNode{Name: "a", Flow: &FlowSubmission{}, Input: &Payload{}}
		}},
		{base.CodeInvalidFlow, "nodes[0].priority", func(s *FlowSubmission) {
			s.Nodes[0] = FlowNode{Name: "a", Flow: &FlowSubmission{}, Priority: new(int)}
		}},
		{base.CodeInvalidFlow, "nodes[0].flow.nodes[0].name", func(s *FlowSubmission) {
			s.Nodes[0] = FlowNode{Name: "a", Flow: &FlowSubmission{Nodes: []FlowNode{{Name: "-", Kind: "k"}}}}
		}},
		{base.CodeInvalidFlow, "edges[0].from", func(s *FlowSubmission) { s.Edges[0].From = "" }},
		{base.CodeInvalidFlow, "edges[0].to", func(s *FlowSubmission) { s.Edges[0].To = "" }},
		{base.CodeInvalidFlow, "edges[1].kind", func(s *FlowSubmission) { s.Edges[1].Kind = "sometimes" }},
		{base.CodeInvalidFlow, "edges[1].pass", func(s *FlowSubmission) { s.Edges[1].Pass = "a b" }},
		{base.CodeInvalidFlow, "defaults.execution_id", func(s *FlowSubmission) { s.Defaults.ID = &base.GivenID{} }},
		{base.CodeInvalidFlow, "defaults.name", func(s *FlowSubmission) { s.Defaults.Name = "x" }},
		{base.CodeInvalidFlow, "defaults.join", func(s *FlowSubmission) { s.Defaults.Join = &JoinSpec{} }},
		{base.CodeInvalidFlow, "defaults.may_fail", func(s *FlowSubmission) { s.Defaults.MayFail = true }},
		{base.CodeInvalidFlow, "defaults.after", func(s *FlowSubmission) { s.Defaults.After = []string{"a"} }},
		{base.CodeInvalidFlow, "defaults.flow", func(s *FlowSubmission) { s.Defaults.Flow = &FlowSubmission{} }},
	})
}

func TestF8_what_only_the_outermost_flow_has_is_checked_there_and_refused_inside(t *testing.T) {
	t.Parallel()
	zero := &base.GivenID{}
	for _, f := range []flowFault{
		{base.CodeInvalidID, "flow_id", func(s *FlowSubmission) { s.ID = zero }},
		{base.CodeInvalidArgument, "namespace", func(s *FlowSubmission) { s.Namespace = "-" }},
		{base.CodeInvalidArgument, "creator", func(s *FlowSubmission) { s.Creator = "\n" }},
		{base.CodeInvalidFlow, "idempotency_key", func(s *FlowSubmission) { s.IdempotencyKey = "\n" }},
		{base.CodeInvalidFlow, "idempotency_key", func(s *FlowSubmission) { s.IdempotencyKey = strings.Repeat("k", 257) }},
	} {
		s := diamond()
		f.change(s)
		expect(t, s.CheckShape(base.DefaultLimits()), f.code, f.field)
	}
	for _, f := range []flowFault{
		{base.CodeInvalidFlow, "flow_id", func(s *FlowSubmission) { s.ID = &base.GivenID{UUID: base.UUID{1}} }},
		{base.CodeInvalidFlow, "namespace", func(s *FlowSubmission) { s.Namespace = "default" }},
		{base.CodeInvalidFlow, "idempotency_key", func(s *FlowSubmission) { s.IdempotencyKey = "k" }},
		{base.CodeInvalidFlow, "seal", func(s *FlowSubmission) { s.Unsealed = true }},
		{base.CodeInvalidFlow, "budgets", func(s *FlowSubmission) { s.Budgets = []byte(`[]`) }},
	} {
		s := diamond()
		f.change(s)
		outside := *s
		expect(t, checkFlow(&outside), "", "")
		expect(t, checkFlow(inside(s)), f.code, "nodes[1].flow."+f.field)
	}
}

func manyNodes(n int) []FlowNode {
	nodes := make([]FlowNode, n)
	for i := range nodes {
		nodes[i] = FlowNode{Name: fmt.Sprint("n", i), Kind: "k"}
	}
	return nodes
}

func TestF12_nodes_and_edges_of_a_request_are_counted_over_its_sub_flows(t *testing.T) {
	t.Parallel()
	s := &FlowSubmission{Kind: "k", Nodes: manyNodes(MaxFlowRequestNodes)}
	expect(t, checkFlow(s), "", "")
	s.Nodes = manyNodes(MaxFlowRequestNodes + 1)
	expect(t, checkFlow(s), base.CodeFlowLimitExceeded, "nodes")
	expect(t, checkFlow(inside(&FlowSubmission{Nodes: manyNodes(MaxFlowRequestNodes - 2)})), "", "")
	expect(t, checkFlow(inside(&FlowSubmission{Nodes: manyNodes(MaxFlowRequestNodes - 1)})), base.CodeFlowLimitExceeded, "nodes[1].flow.nodes")

	s = &FlowSubmission{Kind: "k", Nodes: manyNodes(2000), Edges: make([]FlowEdge, MaxFlowRequestEdges-1)}
	for i := range s.Edges {
		s.Edges[i] = FlowEdge{From: fmt.Sprint("n", i/1000), To: fmt.Sprint("n", 1000+i%1000)}
	}
	s.Nodes[0].After = []string{"n99"}
	expect(t, checkFlow(s), "", "")
	s.Nodes[0].After = []string{"n98", "n99"}
	expect(t, checkFlow(s), base.CodeFlowLimitExceeded, "edges")
}

func TestF12_inbound_edges_of_a_member_are_limited_and_an_edge_said_twice_counts_once(t *testing.T) {
	t.Parallel()
	x := &FlowExtension{Edges: make([]FlowEdge, MaxInboundEdges+1)}
	for i := range x.Edges {
		x.Edges[i] = FlowEdge{From: fmt.Sprint("n", i), To: "sink"}
	}
	x.Edges[MaxInboundEdges] = FlowEdge{From: "n0", To: "sink", Kind: SuccessOnly}
	expect(t, x.CheckShape(base.DefaultLimits()), "", "")
	x.Edges[MaxInboundEdges].From = "one more"
	expect(t, x.CheckShape(base.DefaultLimits()), base.CodeFlowLimitExceeded, "edges[10000].to")
}

func TestF12_the_inputs_of_a_request_together_are_limited(t *testing.T) {
	t.Parallel()
	s := &FlowSubmission{Kind: "k", Nodes: manyNodes(8), Defaults: FlowNode{Input: &Payload{Data: make([]byte, MaxFlowInput/8)}}}
	expect(t, checkFlow(s), "", "")
	s.Nodes[7].Input = &Payload{Data: make([]byte, MaxFlowInput/8+1)}
	expect(t, checkFlow(s), base.CodePayloadTooLarge, "nodes")
	expect(t, s.CheckShape(base.Limits{MaxPayload: MaxFlowInput + 1}), "", "")
	s.Nodes[7] = FlowNode{Name: "n7", Flow: &FlowSubmission{}}
	expect(t, checkFlow(s), "", "")
}

func nestedFlow(depth int) *FlowSubmission {
	s := &FlowSubmission{Kind: "k", Nodes: []FlowNode{{Name: "leaf", Kind: "k"}}}
	for range depth {
		s = &FlowSubmission{Kind: "k", Nodes: []FlowNode{{Name: "n", Flow: s}}}
	}
	return s
}

func TestF45_F46_flows_are_nested_at_most_32_deep(t *testing.T) {
	t.Parallel()
	expect(t, checkFlow(nestedFlow(MaxFlowDepth)), "", "")
	place := "nodes[0]" + strings.Repeat(".flow.nodes[0]", MaxFlowDepth)
	expect(t, checkFlow(nestedFlow(MaxFlowDepth+1)), base.CodeNestingLimitExceeded, place)

	endless := &FlowSubmission{Kind: "k"}
	endless.Nodes = []FlowNode{{Name: "a", Flow: endless}, {Name: "b", Flow: endless}}
	expect(t, checkFlow(endless), base.CodeNestingLimitExceeded, "")

	deep := nestedFlow(3)
	expect(t, CheckNesting(MaxFlowDepth-3, "children", deep.Nodes), "", "")
	expect(t, CheckNesting(MaxFlowDepth-2, "children", deep.Nodes), base.CodeNestingLimitExceeded, "children[0].flow.nodes[0].flow.nodes[0]")
}

func TestB3_budgets_of_a_flow_are_written_as_those_of_a_policy(t *testing.T) {
	t.Parallel()
	s := diamond()
	s.Budgets = []byte(` [{"name": "run", "dimensions": {"tokens": {"hard": 5}}}, {"dimensions": {"wall_ms": {"soft": 1}}}] `)
	got, err := s.OwnBudgets()
	if err != nil || len(got) != 2 || got[0].Name != "run" || *got[0].Dimensions["tokens"].Hard != 5 || got[1].OnHard != OnHardBlockNew {
		t.Fatalf("%+v %v", got, err)
	}
	for text, want := range map[string]string{
		`[`:                           "budgets",
		`{}`:                          "budgets",
		"[\"\xff\"]":                  "budgets",
		`[{"dimensions":{}}]`:         "budgets[0].dimensions",
		`[{"scope":{}}]`:              "budgets[0].scope",
		`[{"colour":1}]`:              "budgets[0].colour",
		`[{"on_hard":"burn"}]`:        "budgets[0].on_hard",
		strings.Repeat(" ", 64<<10+1): "budgets",
		`[{"dimensions":{"a":{"hard":2,"soft":3}}}]`: "budgets[0].dimensions.a.soft",
	} {
		s.Budgets = []byte(text)
		expect(t, s.CheckShape(base.DefaultLimits()), base.CodeInvalidBudget, want)
	}
	s.Budgets = []byte(`[{"scope":{}}]`)
	if err := s.CheckShape(base.DefaultLimits()); !strings.Contains(err.Error(), "is the flow itself") {
		t.Error(err)
	}
}

func TestF9_defaults_supply_what_a_node_leaves_out(t *testing.T) {
	t.Parallel()
	priority, delay, other := 7, base.Second, base.Minute
	defaults := FlowNode{
		Lane: "gpu", Kind: "k", Input: &Payload{ContentType: "text/plain", Data: []byte("in")}, Priority: &priority, DelayMS: &delay,
		DeadlineAt: noon, PolicyJSON: []byte(`{"max_replay_count":3}`), Tags: base.Tags{"team": "red"},
	}
	trace := &base.Trace{Baggage: "a=b"}
	zero := 0
	s := &FlowSubmission{Kind: "f", Namespace: "acme", Creator: "ana", Defaults: defaults, Trace: trace, Nodes: []FlowNode{
		{Name: "bare"},
		{Name: "full", Lane: "cpu", Kind: "own", Input: &Payload{}, Priority: &zero, DelayUntil: noon, DeadlineAt: noon + 1, PolicyJSON: []byte(`{}`), Tags: base.Tags{}, Trace: &base.Trace{}},
		{Name: "later", DelayMS: &other},
	}}
	if err := checkFlow(s); err != nil {
		t.Fatal(err)
	}
	bare, full := s.Submission(0), s.Submission(1)
	if bare.Lane != "gpu" || bare.Kind != "k" || !bytes.Equal(bare.Input.Data, []byte("in")) || bare.Priority != 7 || bare.DelayMS != &delay ||
		bare.DeadlineAt != noon || string(bare.PolicyJSON) != `{"max_replay_count":3}` || !maps.Equal(bare.Tags, defaults.Tags) ||
		bare.Namespace != "acme" || bare.Creator != "ana" || bare.Trace != trace {
		t.Errorf("%+v", bare)
	}
	if full.Lane != "cpu" || full.Kind != "own" || full.Input.Data != nil || full.Priority != 0 || full.DelayMS != nil || full.DelayUntil != noon ||
		full.DeadlineAt != noon+1 || string(full.PolicyJSON) != `{}` || len(full.Tags) != 0 || full.Trace == trace {
		t.Errorf("%+v", full)
	}
	if later := s.Submission(2); later.DelayMS != &other || later.Normalize(base.DefaultLimits()) != nil {
		t.Errorf("%+v", later)
	}
}

func TestF46_a_flow_node_has_a_kind_of_its_own_and_no_input(t *testing.T) {
	t.Parallel()
	id := base.GivenID{UUID: base.UUID{9}}
	n := FlowNode{Name: "n", ID: &id, Flow: &FlowSubmission{}}
	s := n.Submission("acme", "ana", &FlowNode{Kind: "k", Lane: "gpu", Input: &Payload{Data: []byte("in")}})
	if s.Kind != KindFlowNode || s.Lane != "gpu" || s.Input.Data != nil || s.ID != &id {
		t.Errorf("%+v", s)
	}
	if s = n.Submission("acme", "ana", &FlowNode{}); s.Normalize(base.DefaultLimits()) != nil || s.Lane != base.DefaultLane {
		t.Errorf("%+v", s)
	}
}

func TestF46_what_only_concerns_workers_is_refused_of_a_flow_node_and_passed_over_in_the_defaults(t *testing.T) {
	t.Parallel()
	normalize := func(_ string, _ bool, s *Submission) error { return s.Normalize(base.DefaultLimits()) }
	kept := []string{
		`"budgets":[{"name":"b","dimensions":{"tokens":{"hard":1}}}]`, `"dedup_window_ms":5000`, `"max_replay_count":3`, `"retention_ms":{"failed":60000}`,
		`"timeout_policy":{"execution_deadline_ms":5000}`,
	}
	refused := map[string]string{
		"retry_policy": `{"max_retries":1}`, "timeout_policy": `{"attempt_timeout_ms":1}`, "lease_grace_ms": "1", "max_reclaim_count": "3",
		"routing_requirements": `{"required_capabilities":["gpu"]}`, "fairness_key": `"f"`, "quotas": `[{"quota":"q"}]`, "slots_while_waiting": `"hold"`,
		"budget_ids": `["b"]`, "estimate": `{"tokens":1}`, "suspension_policy": `{"default_timeout_ms":1000}`, "max_signals_per_execution": "3",
		"stream_policy": `{"max_frames":1}`,
	}
	if got := len(reflect.VisibleFields(reflect.TypeFor[Policy]())); got != len(kept)+len(refused) {
		t.Errorf("the policy has %d fields, of which %d are tried", got, len(kept)+len(refused))
	}
	for _, text := range kept {
		s := &FlowSubmission{Kind: "k", Nodes: []FlowNode{{Name: "n", PolicyJSON: []byte("{" + text + "}"), Flow: &FlowSubmission{Nodes: []FlowNode{{Name: "x", Kind: "x"}}}}}}
		expect(t, checkFlow(s), "", "")
		expect(t, s.CheckNodes(normalize), "", "")
	}
	for name, value := range refused {
		policy := []byte(`{"` + name + `":` + value + `}`)
		s := &FlowSubmission{Kind: "k", Nodes: []FlowNode{{Name: "n", PolicyJSON: policy, Flow: &FlowSubmission{Nodes: []FlowNode{{Name: "x", Kind: "x"}}}}}}
		expect(t, checkFlow(s), "", "")
		why := s.CheckNodes(normalize)
		expect(t, why, base.CodeInvalidPolicy, "")
		if field := asError(t, why).Field; !strings.HasPrefix(field, "nodes[0].policy."+name) {
			t.Errorf("%s: %s", name, field)
		}
		s.Nodes[0].PolicyJSON, s.Defaults = nil, FlowNode{PolicyJSON: policy}
		expect(t, s.CheckNodes(normalize), "", "")
	}
}

func TestF12_each_node_passes_the_rules_of_single_submit_at_its_place_those_inside_too(t *testing.T) {
	t.Parallel()
	normalize := func(_ string, _ bool, s *Submission) error { return s.Normalize(base.DefaultLimits()) }
	for _, f := range []flowFault{
		{base.CodeInvalidArgument, "nodes[2].lane", func(s *FlowSubmission) { s.Nodes[2].Lane = "a b" }},
		{base.CodeInvalidArgument, "nodes[2].kind", func(s *FlowSubmission) { s.Nodes[2].Kind = "a b" }},
		{base.CodeInvalidID, "nodes[2].execution_id", func(s *FlowSubmission) { s.Nodes[2].ID = &base.GivenID{} }},
		{base.CodeInvalidPolicy, "nodes[2].policy.max_replay_count", func(s *FlowSubmission) { s.Nodes[2].PolicyJSON = []byte(`{"max_replay_count":-1}`) }},
		{base.CodeInvalidPolicy, "nodes[2].policy", func(s *FlowSubmission) { s.Nodes[2].PolicyJSON = []byte(`{`) }},
		{base.CodeInvalidTagKey, `nodes[2].tags["ff.x"]`, func(s *FlowSubmission) { s.Nodes[2].Tags = base.Tags{"ff.x": ""} }},
		{base.CodeIDConflict, "nodes[2].execution_id", func(s *FlowSubmission) {
			s.Nodes[0].ID, s.Nodes[2].ID = &base.GivenID{UUID: base.UUID{1}}, &base.GivenID{UUID: base.UUID{1}, Full: true}
		}},
	} {
		s := diamond()
		f.change(s)
		expect(t, checkFlow(s), "", "")
		expect(t, s.CheckNodes(normalize), f.code, f.field)
		outer := inside(s)
		expect(t, outer.CheckNodes(normalize), f.code, "nodes[1].flow."+f.field)
		x := &FlowExtension{Nodes: s.Nodes}
		expect(t, x.CheckNodes("acme", "ana", nil, normalize), f.code, f.field)
		expect(t, x.CheckNodes("acme", "ana", func(name string) bool { return name == s.Nodes[2].Name }, normalize), "", "")
		spawn := &FlowSpawn{Children: s.Nodes}
		expect(t, spawn.CheckNodes("acme", "ana", nil, normalize), f.code, strings.Replace(f.field, "nodes", "children", 1))
	}
	var seen []string
	s := inside(diamond())
	s.Namespace, s.Creator = "acme", "ana"
	s.Nodes = append(s.Nodes, FlowNode{Name: "third", Kind: "last"})
	err := s.CheckNodes(func(place string, inside bool, s *Submission) error {
		if inside != strings.HasPrefix(place, "nodes[1].flow.") {
			t.Errorf("%s is inside: %v", place, inside)
		}
		seen = append(seen, s.Namespace+"/"+s.Creator+"/"+s.Kind)
		return nil
	})
	want := []string{"acme/ana/k", "acme/ana/flow", "acme/ana/build", "acme/ana/test", "acme/ana/test", "acme/ana/deploy", "acme/ana/last"}
	if err != nil || !slices.Equal(seen, want) {
		t.Errorf("%v %v", seen, err)
	}
}

func TestF12_a_refusal_is_put_under_its_place_and_the_first_one_stays_as_it_was(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	first := base.Errorf(base.CodeLaneNotAccepting, "no: %w", cause).WithHint("wait")
	placed := asError(t, AtPlace(first, "nodes[3]"))
	if placed.Field != "nodes[3]" || placed.Hint != "wait" || !errors.Is(placed, cause) || first.Field != "" {
		t.Errorf("%+v, was %+v", placed, first)
	}
	var still *base.Error
	if base.CodeOf(AtPlace(cause, "nodes[3]")) != base.CodeInternal || AtPlace(nil, "nodes[3]") != nil || !errors.As(AtPlace(first, ""), &still) || still != first {
		t.Error("an error of no code, or of no place, was changed")
	}
}

func TestF14_F38_extensions_and_spawns_are_held_to_the_same_shape(t *testing.T) {
	t.Parallel()
	x := &FlowExtension{Nodes: manyNodes(2), Members: []FlowMember{{Name: "m"}}, Edges: []FlowEdge{{From: "n0", To: "m"}}}
	expect(t, x.CheckShape(base.DefaultLimits()), "", "")
	if x.Edges[0].Kind != SuccessOnly {
		t.Errorf("%+v", x.Edges)
	}
	x.Members[0].Name = "a b"
	expect(t, x.CheckShape(base.DefaultLimits()), base.CodeInvalidFlow, "members[0].name")
	x.Members, x.Nodes[1].Kind = make([]FlowMember, MaxFlowRequestNodes-1), ""
	expect(t, x.CheckShape(base.DefaultLimits()), base.CodeFlowLimitExceeded, "nodes")
	x.Members = nil
	expect(t, x.CheckShape(base.DefaultLimits()), base.CodeInvalidFlow, "nodes[1].kind")

	s := &FlowSpawn{Children: manyNodes(MaxSpawned), Edges: []FlowEdge{{From: "n0", To: "n1"}}}
	expect(t, s.CheckShape(base.DefaultLimits()), "", "")
	if s.OnParentEnd != CancelOnFailure || s.Edges[0].Kind != SuccessOnly {
		t.Errorf("%q %+v", s.OnParentEnd, s.Edges)
	}
	s.OnParentEnd = "mourn"
	expect(t, s.CheckShape(base.DefaultLimits()), base.CodeInvalidArgument, "on_parent_end")
	s.OnParentEnd, s.Children[1].Name = Detach, ""
	expect(t, s.CheckShape(base.DefaultLimits()), base.CodeInvalidFlow, "children[1].name")
	s.Children = manyNodes(MaxSpawned + 1)
	expect(t, s.CheckShape(base.DefaultLimits()), base.CodeFlowLimitExceeded, "children")
}

func TestF38_a_flow_and_the_children_of_one_run_grow_to_their_limits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code           base.Code
		field          string
		flow           Flow
		members, edges int
	}{
		{"", "", Flow{OnParentEnd: Detach, Nodes: 99_000}, 1000, 0},
		{base.CodeFlowLimitExceeded, "children", Flow{OnParentEnd: Detach, Nodes: 99_001}, 1000, 0},
		{base.CodeFlowLimitExceeded, "children", Flow{Nodes: 100_000}, 1, 0},
		{"", "", Flow{Nodes: 95_000}, 5000, 0},
		{"", "", Flow{Edges: 450_000}, 0, 50_000},
		{base.CodeFlowLimitExceeded, "edges", Flow{Edges: 450_001}, 0, 50_000},
	} {
		expect(t, c.flow.CheckGrowth("children", c.members, c.edges), c.code, c.field)
	}
}
