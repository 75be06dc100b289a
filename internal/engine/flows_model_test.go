package engine_test

import (
	"bytes"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Each of these was found by the second account of flows in test/model.

func TestF54_a_member_that_goes_on_without_its_join_has_the_inputs_there_are(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{
			{Name: "a", Kind: "a"}, {Name: "b", Kind: "b"}, {Name: "c", Kind: "c", After: []string{"a", "b"}},
		}})
		w.breakDown("a")
		w.end("b")
		ok(t, w.replayMember(flow, "c", engine.ReplayRequest{IgnoreDependencies: true}))
		same(t, "inputs", inputNames(w.claimKind("c").Inputs), []string{"b"})
	})
}

func TestF19_F46_no_edge_leads_to_a_flow_node_whose_sub_flow_has_begun(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		inner := core.FlowSubmission{Kind: "inner", Nodes: []core.FlowNode{{Name: "s", Kind: "s"}}}
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Unsealed: true, Nodes: []core.FlowNode{{Name: "a", Kind: "a"}, {Name: "n", Flow: &inner}}})
		inside := w.claimKind("s")
		_, err := w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: flow.Flow.ID.Given(), Edges: []core.FlowEdge{{From: "a", To: "n"}}})
		refused(t, err, base.CodeDownstreamAlreadyStarted)
		w.complete(inside)
		eventually(t, "the node ends with its sub-flow", func() bool { return w.member(flow, "n").Status == core.Succeeded })
	})
}

func TestF40_F42_a_parent_is_woken_by_children_that_came_by_an_extension_of_their_flow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		parent := w.parent()
		w.spawn(parent, "x")
		below := w.get(given(parent)).Children.FlowID
		guest := base.ID{N: below.N, UUID: base.UUID{1: 9, 6: 0x70, 8: 0x80, 15: 1}}.Given()
		w.submit(core.Submission{ID: &guest, Kind: "guest"})
		_, err := w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{
			Flow: below.Given(), Nodes: childNodes("y"), Members: []core.FlowMember{{ID: guest, Name: "guest"}},
		})
		ok(t, err)
		w.parked(parent, namely("y", "guest"))
		w.end("y")
		w.is(given(parent), core.Blocked, core.WaitingForChildren)
		w.end("guest")
		w.is(given(parent), core.Ready, core.WaitingForWorker)
	})
}

func TestF31_F40_a_wait_that_is_decided_ends_children_that_came_by_an_extension(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		parent := w.parent()
		w.spawn(parent, "x")
		below := w.get(given(parent)).Children.FlowID
		grown, err := w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: below.Given(), Nodes: childNodes("y")})
		ok(t, err)
		w.parked(parent, joining(core.JoinSpec{Policy: core.AnyOf, OnSatisfied: core.CancelRemaining}))
		w.end("x")
		eventually(t, "y is not needed", func() bool { return w.get(grown.Members["y"].Given()).Reason == core.JoinSatisfied })
	})
}

func TestF30_F31_a_join_that_is_decided_anew_ends_nothing_because_of_what_an_earlier_decision_ended(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{
			Kind: "f", Nodes: []core.FlowNode{
				{Name: "a", Kind: "a"},
				{Name: "c", Kind: "c", After: []string{"a"}},
				{Name: "d", Kind: "d"},
				{Name: "e", Kind: "e", After: []string{"a", "d"}, Join: &core.JoinSpec{OnSatisfied: core.CancelRemaining}},
			}, Edges: []core.FlowEdge{{From: "c", To: "d", Kind: core.AnyTerminal}},
		})
		w.cancel(flow.Members["a"].Given())
		eventually(t, "d is not needed", func() bool { return w.member(flow, "d").Reason == core.JoinImpossible })
		w.workedOff("cancel_losers")
		w.pass(1000)
		ok(t, w.replayMember(flow, "a", engine.ReplayRequest{Cascade: core.CascadeSkipped}))
		w.workedOff("cancel_losers")
		same(t, "c waits for a, which goes on", w.statuses(flow), map[string]string{"a": "ready", "c": "blocked", "d": "cancelled", "e": "skipped"})
		w.end("a")
		w.end("c")
	})
}

func TestF30_F54_a_replayed_member_whose_join_stays_satisfied_ends_none_of_its_upstreams(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{
			{Name: "a", Kind: "a"},
			{Name: "b", Kind: "b"},
			{Name: "d", Kind: "d", After: []string{"b"}},
			{Name: "c", Kind: "c", After: []string{"a", "b"}, Join: &core.JoinSpec{Policy: core.AnyOf, OnSatisfied: core.CancelRemaining}},
		}})
		w.end("a")
		w.breakDown("c")
		w.workedOff("cancel_losers")
		w.cancel(flow.Members["d"].Given())
		ok(t, w.replayMember(flow, "c", engine.ReplayRequest{}))
		w.workedOff("cancel_losers")
		same(t, "b is left alone", w.member(flow, "b").Status, core.Ready)
	})
}

func TestL109_F56_a_descendant_that_is_at_work_is_told_before_one_that_was_replayed_too_often(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{
			{Name: "a", Kind: "a"}, {Name: "b", Kind: "b", After: []string{"a"}, PolicyJSON: []byte(`{"max_replay_count":0}`)}, {Name: "c", Kind: "c", After: []string{"b"}},
		}})
		w.end("a")
		w.end("b")
		w.claimKind("c")
		refused(t, w.replayMember(flow, "a", engine.ReplayRequest{Cascade: core.CascadeAll}), base.CodeDescendantActive)
	})
}

// workedOff waits until no follow-up work of the kind is left.
func (w *world) workedOff(kind string) {
	w.t.Helper()
	const tasks store.DocKind = 7
	eventually(w.t, "no "+kind+" is left", func() bool {
		loaded, err := w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: tasks}}})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, doc := range loaded.Scanned[0] {
			if bytes.Contains(doc.Body, []byte(kind)) {
				return false
			}
		}
		return true
	})
}
