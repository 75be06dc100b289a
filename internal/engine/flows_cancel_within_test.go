package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// nestedFlow is a flow whose node has a sub-flow that has one too; x and r are at the front of theirs.
func nestedFlow() core.FlowSubmission {
	deep := &core.FlowSubmission{Output: "y", Nodes: append(nodesNamed("x", "z"), core.FlowNode{Name: "y", Kind: "y", After: []string{"x"}})}
	middle := &core.FlowSubmission{Nodes: append(nodesNamed("r", "s"), core.FlowNode{Name: "m", Flow: deep})}
	return core.FlowSubmission{Kind: "outer", Nodes: append(nodesNamed("o"), core.FlowNode{Name: "n", Flow: middle},
		core.FlowNode{Name: "p", Kind: "p", After: []string{"n"}})}
}

func TestF48_F49_cancel_pending_ends_nothing_that_has_started_in_a_sub_flow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		outer := w.submitFlow(nestedFlow())
		middle := w.subflow(outer, "n")
		deep := w.subflow(middle, "m")
		x, r := w.claimKind("x"), w.claimKind("r")
		answer := w.cancelFlow(outer, core.CancelPending, "no more")
		same(t, "answer", answer, engine.CancelFlowAnswer{State: core.FlowCancelling, Policy: core.CancelPending, Reason: "no more", Cancelled: 2, Remaining: 1})
		w.flowBecomes(middle, core.FlowCancelling)
		view := w.flowBecomes(deep, core.FlowCancelling)
		same(t, "cancel", []any{view.Cancel.Policy, view.Cancel.Reason, view.Cancel.By, view.Cancel.Source}, []any{core.CancelPending, "no more", "op", core.SourceParent})
		w.followed()
		same(t, "outer", w.statuses(outer), map[string]string{"o": "cancelled", "n": "blocked", "p": "cancelled"})
		same(t, "middle", w.statuses(middle), map[string]string{"r": "running", "s": "cancelled", "m": "blocked"})
		same(t, "deep", w.statuses(deep), map[string]string{"x": "running", "y": "cancelled", "z": "cancelled"})
		w.complete(x)
		w.flowBecomes(deep, core.FlowStopped)
		w.becomes(middle.Members["m"].Given(), core.Cancelled)
		w.complete(r)
		w.flowBecomes(outer, core.FlowStopped)
		w.is(outer.Members["n"].Given(), core.Cancelled, core.FlowCancelled)
		for _, flow := range []engine.FlowAnswer{outer, middle, deep} {
			w.consistent(flow)
		}
	})
}

func TestF49_F51_cancel_pending_leaves_a_node_to_a_sub_flow_that_has_ended_already(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.submitFlow(nodeOf(inner()))
		sub := w.subflow(flow, "n")
		w.end("x")
		cancelled := make(chan engine.CancelFlowAnswer, 1)
		b.afterRead.set(looksAtFlow(sub.Flow.ID), func() { cancelled <- w.cancelFlow(flow, core.CancelPending, "late") })
		w.end("y")
		same(t, "remaining", (<-cancelled).Remaining, 1)
		w.becomes(flow.Members["n"].Given(), core.Succeeded)
		same(t, "sub-flow", w.flowEnds(sub.Flow.ID).State, core.FlowCompleted)
		w.flowBecomes(flow, core.FlowStopped)
	})
}

func TestF49_S63_a_sub_flow_whose_member_cannot_be_read_is_cancelled_for_all_others(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{
			{Name: "n", Flow: &core.FlowSubmission{Nodes: childNodes("x", "y")}}, {Name: "k", Flow: &core.FlowSubmission{Nodes: childNodes("z")}},
		}})
		sub, other := w.subflow(flow, "n"), w.subflow(flow, "k")
		mend := w.spoil(sub.Members["x"].Given())
		w.cancelFlow(flow, core.CancelPending, "")
		w.becomes(sub.Members["y"].Given(), core.Cancelled)
		w.flowBecomes(other, core.FlowStopped)
		mend()
		w.triedAgain(sub.Members["x"].Given(), core.Cancelled)
		w.flowBecomes(sub, core.FlowStopped)
		w.flowBecomes(flow, core.FlowStopped)
	})
}

func TestF52_cancel_all_ends_what_cancel_pending_left_in_sub_flows(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		outer := w.submitFlow(nestedFlow())
		middle := w.subflow(outer, "n")
		deep := w.subflow(middle, "m")
		x := w.claimKind("x")
		w.cancelFlow(outer, core.CancelPending, "")
		w.flowBecomes(deep, core.FlowCancelling)
		w.cancelFlow(outer, core.CancelAll, "")
		w.flowBecomes(deep, core.FlowStopped)
		w.is(deep.Members["x"].Given(), core.Cancelled, core.FlowCancelled)
		if _, err := w.e.Complete(w.ctx(), client, given(x), fence(x), nil); err == nil {
			t.Error("the fence lives")
		}
	})
}

func TestF57_L109_a_replay_in_a_sub_flow_is_refused_while_the_flow_around_it_is_cancelled(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.submitFlow(nodeOf(&core.FlowSubmission{Nodes: childNodes("x")}))
		sub := w.subflow(flow, "n")
		again := make(chan error, 1)
		b.afterRead.set(looksAtFlow(sub.Flow.ID), func() { // the node is not told yet
			w.cancelFlow(flow, core.CancelPending, "")
			again <- w.replayMember(sub, "x", engine.ReplayRequest{})
		})
		w.end("x")
		refused(t, <-again, base.CodeFlowAlreadyTerminal)
		w.becomes(flow.Members["n"].Given(), core.Succeeded)
		w.flowBecomes(flow, core.FlowStopped)
		w.consistent(sub)
	})
}
