package server

import (
	"context"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// spawn starts work below a running execution (U75).
func (s *Server) spawn(ctx context.Context, r *wire.SpawnRequest) (answer, error) {
	item, err := fenced(flowfabric.OpSpawn, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	if err := s.spawnInto(ctx, &item, r.Body.Children, r.Body.SpawnFields); err != nil {
		return answer{}, err
	}
	a, err := s.do(ctx, item)
	if err != nil {
		return answer{}, err
	}
	return shows(spawnedShown(a)), nil
}

// spawnInto fills in a spawn. Children and edges go through the JSON of an extension, which has them too.
func (s *Server) spawnInto(ctx context.Context, item *flowfabric.WorkItem, children []wire.FlowNode, f wire.SpawnFields) error {
	if err := s.keys.submit(ctx, exchangeOf(ctx).caller.Namespace, nodesIn(children)); err != nil {
		return err
	}
	var part flowfabric.FlowExtension
	if err := through(wire.FlowExtension{Defaults: f.Defaults, Nodes: children, Edges: f.Edges}, &part); err != nil {
		return err
	}
	item.Spawn = &flowfabric.Spawning{Children: part.Nodes, Defaults: part.Defaults, Edges: part.Edges, OnParentEnd: flowfabric.ParentEnd(f.OnParentEnd)}
	if w := f.Wait; w != nil {
		item.Children = childrenOptions(w.ChildrenWaitFields, w.TimeoutMS)
		item.Usage.Amounts = w.Usage
	}
	return nil
}

func childrenOptions(f wire.ChildrenWaitFields, timeout *int64) *flowfabric.ChildrenOptions {
	return &flowfabric.ChildrenOptions{
		Names: f.Names, Policy: flowfabric.JoinPolicy(f.Policy), K: f.K, Kind: flowfabric.EdgeKind(f.Kind),
		CancelRemaining: f.OnSatisfied == wire.CancelRemaining, Timeout: expiry(timeout),
	}
}

// waitChildren gives the work back until its children have ended (U75).
func (s *Server) waitChildren(ctx context.Context, r *wire.WaitChildrenRequest) (answer, error) {
	item, err := fenced(flowfabric.OpWaitChildren, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	item.Children = childrenOptions(r.Body.ChildrenWaitFields, r.Body.TimeoutMS)
	item.Usage.Amounts = r.Body.Usage
	a, err := s.do(ctx, item)
	if err != nil {
		return answer{}, err
	}
	return shows(waitedShown(a)), nil
}

// spawnedAnswer is the answer to a spawn.
type spawnedAnswer struct {
	Children map[string]flowfabric.ID `json:"children"`
	Created  int                      `json:"created"`
	Wait     *waitedAnswer            `json:"wait,omitempty"`
}

// waitedAnswer is the answer to a wait for children.
type waitedAnswer struct {
	Outcome  string             `json:"outcome"`
	State    string             `json:"state,omitempty"`
	Children []flowfabric.Child `json:"children,omitempty"`
}

func spawnedShown(a flowfabric.WorkAnswer) spawnedAnswer {
	shown := spawnedAnswer{Children: a.Spawned.IDs, Created: a.Spawned.Created}
	if a.Outcome != "" {
		wait := waitedShown(a)
		shown.Wait = &wait
	}
	return shown
}

func waitedShown(a flowfabric.WorkAnswer) waitedAnswer {
	shown := waitedAnswer{Outcome: a.Outcome}
	if a.Waited != nil {
		shown.State, shown.Children = a.Waited.State, a.Waited.Children
	}
	return shown
}
