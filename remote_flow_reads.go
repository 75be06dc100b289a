package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (r remoteFlows) Page(ctx context.Context, q ...FlowQuery) (Page[*FlowView], error) {
	query, err := single(q)
	if err != nil {
		return Page[*FlowView]{}, err
	}
	request := &wire.ListFlowsRequest{
		PageFields: pageFields(query.Limit, query.Cursor), Kind: query.Kind, State: string(query.State), Creator: query.Creator,
		CreatedFrom: wireTime(query.CreatedFrom), CreatedTo: wireTime(query.CreatedTo),
	}
	for key, value := range query.Tags {
		if request.Tags == nil {
			request.Tags = map[string]*string{}
		}
		request.Tags[key] = &value
	}
	return onePage(ctx, r.client, wire.ListFlows, request, func(w wire.Flow) *FlowView {
		view := flowViewFrom(&w)
		return &view
	})
}

func (r remoteFlows) Graph(ctx context.Context, id ID) (*FlowGraph, error) {
	return wholeGraph(func(cursor string) (*FlowGraph, error) { return r.GraphPage(ctx, id, PageOptions{Cursor: cursor}) })
}

func (r remoteFlows) GraphPage(ctx context.Context, id ID, o ...PageOptions) (*FlowGraph, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	answer, err := onFlow(ctx, r.client, id, wire.GetGraph, sending{}, func(path wire.ByFlow) *wire.GetGraphRequest {
		fields := pageFields(options.Limit, options.Cursor)
		return &wire.GetGraphRequest{ByFlow: path, Limit: fields.Limit, Cursor: fields.Cursor}
	})
	if err != nil {
		return nil, err
	}
	return graphShownFrom(answer), nil
}

func (r remoteFlows) Members(ctx context.Context, id ID, q ...MemberQuery) iter.Seq2[FlowMember, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[FlowMember], error) {
		query.Cursor = cursor
		return r.MembersPage(ctx, id, query)
	})
}

func (r remoteFlows) MembersPage(ctx context.Context, id ID, q ...MemberQuery) (Page[FlowMember], error) {
	query, err := single(q)
	if err != nil {
		return Page[FlowMember]{}, err
	}
	path, err := byFlow(id)
	if err != nil {
		return Page[FlowMember]{}, err
	}
	request := &wire.ListMembersRequest{ByFlow: path, PageFields: pageFields(query.Limit, query.Cursor), State: query.State}
	return onePage(ctx, r.client, wire.ListFlowMembers, request, memberFrom)
}

func (r remoteFlows) Edges(ctx context.Context, id ID, q ...EdgeQuery) iter.Seq2[EdgeView, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[EdgeView], error) {
		query.Cursor = cursor
		return r.EdgesPage(ctx, id, query)
	})
}

func (r remoteFlows) EdgesPage(ctx context.Context, id ID, q ...EdgeQuery) (Page[EdgeView], error) {
	query, err := single(q)
	if err != nil {
		return Page[EdgeView]{}, err
	}
	path, err := byFlow(id)
	if err != nil {
		return Page[EdgeView]{}, err
	}
	request := &wire.ListEdgesRequest{ByFlow: path, PageFields: pageFields(query.Limit, query.Cursor), From: query.From, To: query.To}
	return onePage(ctx, r.client, wire.ListFlowEdges, request, edgeViewFrom)
}

func (r remoteFlows) Edge(ctx context.Context, id ID, edge string) (*EdgeView, error) {
	if _, ok := core.ParseUUID(edge); !ok {
		return nil, newError(core.CodeInvalidID, "%s is not a UUID", core.QuoteID(edge)).At("edge", "name the edge by its id")
	}
	answer, err := onFlow(ctx, r.client, id, wire.GetFlowEdge, sending{}, func(path wire.ByFlow) *wire.GetEdgeRequest {
		return &wire.GetEdgeRequest{ByFlow: path, Edge: edge}
	})
	if err != nil {
		return nil, err
	}
	view := edgeViewFrom(*answer)
	return &view, nil
}

func (r remoteFlows) Join(ctx context.Context, id ID, member string) (*JoinView, error) {
	answer, err := onFlow(ctx, r.client, id, wire.GetJoin, sending{}, func(path wire.ByFlow) *wire.ByMember {
		return &wire.ByMember{ByFlow: path, Name: member}
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (r remoteFlows) Usage(ctx context.Context, id ID) (map[string]int64, error) {
	answer, err := onFlow(ctx, r.client, id, wire.GetFlowUsage, sending{}, func(path wire.ByFlow) *wire.ByFlow { return &path })
	if err != nil {
		return nil, err
	}
	return amounts(answer.Usage), nil
}

func (r remoteExecutions) Children(ctx context.Context, id ID) iter.Seq2[FlowMember, error] {
	return walk(nil, "", func(cursor string) (Page[FlowMember], error) {
		return r.ChildrenPage(ctx, id, PageOptions{Cursor: cursor})
	})
}

func (r remoteExecutions) ChildrenPage(ctx context.Context, id ID, o ...PageOptions) (Page[FlowMember], error) {
	options, path, err := target(id, o)
	if err != nil {
		return Page[FlowMember]{}, err
	}
	request := &wire.PageByID{ByID: path, PageFields: pageFields(options.Limit, options.Cursor)}
	return onePage(ctx, r.client, wire.ListChildren, request, memberFrom)
}
