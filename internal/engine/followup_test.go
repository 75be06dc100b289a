package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// swept opens the world's engine anew with its timers turned.
func (w *world) swept() {
	w.t.Helper()
	w.cfg.NoTimers, w.cfg.PollInterval = false, 0
	w.restart()
}

// triedAgain turns the clock until follow-up work that failed has brought an execution into a status.
func (w *world) triedAgain(id base.GivenID, status core.Status) {
	w.t.Helper()
	w.turning(100, "status "+status.String(), func() bool { return w.get(id).Status == status })
}

func TestS63_F28_follow_up_work_that_fails_is_tried_again_and_holds_up_none_of_its_transaction(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		b := w.interpose()
		one := w.submitFlow(core.FlowSubmission{Kind: "one", Nodes: []core.FlowNode{{Name: "a", Kind: "a"}, {Name: "b", Kind: "b", After: []string{"a"}}}})
		two := w.submitFlow(core.FlowSubmission{Kind: "two", Nodes: []core.FlowNode{{Name: "p", Kind: "p"}, {Name: "n", Flow: inner(), After: []string{"p"}}}})
		a, p := w.claimKind("a"), w.claimKind("p")
		mend := w.spoil(one.Members["b"].Given())
		w.batched(b, func() { w.complete(a) }, func() { w.complete(p) })
		same(t, "one transaction", w.commitOf(given(a), "execution.completed"), w.commitOf(given(p), "execution.completed"))
		w.swept()
		eventually(t, "the sub-flow begins", func() bool { return w.member(two, "n").Children != nil })
		mend()
		w.triedAgain(one.Members["b"].Given(), core.Ready)
	})
}

func TestS63_F28_F29_an_edge_to_a_member_that_cannot_be_read_holds_up_no_other(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.FlowSubmission{Kind: "wide", Nodes: []core.FlowNode{{Name: "a", Kind: "a"}}}
		for i := range 300 { // more than one transaction resolves
			s.Nodes = append(s.Nodes, core.FlowNode{Name: fmt.Sprint("d", i), Kind: "d", After: []string{"a"}})
		}
		flow := w.submitFlow(s)
		a := w.claimKind("a")
		bad := flow.Members["d7"].Given()
		mend := w.spoil(bad)
		w.complete(a)
		w.onlyStatus("d", core.Ready, 299)
		mend()
		w.triedAgain(bad, core.Ready)
	})
}

func TestS63_F44_a_child_that_cannot_be_read_keeps_no_other_from_its_end(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		p := w.parent()
		made := w.spawn(p, "a", "b")
		mend := w.spoil(made.Children["a"].Given())
		w.fail(p, "permanent")
		w.becomes(made.Children["b"].Given(), core.Cancelled)
		asides := func() []engine.LoggedEvent { // of the first piece of work that fails: the cancel of the flow is another
			all := w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})
			return slices.DeleteFunc(all, func(told engine.LoggedEvent) bool { return data(t, told)["row"] != data(t, all[0])["row"] })
		}
		for n := 1; n <= 3; n++ { // later each time
			eventually(t, "it is set aside", func() bool { return len(asides()) == n })
			told := asides()[n-1]
			next := must(time.Parse(time.RFC3339Nano, data(t, told)["next_try_at"].(string)))(t)
			same(t, "failures", data(t, told)["failures"], any(float64(n)))
			same(t, "the pause", (base.TimeOf(next).Sub(told.At)+50)/100*100, base.Second<<(n-1)) // events of one commit are told milliseconds apart
			w.turn(base.Second<<(n-1) + 100)                                                      // the grid of timers
		}
		mend()
		w.triedAgain(made.Children["a"].Given(), core.Cancelled)
	})
}
