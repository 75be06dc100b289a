package service

import (
	"context"
	"errors"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) children() {
	on(s, wire.SpawnChildren, s.spawn)
	on(s, wire.WaitForChildren, s.waitForChildren)
}

// spawn starts children of a running execution, and waits for them if requested (U75).
func (s *Service) spawn(ctx context.Context, c Caller, r *wire.SpawnRequest) (api.SpawnResult, error) {
	b := &r.Body
	id, fence, err := fenced(r.FencedByID, b.LeaseField)
	if err != nil {
		return api.SpawnResult{}, err
	}
	given := wire.SubFlow{Defaults: b.Defaults, Nodes: b.Children, Edges: b.Edges}
	part, err := CoreGraph(given)
	if err != nil {
		return api.SpawnResult{}, asChildren(err)
	}
	trace := s.cfg.trace(ctx)
	for i := range part.Nodes {
		part.Nodes[i].Trace = trace
	}
	request := engine.SpawnRequest{
		ID: id, Fence: fence, Defaults: part.Defaults, Children: part.Nodes, Edges: part.Edges, OnParentEnd: b.OnParentEnd,
	}
	if b.Wait != nil {
		wait, err := childrenWait(id, fence, b.Wait)
		if err != nil {
			return api.SpawnResult{}, api.Within("wait", err)
		}
		request.Wait = &wait
	}
	a, err := s.engine.Spawn(ctx, c.worker(), request)
	if err != nil {
		return api.SpawnResult{}, AsGiven(err, given)
	}
	spawned := api.SpawnResult{IDs: make(map[string]api.ID, len(a.Children)), Created: a.Created}
	for name, child := range a.Children {
		spawned.IDs[name] = idOf(child)
	}
	if a.Wait != nil {
		waited := waitedOf(a.Wait)
		spawned.Wait = &waited
	}
	return spawned, nil
}

// asChildren renames nodes in the path of a refusal to the field name that a spawn uses.
func asChildren(err error) error {
	var refusal *api.Error
	if !errors.As(api.AsError(err), &refusal) || !strings.HasPrefix(refusal.Field, "nodes") {
		return err
	}
	named := *refusal
	named.Field = "children" + strings.TrimPrefix(refusal.Field, "nodes")
	return &named
}

// waitForChildren gives the work back until its children have ended (U75).
func (s *Service) waitForChildren(ctx context.Context, c Caller, r *wire.WaitChildrenRequest) (api.ChildrenWaited, error) {
	id, fence, err := fenced(r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return api.ChildrenWaited{}, err
	}
	request, err := childrenWait(id, fence, &r.Body.ChildrenWait)
	if err != nil {
		return api.ChildrenWaited{}, err
	}
	a, err := s.engine.WaitForChildren(ctx, c.worker(), request)
	if err != nil {
		return api.ChildrenWaited{}, err
	}
	return waitedOf(&a), nil
}

func childrenWait(id base.GivenID, fence core.Fence, w *wire.ChildrenWait) (engine.ChildrenWaitRequest, error) {
	request := engine.ChildrenWaitRequest{ID: id, Fence: fence, Names: w.Names, Kind: core.EdgeKind(w.Kind), Usage: w.Usage}
	switch {
	case w.TimeoutMS == nil:
	case *w.TimeoutMS == 0:
		request.TimeoutMS = -1 // 0 would mean none: validation refuses this
	default:
		request.TimeoutMS = *w.TimeoutMS
	}
	var err error
	request.Join, err = coreJoin(&wire.JoinSpec{Policy: w.Policy, K: w.K, OnSatisfied: w.OnSatisfied})
	return request, err
}

// waitedOf converts the state of a wait for children.
func waitedOf(w *engine.ChildrenWaitAnswer) api.ChildrenWaited {
	if w.Waiting {
		return api.ChildrenWaited{Outcome: api.ChildrenWaiting}
	}
	return api.ChildrenWaited{Outcome: api.ChildrenReady, State: w.State, Children: some(w.Children, childOf)}
}
