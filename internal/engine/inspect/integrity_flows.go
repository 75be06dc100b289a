package inspect

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// checkFlows recounts every flow: its members and their ends, its edges, and what each join has counted (FI2, FI3, FI10).
func (e *Inspector) checkFlows(ctx context.Context) (found []Difference, err error) {
	for scan := (store.Scan{Kind: flows.DocFlow, Limit: integrityBatch}); ; {
		seen, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		docs := seen.Scanned[0]
		for i := range docs {
			id, ok := base.ParseUUID(docs[i].Key)
			if !ok {
				found = append(found, Difference{What: checkGraphs, Key: docs[i].Key, Stored: 1})
				continue
			}
			different, err := e.recountFlow(ctx, id)
			if err != nil {
				return nil, txn.PublicFault(err)
			}
			found = append(found, different...)
		}
		if len(docs) < integrityBatch {
			return found, nil
		}
		scan.After = docs[len(docs)-1].Key
	}
}

// recountFlow compares a flow with its members and edges, all of one snapshot.
func (e *Inspector) recountFlow(ctx context.Context, id base.UUID) ([]Difference, error) {
	for range integrityTries {
		listed, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: flows.DocMember, Owner: txn.Owner(id)}}})
		if err != nil {
			return nil, err
		}
		members, ids, err := flows.MemberList(listed.Scanned[0])
		if err != nil {
			return nil, err
		}
		want := store.Want{Docs: []store.DocRef{flows.FlowRef(id)}, Executions: flows.LiveOf(members), SkipUnreadable: true, Scans: []store.Scan{{Kind: flows.DocMember, Owner: txn.Owner(id)}}}
		for _, member := range ids {
			want.Owned = append(want.Owned, flows.EdgesOf(member))
		}
		loaded, err := e.Store.Read(ctx, want)
		if err != nil {
			return nil, err
		}
		doc, there := loaded.Docs[flows.FlowRef(id)]
		if !there || len(loaded.Unreadable) > 0 {
			return nil, nil // it was removed, or another check reports it
		}
		if len(loaded.Scanned[0]) != len(ids) {
			continue // members have come since
		}
		if err := flows.AddErased(loaded, loaded.Scanned[0]); err != nil { // also those that were deleted since
			return nil, err
		}
		return recount(&doc, loaded, ids)
	}
	return nil, nil // it grows all the time
}

// recount is what does not agree in a snapshot of a flow.
func recount(doc *store.Doc, loaded *store.Loaded, ids []base.UUID) (found []Difference, err error) {
	f := &core.Flow{}
	if err := flows.ReadDoc(doc, f); err != nil {
		return nil, err
	}
	differ := func(what string, stored, counted int) {
		if stored != counted {
			found = append(found, Difference{What: checkGraphs, Key: f.ID.String() + " " + what, Stored: int64(stored), Found: int64(counted)})
		}
	}
	again := &core.Flow{ID: f.ID}
	joins := map[base.UUID]*core.Join{}
	for _, id := range ids {
		x := loaded.Executions[id]
		if x == nil || x.FlowID != f.ID || x.Member == nil {
			differ("member "+id.String(), 1, 0)
			continue
		}
		again.AddMember(x)
		joins[id] = &core.Join{}
	}
	for _, id := range ids {
		edges, err := flows.EdgesIn(loaded.Owned[flows.EdgesOf(id)])
		if err != nil {
			return nil, err
		}
		again.Edges += len(edges)
		for i := range edges {
			if join := joins[edges[i].To.ID.UUID]; join != nil {
				join.Count(&edges[i])
			}
		}
	}
	differ("node_count", f.Nodes, again.Nodes)
	differ("edge_count", f.Edges, again.Edges)
	differ("open", f.Open, again.Open)
	differ("bad", f.Bad, again.Bad)
	differ("completed", f.Ends.Completed, again.Ends.Completed)
	differ("failed", f.Ends.Failed, again.Ends.Failed)
	differ("cancelled", f.Ends.Cancelled, again.Ends.Cancelled)
	differ("expired", f.Ends.Expired, again.Ends.Expired)
	differ("skipped", f.Ends.Skipped, again.Ends.Skipped)
	for id, join := range joins {
		stored := &loaded.Executions[id].Member.Join
		name := loaded.Executions[id].Member.Name
		differ("edges into "+name, stored.N, join.N)
		differ("satisfied edges into "+name, stored.Satisfied, join.Satisfied)
		differ("impossible edges into "+name, stored.Impossible, join.Impossible)
	}
	return found, nil
}
