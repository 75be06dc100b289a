package engine_test

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// stepAndEnd claims the member of that kind, does its step, and completes it. It reports what the step answered.
func (w *world) stepAndEnd(kind, result string) string {
	w.t.Helper()
	task := w.claimKind(kind)
	outcome := w.step(task, "charge", result).Outcome
	w.complete(task)
	return outcome
}

// lineOf is a flow of nodes in a line, each of a kind of its own.
func lineOf(names ...string) core.FlowSubmission {
	s := chain(names...)
	for i := range s.Nodes {
		s.Nodes[i].Kind = names[i]
	}
	return s
}

func TestL150_F56_keep_steps_keeps_those_of_every_member_that_the_cascade_opens_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(lineOf("a", "b", "c"))
		for _, name := range []string{"a", "b", "c"} {
			same(t, "first run of "+name, w.stepAndEnd(name, name+"0"), "stored")
		}
		for range 2 {
			ok(t, w.replayMember(line, "a", engine.ReplayRequest{KeepSteps: true, Cascade: core.CascadeAll}))
			for _, name := range []string{"a", "b", "c"} {
				same(t, "steps of "+name, w.steps(line.Members[name].Given(), nil), []string{"charge=" + name + "0"})
				same(t, "the step of "+name, w.stepAndEnd(name, "again"), "exists")
			}
		}
		ok(t, w.replayMember(line, "a", engine.ReplayRequest{Cascade: core.CascadeAll}))
		for _, name := range []string{"a", "b", "c"} {
			same(t, "without keep_steps "+name+" begins without", w.steps(line.Members[name].Given(), nil), []string{})
			same(t, "the step of "+name, w.stepAndEnd(name, name+"3"), "stored")
		}
		w.flowBecomes(line, core.FlowCompleted)
		w.consistent(line)
	})
}

func TestL150_F56_keep_steps_with_cascade_skipped_keeps_what_an_earlier_run_did(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(lineOf("a", "b"))
		w.stepAndEnd("a", "a0")
		w.stepAndEnd("b", "b0")
		ok(t, w.replayMember(line, "a", engine.ReplayRequest{KeepSteps: true, Cascade: core.CascadeAll}))
		w.breakDown("a")
		w.is(line.Members["b"].Given(), core.Skipped, core.DependencyImpossible)
		ok(t, w.replayMember(line, "a", engine.ReplayRequest{KeepSteps: true, Cascade: core.CascadeSkipped}))
		same(t, "the step of a", w.stepAndEnd("a", "again"), "exists")
		same(t, "the step of b", w.stepAndEnd("b", "again"), "exists")
	})
}

func TestL78_L150_steps_of_a_descendant_that_cannot_be_found_refuse_the_whole_replay(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(lineOf("a", "b"))
		w.stepAndEnd("a", "a0")
		w.stepAndEnd("b", "b0")
		steps := store.DocRef{Kind: 5, Owner: line.Members["b"].UUID.String()}
		w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: steps, Body: []byte(`{"count":"many"}`)}}})
		refusal := refused(t, w.replayMember(line, "a", engine.ReplayRequest{KeepSteps: true, Cascade: core.CascadeAll}), base.CodeCorruption)
		same(t, "who", refusal.Details["name"], "b")
		same(t, "statuses", w.statuses(line), map[string]string{"a": "succeeded", "b": "succeeded"})
		w.consistent(line)
		ok(t, w.replayMember(line, "a", engine.ReplayRequest{Cascade: core.CascadeAll}))
	})
}

// readsDescendants fits the look of a replay at those that its cascade reaches.
func readsDescendants(ids ...base.ID) func(store.Want) bool {
	return func(want store.Want) bool {
		if len(want.Executions) != len(ids) || len(want.Docs)+len(want.Owned)+len(want.Scans) > 0 || want.SkipUnreadable {
			return false
		}
		for _, id := range ids {
			if !slices.Contains(want.Executions, id.UUID) {
				return false
			}
		}
		return true
	}
}

// openEnded is a flow in which a failure of a skips b; c waits for b or d; z keeps it open.
func openEnded() core.FlowSubmission {
	return core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{
		{Name: "a", Kind: "a"},
		{Name: "b", Kind: "b", After: []string{"a"}},
		{Name: "d", Kind: "d"},
		{Name: "z", Kind: "z"},
		{Name: "c", Kind: "c", After: []string{"b", "d"}, Join: &core.JoinSpec{Policy: core.AnyOf}},
	}}
}

func TestF56_a_descendant_that_is_skipped_while_a_replay_is_planned_is_opened_with_the_others(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		between := w.interpose()
		flow := w.submitFlow(openEnded())
		w.breakDown("a")
		w.is(flow.Members["b"].Given(), core.Skipped, core.DependencyImpossible)
		between.afterRead.set(readsDescendants(flow.Members["b"], flow.Members["c"]), func() {
			w.breakDown("d")
			w.is(flow.Members["c"].Given(), core.Skipped, core.DependencyImpossible)
		})
		ok(t, w.replayMember(flow, "a", engine.ReplayRequest{Cascade: core.CascadeSkipped}))
		w.is(flow.Members["c"].Given(), core.Blocked, core.WaitingForChildren)
		w.end("a")
		w.end("b")
		w.end("c")
		w.end("z")
		w.flowBecomes(flow, core.FlowCompleted) // c took care of d
		w.consistent(flow)
	})
}

func TestF56_a_descendant_that_another_replay_opens_while_one_is_planned_is_not_opened_twice(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		between := w.interpose()
		flow := w.submitFlow(openEnded())
		w.breakDown("a")
		w.breakDown("d")
		between.afterRead.set(readsDescendants(flow.Members["b"], flow.Members["c"]), func() {
			ok(t, w.replayMember(flow, "c", engine.ReplayRequest{IgnoreDependencies: true}))
		})
		ok(t, w.replayMember(flow, "a", engine.ReplayRequest{Cascade: core.CascadeSkipped}))
		same(t, "runs of c", w.member(flow, "c").RunIndex(), 1)
		same(t, "join of c", w.member(flow, "c").Member.Join.State, core.JoinOverridden)
		w.end("c")
		w.end("a")
		w.end("b")
		w.end("z")
		w.consistent(flow)
	})
}
