package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// flowPart is what a transaction has of flows. The lock of a flow is taken after those of executions and of everything else; under it further
// executions are locked only if they are free.
type flowPart struct {
	flows map[base.UUID]*flowEntry
	edges map[edgeKey]*edgeEntry
	from  map[base.UUID][]*edgeEntry // by upstream
	into  map[base.UUID][]*edgeEntry // by downstream, those of its graph
	order []*edgeEntry               // those to be written
	left  []*resolution              // edges that follow-up work is to resolve

	reached []*txn.Row // members whose joins may be due by edges that were added, or by a seal
}

// flowEntry is a flow inside a transaction.
type flowEntry struct {
	f       *core.Flow
	created bool
	changed bool
}

type edgeKey struct{ from, to base.UUID }

// edgeEntry is an edge inside a transaction.
type edgeEntry struct {
	edge    core.Edge
	created bool
	changed bool
}

// slot is the place of flowPart in a transaction.
const slot txn.Slot = 3

// graphOf returns what a transaction has of flows.
func graphOf(u *txn.Tx) *flowPart { return txn.State[flowPart](u, slot) }

// flow returns a flow that the transaction has locked, or nil if it does not exist or is not locked.
func flow(u *txn.Tx, id base.UUID) *core.Flow {
	if ent := graphOf(u).flows[id]; ent != nil {
		return ent.f
	}
	return nil
}

// touchFlow marks a flow as changed.
func touchFlow(u *txn.Tx, f *core.Flow) { graphOf(u).flows[f.ID.UUID].changed = true }

// createFlow adds a new flow.
func createFlow(u *txn.Tx, f *core.Flow) {
	txn.SetIn(&graphOf(u).flows, f.ID.UUID, &flowEntry{f: f, created: true, changed: true})
}

// createEdge adds a new edge.
func createEdge(u *txn.Tx, edge core.Edge) {
	ent := &edgeEntry{edge: edge, created: true}
	keepEdge(u, ent)
	touchEdge(u, ent)
}

func keepEdge(u *txn.Tx, ent *edgeEntry) {
	from, to := ent.edge.From.ID.UUID, ent.edge.To.ID.UUID
	txn.SetIn(&graphOf(u).edges, edgeKey{from, to}, ent)
	txn.SetIn(&graphOf(u).from, from, append(graphOf(u).from[from], ent))
	if ent.edge.Wait == 0 {
		txn.SetIn(&graphOf(u).into, to, append(graphOf(u).into[to], ent))
	}
}

func touchEdge(u *txn.Tx, ent *edgeEntry) {
	if !ent.changed {
		ent.changed = true
		graphOf(u).order = append(graphOf(u).order, ent)
	}
}

// lockFlows locks flows that are not locked yet and loads the edges that lead from executions, as the previous holders of the locks left them. want
// may name further rows.
func lockFlows(ctx context.Context, u *txn.Tx, flows []base.UUID, from []base.UUID, want store.Want) error {
	for _, id := range flows {
		if _, known := graphOf(u).flows[id]; !known {
			want.Docs, want.LockDocs = append(want.Docs, FlowRef(id)), true
		}
	}
	for _, id := range from {
		want.Owned = append(want.Owned, EdgesOf(id))
	}
	if len(want.Docs)+len(want.Owned)+len(want.Executions)+len(want.Scans) == 0 {
		return nil
	}
	if err := u.MeetsLater(&want); err != nil {
		return err
	}
	loaded, err := u.StoreTx.Load(ctx, want)
	if u.Engine.Failed(err) != nil {
		return err
	}
	u.Absorb(want, loaded)
	u.Now = max(u.Now, loaded.Now)
	return absorbGraph(u, loaded)
}

// absorbGraph adds loaded flows and edges to the transaction. Those that it has already stay as they are.
func absorbGraph(u *txn.Tx, loaded *store.Loaded) error {
	for ref, doc := range loaded.Docs {
		switch ref.Kind {
		case DocFlow:
			f := &core.Flow{}
			if err := ReadDoc(&doc, f); err != nil {
				return err
			}
			if graphOf(u).flows[f.ID.UUID] == nil {
				txn.SetIn(&graphOf(u).flows, f.ID.UUID, &flowEntry{f: f})
			}
		case docEdge:
			if err := absorbEdge(u, &doc); err != nil {
				return err
			}
		}
	}
	for whose, docs := range loaded.Owned {
		for i := range docs {
			if whose.Kind != docEdge {
				break
			}
			if err := absorbEdge(u, &docs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func absorbEdge(u *txn.Tx, doc *store.Doc) error {
	var edge core.Edge
	if err := ReadDoc(doc, &edge); err != nil {
		return err
	}
	if graphOf(u).edges[edgeKey{edge.From.ID.UUID, edge.To.ID.UUID}] == nil {
		keepEdge(u, &edgeEntry{edge: edge})
	}
	return nil
}

// writeFlows adds the changed flows and edges to the changes.
func writeFlows(u *txn.Tx) {
	for id, ent := range graphOf(u).flows {
		if !ent.changed {
			continue
		}
		ent.changed = false
		if doc := docOf(FlowRef(id), ent.f); ent.created {
			u.Changes.NewDocs = append(u.Changes.NewDocs, doc, store.Doc{DocRef: flowMarkRef(ent.f)})
		} else {
			u.Changes.PutDocs = append(u.Changes.PutDocs, doc)
		}
	}
	for _, ent := range graphOf(u).order {
		doc := docOf(EdgeRef(ent.edge.From.ID.UUID, ent.edge.To.ID.UUID), &ent.edge)
		if ent.created {
			u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
		} else {
			u.Changes.PutDocs = append(u.Changes.PutDocs, doc)
		}
	}
	graphOf(u).order = nil
}
