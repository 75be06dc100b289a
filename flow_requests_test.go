package flowfabric

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/testseed"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU9_every_answer_about_flows_comes_back_as_it_was_written(t *testing.T) {
	t.Parallel()
	roundTrip[FlowView, FlowView](t, "FlowView", func(_ *rapid.T, v *FlowView) { settleFlow(v) })
	roundTrip[FlowRun, FlowRun](t, "FlowRun", func(_ *rapid.T, r *FlowRun) {
		settleFlow(&r.FlowView)
		notNil(&r.Members)
	})
	roundTrip[api.FlowMember, api.FlowMember](t, "FlowMember", nil)
	roundTrip[api.JoinView, api.JoinView](t, "JoinView", nil)
	roundTrip[api.EdgeView, api.EdgeView](t, "EdgeView", func(_ *rapid.T, e *api.EdgeView) { settleEdge(e) })
	roundTrip[api.FlowGraph, api.FlowGraph](t, "FlowGraph", func(_ *rapid.T, g *api.FlowGraph) {
		settleFlow(&g.Flow)
		for i := range g.Edges {
			settleEdge(&g.Edges[i])
		}
	})
	roundTrip[api.FlowCancelProgress, api.FlowCancelProgress](t, "FlowCancelProgress", nil)
	roundTrip[Child, Child](t, "Child", nil)
	roundTrip[api.NamedInput, api.NamedInput](t, "NamedInput", func(_ *rapid.T, n *api.NamedInput) { settleInput(n) })
}

// settleFlow takes the sum of the counts away, which only JSON has.
func settleFlow(v *FlowView) { delete(v.Counts, "total") }

func settleEdge(e *api.EdgeView) {
	if e.Outcome == "" {
		e.Run = 0
	}
}

// settleInput makes the parts of a named input agree.
func settleInput(n *api.NamedInput) {
	switch {
	case !n.Present:
		n.Result = Payload{}
	case n.Result.IsNothing():
		n.Result = Bytes([]byte{}, "")
	case len(n.Result.Data) > 8:
		n.Result = api.Unloaded(n.Result.ContentType, len(n.Result.Data))
	}
}

// drawnFlow is a graph whose edges stand where JSON has them.
func drawnFlow(t *rapid.T) Flow {
	names := []string{"a", "b", "c"}
	f := Flow{
		Kind: "release", IdempotencyKey: rapid.SampledFrom([]string{"", "k-1"}).Draw(t, "key"), Output: rapid.SampledFrom([]string{"", "c"}).Draw(t, "output"),
		Unsealed: rapid.Bool().Draw(t, "unsealed"), Tags: map[string]string{"team": "blue"},
	}
	if rapid.Bool().Draw(t, "defaults") {
		f.Defaults = Node{Kind: "job", SubmitOptions: SubmitOptions{Lane: "mail", Priority: 7}}
	}
	for i, name := range names {
		n := Node{Name: name, Kind: rapid.SampledFrom([]string{"", "build"}).Draw(t, "kind"), Input: drawPayload(t), Optional: rapid.Bool().Draw(t, "optional")}
		n.Delay = time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Second
		n.zeroPriority, n.zeroDelay = rapid.Bool().Draw(t, "zero"), n.Delay == 0 && rapid.Bool().Draw(t, "none")
		if i > 0 {
			n.Inbound = []Edge{{From: names[i-1], To: name, Kind: OnSuccess, Pass: names[i-1]}}
			n.Join = rapid.SampledFrom([]Join{{}, {Policy: JoinAll}, {Policy: JoinAny, CancelRemaining: true}, {Policy: JoinQuorum, K: 2}}).Draw(t, "join")
		}
		f.Nodes = append(f.Nodes, n)
	}
	if rapid.Bool().Draw(t, "nested") {
		f.Nodes = append(f.Nodes, SubFlow("inner", Flow{Nodes: []Node{{Name: "x", Kind: "k"}, {Name: "y", Kind: "k"}}, Edges: []Edge{{From: "x", To: "y", Kind: OnEnd}}, Output: "y"}))
	}
	f.Edges = []Edge{{From: "a", To: "c", Kind: OnFailure, Pass: "why"}}
	return f
}

func TestU89_a_flow_comes_back_as_it_was_written(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		f := drawnFlow(t)
		text := must(wire.Marshal(&f))
		var read Flow
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(read, f) {
			t.Fatalf("%s\n wrote %+v\n  read %+v", text, f, read)
		}
		direct, over := must(graphOf(f)), must(graphOf(read))
		if !reflect.DeepEqual(direct, over) {
			t.Fatalf("the engine gets\n %+v directly\n %+v over the network", direct, over)
		}
	})
}

// graphOf is the graph of a flow as the engine takes it.
func graphOf(f Flow) (core.FlowSubmission, error) {
	w, err := f.wire()
	if err != nil {
		return core.FlowSubmission{}, err
	}
	graph, err := service.CoreGraph(wire.SubFlow{Defaults: w.Defaults, Nodes: w.Nodes, Edges: w.Edges, Output: w.Output})
	return graph, publicError(err)
}

