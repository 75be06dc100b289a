package inspect

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// lookAtGraph finds the executions whose ends the execution waits for, and their states (F62).
func (l *explainLook) lookAtGraph(ctx context.Context) error {
	x := l.in.Execution
	switch {
	case x.Dependency == core.WaitingForSubflow && x.Children != nil:
		f, err := l.e.ReadFlow(ctx, txn.EngineCaller, x.Children.FlowID.Given())
		if err != nil {
			return err
		}
		l.in.Subflow = &core.SubflowNow{ID: f.ID, State: f.State, Nodes: f.Nodes, Open: f.Open}
		return nil
	case x.Dependency != core.WaitingForChildren:
		return nil
	}
	edges, err := l.e.waitedEdges(ctx, x)
	if err != nil {
		return err
	}
	var want store.Want
	for i := range edges {
		want.Executions = append(want.Executions, edges[i].From.ID.UUID)
	}
	loaded, err := l.e.ReadIf(ctx, want)
	if err != nil {
		return txn.PublicFault(err)
	}
	for i := range edges {
		w := core.WaitedFor{Name: edges[i].From.Name, ID: edges[i].From.ID, Kind: edges[i].Kind, State: edges[i].State}
		if up := loaded.Executions[w.ID.UUID]; up != nil {
			w.Now, _ = core.Derive(up, l.dict.State(up.Class.Lane))
		}
		l.in.WaitedFor = append(l.in.WaitedFor, w)
	}
	slices.SortFunc(l.in.WaitedFor, func(a, b core.WaitedFor) int {
		return cmp.Or(strings.Compare(string(b.State), string(a.State)), strings.Compare(a.Name, b.Name))
	})
	return nil
}

// waitedEdges returns the edges that the execution waits for: those of its children while it waits for them, otherwise those of its join.
func (e *Inspector) waitedEdges(ctx context.Context, x *core.Execution) ([]core.Edge, error) {
	if x.Children == nil || x.Children.Wait == nil || x.Children.Wait.Cause != "" {
		return e.Inbound(ctx, x.ID.UUID)
	}
	return e.childEdges(ctx, x)
}

// childEdges are the edges from the children that an execution waits for.
func (e *Inspector) childEdges(ctx context.Context, x *core.Execution) (edges []core.Edge, err error) {
	list := flows.AwaitedRef(x.ID.UUID, flows.AwaitedKey(x.Children.Wait.Number))
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{list}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	doc, ok := loaded.Docs[list]
	if !ok {
		return nil, nil
	}
	var want store.Want
	children, err := flows.UpstreamsOf(&doc)
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		want.Docs = append(want.Docs, flows.EdgeRef(child, x.ID.UUID))
	}
	if loaded, err = e.ReadIf(ctx, want); err != nil {
		return nil, txn.PublicFault(err)
	}
	for _, ref := range want.Docs {
		doc, ok := loaded.Docs[ref]
		if !ok {
			continue
		}
		var edge core.Edge
		if err := flows.ReadDoc(&doc, &edge); err != nil {
			return nil, err
		}
		edges = append(edges, edge)
	}
	return edges, nil
}
