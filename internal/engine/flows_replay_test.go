package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// replayMember replays a member.
func (w *world) replayMember(of engine.FlowAnswer, name string, r engine.ReplayRequest) error {
	_, err := w.e.Replay(w.ctx(), operator, of.Members[name].Given(), r, engine.Operator{Reason: "again"})
	return err
}

func TestF54_F58_a_replayed_member_runs_again_and_the_flow_ends_anew(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b", "c"))
		w.run(line, "a")
		w.fail(w.claimMember(line, "b"), "permanent")
		same(t, "state", w.flow(line).State, core.FlowFailed)
		ok(t, w.replayMember(line, "b", engine.ReplayRequest{}))
		view := w.flow(line)
		same(t, "state", view.State, core.FlowOpen)
		same(t, "c stays skipped: nothing was asked of it", w.statuses(line), map[string]string{"a": "succeeded", "b": "ready", "c": "skipped"})
		task := w.claimMember(line, "b")
		same(t, "inputs are those of the first run", inputNames(task.Inputs), []string{"a"})
		same(t, "run", task.Execution.RunIndex(), 1)
		w.complete(task)
		same(t, "state", w.flow(line).State, core.FlowCompleted)
		same(t, "events", w.flowStory(line), []string{"flow.created", "flow.failed", "flow.reopened", "flow.completed"})
	})
}

func TestF54_L111_a_skipped_member_is_judged_by_its_upstreams_as_they_are_now(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b", "c"))
		w.fail(w.claimMember(line, "a"), "permanent")
		err := w.replayMember(line, "b", engine.ReplayRequest{})
		refused(t, err, base.CodeDependenciesImpossible)
		same(t, "nothing changed", w.flow(line).State, core.FlowFailed)

		ok(t, w.replayMember(line, "a", engine.ReplayRequest{}))
		ok(t, w.replayMember(line, "b", engine.ReplayRequest{}))
		same(t, "b waits for a", w.member(line, "b").Status, core.Blocked)
		w.run(line, "a", "b")
		ok(t, w.replayMember(line, "c", engine.ReplayRequest{}))
		w.run(line, "c")
		same(t, "state", w.flow(line).State, core.FlowCompleted)
	})
}

func TestF54_dependencies_that_are_ignored_override_the_join(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b"))
		w.fail(w.claimMember(line, "a"), "permanent")
		ok(t, w.replayMember(line, "b", engine.ReplayRequest{IgnoreDependencies: true}))
		task := w.claimMember(line, "b")
		same(t, "join", task.Execution.Member.Join.State, core.JoinOverridden)
		w.complete(task)
		same(t, "somebody took care of a (F5)", w.flow(line).State, core.FlowCompleted)
	})
}

func TestF55_F56_a_cascade_opens_descendants_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b", "c"))
		w.fail(w.claimMember(line, "a"), "permanent")
		ok(t, w.replayMember(line, "a", engine.ReplayRequest{Cascade: core.CascadeSkipped}))
		same(t, "statuses", w.statuses(line), map[string]string{"a": "ready", "b": "blocked", "c": "blocked"})
		w.run(line, "a", "b", "c")
		same(t, "state", w.flow(line).State, core.FlowCompleted)

		ok(t, w.replayMember(line, "a", engine.ReplayRequest{Cascade: core.CascadeAll}))
		same(t, "statuses", w.statuses(line), map[string]string{"a": "ready", "b": "blocked", "c": "blocked"})
		w.run(line, "a")
		running := w.claimMember(line, "b")
		refused(t, w.replayMember(line, "a", engine.ReplayRequest{Cascade: core.CascadeAll}), base.CodeDescendantActive)
		w.complete(running)
		w.run(line, "c")
		same(t, "runs", w.member(line, "c").RunIndex(), 2)
		same(t, "state", w.flow(line).State, core.FlowCompleted)
	})
}

