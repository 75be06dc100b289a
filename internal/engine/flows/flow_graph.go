package flows

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	maxGraph     = 10_000 // nodes of one answer (F60)
	maxGraphList = 1000   // items of a page
)

// Graph shows the members of a flow by name and the edges that lead from them (F60).
func (e *Graphs) Graph(ctx context.Context, c txn.Caller, id base.GivenID, cursor string, limit int) (FlowGraph, error) {
	after, err := placeIn(memberScope, cursor)
	if err != nil {
		return FlowGraph{}, err
	}
	f, err := e.ReadFlow(ctx, c, id)
	if err != nil {
		return FlowGraph{}, err
	}
	if limit <= 0 || limit > maxGraph {
		limit = maxGraph
	}
	graph := FlowGraph{Flow: f}
	err = e.eachMember(ctx, id.UUID, after, func(m walked) (bool, error) {
		if len(graph.Members) == limit {
			graph.Next = core.EncodeCursor(memberScope, []byte(graph.Members[limit-1].Execution.Member.Name))
			return false, nil
		}
		member, err := e.shownMember(ctx, m)
		if err != nil {
			return false, err
		}
		edges, err := m.edges()
		graph.Members, graph.Edges = append(graph.Members, member), append(graph.Edges, edges...)
		return err == nil, err
	})
	slices.SortFunc(graph.Edges, func(a, b core.Edge) int {
		return cmp.Or(strings.Compare(a.From.Name, b.From.Name), strings.Compare(a.To.Name, b.To.Name))
	})
	return graph, err
}

func (e *Graphs) memberView(ctx context.Context, x *core.Execution, version int64) (MemberView, error) {
	view, err := e.View(ctx, x, version)
	return MemberView{View: view, Join: JoinView{Join: x.Member.Join}}, err
}

// shownMember is the view of a member that a walk has met.
func (e *Graphs) shownMember(ctx context.Context, m walked) (MemberView, error) {
	view, err := e.memberView(ctx, m.x, m.loaded.Dictionary)
	view.DeletedAt = m.deletedAt
	return view, err
}

// EdgesIn reads the edges of a graph, those of waits for children left out.
func EdgesIn(docs []store.Doc) (edges []core.Edge, err error) {
	for i := range docs {
		var edge core.Edge
		if err := ReadDoc(&docs[i], &edge); err != nil {
			return nil, err
		}
		if edge.Wait == 0 {
			edges = append(edges, edge)
		}
	}
	return edges, nil
}

// FlowMembers lists the members of a flow by name, all or those in a public state (F60).
func (e *Graphs) FlowMembers(ctx context.Context, c txn.Caller, id base.GivenID, state, cursor string, limit int) (MemberPage, error) {
	after, err := placeIn(memberScope, cursor)
	if err != nil {
		return MemberPage{}, err
	}
	if state != "" && !slices.Contains(core.PublicStates(), state) {
		return MemberPage{}, base.Invalid("state", "%q is no public state", state)
	}
	if _, err := e.ReadFlow(ctx, c, id); err != nil {
		return MemberPage{}, err
	}
	limit = pageLimit(limit)
	var page MemberPage
	err = e.eachMember(ctx, id.UUID, after, func(m walked) (bool, error) {
		member, err := e.shownMember(ctx, m)
		if err != nil {
			return false, err
		}
		if public, _ := core.Derive(m.x, member.Lane); state != "" && public != state {
			return true, nil
		}
		if len(page.Members) == limit {
			page.Next = core.EncodeCursor(memberScope, []byte(page.Members[limit-1].Execution.Member.Name))
			return false, nil
		}
		page.Members = append(page.Members, member)
		return true, nil
	})
	return page, err
}

// CheckMemberCursor refuses a text that is no cursor of a list of members: a list without any has the same parameters. Codes: invalid_cursor.
func CheckMemberCursor(cursor string) error {
	_, err := placeIn(memberScope, cursor)
	return err
}

// What cursors of members and of edges are for.
const (
	memberScope = "members of flows"
	edgeScope   = "edges of flows"
)

// placeIn is the place that a cursor names; "" for none. Codes: invalid_cursor.
func placeIn(scope, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	key, err := core.DecodeCursor(scope, cursor)
	return string(key), err
}

// pageLimit is how many items a page has: 100 unless asked otherwise.
func pageLimit(limit int) int {
	if limit <= 0 {
		return 100
	}
	return min(limit, maxGraphList)
}

// FlowEdges lists edges of a flow: those that lead from a member, or to one, or all by the names of their upstreams (F60).
func (e *Graphs) FlowEdges(ctx context.Context, c txn.Caller, id base.GivenID, q EdgeQuery) (EdgePage, error) {
	place, err := placeIn(edgeScope, q.Cursor)
	if err != nil {
		return EdgePage{}, err
	}
	if _, err := e.ReadFlow(ctx, c, id); err != nil {
		return EdgePage{}, err
	}
	from := ""
	if q.From != "" {
		x, err := e.member(ctx, c, id, q.From)
		if err != nil {
			return EdgePage{}, err
		}
		from = x.Member.Name
	}
	if q.To != "" {
		return e.edgesTo(ctx, c, id, q, from, place)
	}
	after, skip, _ := strings.Cut(place, "\x01")
	limit := pageLimit(q.Limit)
	var page EdgePage
	// The cursor names an upstream and the downstream of its last edge: that upstream is read again.
	err = e.eachMember(ctx, id.UUID, justBefore(cmp.Or(after, from)), func(m walked) (bool, error) {
		if from != "" && m.name != from {
			return m.name < from, nil
		}
		edges, err := m.edges()
		for _, edge := range edges {
			if m.name == after && edge.To.ID.UUID.String() <= skip {
				continue
			}
			if len(page.Edges) == limit {
				last := page.Edges[limit-1]
				page.Next = core.EncodeCursor(edgeScope, []byte(last.From.Name+"\x01"+last.To.ID.UUID.String()))
				return false, nil
			}
			page.Edges = append(page.Edges, edge)
		}
		return err == nil, err
	})
	return page, err
}