func TestU5_a_flow_in_json_is_read_strictly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ code, field string }{
		`{"nodes":[]}`:                                   {"missing_field", "/kind"},
		`{"kind":"k","nodes":[{"kind":"a"}]}`:            {"missing_field", "/nodes/0/name"},
		`{"kind":"k","nodes":[{"name":"a","knid":"x"}]}`: {"unknown_field", "/nodes/0/knid"},
		`{"kind":"k","nodes":[{"name":"a","delay_ms":1,"delay_until":"2030-01-01T00:00:00Z"}]}`: {"invalid_argument", "/nodes/0/delay_until"},
		`{"kind":"k","nodes":[{"name":"a","flow":{"nodes":[{"name":"b","x":1}]}}]}`:             {"unknown_field", "/nodes/0/flow/nodes/0/x"},
		`{"kind":"k","edges":[{"from":"a"}]}`:                                                   {"missing_field", "/edges/0/to"},
	} {
		var f Flow
		err := f.UnmarshalJSON([]byte(text))
		if CodeOf(err) != want.code || fieldOf(err) != want.field {
			t.Errorf("%s: %v at %q, want %s at %s", text, err, fieldOf(err), want.code, want.field)
		}
	}
}

func fieldOf(err error) string {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Field
	}
	return ""
}

func TestU150_nodes_say_what_they_wait_for_and_pass_results_under_their_names(t *testing.T) {
	t.Parallel()
	const build Kind[string, string] = "build"
	base := build.Node("deploy", "x")
	for _, c := range []struct {
		name string
		node Node
		join Join
		want []Edge
	}{
		{"after", base.After("a", "b"), Join{}, []Edge{{From: "a", Kind: OnSuccess, Pass: "a"}, {From: "b", Kind: OnSuccess, Pass: "b"}}},
		{"after a failure", base.AfterFailure("a"), Join{}, []Edge{{From: "a", Kind: OnFailure, Pass: "a"}}},
		{"after the end", base.After("a").AfterEnd("b"), Join{}, []Edge{{From: "a", Kind: OnSuccess, Pass: "a"}, {From: "b", Kind: OnEnd, Pass: "b"}}},
		{"after any", base.AfterAny("a", "b").CancelRemaining(), Join{Policy: JoinAny, CancelRemaining: true}, []Edge{{From: "a", Kind: OnSuccess, Pass: "a"}, {From: "b", Kind: OnSuccess, Pass: "b"}}},
		{"after a quorum", base.AfterQuorum(1, "a"), Join{Policy: JoinQuorum, K: 1}, []Edge{{From: "a", Kind: OnSuccess, Pass: "a"}}},
		{"another name", base.After("a").PassAs("a", "image"), Join{}, []Edge{{From: "a", Kind: OnSuccess, Pass: "image"}}},
		{"nothing", base.After("a").PassAs("a", ""), Join{}, []Edge{{From: "a", Kind: OnSuccess}}},
	} {
		for i := range c.want {
			c.want[i].To = "deploy"
		}
		if !reflect.DeepEqual(c.node.Inbound, c.want) || c.node.Join != c.join {
			t.Errorf("%s: %+v %+v", c.name, c.node.Inbound, c.node.Join)
		}
	}
	if len(base.Inbound) != 0 || base.Join != (Join{}) {
		t.Errorf("the node that they were made from has changed: %+v", base)
	}
	f := Flow{ID: "0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50", Kind: "release", Nodes: []Node{build.Node("a", ""), build.Node("b", ""), base.After("a", "b").PassAs("b", "").MayFail()}}
	s := must(graphOf(f))
	if want := []core.FlowEdge{{From: "b", To: "deploy", Kind: core.SuccessOnly}}; !reflect.DeepEqual(s.Edges, want) || !slices.Equal(s.Nodes[2].After, []string{"a"}) || !s.Nodes[2].MayFail || must(f.wire()).Seal != nil {
		t.Errorf("%+v", s)
	}
}

func TestF12_what_a_node_cannot_be_is_refused_at_its_place(t *testing.T) {
	t.Parallel()
	const build Kind[any, string] = "build"
	for field, c := range map[string]struct {
		code string
		flow Flow
	}{
		"nodes[1].input":                  {"invalid_argument", Flow{Nodes: []Node{build.Node("a", 1), build.Node("b", func() {})}}},
		"nodes[0].idempotency_key":        {"invalid_flow", Flow{Nodes: []Node{build.Node("a", 1, SubmitOptions{IdempotencyKey: "k"})}}},
		"nodes[0].edges":                  {"unknown_name", Flow{Nodes: []Node{build.Node("a", 1).PassAs("b", "c")}}},
		"nodes[0].join.policy":            {"invalid_join", Flow{Nodes: []Node{{Name: "a", Kind: "k", Join: Join{Policy: "most"}}}}},
		"nodes[0].flow.kind":              {"invalid_flow", Flow{Nodes: []Node{SubFlow("a", Flow{Kind: "x"})}}},
		"nodes[0].flow.nodes[0].requires": {"invalid_argument", Flow{Nodes: []Node{SubFlow("a", Flow{Nodes: []Node{build.Node("b", 1, SubmitOptions{Requires: []string{"x"}, Policy: &Policy{Capabilities: []string{"y"}}})}})}}},
		"edges[0].edge_id":                {"invalid_id", Flow{Edges: []Edge{{ID: "x", From: "a", To: "b"}}}},
		"defaults":                        {"invalid_flow", Flow{Defaults: Node{Name: "a"}}},
	} {
		_, err := graphOf(c.flow)
		if got := fieldOf(err); CodeOf(err) != c.code || got != field {
			t.Errorf("%v at %q, want %s at %s", err, got, c.code, field)
		}
	}
}
