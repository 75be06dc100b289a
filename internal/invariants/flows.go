package invariants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// How flows lie in the store. The numbers are stored, so that they never change.
const (
	flowDocs     store.DocKind = 29 // key: flow
	memberDocs   store.DocKind = 31 // owner: flow; key: name; which execution has it
	edgeDocs     store.DocKind = 32 // owner: upstream; key: downstream
	upstreamDocs store.DocKind = 33 // owner: downstream; its upstreams, 16 bytes each
)

// Graph is a flow with everything that belongs to it but the records of its members.
type Graph struct {
	Flow      *core.Flow
	Members   map[string]base.ID            // by name
	Erased    map[string]*core.ErasedMember // those of them that were deleted
	Edges     []core.Edge                   // of the graph
	Waits     []core.Edge                   // from members to a parent that waits for them, or did
	Upstreams map[base.UUID][]base.UUID     // as they are listed, by downstream
}

// wantGraphs asks for all flows, their members and their edges. The list of members is looked up before; one that grows meanwhile is left
// out by graphsIn.
func wantGraphs(ctx context.Context, s store.Store) (want store.Want, err error) {
	flows := store.Scan{Kind: flowDocs}
	loaded, err := s.Read(ctx, store.Want{Scans: []store.Scan{flows}})
	if err != nil {
		return want, fmt.Errorf("list the flows: %w", err)
	}
	want.Scans = []store.Scan{flows}
	for _, doc := range loaded.Scanned[0] {
		want.Scans = append(want.Scans, store.Scan{Kind: memberDocs, Owner: doc.Key})
	}
	if len(want.Scans) == 1 {
		return want, nil
	}
	if loaded, err = s.Read(ctx, store.Want{Scans: want.Scans[1:]}); err != nil {
		return want, fmt.Errorf("list the members of flows: %w", err)
	}
	for _, docs := range loaded.Scanned {
		members, _, err := membersIn(docs)
		if err != nil {
			return want, err
		}
		for _, id := range members {
			owner := id.UUID.String()
			want.Executions = append(want.Executions, id.UUID)
			want.Owned = append(want.Owned, store.Owned{Kind: edgeDocs, Owner: owner})
			want.Docs = append(want.Docs, store.DocRef{Kind: upstreamDocs, Owner: owner})
		}
	}
	return want, nil
}

// membersIn reads the docs of members: the id of each, or what is left of one that was deleted.
func membersIn(docs []store.Doc) (members map[string]base.ID, erased map[string]*core.ErasedMember, err error) {
	members, erased = map[string]base.ID{}, map[string]*core.ErasedMember{}
	for _, doc := range docs {
		var id base.ID
		if bytes.HasPrefix(doc.Body, []byte("{")) {
			m := &core.ErasedMember{}
			err = json.Unmarshal(doc.Body, m)
			id, erased[doc.Key] = m.ID, m
		} else {
			err = json.Unmarshal(doc.Body, &id)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the member %s of flow %s: %w", doc.Key, doc.Owner, err)
		}
		members[doc.Key] = id
	}
	return members, erased, nil
}

// graphsIn reads the flows whose members were all asked for.
func graphsIn(want store.Want, loaded *store.Loaded) (all []Graph, err error) {
	asked := map[base.UUID]bool{}
	for _, id := range want.Executions {
		asked[id] = true
	}
	scanned := map[string][]store.Doc{}
	for i, docs := range loaded.Scanned[1:] {
		scanned[want.Scans[i+1].Owner] = docs
	}
	for _, doc := range loaded.Scanned[0] {
		g := Graph{Flow: &core.Flow{}, Upstreams: map[base.UUID][]base.UUID{}}
		if err := store.DecodeFlow(doc.Data, g.Flow); err != nil {
			return nil, fmt.Errorf("the flow %s: %w", doc.Key, err)
		}
		docs, listed := scanned[doc.Key]
		if g.Members, g.Erased, err = membersIn(docs); err != nil {
			return nil, err
		}
		strange := func(id base.ID) bool { return !asked[id.UUID] }
		if !listed || slices.ContainsFunc(slices.Collect(maps.Values(g.Members)), strange) {
			continue
		}
		if err := g.read(loaded); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// read takes the edges of the members.
func (g *Graph) read(loaded *store.Loaded) error {
	for _, id := range g.Members {
		owner := id.UUID.String()
		for _, doc := range loaded.Owned[store.Owned{Kind: edgeDocs, Owner: owner}] {
			var edge core.Edge
			if err := store.DecodeEdge(doc.Data, &edge); err != nil {
				return fmt.Errorf("the edge from %s to %s: %w", doc.Owner, doc.Key, err)
			}
			if edge.Wait != 0 {
				g.Waits = append(g.Waits, edge)
			} else {
				g.Edges = append(g.Edges, edge)
			}
		}
		const size = len(base.UUID{})
		for rest := loaded.Docs[store.DocRef{Kind: upstreamDocs, Owner: owner}].Data; len(rest) >= size; rest = rest[size:] {
			g.Upstreams[id.UUID] = append(g.Upstreams[id.UUID], base.UUID(rest[:size]))
		}
	}
	return nil
}

// graphs is FI1, FI2, FI3, FI7..FI10, FI12 and FI14 for all flows of the snapshot.
func (s *Snapshot) graphs() (found []string) {
	places := map[base.UUID]string{} // of members, by flow and name
	for i := range s.Graphs {
		g := &s.Graphs[i]
		for name, id := range g.Members {
			places[id.UUID] = g.Flow.ID.UUID.String() + " " + name
		}
		for _, check := range []func(*Snapshot) []string{g.rows, g.edges, g.joins, g.counts, g.outcome, g.cancelled, g.waits} {
			for _, text := range check(s) {
				found = append(found, fmt.Sprintf("%s: %s", g.Flow.ID, text))
			}
		}
	}
	for id, r := range s.Records {
		if m := r.X.Member; m != nil && s.has(r.X.FlowID) && places[id] != r.X.FlowID.UUID.String()+" "+m.Name {
			found = append(found, fmt.Sprintf("%s: FI2: it says to be %s of %s, which does not know it", r.X.ID, m.Name, r.X.FlowID))
		}
	}
	return found
}

func (s *Snapshot) has(flow base.ID) bool {
	return slices.ContainsFunc(s.Graphs, func(g Graph) bool { return g.Flow.ID == flow })
}

// parked reports whether x waits for children (F40).
func parked(x *core.Execution) bool {
	return x.Status == core.Blocked && x.Children != nil && x.Children.Wait != nil && x.Children.Wait.Cause == "" && x.Dependency == core.WaitingForChildren
}