// justBefore is a text that comes before the name of a member and after every name that comes before it; "" for none.
func justBefore(name string) string {
	if name == "" {
		return ""
	}
	return name[:len(name)-1] + string(name[len(name)-1]-1) + "\x7f"
}

// edgesTo lists the edges that lead to a member, all or the one from another, after a name.
func (e *Graphs) edgesTo(ctx context.Context, c txn.Caller, id base.GivenID, q EdgeQuery, from, after string) (EdgePage, error) {
	x, err := e.member(ctx, c, id, q.To)
	if err != nil {
		return EdgePage{}, err
	}
	edges, err := e.Inbound(ctx, x.ID.UUID)
	if err != nil {
		return EdgePage{}, err
	}
	var page EdgePage
	limit := pageLimit(q.Limit)
	for _, edge := range edges {
		switch {
		case from != "" && edge.From.Name != from || edge.From.Name <= after:
		case len(page.Edges) == limit:
			page.Next = core.EncodeCursor(edgeScope, []byte(page.Edges[limit-1].From.Name))
			return page, nil
		default:
			page.Edges = append(page.Edges, edge)
		}
	}
	return page, nil
}

// Inbound reads the edges that lead to a member, by the names of the upstreams.
func (e *Graphs) Inbound(ctx context.Context, to base.UUID) ([]core.Edge, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{upstreamsRef(to)}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	doc, ok := loaded.Docs[upstreamsRef(to)]
	if !ok {
		return nil, nil
	}
	var want store.Want
	upstreams, err := UpstreamsOf(&doc)
	if err != nil {
		return nil, err
	}
	for _, from := range upstreams {
		want.Docs = append(want.Docs, EdgeRef(from, to))
	}
	if loaded, err = e.ReadIf(ctx, want); err != nil {
		return nil, txn.PublicFault(err)
	}
	var docs []store.Doc
	for _, doc := range loaded.Docs {
		docs = append(docs, doc)
	}
	edges, err := EdgesIn(docs)
	slices.SortFunc(edges, func(a, b core.Edge) int { return strings.Compare(a.From.Name, b.From.Name) })
	return edges, err
}

// member finds a member by name or by id. Codes: execution_not_in_flow.
func (e *Graphs) member(ctx context.Context, c txn.Caller, flow base.GivenID, ref string) (*core.Execution, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{memberRef(flow.UUID, ref)}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	var id base.GivenID
	if doc, ok := loaded.Docs[memberRef(flow.UUID, ref)]; ok {
		m, err := readMember(&doc)
		if err != nil {
			return nil, err
		}
		if m.erased != nil && c.Sees(m.erased.Namespace) {
			return m.erased.Execution(), nil
		}
		id = m.id.Given()
	} else if id, err = base.ParseID(ref); err != nil {
		return nil, notInFlow(ref)
	}
	_, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
	if base.CodeOf(err) == base.CodeExecutionNotFound || err == nil && x.FlowID.UUID != flow.UUID {
		return nil, notInFlow(ref)
	}
	return x, err
}

func notInFlow(ref string) error {
	return base.Errorf(base.CodeExecutionNotInFlow, "the flow has no member %s", base.QuoteID(ref))
}

// FlowEdge finds an edge by its id (F60). Codes: edge_not_found.
func (e *Graphs) FlowEdge(ctx context.Context, c txn.Caller, flow base.GivenID, edge base.UUID) (core.Edge, error) {
	if _, err := e.ReadFlow(ctx, c, flow); err != nil {
		return core.Edge{}, err
	}
	var found *core.Edge
	err := e.eachMember(ctx, flow.UUID, "", func(m walked) (bool, error) {
		edges, err := m.edges()
		if at := slices.IndexFunc(edges, func(other core.Edge) bool { return other.ID == edge }); at >= 0 {
			found = &edges[at]
		}
		return found == nil, err
	})
	switch {
	case err != nil:
		return core.Edge{}, err
	case found == nil:
		return core.Edge{}, base.Errorf(base.CodeEdgeNotFound, "the flow has no edge %s", edge)
	default:
		return *found, nil
	}
}

// maxWaitingShown bounds the upstreams that a join names.
const maxWaitingShown = 100

// Join shows the join of a member, with the upstreams that it waits for (F60).
func (e *Graphs) Join(ctx context.Context, c txn.Caller, flow base.GivenID, member string) (JoinView, error) {
	if _, err := e.ReadFlow(ctx, c, flow); err != nil {
		return JoinView{}, err
	}
	x, err := e.member(ctx, c, flow, member)
	if err != nil {
		return JoinView{}, err
	}
	view := JoinView{Join: x.Member.Join}
	edges, err := e.Inbound(ctx, x.ID.UUID)
	for _, edge := range edges {
		if edge.State == core.EdgePending && len(view.Waiting) < maxWaitingShown {
			view.Waiting = append(view.Waiting, edge.From)
		}
	}
	return view, err
}
