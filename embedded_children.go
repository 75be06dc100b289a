package flowfabric

import (
	"context"
	"errors"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// graph is what is spawned; its children are called nodes there.
func (s *Spawning) graph() graph {
	return graph{defaults: s.Defaults, nodes: s.Children, edges: s.Edges}
}

// asChildren calls the nodes of a refusal what a spawn calls them.
func asChildren(err error) error {
	var refusal *Error
	if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Field, "nodes") {
		return err
	}
	named := *refusal
	named.Field = "children" + strings.TrimPrefix(refusal.Field, "nodes")
	return &named
}

func (e embeddedWork) spawn(ctx context.Context, id core.GivenID, fence core.Fence, item *WorkItem) (WorkAnswer, error) {
	if item.Spawn == nil {
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "there is nothing to spawn").At("children", "name some work")
	}
	given, err := item.Spawn.graph().wire("")
	if err != nil {
		return WorkAnswer{}, asChildren(err)
	}
	part, err := service.CoreGraph(given)
	if err != nil {
		return WorkAnswer{}, asChildren(publicError(err))
	}
	trace := e.client.traceOf(ctx)
	for i := range part.Nodes {
		part.Nodes[i].Trace = trace
	}
	request := engine.SpawnRequest{
		ID: id, Fence: fence, Defaults: part.Defaults, Children: part.Nodes, Edges: part.Edges, OnParentEnd: string(item.Spawn.OnParentEnd),
	}
	if item.Children != nil {
		wait, err := item.childrenWait(id, fence)
		if err != nil {
			return WorkAnswer{}, within("wait", err)
		}
		request.Wait = &wait
	}
	a, err := e.client.engine.Spawn(ctx, e.client.asWorker(ctx), request)
	if err != nil {
		return WorkAnswer{}, publicError(service.AsGiven(err, given))
	}
	answer := WorkAnswer{Spawned: &Spawned{IDs: make(map[string]ID, len(a.Children)), Created: a.Created}}
	for name, child := range a.Children {
		answer.Spawned.IDs[name] = idOf(child)
	}
	answer.waitOf(a.Wait)
	return answer, nil
}

func (e embeddedWork) waitChildren(ctx context.Context, id core.GivenID, fence core.Fence, item *WorkItem) (WorkAnswer, error) {
	request, err := item.childrenWait(id, fence)
	if err != nil {
		return WorkAnswer{}, err
	}
	a, err := e.client.engine.WaitForChildren(ctx, e.client.asWorker(ctx), request)
	if err != nil {
		return WorkAnswer{}, err
	}
	var answer WorkAnswer
	answer.waitOf(&a)
	return answer, nil
}

func (i *WorkItem) childrenWait(id core.GivenID, fence core.Fence) (engine.ChildrenWaitRequest, error) {
	o := i.waitOptions()
	fields := o.wire()
	spec, err := service.CoreJoin(&wire.JoinSpec{Policy: fields.Policy, K: fields.K, OnSatisfied: fields.OnSatisfied})
	return engine.ChildrenWaitRequest{
		ID: id, Fence: fence, Names: o.Names, Join: spec, Kind: core.EdgeKind(o.Kind), TimeoutMS: millis(o.Timeout), Usage: i.Usage.Amounts,
	}, err
}

// waitOf adds how a wait for children is; nil: there is none.
func (a *WorkAnswer) waitOf(w *engine.ChildrenWaitAnswer) {
	switch {
	case w == nil:
	case w.Waiting:
		a.Outcome = outcomeWaiting
	default:
		a.Outcome = outcomeReady
		a.Waited = &ChildrenWaited{State: w.State, Children: some(w.Children, service.ChildOf)}
	}
}
