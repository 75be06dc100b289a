package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// reachSteps is how many steps edges are followed one by one; in a deeper graph all edges are read, page by page.
const reachSteps = 32

// checkCycle looks for a cycle through edges that lead to members which exist already: all that can be reached from those counts
// (F20). Edges to new nodes alone close none but among themselves.
func (x *extension) checkCycle() error {
	pairs := make([][2]string, 0, len(x.edges)+len(x.reached))
	for i := range x.edges {
		pairs = append(pairs, [2]string{x.edges[i].From, x.edges[i].To})
	}
	if cycle := core.FindCycle(append(pairs, x.reached...)); cycle != nil {
		return core.CycleDetected(cycle).WithField(x.closes(cycle))
	}
	return nil
}

// closes is the place of the new edge that comes last in a cycle: there was none before.
func (x *extension) closes(cycle []string) (place string) {
	fresh := make(map[[2]string]core.EdgePlace, len(x.edges))
	for i := range x.edges {
		fresh[[2]string{x.edges[i].From, x.edges[i].To}] = x.places[i]
	}
	for i := range cycle[1:] {
		if at, ok := fresh[[2]string{cycle[i], cycle[i+1]}]; ok {
			place = at.Place("")
		}
	}
	return place
}

// findReached reads what the check for cycles needs before anything is locked: if an edge is added meanwhile, the revision of the graph changes.
func (x *extension) findReached(ctx context.Context) (err error) {
	var from []base.UUID
	for i := range x.edges {
		if to := x.refs[x.edges[i].To].ID.UUID; x.old[to] {
			from = append(from, to)
		}
	}
	x.reached, err = x.e.reachable(ctx, x.flow.UUID, from)
	return err
}

// reachable reads the edges of a flow that can be reached from members, and perhaps others.
func (e *Engine) reachable(ctx context.Context, flow base.UUID, from []base.UUID) (pairs [][2]string, err error) {
	seen := map[base.UUID]bool{}
	for range reachSteps {
		var want store.Want
		for _, id := range from {
			if !seen[id] {
				seen[id] = true
				want.Owned = append(want.Owned, EdgesOf(id))
			}
		}
		if from = nil; len(want.Owned) == 0 {
			return pairs, nil
		}
		loaded, err := e.Store.Read(ctx, want)
		if err != nil {
			return nil, PublicFault(err)
		}
		for _, whose := range want.Owned {
			edges, err := EdgesIn(loaded.Owned[whose])
			if err != nil {
				return nil, err
			}
			for _, edge := range edges {
				pairs, from = append(pairs, [2]string{edge.From.Name, edge.To.Name}), append(from, edge.To.ID.UUID)
			}
		}
	}
	return e.allEdges(ctx, flow)
}

// allEdges reads the edges of a flow.
func (e *Engine) allEdges(ctx context.Context, flow base.UUID) (pairs [][2]string, err error) {
	err = e.eachMember(ctx, flow, "", func(m walked) (bool, error) {
		edges, err := m.edges()
		for _, edge := range edges {
			pairs = append(pairs, [2]string{edge.From.Name, edge.To.Name})
		}
		return true, err
	})
	return pairs, err
}
