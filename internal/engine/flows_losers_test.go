package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// firstOf is a join that any upstream satisfies and that cancels the others.
func firstOf() *core.JoinSpec {
	return &core.JoinSpec{Policy: core.AnyOf, OnSatisfied: core.CancelRemaining}
}

// statusesBecome waits until members have these statuses.
func (w *world) statusesBecome(of engine.FlowAnswer, want map[string]string) {
	w.t.Helper()
	var got map[string]string
	over := time.Now().Add(giveUp)
	eventually(w.t, "statuses", func() bool {
		got = w.statuses(of)
		for name, status := range want {
			if got[name] != status {
				return time.Now().After(over)
			}
		}
		return true
	})
	for name := range got {
		if _, asked := want[name]; !asked {
			delete(got, name)
		}
	}
	same(w.t, "statuses", got, want)
}

func TestF5_F30_F31_a_race_of_three_ends_the_losers_and_counts_as_completed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		race := w.submitFlow(core.FlowSubmission{Kind: "race", Nodes: append(nodesNamed("a", "b", "c"),
			core.FlowNode{Name: "d", Kind: "d", After: []string{"a", "b", "c"}, Join: firstOf()})})
		loser := w.takeKind("b", 1)[0]
		w.workOff("a", 1, succeeds)
		w.statusesBecome(race, map[string]string{"b": "cancelled", "c": "cancelled"})
		b := w.is(race.Members["b"].Given(), core.Cancelled, core.JoinSatisfied)
		same(t, "source", b.Cancellation.Source, core.SourceJoin)
		if _, err := w.e.Complete(w.ctx(), client, given(loser), fence(loser), nil); err == nil {
			t.Error("the fence of a loser lives")
		}
		w.workOff("d", 1, succeeds)
		view := w.flow(race)
		same(t, "completed", []any{view.State, view.Counts["cancelled"], view.Counts["completed"]}, []any{core.FlowCompleted, 2, 2})
	})
}

func TestF31_a_losing_branch_ends_as_a_whole_and_what_others_need_survives(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		// slow1 -> slow2 -> slow3 -> d loses against fast -> d. shared feeds slow2 and also other, which is undecided; root feeds shared.
		flow := w.submitFlow(core.FlowSubmission{Kind: "branch", Nodes: []core.FlowNode{
			{Name: "fast", Kind: "fast"},
			{Name: "slow1", Kind: "slow"},
			{Name: "root", Kind: "slow"},
			{Name: "shared", Kind: "shared", After: []string{"root"}},
			{Name: "slow2", Kind: "slow", After: []string{"slow1", "shared"}},
			{Name: "slow3", Kind: "slow", After: []string{"slow2"}},
			{Name: "d", Kind: "d", After: []string{"fast", "slow3"}, Join: firstOf()},
			{Name: "other", Kind: "other", After: []string{"shared"}},
		}})
		w.workOff("fast", 1, succeeds)
		w.statusesBecome(flow, map[string]string{
			"slow3": "cancelled", "slow2": "cancelled", "slow1": "cancelled", "shared": "blocked", "root": "ready", "other": "blocked", "d": "ready",
		})
		w.workOff("d", 1, succeeds)
		w.workOff("slow", 1, succeeds)
		w.workOff("shared", 1, succeeds)
		w.workOff("other", 1, succeeds)
		same(t, "state", w.flowBecomes(flow, core.FlowCompleted).Counts["cancelled"], 3)
	})
}

func TestF31_a_candidate_becomes_one_again_by_the_decision_of_the_join_that_it_still_feeds(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "two", Nodes: append(nodesNamed("a", "b", "both"),
			core.FlowNode{Name: "d1", Kind: "d", After: []string{"a", "both"}, Join: firstOf()},
			core.FlowNode{Name: "d2", Kind: "d", After: []string{"b", "both"}, Join: firstOf()})})
		w.workOff("a", 1, succeeds)
		w.workOff("d", 1, succeeds)
		w.is(flow.Members["both"].Given(), core.Ready, core.WaitingForWorker)
		w.workOff("b", 1, succeeds)
		w.statusesBecome(flow, map[string]string{"both": "cancelled"})
		w.workOff("d", 1, succeeds)
		w.flowBecomes(flow, core.FlowCompleted)
	})
}

func TestF30_F31_an_impossible_join_ends_its_upstreams_and_the_output_is_never_a_candidate(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		all := &core.JoinSpec{OnSatisfied: core.CancelRemaining}
		flow := w.submitFlow(core.FlowSubmission{Kind: "all", Output: "out", Nodes: append(nodesNamed("a", "b", "out", "before"),
			core.FlowNode{Name: "mid", Kind: "mid", After: []string{"before"}},
			core.FlowNode{Name: "d", Kind: "d", After: []string{"a", "b", "out", "mid"}, Join: all})})
		w.workOff("a", 1, fails)
		w.statusesBecome(flow, map[string]string{"d": "skipped", "b": "cancelled", "mid": "cancelled", "before": "cancelled", "out": "ready"})
		w.is(flow.Members["before"].Given(), core.Cancelled, core.JoinImpossible)
		w.workOff("out", 1, succeeds)
		same(t, "failures", w.flowBecomes(flow, core.FlowFailed).Failures, []string{"a"})
	})
}

func TestF32_let_run_touches_no_member(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "let", Nodes: append(nodesNamed("a", "b"),
			core.FlowNode{Name: "d", Kind: "d", After: []string{"a", "b"}, Join: &core.JoinSpec{Policy: core.AnyOf}})})
		w.workOff("a", 1, succeeds)
		w.workOff("d", 1, succeeds)
		w.workOff("b", 1, fails)
		same(t, "b failed and d took care of it", w.flowBecomes(flow, core.FlowCompleted).Counts["failed"], 1)
	})
}

func TestF30_F31_a_thousand_losers(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.FlowSubmission{Kind: "many", Nodes: nodesNamed("fast")}
		down := core.FlowNode{Name: "d", Kind: "d", After: []string{"fast"}, Join: firstOf()}
		for i := range 1000 {
			name := fmt.Sprintf("slow%04d", i)
			s.Nodes = append(s.Nodes, core.FlowNode{Name: name, Kind: "slow"})
			down.After = append(down.After, name)
		}
		s.Nodes = append(s.Nodes, down)
		flow := w.submitFlow(s)
		w.workOff("fast", 1, succeeds)
		w.workOff("d", 1, succeeds)
		view := w.flowBecomes(flow, core.FlowCompleted)
		same(t, "losers", []int{view.Counts["cancelled"], view.Counts["completed"]}, []int{1000, 2})
	})
}