func TestF56_one_member_at_its_cap_refuses_the_whole_replay(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := chain("a", "b")
		s.Nodes[1].PolicyJSON = []byte(`{"max_replay_count":0}`)
		line := w.submitFlow(s)
		w.fail(w.claimMember(line, "a"), "permanent")
		err := w.replayMember(line, "a", engine.ReplayRequest{Cascade: core.CascadeSkipped})
		refused(t, err, base.CodeMaxReplaysExhausted)
		same(t, "statuses", w.statuses(line), map[string]string{"a": "failed", "b": "skipped"})
		same(t, "state", w.flow(line).State, core.FlowFailed)
	})
}

func TestF57_a_replay_inside_a_finished_sub_flow_opens_it_and_its_node_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		inner := chain("x", "y")
		inner.Kind, inner.Output = "", "y"
		outer := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "sub", Flow: &inner}, {Name: "after", Kind: "work", After: []string{"sub"}}}})
		w.complete(w.claim())
		w.fail(w.claim(), "permanent")
		w.flowBecomes(outer, core.FlowFailed)
		node := w.member(outer, "sub")
		sub, err := w.e.Graph(w.ctx(), client, node.Children.FlowID.Given(), "", 0)
		ok(t, err)
		failed := sub.Members[1].Execution
		same(t, "who failed", failed.Member.Name, "y")
		_, err = w.e.Replay(w.ctx(), operator, failed.ID.Given(), engine.ReplayRequest{}, engine.Operator{})
		ok(t, err)
		same(t, "the node waits again", w.member(outer, "sub").Status, core.Blocked)
		same(t, "it counts", w.member(outer, "sub").ReplayCount, 1)
		same(t, "the root is open", w.flow(outer).State, core.FlowOpen)
		w.complete(w.claim())
		eventually(t, "the node has succeeded", func() bool { return w.member(outer, "sub").Status == core.Succeeded })
		ok(t, w.replayMember(outer, "after", engine.ReplayRequest{}))
		w.run(outer, "after")
		same(t, "state", w.flowBecomes(outer, core.FlowCompleted).State, core.FlowCompleted)
	})
}

func TestF58_L109_members_of_a_cancelled_flow_are_not_replayed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b"))
		must(w.e.CancelFlow(w.ctx(), operator, engine.CancelFlowRequest{Flow: line.Flow.ID.Given(), Reason: "no"}))(t)
		w.flowBecomes(line, core.FlowStopped)
		refused(t, w.replayMember(line, "a", engine.ReplayRequest{}), base.CodeFlowAlreadyTerminal)
	})
}

func TestL137_F54_a_bulk_replay_opens_the_flows_of_members_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b"))
		w.fail(w.claimMember(line, "a"), "permanent")
		job := w.bulk(engine.BulkRequest{Action: "replay", Filter: core.Filter{Status: []string{"failed"}}})
		same(t, "done", w.ended(job.JobID).Done, 1)
		same(t, "state", w.flow(line).State, core.FlowOpen)
		w.run(line, "a")
		same(t, "state", w.flowBecomes(line, core.FlowCompleted).State, core.FlowCompleted)
	})
}

func TestF56_a_replay_opens_at_most_a_thousand_members_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.FlowSubmission{Kind: "wide", Nodes: []core.FlowNode{{Name: "root", Kind: "work"}}, Defaults: core.FlowNode{Kind: "work"}}
		for i := range 1000 {
			s.Nodes = append(s.Nodes, core.FlowNode{Name: fmt.Sprintf("n%03d", i), After: []string{"root"}})
		}
		wide := w.submitFlow(s)
		w.fail(w.claimMember(wide, "root"), "permanent")
		w.flowBecomes(wide, core.FlowFailed)
		refused(t, w.replayMember(wide, "root", engine.ReplayRequest{Cascade: core.CascadeSkipped}), base.CodeReplayTooLarge)
		same(t, "nothing changed", w.flow(wide).Counts["skipped"], 1000)
	})
}
