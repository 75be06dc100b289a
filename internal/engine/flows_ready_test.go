package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// rootsInA is a flow of the namespace a with so many nodes that nothing has to end before, and one that follows them all.
func rootsInA(n int) core.FlowSubmission {
	s := core.FlowSubmission{Namespace: "a", Kind: "f"}
	last := core.FlowNode{Name: "last", Kind: "k"}
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		s.Nodes = append(s.Nodes, core.FlowNode{Name: name, Kind: "k"})
		last.After = append(last.After, name)
	}
	s.Nodes = append(s.Nodes, last)
	return s
}

// inNamespaceA is how many executions of the namespace a there are.
func (w *world) inNamespaceA() int {
	w.t.Helper()
	n := 0
	for _, view := range must(w.e.List(w.ctx(), client, engine.ListRequest{}))(w.t).Items {
		if view.Execution.Class.Namespace == "a" {
			n++
		}
	}
	return n
}

func TestU101_F12_a_flow_whose_nodes_would_wait_beyond_the_bound_of_its_namespace_is_refused_and_changes_nothing(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, _ *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 3})
		w.submit(inA(""))
		classes, _ := w.classes()
		within := core.FlowSubmission{Namespace: "a", Kind: "f", Nodes: []core.FlowNode{{Name: "sub", Flow: new(rootsInA(3))}}}
		within.Nodes[0].Flow.Namespace = ""
		for _, many := range []core.FlowSubmission{rootsInA(3), within} {
			many.Nodes[0].Lane = "new"
			_, err := w.e.SubmitFlow(w.ctx(), client, many)
			full(t, err, base.CodeRateLimited, "max_ready", 3, 1)
		}
		same(t, "executions", w.inNamespaceA(), 1)
		after, _ := w.classes()
		same(t, "classes", after, classes)

		w.submitFlow(rootsInA(2)) // its last node follows by what was accepted
		_, err := w.e.Submit(w.ctx(), client, inA(""))
		isFull(t, err, 3)
		_, err = w.e.SubmitFlow(w.ctx(), client, rootsInA(1))
		isFull(t, err, 3)
	})
}

func TestU101_F11_a_repeat_of_a_flow_that_filled_its_namespace_is_answered_as_such(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, _ *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 3})
		repeatable := client
		repeatable.RequestKey = "first"
		keyed, named, asked := rootsInA(1), rootsInA(1), rootsInA(1)
		keyed.IdempotencyKey = "key"
		named.ID = &base.GivenID{UUID: base.UUID{0: 5, 15: 1}}
		first := []engine.FlowAnswer{w.submitFlow(keyed), w.submitFlow(named), must(w.e.SubmitFlow(w.ctx(), repeatable, asked))(t)}
		for i, s := range []core.FlowSubmission{keyed, named, asked} {
			by := client
			if i == 2 {
				by = repeatable
			}
			again := must(w.e.SubmitFlow(w.ctx(), by, s))(t)
			same(t, fmt.Sprint("repeat ", i), []any{again.Flow.ID, again.Created}, []any{first[i].Flow.ID, false})
		}
		other := keyed
		other.Kind = "other"
		_, err := w.e.SubmitFlow(w.ctx(), client, other)
		refused(t, err, base.CodeIdempotencyConflict)
		same(t, "executions", w.inNamespaceA(), 6)
	})
}

func TestU101_F14_nodes_that_are_added_to_a_flow_and_wait_at_once_are_bounded_like_those_it_came_with(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, _ *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 2})
		open := rootsInA(1)
		open.Unsealed = true
		f := w.submitFlow(open)
		more := core.FlowExtension{Flow: f.Flow.ID.Given(), Nodes: []core.FlowNode{{Name: "x", Kind: "k"}, {Name: "y", Kind: "k"}}}
		_, err := w.e.ExtendFlow(w.ctx(), client, more)
		full(t, err, base.CodeRateLimited, "max_ready", 2, 1)
		more.Nodes[1].After = []string{"n0"} // waits for another: accepted work
		must(w.e.ExtendFlow(w.ctx(), client, more))(t)
		same(t, "executions", w.inNamespaceA(), 4)
		must(w.e.ExtendFlow(w.ctx(), client, more))(t) // all of it is there
	})
}

func TestU101_what_a_refused_flow_would_have_added_counts_no_longer(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, _ *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 2})
		w.lane("shut", core.LaneSettings{State: core.LaneDisabled})
		bad := rootsInA(2)
		bad.Nodes[0].Lane = "shut"
		for range 3 {
			_, err := w.e.SubmitFlow(w.ctx(), client, bad)
			refused(t, err, base.CodeLaneNotAccepting)
		}
		w.submitFlow(rootsInA(2))
	})
}

func TestF12_U101_a_flow_that_its_transaction_refuses_registers_no_classes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("shut", core.LaneSettings{State: core.LaneDisabled})
		there := w.submit(core.Submission{Kind: "there"})
		fresh := core.FlowNode{Name: "fresh", Kind: "fresh", Lane: "new"}
		of := func(nodes ...core.FlowNode) core.FlowSubmission {
			return core.FlowSubmission{Kind: "f", Nodes: append([]core.FlowNode{fresh}, nodes...)}
		}
		known := of(core.FlowNode{Name: "b", Kind: "there"})
		known.Nodes = known.Nodes[1:]
		known.IdempotencyKey = "key"
		known.ID = &base.GivenID{UUID: base.UUID{0: 5, 15: 1}}
		known.Unsealed = true
		w.submitFlow(known)
		classes, _ := w.classes()

		keyed, named := of(), of()
		keyed.IdempotencyKey, named.ID = known.IdempotencyKey, known.ID
		for what, s := range map[string]core.FlowSubmission{
			"a lane that takes nothing": of(core.FlowNode{Name: "b", Kind: "there", Lane: "shut"}),
			"an id of another":          of(core.FlowNode{Name: "b", Kind: "there", ID: new(there.ID().Given())}),
			"a key of another":          keyed,
			"the id of another flow":    named,
		} {
			if _, err := w.e.SubmitFlow(w.ctx(), client, s); err == nil {
				t.Fatalf("%s was accepted", what)
			}
			after, _ := w.classes()
			same(t, what, after, classes)
		}
		more := core.FlowExtension{Flow: *known.ID, Nodes: []core.FlowNode{fresh, {Name: "c", Kind: "there", Lane: "shut"}}}
		_, err := w.e.ExtendFlow(w.ctx(), client, more)
		refused(t, err, base.CodeLaneNotAccepting)
		after, _ := w.classes()
		same(t, "an extension", after, classes)

		w.lane("shut", core.LaneSettings{State: core.LaneActive})
		w.submitFlow(of(core.FlowNode{Name: "b", Kind: "there", Lane: "shut"}))
		must(w.e.ExtendFlow(w.ctx(), client, more))(t)
	})
}
