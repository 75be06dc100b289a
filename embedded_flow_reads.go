package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
)

func (e embeddedFlows) Page(ctx context.Context, q ...FlowQuery) (Page[*FlowView], error) {
	query, err := single(q)
	if err != nil {
		return Page[*FlowView]{}, err
	}
	page, err := e.client.engine.Flows(ctx, e.client.asClient(ctx), engine.FlowQuery{
		Kind: query.Kind, State: string(query.State), Tags: query.Tags, CreatedFrom: core.TimeOf(query.CreatedFrom), CreatedTo: core.TimeOf(query.CreatedTo),
		Creator: query.Creator, Own: ownWork(ctx), Cursor: query.Cursor, Limit: min(query.Limit, fullPage),
	})
	if err != nil {
		return Page[*FlowView]{}, publicError(err)
	}
	return pageOf(page.Flows, func(f *core.Flow) *FlowView {
		shown := flowOf(f)
		return &shown
	}, page.Next), nil
}

func (e embeddedFlows) Graph(ctx context.Context, id ID) (*FlowGraph, error) {
	return wholeGraph(func(cursor string) (*FlowGraph, error) { return e.GraphPage(ctx, id, PageOptions{Cursor: cursor}) })
}

// wholeGraph puts the parts of a graph together.
func wholeGraph(part func(cursor string) (*FlowGraph, error)) (*FlowGraph, error) {
	var whole *FlowGraph
	for cursor := ""; ; {
		next, err := part(cursor)
		if err != nil {
			return nil, err
		}
		if whole == nil {
			whole = next
		} else {
			whole.Members, whole.Edges = append(whole.Members, next.Members...), append(whole.Edges, next.Edges...)
		}
		if cursor = next.NextCursor; cursor == "" {
			whole.NextCursor = ""
			return whole, nil
		}
	}
}

func (e embeddedFlows) GraphPage(ctx context.Context, id ID, o ...PageOptions) (*FlowGraph, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	g, err := e.client.engine.Graph(ctx, e.client.asClient(ctx), given, options.Cursor, options.Limit)
	if err != nil {
		return nil, publicError(err)
	}
	return &FlowGraph{Flow: flowOf(g.Flow), Members: each(g.Members, memberOf), Edges: each(g.Edges, edgeOf), NextCursor: g.Next}, nil
}

func (e embeddedFlows) Members(ctx context.Context, id ID, q ...MemberQuery) iter.Seq2[FlowMember, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[FlowMember], error) {
		query.Cursor = cursor
		return e.MembersPage(ctx, id, query)
	})
}

func (e embeddedFlows) MembersPage(ctx context.Context, id ID, q ...MemberQuery) (Page[FlowMember], error) {
	query, err := single(q)
	if err != nil {
		return Page[FlowMember]{}, err
	}
	given, err := parseID(id)
	if err != nil {
		return Page[FlowMember]{}, err
	}
	return e.client.members(ctx, given, query)
}

func (e *embedded) members(ctx context.Context, flow core.GivenID, q MemberQuery) (Page[FlowMember], error) {
	page, err := e.engine.FlowMembers(ctx, e.asClient(ctx), flow, q.State, q.Cursor, min(q.Limit, fullPage))
	if err != nil {
		return Page[FlowMember]{}, publicError(err)
	}
	return pageOf(page.Members, memberOf, page.Next), nil
}

func (e embeddedFlows) Edges(ctx context.Context, id ID, q ...EdgeQuery) iter.Seq2[EdgeView, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[EdgeView], error) {
		query.Cursor = cursor
		return e.EdgesPage(ctx, id, query)
	})
}

func (e embeddedFlows) EdgesPage(ctx context.Context, id ID, q ...EdgeQuery) (Page[EdgeView], error) {
	query, err := single(q)
	if err != nil {
		return Page[EdgeView]{}, err
	}
	given, err := parseID(id)
	if err != nil {
		return Page[EdgeView]{}, err
	}
	page, err := e.client.engine.FlowEdges(ctx, e.client.asClient(ctx), given, engine.EdgeQuery{
		From: query.From, To: query.To, Cursor: query.Cursor, Limit: min(query.Limit, fullPage),
	})
	if err != nil {
		return Page[EdgeView]{}, publicError(err)
	}
	return pageOf(page.Edges, edgeOf, page.Next), nil
}

func (e embeddedFlows) Edge(ctx context.Context, id ID, edge string) (*EdgeView, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	known, ok := core.ParseUUID(edge)
	if !ok {
		return nil, newError(core.CodeInvalidID, "%s is not a UUID", core.QuoteID(edge)).At("edge", "name the edge by its id")
	}
	found, err := e.client.engine.FlowEdge(ctx, e.client.asClient(ctx), given, known)
	if err != nil {
		return nil, publicError(err)
	}
	shown := edgeOf(found)
	return &shown, nil
}

func (e embeddedFlows) Join(ctx context.Context, id ID, member string) (*JoinView, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	view, err := e.client.engine.Join(ctx, e.client.asClient(ctx), given, member)
	if err != nil {
		return nil, publicError(err)
	}
	return service.JoinShown(view), nil
}

func (e embeddedFlows) Usage(ctx context.Context, id ID) (map[string]int64, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	usage, err := e.client.engine.FlowUsage(ctx, e.client.asClient(ctx), given)
	if err != nil {
		return nil, publicError(err)
	}
	return amounts(usage), nil
}

func (e embeddedExecutions) Children(ctx context.Context, id ID) iter.Seq2[FlowMember, error] {
	return walk(nil, "", func(cursor string) (Page[FlowMember], error) {
		return e.ChildrenPage(ctx, id, PageOptions{Cursor: cursor})
	})
}

func (e embeddedExecutions) ChildrenPage(ctx context.Context, id ID, o ...PageOptions) (Page[FlowMember], error) {
	options, err := single(o)
	if err != nil {
		return Page[FlowMember]{}, err
	}
	given, err := parseID(id)
	if err != nil {
		return Page[FlowMember]{}, err
	}
	parent, err := e.client.engine.Describe(ctx, e.client.asClient(ctx), given)
	if err != nil {
		return Page[FlowMember]{}, publicError(err)
	}
	if parent.Execution.Children == nil {
		return Page[FlowMember]{Items: []FlowMember{}}, nil
	}
	return e.client.members(ctx, parent.Execution.Children.FlowID.Given(), MemberQuery{PageOptions: options})
}
