package core

import (
	"bytes"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// printed is the fingerprint of a diamond with a sub-flow, changed and checked.
func printed(t *testing.T, change func(*FlowSubmission)) []byte {
	t.Helper()
	s := diamond()
	s.Nodes = append(s.Nodes, FlowNode{Name: "e", Flow: diamond()})
	s.Nodes[0].PolicyJSON = []byte(`{"estimate": {"a": 1, "b": 2}, "max_replay_count": 3}`)
	s.Budgets = []byte(`[{"dimensions": {"a": {"hard": 5}, "b": {"hard": 6}}}]`)
	change(s)
	if err := checkFlow(s); err != nil {
		t.Fatal(err)
	}
	text := s.Fingerprint()
	if len(text) != 32 {
		t.Fatalf("%d bytes", len(text))
	}
	return text
}

func TestF11_what_makes_another_graph_makes_another_fingerprint(t *testing.T) {
	t.Parallel()
	seen := map[string]string{string(printed(t, func(*FlowSubmission) {})): "nothing"}
	for name, change := range map[string]func(*FlowSubmission){
		"kind":          func(s *FlowSubmission) { s.Kind = "other" },
		"output":        func(s *FlowSubmission) { s.Output = "d" },
		"seal":          func(s *FlowSubmission) { s.Unsealed = true },
		"budgets":       func(s *FlowSubmission) { s.Budgets = []byte(`[{"dimensions": {"a": {"hard": 5}}}]`) },
		"no budgets":    func(s *FlowSubmission) { s.Budgets = nil },
		"name":          func(s *FlowSubmission) { s.Nodes[4].Name = "f" },
		"one more":      func(s *FlowSubmission) { s.Nodes = append(s.Nodes, FlowNode{Name: "f", Kind: "k"}) },
		"lane":          func(s *FlowSubmission) { s.Nodes[1].Lane = "gpu" },
		"default lane":  func(s *FlowSubmission) { s.Defaults.Lane = "cpu" },
		"handler":       func(s *FlowSubmission) { s.Nodes[1].Kind = "other" },
		"input":         func(s *FlowSubmission) { s.Nodes[1].Input = &Payload{Data: []byte("in")} },
		"content type":  func(s *FlowSubmission) { s.Nodes[1].Input = &Payload{ContentType: "text/plain"} },
		"policy":        func(s *FlowSubmission) { s.Nodes[0].PolicyJSON = nil },
		"may_fail":      func(s *FlowSubmission) { s.Nodes[1].MayFail = true },
		"join":          func(s *FlowSubmission) { s.Nodes[3].Join = &JoinSpec{Policy: AnyOf} },
		"k":             func(s *FlowSubmission) { s.Nodes[3].Join = &JoinSpec{Policy: Quorum, K: 1} },
		"more k":        func(s *FlowSubmission) { s.Nodes[3].Join = &JoinSpec{Policy: Quorum, K: 2} },
		"on_satisfied":  func(s *FlowSubmission) { s.Nodes[3].Join = &JoinSpec{OnSatisfied: CancelRemaining} },
		"edge":          func(s *FlowSubmission) { s.Edges = s.Edges[1:] },
		"turned edge":   func(s *FlowSubmission) { s.Edges[0] = FlowEdge{From: "b", To: "a"} },
		"edge kind":     func(s *FlowSubmission) { s.Edges[0].Kind = FailureOnly },
		"pass":          func(s *FlowSubmission) { s.Edges[0].Pass = "x" },
		"after":         func(s *FlowSubmission) { s.Nodes[3].After = []string{"b"} },
		"no sub-flow":   func(s *FlowSubmission) { s.Nodes[4] = FlowNode{Name: "e", Kind: KindFlowNode} },
		"inside a node": func(s *FlowSubmission) { s.Nodes[4].Flow.Nodes[2].Kind = "other" },
		"inside a flow": func(s *FlowSubmission) { s.Nodes[4].Flow.Output = "d" },
	} {
		text := string(printed(t, change))
		if other, taken := seen[text]; taken {
			t.Errorf("%s looks like %s", name, other)
		}
		seen[text] = name
	}
}

func TestF11_L83_what_leaves_the_graph_as_it_is_leaves_the_fingerprint(t *testing.T) {
	t.Parallel()
	plain := printed(t, func(*FlowSubmission) {})
	priority, delay := 7, base.Second
	for name, change := range map[string]func(*FlowSubmission){
		"ids": func(s *FlowSubmission) {
			s.ID, s.Nodes[0].ID, s.Edges[0].ID = &base.GivenID{UUID: base.UUID{1}}, &base.GivenID{UUID: base.UUID{2}}, base.UUID{3}
		},
		"order":          func(s *FlowSubmission) { slices.Reverse(s.Nodes); slices.Reverse(s.Edges) },
		"order of after": func(s *FlowSubmission) { s.Nodes[3].After = []string{"c", "b", "c"} },
		"after written out": func(s *FlowSubmission) {
			s.Nodes[3].After = []string{"c"}
			s.Edges = append(s.Edges, FlowEdge{From: "b", To: "d", Pass: "b", Kind: SuccessOnly})
		},
		"order of keys": func(s *FlowSubmission) {
			s.Nodes[0].PolicyJSON = []byte(`{"max_replay_count": 3, "estimate": {"b": 2, "a": 1}}`)
			s.Budgets = []byte(`[{"dimensions": {"b": {"hard": 6}, "a": {"hard": 5}}}]`)
		},
		"defaults": func(s *FlowSubmission) {
			s.Defaults.Kind, s.Nodes[1].Kind, s.Nodes[2].Kind = "test", "", ""
		},
		"priority and times": func(s *FlowSubmission) {
			s.Nodes[0].Priority, s.Nodes[0].DelayMS, s.Nodes[0].DeadlineAt = &priority, &delay, noon
		},
		"tags and trace": func(s *FlowSubmission) {
			s.Tags, s.Nodes[0].Tags, s.Trace, s.Nodes[0].Trace = base.Tags{"a": "b"}, base.Tags{"a": "b"}, &base.Trace{Baggage: "a=b"}, &base.Trace{}
		},
		"who and under which key": func(s *FlowSubmission) { s.Creator, s.IdempotencyKey, s.Namespace = "ana", "key", "acme" },
		"the default join":        func(s *FlowSubmission) { s.Nodes[3].Join = &JoinSpec{} },
	} {
		if !bytes.Equal(plain, printed(t, change)) {
			t.Errorf("%s is part of the fingerprint", name)
		}
	}
}

func TestF11_a_flow_that_its_checks_refuse_has_no_fingerprint(t *testing.T) {
	t.Parallel()
	s := diamond()
	s.Nodes[1].PolicyJSON = []byte(`{`)
	if s.Fingerprint() != nil {
		t.Error("a policy that is none has a fingerprint")
	}
	s = diamond()
	s.Budgets = []byte(`{`)
	if s.Fingerprint() != nil {
		t.Error("budgets that are none have a fingerprint")
	}
}

func TestF16_F39_a_node_is_told_by_its_work_join_may_fail_and_sub_flow(t *testing.T) {
	t.Parallel()
	print := func(n FlowNode) string {
		s := n.Submission("acme", "ana", &FlowNode{Kind: "k"})
		if err := s.Normalize(base.DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		return string(NodeFingerprint(&s, &n))
	}
	priority := 3
	plain := print(FlowNode{Name: "n"})
	for _, same := range []FlowNode{
		{Name: "n", Kind: "k", Lane: "default", Join: &JoinSpec{}, PolicyJSON: []byte(`{}`)},
		{Name: "n", After: []string{"a"}, Tags: base.Tags{"a": "b"}, Priority: &priority, ID: &base.GivenID{UUID: base.UUID{1}}, Trace: &base.Trace{}},
	} {
		if print(same) != plain {
			t.Errorf("%+v is another node", same)
		}
	}
	seen := map[string]bool{plain: true}
	for _, other := range []FlowNode{
		{Name: "n", Kind: "other"},
		{Name: "n", MayFail: true},
		{Name: "n", Join: &JoinSpec{Policy: AnyOf}},
		{Name: "n", Kind: KindFlowNode},
		{Name: "n", Flow: &FlowSubmission{}},
		{Name: "n", Flow: &FlowSubmission{Kind: "other"}},
	} {
		if seen[print(other)] {
			t.Errorf("%+v is taken for another", other)
		}
		seen[print(other)] = true
	}
}
