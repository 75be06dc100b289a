package service

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// listFlows lists flows, newest first (U91). A caller that is restricted to its own work gets the flows that it made itself.
func (s *Service) listFlows(ctx context.Context, c Caller, r *wire.ListFlowsRequest) (api.Page[*api.FlowView], error) {
	query := engine.FlowQuery{
		Kind: r.Kind, State: r.State, CreatedFrom: base.TimeOf(r.CreatedFrom.Time), CreatedTo: base.TimeOf(r.CreatedTo.Time), Creator: r.Creator,
		Own: c.OwnWork, Tags: make(map[string]string, len(r.Tags)),
	}
	for _, key := range slices.Sorted(maps.Keys(r.Tags)) {
		value := r.Tags[key]
		if value == nil {
			return api.Page[*api.FlowView]{}, base.Invalid(wire.TagArgument(key), "the tag has no value").WithHint("write `tag.%s=VALUE`", key)
		}
		query.Tags[key] = *value
	}
	return page(r.PageFields, flowOf, func(cursor string, limit *int) ([]*core.Flow, string, error) {
		query.Cursor, query.Limit = cursor, usual(limit)
		found, err := s.engine.Flows(ctx, c.client(), query)
		return found.Flows, found.Next, err
	})
}

// usual converts a limit for the engine, for which 0 means the default.
func usual(limit *int) int {
	if limit == nil {
		return 0
	}
	return *limit
}

// getFlow returns a flow; if it is to wait, once the flow has ended or the wait is over (U91).
func (s *Service) getFlow(ctx context.Context, c Caller, r *wire.GetFlowRequest) (api.FlowView, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.FlowView{}, err
	}
	wait, _, err := r.Wait()
	var view engine.FlowView
	switch {
	case err != nil:
		return api.FlowView{}, base.Invalid("wait_ms", "a wait is not negative")
	case wait == 0:
		view, err = s.engine.Flow(ctx, c.client(), id)
	default:
		view, err = s.engine.WaitFlow(ctx, c.client(), id, wait)
	}
	if err == nil && wait != 0 && !view.State.Terminal() {
		err = s.cfg.closed()
	}
	if err != nil {
		return api.FlowView{}, err
	}
	return flowViewOf(view), c.checkSubmitter(view.Flow.Submitter())
}

// getGraph returns the members and the edges between them (U91).
func (s *Service) getGraph(ctx context.Context, c Caller, r *wire.GetGraphRequest) (api.FlowGraph, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.FlowGraph{}, err
	}
	if r.Limit != nil && *r.Limit < 1 {
		return api.FlowGraph{}, base.Invalid("limit", "a part has at least one member")
	}
	g, err := s.engine.Graph(ctx, c.client(), id, r.Cursor, usual(r.Limit))
	if err != nil {
		return api.FlowGraph{}, err
	}
	return api.FlowGraph{Flow: *flowOf(g.Flow), Members: some(g.Members, memberOf), Edges: some(g.Edges, edgeOf), NextCursor: g.Next}, nil
}

// listMembers lists the members by name (U91).
func (s *Service) listMembers(ctx context.Context, c Caller, r *wire.ListMembersRequest) (api.Page[api.FlowMember], error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.Page[api.FlowMember]{}, err
	}
	return s.members(ctx, c, id, r.State, r.PageFields)
}

func (s *Service) members(ctx context.Context, c Caller, flow base.GivenID, state string, f wire.PageFields) (api.Page[api.FlowMember], error) {
	return page(f, memberOf, func(cursor string, limit *int) ([]engine.MemberView, string, error) {
		found, err := s.engine.FlowMembers(ctx, c.client(), flow, state, cursor, usual(limit))
		return found.Members, found.Next, err
	})
}

// listChildren lists the children of the current run of an execution, by name (U42).
func (s *Service) listChildren(ctx context.Context, c Caller, r *wire.PageByID) (api.Page[api.FlowMember], error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.Page[api.FlowMember]{}, err
	}
	parent, err := s.engine.Describe(ctx, c.client(), id)
	if err != nil {
		return api.Page[api.FlowMember]{}, err
	}
	if parent.Execution.Children == nil {
		return page(r.PageFields, memberOf, func(cursor string, _ *int) ([]engine.MemberView, string, error) {
			return nil, "", engine.CheckMemberCursor(cursor)
		})
	}
	return s.members(ctx, c, parent.Execution.Children.FlowID.Given(), "", r.PageFields)
}

// listEdges lists the edges, or those of a member (U91).
func (s *Service) listEdges(ctx context.Context, c Caller, r *wire.ListEdgesRequest) (api.Page[api.EdgeView], error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.Page[api.EdgeView]{}, err
	}
	return page(r.PageFields, edgeOf, func(cursor string, limit *int) ([]core.Edge, string, error) {
		query := engine.EdgeQuery{From: r.From, To: r.To, Cursor: cursor, Limit: usual(limit)}
		found, err := s.engine.FlowEdges(ctx, c.client(), id, query)
		return found.Edges, found.Next, err
	})
}

// getEdge returns one edge (U91).
func (s *Service) getEdge(ctx context.Context, c Caller, r *wire.GetEdgeRequest) (api.EdgeView, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.EdgeView{}, err
	}
	edge, ok := base.ParseUUID(r.Edge)
	if !ok {
		err := base.Errorf(base.CodeInvalidID, "%s is not a UUID", base.QuoteID(r.Edge)).WithField("edge").WithHint("name the edge by its id")
		return api.EdgeView{}, err
	}
	found, err := s.engine.FlowEdge(ctx, c.client(), id, edge)
	if err != nil {
		return api.EdgeView{}, err
	}
	return edgeOf(found), nil
}

// getJoin returns what a member waits for (U92).
func (s *Service) getJoin(ctx context.Context, c Caller, r *wire.ByMember) (api.JoinView, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.JoinView{}, err
	}
	view, err := s.engine.Join(ctx, c.client(), id, r.Name)
	if err != nil {
		return api.JoinView{}, err
	}
	return *JoinShown(view), nil
}

// getFlowUsage returns the total usage of the members (U91).
func (s *Service) getFlowUsage(ctx context.Context, c Caller, r *wire.ByFlow) (wire.FlowUsage, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return wire.FlowUsage{}, err
	}
	usage, err := s.engine.FlowUsage(ctx, c.client(), id)
	return wire.FlowUsage{FlowID: id.UUID.String(), Usage: usage}, err
}
