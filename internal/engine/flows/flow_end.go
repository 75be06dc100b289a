package flows

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// endFlows ends the flows of the transaction that are due (F4, F51).
func endFlows(ctx context.Context, u *txn.Tx) error {
	for _, ent := range graphOf(u).flows {
		if !ent.changed || !ent.f.Due() {
			continue
		}
		failures, err := failuresOf(ctx, u, ent.f)
		if err != nil {
			return err
		}
		fx := u.EngineEffects()
		ent.f.End(fx, failures)
		u.Keep(fx)
		flowEnded(u, ent.f)
	}
	return nil
}

// flowEnded wakes the calls that wait for the end of a flow, and arms its removal.
func flowEnded(u *txn.Tx, f *core.Flow) {
	if !f.OfChildren() && !f.Parent.IsZero() {
		u.AddTask(taskEndNode, taskArgs{Execution: f.Parent.UUID, Flow: f.ID.UUID})
	}
	retireFlow(u, f)
	id := f.ID.UUID
	u.After = append(u.After, func() { u.Engine.Waiters.Wake(id) })
}

// badPage is how many members are read together when failures are looked for.
const badPage = 500

// failuresOf returns the names of the members that count as failures (F5), up to as many as an event holds.
func failuresOf(ctx context.Context, u *txn.Tx, f *core.Flow) (failures []string, err error) {
	if f.Bad == 0 || f.State == core.FlowCancelling {
		return nil, nil
	}
	if f.Bad <= len(f.BadNames) {
		return failuresAmong(ctx, u, f, f.BadNames)
	}
	here := membersHere(u, f)
	if failures, err = failuresAmong(ctx, u, f, slices.Collect(maps.Keys(here))); err != nil {
		return nil, err
	}
	for after := ""; len(failures) < core.MaxBadNames; {
		loaded, err := u.Engine.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocMember, Owner: txn.Owner(f.ID.UUID), After: after, Limit: badPage}}})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, doc := range loaded.Scanned[0] {
			if _, known := here[doc.Key]; !known {
				names = append(names, doc.Key)
			}
		}
		some, err := failuresAmong(ctx, u, f, names)
		if err != nil {
			return nil, err
		}
		failures = append(failures, some...)
		page := loaded.Scanned[0]
		if len(page) < badPage {
			break
		}
		after = page[len(page)-1].Key
	}
	return failures[:min(len(failures), core.MaxBadNames)], nil
}

// failuresAmong looks at some members as the transaction has left them. Members that the transaction does not have are terminal, and do not change
// while their flow is locked.
func failuresAmong(ctx context.Context, u *txn.Tx, f *core.Flow, names []string) (failures []string, err error) {
	members, err := peekMembers(ctx, u, f, names)
	if err != nil {
		return nil, err
	}
	var downs []core.NodeRef
	suspects := map[string]*core.Execution{}
	for _, x := range members {
		if x.CountsBad() {
			suspects[x.Member.Name] = x
			for _, edge := range graphOf(u).from[x.ID.UUID] {
				downs = append(downs, edge.edge.To)
			}
		}
	}
	after, err := peekOrErased(ctx, u, f, downs)
	if err != nil {
		return nil, err
	}
	for name, x := range suspects {
		edges := graphOf(u).from[x.ID.UUID]
		cared := slices.ContainsFunc(edges, func(e *edgeEntry) bool { return e.edge.Wait == 0 }) && !slices.ContainsFunc(edges, func(e *edgeEntry) bool {
			down := after[e.edge.To.ID.UUID]
			return e.edge.Wait == 0 && (down == nil || !down.TookCare())
		})
		if !cared {
			failures = append(failures, name)
		}
	}
	slices.Sort(failures)
	return failures, nil
}

// membersHere are the members of a flow that the transaction has, by name: some may be as new as their names.
func membersHere(u *txn.Tx, f *core.Flow) map[string]base.UUID {
	here := map[string]base.UUID{}
	for id, ent := range u.Entries {
		if ent.Exec.Member != nil && ent.Exec.FlowID == f.ID && !ent.Removed {
			here[ent.Exec.Member.Name] = id
		}
	}
	return here
}

// peekMembers reads members by name, and the edges that lead from them.
func peekMembers(ctx context.Context, u *txn.Tx, f *core.Flow, names []string) (map[base.UUID]*core.Execution, error) {
	var ids []base.UUID
	var want store.Want
	here := membersHere(u, f)
	for _, name := range names {
		if id, known := here[name]; known {
			ids = append(ids, id)
		} else {
			want.Docs = append(want.Docs, memberRef(f.ID.UUID, name))
		}
	}
	loaded, err := u.Engine.ReadIf(ctx, want)
	if err != nil {
		return nil, err
	}
	erased := map[base.UUID]*core.Execution{}
	for _, doc := range loaded.Docs {
		m, err := readMember(&doc)
		if err != nil {
			return nil, err
		}
		if ids = append(ids, m.id.UUID); m.erased != nil {
			erased[m.id.UUID] = m.erased.Execution()
		}
	}
	want = store.Want{}
	for _, id := range ids {
		want.Owned = append(want.Owned, EdgesOf(id))
	}
	if loaded, err = u.Engine.ReadIf(ctx, want); err != nil {
		return nil, err
	}
	if err := absorbGraph(u, loaded); err != nil {
		return nil, err
	}
	found, err := peek(ctx, u, ids)
	if err != nil {
		return nil, err
	}
	maps.Copy(found, erased)
	return found, nil
}

// peek reads executions without a lock. Those that the transaction has are returned as it left them.
func peek(ctx context.Context, u *txn.Tx, ids []base.UUID) (map[base.UUID]*core.Execution, error) {
	found := make(map[base.UUID]*core.Execution, len(ids))
	want := store.Want{SkipUnreadable: true}
	for _, id := range ids {
		if ent := u.Entries[id]; ent != nil {
			found[id] = ent.Exec
		} else {
			want.Executions = append(want.Executions, id)
		}
	}
	loaded, err := u.Engine.ReadIf(ctx, want)
	if err != nil {
		return nil, err
	}
	for id, x := range loaded.Executions {
		found[id] = x
	}
	return found, nil
}
