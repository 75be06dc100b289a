package engine_test

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// looksAtFlow fits a look at the record of a flow and nothing else.
func looksAtFlow(id base.ID) func(store.Want) bool {
	return func(want store.Want) bool {
		return len(want.Docs) == 1 && want.Docs[0].Kind == 29 && want.Docs[0].Key == id.UUID.String() && len(want.Scans)+len(want.Executions) == 0
	}
}

// quorumOf is a node that waits for three of those behind it.
func quorumOf(name string, after ...string) core.FlowNode {
	return core.FlowNode{Name: name, Kind: name, After: after, Join: &core.JoinSpec{Policy: core.Quorum, K: 3}}
}

func TestL78_F43_a_spawn_whose_wait_is_refused_makes_no_children(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		p := w.parent()
		w.spawn(p, "a")
		w.end("a")
		keyed := client
		keyed.RequestKey = "once"
		r := waitOf(p)
		r.Usage = map[string]int64{"tokens": 1}
		must(w.e.WaitForChildren(w.ctx(), keyed, r))(t)
		before := w.childrenFlow(given(p))

		r.Usage = map[string]int64{"tokens": 2}
		s := spawnOf(p, "b")
		s.Wait = &r
		_, err := w.e.Spawn(w.ctx(), keyed, s)
		refused(t, err, base.CodeIdempotencyConflict)
		after := w.childrenFlow(given(p))
		same(t, "children and revision", []int64{int64(after.Nodes), after.Revision}, []int64{int64(before.Nodes), before.Revision})
		same(t, "the call under another key", w.spawn(p, "b").Created, 1)
	})
}

func TestL78_FI2_a_replay_that_is_refused_for_its_steps_leaves_the_flow_alone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(chain("a", "b"))
		w.run(flow, "a", "b")
		steps := store.DocRef{Kind: 5, Owner: flow.Members["a"].UUID.String()}
		w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: steps, Body: []byte(`{"count":"many"}`)}}})
		refused(t, w.replayMember(flow, "a", engine.ReplayRequest{KeepSteps: true, Cascade: core.CascadeAll}), base.CodeCorruption)
		same(t, "members", w.statuses(flow), map[string]string{"a": "succeeded", "b": "succeeded"})
		same(t, "events", w.flowStory(flow), []string{"flow.created", "flow.completed"})
		w.consistent(flow)
		w.tamper(store.Changes{DropDocs: []store.DocRef{steps}})
		ok(t, w.replayMember(flow, "a", engine.ReplayRequest{KeepSteps: true}))
	})
}

func TestF57_a_sub_flow_that_ends_while_a_replay_in_it_is_planned_is_opened_with_its_node(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.submitFlow(nodeOf(&core.FlowSubmission{Nodes: childNodes("x", "y")}))
		sub := w.subflow(flow, "n")
		w.breakDown("x")
		b.afterRead.set(looksAtFlow(sub.Flow.ID), func() {
			w.end("y")
			w.becomes(flow.Members["n"].Given(), core.Failed)
		})
		ok(t, w.replayMember(sub, "x", engine.ReplayRequest{}))
		node := w.is(flow.Members["n"].Given(), core.Blocked, core.WaitingForSubflow)
		same(t, "it is a replay of the node", node.RunIndex(), 1)
		same(t, "sub-flow", w.flow(sub).State, core.FlowOpen)
		w.end("x")
		w.becomes(flow.Members["n"].Given(), core.Succeeded)
		w.end("after")
		w.flowBecomes(flow, core.FlowCompleted)
		w.consistent(flow)
		w.consistent(sub)
	})
}

func TestF55_a_parent_that_begins_to_wait_while_the_replay_of_a_child_is_planned_waits_for_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		p := w.parent()
		made := w.spawn(p, "c1", "c2")
		w.end("c1")
		b.afterRead.set(func(want store.Want) bool { return len(want.Owned) == 1 && len(want.Executions) == 0 }, func() { w.parked(p) })
		must(w.e.Replay(w.ctx(), operator, made.Children["c1"].Given(), engine.ReplayRequest{}, engine.Operator{}))(t)
		w.end("c2")
		w.is(given(p), core.Blocked, core.WaitingForChildren)
		w.end("c1")
		w.complete(w.claimKind("parent"))
	})
}

func TestF24_F29_a_quorum_that_is_replayed_while_a_seal_is_planned_is_skipped_by_the_seal(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Unsealed: true, Nodes: []core.FlowNode{{Name: "a", Kind: "a"}, quorumOf("d", "a")}})
		w.end("a")
		w.cancel(flow.Members["d"].Given())
		b.afterRead.set(func(want store.Want) bool { return len(want.Executions) == 2 && len(want.Owned) == 2 }, func() {
			ok(t, w.replayMember(flow, "d", engine.ReplayRequest{}))
		})
		w.extend(flow, core.FlowExtension{Seal: true})
		d := w.is(flow.Members["d"].Given(), core.Skipped, core.DependencyImpossible)
		same(t, "detail", []any{d.RunIndex(), d.Member.Join.Detail}, []any{1, "quorum_unreachable"})
		same(t, "state", w.flow(flow).State, core.FlowCompleted)
		w.consistent(flow)
	})
}

