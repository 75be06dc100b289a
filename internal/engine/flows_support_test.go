package engine_test

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// chain is a flow of nodes in a line.
func chain(names ...string) core.FlowSubmission {
	s := core.FlowSubmission{Kind: "line"}
	for i, name := range names {
		node := core.FlowNode{Name: name, Kind: "work"}
		if i > 0 {
			node.After = names[i-1 : i]
		}
		s.Nodes = append(s.Nodes, node)
	}
	return s
}

// submitFlow makes a flow.
func (w *world) submitFlow(s core.FlowSubmission) engine.FlowAnswer {
	w.t.Helper()
	answer, err := w.e.SubmitFlow(w.ctx(), client, s)
	if err != nil {
		w.t.Fatalf("submit_flow: %v", err)
	}
	return answer
}

// flow shows a flow.
func (w *world) flow(of engine.FlowAnswer) engine.FlowView {
	w.t.Helper()
	view, err := w.e.Flow(w.ctx(), client, of.Flow.ID.Given())
	if err != nil {
		w.t.Fatalf("get_flow: %v", err)
	}
	return view
}

// flowBecomes waits until a flow is in a state.
func (w *world) flowBecomes(of engine.FlowAnswer, state core.FlowState) engine.FlowView {
	w.t.Helper()
	var view engine.FlowView
	eventually(w.t, "the flow is "+string(state), func() bool {
		view = w.flow(of)
		return view.State == state
	})
	return view
}

// member shows a member of a flow.
func (w *world) member(of engine.FlowAnswer, name string) *core.Execution {
	w.t.Helper()
	view, err := w.e.Describe(w.ctx(), client, of.Members[name].Given())
	if err != nil {
		w.t.Fatalf("describe %s: %v", name, err)
	}
	return view.Execution
}

// claimMember claims one piece of work, which must be the member of that name.
func (w *world) claimMember(of engine.FlowAnswer, name string) engine.Task {
	w.t.Helper()
	task := w.claim()
	same(w.t, "who was claimed", task.Execution.ID, of.Members[name])
	return task
}

// run claims and completes members that come in this order.
func (w *world) run(of engine.FlowAnswer, names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.complete(w.claimMember(of, name))
	}
}

// flowStory lists the kinds of the events about a flow itself.
func (w *world) flowStory(of engine.FlowAnswer) (kinds []string) {
	w.t.Helper()
	for _, ev := range w.events(engine.EventFilter{}) {
		if ev.FlowID == of.Flow.ID && ev.ExecutionID.IsZero() {
			kinds = append(kinds, ev.Kind)
		}
	}
	return kinds
}

// statuses are those of members, by name.
func (w *world) statuses(of engine.FlowAnswer) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for name := range of.Members {
		all[name] = w.member(of, name).Status.String()
	}
	return all
}

// inputNames lists the names of the inputs of a task.
func inputNames(inputs []core.NamedInput) (names []string) {
	for i := range inputs {
		names = append(names, inputs[i].Name)
	}
	slices.Sort(names)
	return names
}

// extend adds to a flow.
func (w *world) extend(of engine.FlowAnswer, x core.FlowExtension) engine.FlowAnswer {
	w.t.Helper()
	x.Flow = of.Flow.ID.Given()
	answer, err := w.e.ExtendFlow(w.ctx(), client, x)
	if err != nil {
		w.t.Fatalf("extend_flow: %v", err)
	}
	return answer
}
