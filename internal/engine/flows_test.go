package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
)

func TestF4_F10_F28_a_line_of_nodes_runs_one_after_the_other_and_the_flow_completes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b", "c"))
		same(t, "revision", line.Flow.Revision, 1)
		same(t, "waiting", w.statuses(line), map[string]string{"a": "ready", "b": "blocked", "c": "blocked"})
		first := w.claimMember(line, "a")
		w.nothing()
		same(t, "phase", w.flow(line).Phase, "running")
		w.complete(first)
		w.run(line, "b", "c")
		view := w.flow(line)
		same(t, "state", view.State, core.FlowCompleted)
		same(t, "completed", view.Counts["completed"], 3)
		same(t, "events", w.flowStory(line), []string{"flow.created", "flow.completed"})
	})
}

func TestF14_F17_F21_an_edge_added_before_or_after_its_upstream_ends_makes_no_difference(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, ended := range []bool{false, true} {
			flow := w.submitFlow(core.FlowSubmission{Kind: "grown", Unsealed: true, Nodes: []core.FlowNode{{Name: "a", Kind: "work"}}})
			if ended {
				w.run(flow, "a")
			}
			grown := w.extend(flow, core.FlowExtension{
				Nodes: []core.FlowNode{{Name: "b", Kind: "work"}, {Name: "c", Kind: "work", After: []string{"b"}}}, Edges: []core.FlowEdge{{From: "a", To: "b"}}, Seal: true,
			})
			same(t, "revision", grown.Flow.Revision, 2)
			if !ended {
				same(t, "b waits", w.member(grown, "b").Status, core.Blocked)
				w.run(flow, "a")
			}
			w.run(grown, "b", "c")
			same(t, "state", w.flow(flow).State, core.FlowCompleted)
			same(t, "events", w.flowStory(flow), []string{"flow.created", "flow.extended", "flow.sealed", "flow.completed"})
		}
	})
}

func TestF26_F29_what_cannot_run_is_skipped_to_the_end(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b", "c", "d"))
		w.fail(w.claimMember(line, "a"), "permanent")
		same(t, "statuses", w.statuses(line), map[string]string{"a": "failed", "b": "skipped", "c": "skipped", "d": "skipped"})
		view := w.flow(line)
		same(t, "state", view.State, core.FlowFailed)
		same(t, "failures", view.Failures, []string{"a"})
	})
}
