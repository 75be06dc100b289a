package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestF12_F15_ten_thousand_edges_may_lead_to_a_member_old_ones_and_new_ones_together(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		next := 0
		into := func(n int) (x core.FlowExtension) { // so many new members, each with an edge into the sink
			for range n {
				name := fmt.Sprintf("n%05d", next)
				next++
				x.Nodes = append(x.Nodes, core.FlowNode{Name: name, Kind: "work"})
				x.Edges = append(x.Edges, core.FlowEdge{From: name, To: "sink"})
			}
			return x
		}
		flow := w.emptyFlow()
		first := into(core.MaxFlowRequestNodes - 1)
		first.Nodes = append(first.Nodes, core.FlowNode{Name: "sink", Kind: "sink"})
		w.extend(flow, first)
		w.extend(flow, into(core.MaxInboundEdges-core.MaxFlowRequestNodes))
		same(t, "one is left", w.flow(flow).Edges, core.MaxInboundEdges-1)
		before := w.flow(flow)
		over := func(n int, place string) {
			t.Helper()
			refusal := w.extendErr(flow, into(n), base.CodeFlowLimitExceeded)
			same(t, "where", []any{refusal.Field, refusal.Details["limit"]}, []any{place, core.MaxInboundEdges})
		}
		over(2, "edges[1].to")
		same(t, "nothing changed", w.flow(flow), before)
		w.extend(flow, into(1))
		over(1, "edges[0].to")
		same(t, "as many as there may be", w.flow(flow).Edges, core.MaxInboundEdges)
	})
}

func TestF53_a_cancel_waits_at_most_five_minutes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(chain("a"))
		asking := func(wait time.Duration) (engine.CancelFlowAnswer, error) {
			return w.e.CancelFlow(w.ctx(), operator, engine.CancelFlowRequest{Flow: flow.Flow.ID.Given(), Wait: wait})
		}
		for _, wait := range []time.Duration{300*time.Second + time.Millisecond, -time.Millisecond} {
			_, err := asking(wait)
			same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, "wait_ms")
			same(t, "nothing is asked for", w.flow(flow).State, core.FlowOpen)
		}
		same(t, "five minutes", must(asking(300*time.Second))(t).State, core.FlowStopped)
	})
}

func TestF46_a_flow_node_takes_no_place_of_its_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.capped("default", 1)
		s := nodeOf(inner())
		s.Nodes = append(s.Nodes, core.FlowNode{Name: "m", Flow: inner()}, core.FlowNode{Name: "late", Flow: inner(), DelayMS: ptr(int64(1000))})
		flow := w.submitFlow(s)
		for _, name := range []string{"n", "m"} {
			same(t, "lane", w.member(flow, name).Class.Lane, "default")
			w.subflow(flow, name)
		}
		task := w.takeKind("x", 1)[0] // the one place was free, though two flow nodes are at work
		w.none("x")
		w.pass(1000)
		w.subflow(flow, "late") // a full lane does not keep it
		w.is(flow.Members["late"].Given(), core.Blocked, core.WaitingForSubflow)
		w.staff(0)
		var full map[string]any
		why := w.explain(w.subflow(flow, "late").Members["x"].Given())
		decode(t, why.Blockers[0].Data, &full)
		same(t, "only x is counted", []any{why.Blockers[0].Code, full["in_use"], full["limit"]}, []any{"lane_cap", 1.0, 1.0})
		w.complete(task)
		for range 2 {
			w.workOff("x", 1, succeeds)
		}
		for range 3 {
			w.workOff("y", 1, succeeds)
		}
		w.workOff("after", 1, succeeds)
		w.flowBecomes(flow, core.FlowCompleted)
		w.nothing()
		w.started(core.Submission{}) // the place is free again
	})
}
