package engine_test

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestS63_F24_a_member_that_cannot_be_read_keeps_no_flow_from_being_sealed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Unsealed: true, Nodes: []core.FlowNode{
			{Name: "a", Kind: "a"}, quorumOf("d", "a"), quorumOf("e", "a"),
		}})
		w.end("a")
		mend := w.spoil(flow.Members["d"].Given())
		w.extend(flow, core.FlowExtension{Seal: true})
		w.is(flow.Members["e"].Given(), core.Skipped, core.DependencyImpossible)
		mend()
		w.triedAgain(flow.Members["d"].Given(), core.Skipped)
		same(t, "detail", w.member(flow, "d").Member.Join.Detail, "quorum_unreachable")
		same(t, "state", w.flowBecomes(flow, core.FlowCompleted).State, core.FlowCompleted)
		w.consistent(flow)
	})
}

func TestS63_F5_a_finished_member_that_cannot_be_read_keeps_no_sealed_flow_from_ending(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Unsealed: true, Nodes: []core.FlowNode{{Name: "a", Kind: "a"}, {Name: "b", Kind: "b"}, quorumOf("d", "a")}})
		w.end("a")
		w.end("b")
		w.spoil(flow.Members["b"].Given())
		answer := w.extend(flow, core.FlowExtension{Seal: true})
		same(t, "state", answer.Flow.State, core.FlowCompleted)
		w.is(flow.Members["d"].Given(), core.Skipped, core.DependencyImpossible)
	})
}

func TestS63_F44_a_child_that_cannot_be_read_keeps_no_children_flow_from_being_sealed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		p := w.parent()
		made := w.spawn(p, "c")
		w.end("c")
		of := w.childrenFlow(given(p)).ID
		added := must(w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: of.Given(), Nodes: []core.FlowNode{quorumOf("d", "c"), quorumOf("e", "c")}}))(t)
		mend := w.spoil(added.Members["d"].Given())
		w.complete(p)
		w.becomes(added.Members["e"].Given(), core.Skipped)
		mend()
		w.triedAgain(added.Members["d"].Given(), core.Skipped)
		same(t, "state", w.flowEnds(of).State, core.FlowCompleted)
		same(t, "c", w.get(made.Children["c"].Given()).Status, core.Succeeded)
	})
}

func TestS63_B6_a_member_that_cannot_be_read_keeps_no_budget_from_the_others(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: childNodes("a", "b", "c")})
		w.cfg.NoTimers, w.cfg.PollInterval = true, time.Hour // the budget is spread by follow-up work
		w.restart()
		b := w.create(tokens("whole", 10, covering(core.ScopeFlow, flow.Flow.ID.String()))).ID
		mend := w.spoil(flow.Members["a"].Given())
		w.swept()
		for _, name := range []string{"b", "c"} {
			eventually(t, "the budget reaches "+name, func() bool { return reaches(w.member(flow, name), b) })
		}
		mend()
		w.turning(100, "the budget reaches a", func() bool { return reaches(w.member(flow, "a"), b) })
	})
}

// reaches reports whether a budget reaches an execution by its record.
func reaches(x *core.Execution, budget base.UUID) bool {
	for _, scoped := range x.Budgets {
		if scoped.ID == budget {
			return true
		}
	}
	return false
}
