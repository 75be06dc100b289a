package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// endsWithSubflow works a sub-flow off and waits for the end of the flow around it.
func (w *world) endsWithSubflow(flow engine.FlowAnswer) {
	w.t.Helper()
	w.subflow(flow, "n")
	w.workOff("x", 1, succeeds)
	w.workOff("y", 1, succeeds)
	w.workOff("after", 1, succeeds)
	w.flowBecomes(flow, core.FlowCompleted)
}

func TestF26_F46_a_delay_of_a_flow_node_keeps_its_subflow_from_beginning(t *testing.T) {
	t.Parallel()
	for _, joined := range []bool{false, true} {
		onStores(t, func(t *testing.T, w *world) {
			s := nodeOf(inner())
			s.Nodes[0].DelayMS = ptr(base.Millis(5000))
			if joined {
				s.Nodes = append(s.Nodes, core.FlowNode{Name: "a", Kind: "a"})
				s.Nodes[0].After = []string{"a"}
			}
			flow := w.submitFlow(s)
			node := flow.Members["n"].Given()
			if joined {
				w.is(node, core.Blocked, core.WaitingForChildren)
				w.workOff("a", 1, succeeds)
			}
			w.is(node, core.Delayed, core.WaitingForDelay)
			same(t, "counts", w.flow(flow).Counts["delayed"], 1)
			w.turn(4000)
			w.none("x")
			same(t, "no sub-flow", w.is(node, core.Delayed, core.WaitingForDelay).Children == nil, true)
			w.turn(2000)
			w.endsWithSubflow(flow)
		})
	}
}

func TestF46_S57_what_a_flow_node_waits_for_is_told_and_no_worker_is_asked_for(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := nodeOf(inner())
		s.Nodes[0].DelayMS = ptr(base.Millis(5000))
		due := w.now().Add(5000)
		flow := w.submitFlow(s)
		why := must(w.e.Explain(w.ctx(), client, flow.Members["n"].Given(), 0))(t)
		same(t, "why", []any{len(why.Blockers), why.Blockers[0].Code, why.NextEligibleAt}, []any{1, core.BlockerDelay, due})
		w.turn(6000)
		w.subflow(flow, "n")
		why = must(w.e.Explain(w.ctx(), client, flow.Members["n"].Given(), 0))(t)
		same(t, "why", []any{len(why.Blockers), why.Blockers[0].Code}, []any{1, core.BlockerSubflow})
	})
}

func TestF26_L115_a_hold_of_a_flow_node_keeps_its_subflow_from_beginning(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := nodeOf(inner())
		s.Nodes = append(s.Nodes, core.FlowNode{Name: "a", Kind: "a"})
		s.Nodes[0].After = []string{"a"}
		flow := w.submitFlow(s)
		node := flow.Members["n"].Given()
		w.hold(node)
		w.is(node, core.Blocked, core.WaitingForChildren)
		w.workOff("a", 1, succeeds)
		w.is(node, core.Blocked, core.PausedByOperator)
		w.none("x")
		w.releaseHold(node)
		w.endsWithSubflow(flow)
	})
}

func TestF19_F21_an_edge_to_a_delayed_flow_node_makes_it_wait_and_keeps_its_delay(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := nodeOf(inner())
		s.Nodes[0].DelayMS, s.Unsealed = ptr(base.Millis(5000)), true
		s.Nodes = append(s.Nodes, core.FlowNode{Name: "a", Kind: "a"})
		flow := w.submitFlow(s)
		node := flow.Members["n"].Given()
		w.extend(flow, core.FlowExtension{Edges: []core.FlowEdge{{From: "a", To: "n"}}, Seal: true})
		w.is(node, core.Blocked, core.WaitingForChildren)
		w.workOff("a", 1, succeeds)
		w.is(node, core.Delayed, core.WaitingForDelay)
		w.turn(6000)
		w.endsWithSubflow(flow)
	})
}

func TestF57_a_replayed_flow_node_that_was_delayed_begins_anew_at_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := nodeOf(inner())
		s.Nodes, s.Edges = s.Nodes[:1], nil
		s.Nodes[0].DelayMS = ptr(base.Millis(5000))
		flow := w.submitFlow(s)
		w.turn(6000)
		first := w.subflow(flow, "n")
		w.workOff("x", 1, fails)
		w.flowBecomes(flow, core.FlowFailed)
		must(w.e.Replay(w.ctx(), operator, flow.Members["n"].Given(), engine.ReplayRequest{}, engine.Operator{}))(t)
		if again := w.subflow(flow, "n"); again.Flow.ID == first.Flow.ID {
			t.Error("it is the old sub-flow")
		}
		w.workOff("x", 1, succeeds)
		w.workOff("y", 1, succeeds)
		w.flowBecomes(flow, core.FlowCompleted)
	})
}

func TestF26_F46_a_deadline_of_a_flow_node_ends_its_subflow(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		onStores(t, func(t *testing.T, w *world) {
			s := nodeOf(inner())
			s.Nodes[0].DeadlineAt = w.now().Add(5000)
			if !begun {
				s.Nodes[0].DelayMS = ptr(base.Millis(60_000))
			}
			flow := w.submitFlow(s)
			var sub engine.FlowAnswer
			if begun {
				sub = w.subflow(flow, "n")
			}
			w.turn(6000)
			w.becomes(flow.Members["n"].Given(), core.Expired)
			if begun {
				w.flowBecomes(sub, core.FlowStopped)
			}
			w.none("x")
			w.workOff("after", 1, succeeds)
			w.flowBecomes(flow, core.FlowCompleted) // its edge takes any end
		})
	}
}
