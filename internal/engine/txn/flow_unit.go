package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// flowPart is what a unit has of flows. The lock of a flow is taken after those of executions and of everything else; under it further executions
// are locked only if they are free.
type flowPart struct {
	flows map[base.UUID]*flowEntry
	edges map[edgeKey]*edgeEntry
	from  map[base.UUID][]*edgeEntry // by upstream
	into  map[base.UUID][]*edgeEntry // by downstream, those of its graph
	order []*edgeEntry               // those to be written
	left  []*resolution              // edges that follow-up work is to resolve

	reached []*Row // members whose joins may be due by edges that were added, or by a seal
}

// flowEntry is a flow inside a unit.
type flowEntry struct {
	f       *core.Flow
	created bool
	changed bool
}

type edgeKey struct{ from, to base.UUID }

// edgeEntry is an edge inside a unit.
type edgeEntry struct {
	edge    core.Edge
	created bool
	changed bool
}

// flow returns a flow that the unit has locked, or nil if it does not exist or is not locked.
func (u *Tx) flow(id base.UUID) *core.Flow {
	if ent := u.graph.flows[id]; ent != nil {
		return ent.f
	}
	return nil
}

// touchFlow marks a flow as changed.
func (u *Tx) touchFlow(f *core.Flow) { u.graph.flows[f.ID.UUID].changed = true }

// createFlow adds a new flow.
func (u *Tx) createFlow(f *core.Flow) {
	SetIn(&u.graph.flows, f.ID.UUID, &flowEntry{f: f, created: true, changed: true})
}

// createEdge adds a new edge.
func (u *Tx) createEdge(edge core.Edge) {
	ent := &edgeEntry{edge: edge, created: true}
	u.keepEdge(ent)
	u.touchEdge(ent)
}

func (u *Tx) keepEdge(ent *edgeEntry) {
	from, to := ent.edge.From.ID.UUID, ent.edge.To.ID.UUID
	SetIn(&u.graph.edges, edgeKey{from, to}, ent)
	SetIn(&u.graph.from, from, append(u.graph.from[from], ent))
	if ent.edge.Wait == 0 {
		SetIn(&u.graph.into, to, append(u.graph.into[to], ent))
	}
}

func (u *Tx) touchEdge(ent *edgeEntry) {
	if !ent.changed {
		ent.changed = true
		u.graph.order = append(u.graph.order, ent)
	}
}

// lockFlows locks flows that are not locked yet and loads the edges that lead from executions, as the previous holders of the locks left them. want
// may name further rows.
func (u *Tx) lockFlows(ctx context.Context, flows []base.UUID, from []base.UUID, want store.Want) error {
	for _, id := range flows {
		if _, known := u.graph.flows[id]; !known {
			want.Docs, want.LockDocs = append(want.Docs, FlowRef(id)), true
		}
	}
	for _, id := range from {
		want.Owned = append(want.Owned, EdgesOf(id))
	}
	if len(want.Docs)+len(want.Owned)+len(want.Executions)+len(want.Scans) == 0 {
		return nil
	}
	if err := u.meetsLater(&want); err != nil {
		return err
	}
	loaded, err := u.tx.Load(ctx, want)
	if u.Engine.failed(err) != nil {
		return err
	}
	u.absorb(want, loaded)
	u.Now = max(u.Now, loaded.Now)
	return u.absorbGraph(loaded)
}

// absorbGraph adds loaded flows and edges to the unit. Those that it has already stay as they are.
func (u *Tx) absorbGraph(loaded *store.Loaded) error {
	for ref, doc := range loaded.Docs {
		switch ref.Kind {
		case DocFlow:
			f := &core.Flow{}
			if err := ReadDoc(&doc, f); err != nil {
				return err
			}
			if u.graph.flows[f.ID.UUID] == nil {
				SetIn(&u.graph.flows, f.ID.UUID, &flowEntry{f: f})
			}
		case docEdge:
			if err := u.absorbEdge(&doc); err != nil {
				return err
			}
		}
	}
	for whose, docs := range loaded.Owned {
		for i := range docs {
			if whose.Kind != docEdge {
				break
			}
			if err := u.absorbEdge(&docs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *Tx) absorbEdge(doc *store.Doc) error {
	var edge core.Edge
	if err := ReadDoc(doc, &edge); err != nil {
		return err
	}
	if u.graph.edges[edgeKey{edge.From.ID.UUID, edge.To.ID.UUID}] == nil {
		u.keepEdge(&edgeEntry{edge: edge})
	}
	return nil
}

// writeFlows adds the changed flows and edges to the changes.
func (u *Tx) writeFlows() {
	for id, ent := range u.graph.flows {
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
	for _, ent := range u.graph.order {
		doc := docOf(EdgeRef(ent.edge.From.ID.UUID, ent.edge.To.ID.UUID), &ent.edge)
		if ent.created {
			u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
		} else {
			u.Changes.PutDocs = append(u.Changes.PutDocs, doc)
		}
	}
	u.graph.order = nil
}
