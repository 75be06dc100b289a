package engine_test

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// parent starts an execution that is about to have children.
func (w *world) parent() engine.Task {
	w.t.Helper()
	w.submit(core.Submission{Kind: "parent"})
	return w.claimKind("parent")
}

// claimKind waits for one execution of a kind.
func (w *world) claimKind(kind string) engine.Task {
	w.t.Helper()
	r := ask()
	r.Kinds = []string{kind}
	return w.claimAs(r)
}

// childNodes are nodes whose kinds are their names, so that each can be claimed for itself.
func childNodes(names ...string) (nodes []core.FlowNode) {
	for _, name := range names {
		nodes = append(nodes, core.FlowNode{Name: name, Kind: name})
	}
	return nodes
}

// spawnOf is a request for children.
func spawnOf(task engine.Task, names ...string) engine.SpawnRequest {
	return engine.SpawnRequest{ID: given(task), Fence: fence(task), Children: childNodes(names...)}
}

// spawn makes children.
func (w *world) spawn(task engine.Task, names ...string) engine.SpawnAnswer {
	w.t.Helper()
	return must(w.e.Spawn(w.ctx(), client, spawnOf(task, names...)))(w.t)
}

// waitOf is a request to wait for children.
func waitOf(task engine.Task, edits ...func(*engine.ChildrenWaitRequest)) engine.ChildrenWaitRequest {
	r := engine.ChildrenWaitRequest{ID: given(task), Fence: fence(task)}
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

func namely(names ...string) func(*engine.ChildrenWaitRequest) {
	return func(r *engine.ChildrenWaitRequest) { r.Names = names }
}

func joining(spec core.JoinSpec) func(*engine.ChildrenWaitRequest) {
	return func(r *engine.ChildrenWaitRequest) { r.Join = spec }
}

func ofKind(kind core.EdgeKind) func(*engine.ChildrenWaitRequest) {
	return func(r *engine.ChildrenWaitRequest) { r.Kind = kind }
}

func within(ms base.Millis) func(*engine.ChildrenWaitRequest) {
	return func(r *engine.ChildrenWaitRequest) { r.TimeoutMS = ms }
}

// waitFor waits for children, or tells how they are.
func (w *world) waitFor(task engine.Task, edits ...func(*engine.ChildrenWaitRequest)) engine.ChildrenWaitAnswer {
	w.t.Helper()
	return must(w.e.WaitForChildren(w.ctx(), client, waitOf(task, edits...)))(w.t)
}

// parked waits for children that have not ended.
func (w *world) parked(task engine.Task, edits ...func(*engine.ChildrenWaitRequest)) {
	w.t.Helper()
	same(w.t, "the answer", w.waitFor(task, edits...), engine.ChildrenWaitAnswer{Waiting: true})
	w.is(given(task), core.Blocked, core.WaitingForChildren)
}

// end claims a child and completes it.
func (w *world) end(name string) {
	w.t.Helper()
	w.complete(w.claimKind(name))
}

// breakDown claims a child and fails it for good.
func (w *world) breakDown(name string) {
	w.t.Helper()
	w.fail(w.claimKind(name), "permanent")
}

// outcomes are those of children, by name; "" of one that has not ended.
func outcomes(children []engine.ChildView) map[string]string {
	all := map[string]string{}
	for _, c := range children {
		if all[c.Name] = ""; c.Outcome != core.StatusNone {
			all[c.Name] = c.Outcome.String()
		}
	}
	return all
}

// childrenFlow is the flow in which the children of an execution live.
func (w *world) childrenFlow(id base.GivenID) engine.FlowView {
	w.t.Helper()
	x := w.get(id)
	if x.Children == nil {
		w.t.Fatalf("%s has no children", x.ID)
	}
	return must(w.e.Flow(w.ctx(), client, x.Children.FlowID.Given()))(w.t)
}

// flowEnds waits until a flow has ended.
func (w *world) flowEnds(id base.ID) *core.Flow {
	w.t.Helper()
	var f *core.Flow
	eventually(w.t, "the flow ends", func() bool {
		f = must(w.e.Flow(w.ctx(), client, id.Given()))(w.t).Flow
		return f.State.Terminal()
	})
	return f
}

// sortedKeys are the keys of a map.
func sortedKeys[V any](m map[string]V) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