func TestF24_F29_F44_a_quorum_that_comes_while_the_end_of_a_parent_is_planned_is_skipped_by_the_seal(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		p := w.parent()
		w.spawn(p, "c")
		of := w.childrenFlow(given(p)).ID
		w.end("c")
		extended := make(chan engine.FlowAnswer, 1)
		b.afterRead.set(func(want store.Want) bool {
			return len(want.Docs) == 1 && len(want.Scans) == 1 && want.Scans[0].Limit > 0
		}, func() {
			added, err := w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: of.Given(), Nodes: []core.FlowNode{quorumOf("d", "c")}})
			if err != nil {
				t.Error(err)
			}
			extended <- added
		})
		w.complete(p)
		added := <-extended
		same(t, "state", w.flowEnds(of).State, core.FlowCompleted)
		w.is(added.Members["d"].Given(), core.Skipped, core.DependencyImpossible)
		w.consistent(added)
	})
}

func TestF47_F57_a_sub_flow_that_is_opened_again_before_its_node_is_told_of_its_end_ends_it_later(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.submitFlow(nodeOf(&core.FlowSubmission{Output: "x", Nodes: childNodes("x")}))
		sub := w.subflow(flow, "n")
		again := make(chan error, 1)
		b.afterRead.set(looksAtFlow(sub.Flow.ID), func() { again <- w.replayMember(sub, "x", engine.ReplayRequest{}) })
		w.workOff("x", 1, leaves([]byte("first"), "text/plain"))
		ok(t, <-again)
		w.workOff("x", 1, leaves([]byte("second"), "text/plain"))
		task := w.takeKind("after", 1)[0]
		same(t, "inputs", told(task.Inputs), []string{`sub of n succeeded: 6 bytes text/plain "second"`})
		same(t, "the node was never replayed", w.member(flow, "n").RunIndex(), 0)
		w.consistent(sub)
	})
}

func TestS64_F57_the_end_of_a_sub_flow_that_two_processes_tell_ends_no_node_whose_sub_flow_is_open_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.submitFlow(nodeOf(&core.FlowSubmission{Nodes: childNodes("x")}))
		sub := w.subflow(flow, "n")
		w.end("x")
		w.becomes(flow.Members["n"].Given(), core.Succeeded)
		b.afterRead.set(looksAtFlow(sub.Flow.ID), func() { ok(t, w.replayMember(sub, "x", engine.ReplayRequest{})) })
		ok(t, w.e.EndNode(w.ctx(), sub.Flow.ID))
		node := w.is(flow.Members["n"].Given(), core.Blocked, core.WaitingForSubflow)
		same(t, "run", node.RunIndex(), 1)
		w.end("x")
		w.becomes(flow.Members["n"].Given(), core.Succeeded)
	})
}

func TestS64_F46_a_sub_flow_that_one_process_cannot_make_fails_no_node_that_has_it_or_runs_anew(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "p", Kind: "p"}, {Name: "n", Flow: inner(), After: []string{"p"}}}})
		n := flow.Members["n"].Given()
		w.cfg.NoTimers, w.cfg.PollInterval = true, time.Hour // nothing begins it
		w.restart()
		w.end("p")
		seen := w.is(n, core.Blocked, core.WaitingForSubflow)
		w.cancel(n)
		ok(t, w.replayMember(flow, "n", engine.ReplayRequest{}))
		refusal := base.Errorf(base.CodeBudgetNotFound, "it was removed")
		ok(t, w.e.FailNode(w.ctx(), seen, refusal))
		seen = w.is(n, core.Blocked, core.WaitingForSubflow)
		w.cfg.NoTimers, w.cfg.PollInterval = false, 0
		w.restart()
		sub := w.subflow(flow, "n")
		ok(t, w.e.FailNode(w.ctx(), seen, refusal))
		w.is(n, core.Blocked, core.WaitingForSubflow)
		same(t, "sub-flow", w.flow(sub).State, core.FlowOpen)
	})
}

func TestF57_a_node_that_was_replayed_while_a_replay_in_its_old_sub_flow_is_planned_is_left_alone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "n", Flow: &core.FlowSubmission{Nodes: childNodes("x")}}}})
		sub := w.subflow(flow, "n")
		w.end("x")
		w.becomes(flow.Members["n"].Given(), core.Succeeded)
		w.flowEnds(flow.Flow.ID)
		b.afterRead.set(looksAtFlow(flow.Flow.ID), func() {
			ok(t, w.replayMember(flow, "n", engine.ReplayRequest{}))
			w.subflow(flow, "n")
			w.end("x")
			w.becomes(flow.Members["n"].Given(), core.Succeeded)
		})
		ok(t, w.replayMember(sub, "x", engine.ReplayRequest{}))
		w.end("x")
		same(t, "the old sub-flow", w.flowEnds(sub.Flow.ID).State, core.FlowCompleted)
		w.becomes(flow.Members["n"].Given(), core.Succeeded)
		w.consistent(flow)
	})
}

func TestL137_F58_an_execution_that_becomes_a_member_while_a_bulk_replay_runs_is_replayed_with_its_flow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.emptyFlow()
		id := base.ID{N: flow.Flow.ID.N, UUID: drawUUID()}.Given()
		w.submit(core.Submission{Kind: "old", ID: &id})
		w.fail(w.claimKind("old"), "permanent")
		b.afterRead.set(func(want store.Want) bool {
			return want.SkipUnreadable && len(want.Executions) == 1 && want.Executions[0] == id.UUID
		}, func() {
			w.extend(flow, core.FlowExtension{Members: []core.FlowMember{{ID: id, Name: "old"}}, Seal: true})
		})
		done := w.bulk(engine.BulkRequest{Action: "replay", IDs: []base.GivenID{id}})
		same(t, "done", done.Done, 1)
		same(t, "replays", w.get(id).ReplayCount, 1)
		w.consistent(flow)
	})
}
