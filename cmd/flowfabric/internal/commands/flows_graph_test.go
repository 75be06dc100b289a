package commands

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// raced is a graph with all that a drawing shows: a race, a quorum, kinds of edges, states, a nested flow, a long way and a short one.
func raced() *api.FlowGraph {
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	edge := func(from, to, state string, kind flowfabric.EdgeKind) api.EdgeView {
		return api.EdgeView{From: from, To: to, Kind: kind, Pass: from, State: state}
	}
	return &api.FlowGraph{
		Flow: flowfabric.FlowView{ID: "0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50", Kind: "race", State: flowfabric.FlowOpen},
		Members: []api.FlowMember{
			{Name: "a", PublicState: "completed", Status: flowfabric.StatusSucceeded, StartedAt: began, EndedAt: began.Add(3 * time.Second)},
			{Name: "b", PublicState: "active", Status: flowfabric.StatusRunning, StartedAt: began},
			{Name: "last", PublicState: "waiting_children", SubFlow: true, Join: &api.JoinView{Join: flowfabric.Join{Policy: flowfabric.JoinQuorum, K: 2}}},
			{Name: "next", PublicState: "waiting", Join: &api.JoinView{Join: flowfabric.Join{Policy: flowfabric.JoinAny, CancelRemaining: true}}},
			{Name: "woe", PublicState: "skipped", Status: flowfabric.StatusSkipped, Optional: true},
		},
		Edges: []api.EdgeView{
			edge("a", "next", "satisfied", flowfabric.OnSuccess), edge("b", "next", "pending", flowfabric.OnSuccess), edge("next", "last", "pending", flowfabric.OnEnd),
			edge("a", "last", "satisfied", flowfabric.OnSuccess), edge("a", "woe", "impossible", flowfabric.OnFailure),
		},
	}
}

func printed(color bool, draw func(p *show.Printer) error) string {
	var out bytes.Buffer
	now := time.Date(2030, 1, 1, 0, 0, 9, 0, time.UTC)
	if err := draw(&show.Printer{Out: &out, Err: &out, Color: color, Now: func() time.Time { return now }}); err != nil {
		return err.Error()
	}
	return out.String()
}

func TestU174_a_graph_is_drawn_by_layers_of_its_longest_ways(t *testing.T) {
	t.Parallel()
	const want = `0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 race  open  2 of 5 members ended, 5 edges
1  ✓ a               completed         3s
   ● b               active            9s
2  ◔ next            waiting               any of, cancels the others ← a ✓, b
   – woe (may fail)  skipped               ⇠ a ✗
3  ○ last [flow]     waiting_children      2 of ← a ✓, ↢ next
← after success   ⇠ after failure   ↢ after the end
`
	if got := printed(false, func(p *show.Printer) error { return drawGraph(p, raced()) }); got != want {
		t.Errorf("drawn is\n%swant\n%s", got, want)
	}
	if got := printed(true, func(p *show.Printer) error { return drawGraph(p, raced()) }); !strings.Contains(got, "\x1b[32m✓") || !strings.Contains(got, "\x1b[33mskipped") {
		t.Errorf("%q", got)
	}
}

func TestU174_a_member_that_waits_for_many_names_the_first_of_them(t *testing.T) {
	t.Parallel()
	g := &api.FlowGraph{Members: []api.FlowMember{{Name: "z"}}}
	for i := range 20 {
		name := fmt.Sprintf("m%02d", i)
		g.Members = append(g.Members, api.FlowMember{Name: name})
		g.Edges = append(g.Edges, api.EdgeView{From: name, To: "z", Kind: flowfabric.OnSuccess})
	}
	got := printed(false, func(p *show.Printer) error { return drawGraph(p, g) })
	if !strings.Contains(got, "← m00, m01, m02, m03, m04, m05, m06, m07, and 12 more\n") {
		t.Errorf("%s", got)
	}
}

func TestU174_a_graph_is_written_for_graphviz(t *testing.T) {
	t.Parallel()
	g := raced()
	g.Edges[0].Pass = `"first"`
	got := printed(false, func(p *show.Printer) error { return writeDot(p.Out, g) })
	for _, line := range []string{
		`digraph "race" {`, `"a" [label="a\ncompleted", fillcolor=palegreen];`, `"a" -> "next" [style=solid, label="\"first\""];`,
		`"next" -> "last" [style=dotted];`, `"a" -> "woe" [style=dashed, color=red];`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("there is no %s in\n%s", line, got)
		}
	}
}
