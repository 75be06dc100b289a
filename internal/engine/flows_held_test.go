package engine_test

import (
	"bytes"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Follow-up work is held here right after it has read something, so that what the test does meanwhile comes between the decision that
// made the work necessary and the work itself.

// tasksLeft counts the follow-up work of a kind that is left.
func (w *world) tasksLeft(kind string) (n int) {
	w.t.Helper()
	const tasks store.DocKind = 7
	loaded := must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: tasks}}}))(w.t)
	for _, doc := range loaded.Scanned[0] {
		if bytes.Contains(doc.Body, []byte(kind)) {
			n++
		}
	}
	return n
}

func TestF32_a_candidate_that_ends_by_itself_before_its_turn_keeps_its_outcome(t *testing.T) {
	t.Parallel()
	for name, looks := range map[string]func(d base.UUID) func(want store.Want) bool{
		"before the work looks for candidates": func(d base.UUID) func(want store.Want) bool {
			return func(want store.Want) bool { return len(want.Executions) == 1 && want.Executions[0] == d }
		},
		"after it has found it": func(base.UUID) func(want store.Want) bool {
			return func(want store.Want) bool { return len(want.Owned) == 4 } // the edges of those whose edges into d are there
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				b := w.interpose()
				flow := w.submitFlow(core.FlowSubmission{Kind: "race", Nodes: append(nodesNamed("fast", "done", "bad", "slow"),
					core.FlowNode{Name: "d", Kind: "d", After: []string{"fast", "done", "bad", "slow"}, Join: firstOf()})})
				done, bad := w.takeKind("done", 1)[0], w.takeKind("bad", 1)[0]
				w.takeKind("slow", 1)
				fast := w.takeKind("fast", 1)[0]
				reached, goOn := b.afterRead.hold(t, looks(flow.Members["d"].UUID))
				w.complete(fast)
				<-reached
				same(t, "the join is decided and everybody still runs", w.statuses(flow),
					map[string]string{"fast": "succeeded", "done": "running", "bad": "running", "slow": "running", "d": "ready"})
				w.complete(done)
				w.fail(bad, "permanent")
				goOn()
				w.workedOff("cancel_losers")
				same(t, "only who did not end is a loser", w.statuses(flow),
					map[string]string{"fast": "succeeded", "done": "succeeded", "bad": "failed", "slow": "cancelled", "d": "ready"})
				w.is(flow.Members["slow"].Given(), core.Cancelled, core.JoinSatisfied)
				w.workOff("d", 1, succeeds)
				counts := w.flowBecomes(flow, core.FlowCompleted).Counts
				same(t, "counts", []int{counts["completed"], counts["failed"], counts["cancelled"]}, []int{3, 1, 1})
			})
		})
	}
}

// pageOfEdges fits the reads of the work that resolves what an end left: the first of them, or a later one.
func pageOfEdges(later bool) func(want store.Want) bool {
	return func(want store.Want) bool {
		return len(want.Scans) == 1 && len(want.Docs) == 0 && want.Scans[0].Limit == 256 && (want.Scans[0].After != "") == later
	}
}

func TestF27_work_left_over_from_an_older_run_does_nothing(t *testing.T) {
	t.Parallel()
	const all, atOnce = 600, 256
	for name, later := range map[string]bool{"before it has seen what is left": false, "after it has": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				b := w.interpose()
				flow := w.submitFlow(fan(all))
				reached, goOn := b.afterRead.hold(t, pageOfEdges(later))
				w.complete(w.claimMember(flow, "root"))
				<-reached
				ok(t, w.replayMember(flow, "root", engine.ReplayRequest{}))
				goOn()
				w.workedOff("resolve_edges")
				counts := w.flow(flow).Counts
				same(t, "what was resolved stays, the rest waits for the new run", []int{counts["waiting"], counts["waiting_children"]}, []int{atOnce + 1, all - atOnce})
				for _, task := range w.takeKind("work", atOnce+1) {
					if task.Execution.ID == flow.Members["root"] {
						w.fail(task, "permanent")
					}
				}
				w.workedOff("resolve_edges")
				counts = w.flow(flow).Counts
				same(t, "by the run that failed", []int{counts["active"], counts["skipped"], counts["failed"]}, []int{atOnce, all - atOnce, 1})
			})
		})
	}
}

func TestF27_work_left_over_from_an_older_run_does_nothing_though_the_new_run_has_ended_too(t *testing.T) {
	t.Parallel()
	const all, atOnce = 600, 256
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		s := fan(all)
		s.Nodes[0].Kind = "root"
		flow := w.submitFlow(s)
		old, letOld := b.afterRead.hold(t, pageOfEdges(true))
		w.complete(w.takeKind("root", 1)[0])
		<-old
		ok(t, w.replayMember(flow, "root", engine.ReplayRequest{}))
		fresh, letFresh := b.afterRead.hold(t, pageOfEdges(false))
		w.fail(w.takeKind("root", 1)[0], "permanent")
		<-fresh
		numbers := func() []int {
			counts := w.flow(flow).Counts
			return []int{counts["waiting"], counts["skipped"], counts["waiting_children"]}
		}
		same(t, "both ends have done what fits into one transaction", numbers(), []int{atOnce, atOnce, all - 2*atOnce})
		letOld()
		eventually(t, "the old work is over", func() bool { return w.tasksLeft("resolve_edges") == 1 })
		same(t, "it did nothing", numbers(), []int{atOnce, atOnce, all - 2*atOnce})
		letFresh()
		w.workedOff("resolve_edges")
		same(t, "the new one did the rest", numbers(), []int{atOnce, all - atOnce, 0})
	})
}
