package txn

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// endFlows ends the flows of the unit that are due (F4, F51).
func (u *Tx) endFlows(ctx context.Context) error {
	for _, ent := range u.graph.flows {
		if !ent.changed || !ent.f.Due() {
			continue
		}
		failures, err := u.failuresOf(ctx, ent.f)
		if err != nil {
			return err
		}
		fx := u.engineEffects()
		ent.f.End(fx, failures)
		u.keep(fx)
		u.flowEnded(ent.f)
	}
	return nil
}

// flowEnded wakes the calls that wait for the end of a flow, and arms its removal.
func (u *Tx) flowEnded(f *core.Flow) {
	if !f.OfChildren() && !f.Parent.IsZero() {
		u.addTask(task{Kind: taskEndNode, Execution: f.Parent.UUID, Flow: f.ID.UUID})
	}
	u.retireFlow(f)
	id := f.ID.UUID
	u.After = append(u.After, func() { u.Engine.Waits.Wake(id) })
}

// badPage is how many members are read together when failures are looked for.
const badPage = 500

// failuresOf returns the names of the members that count as failures (F5), up to as many as an event holds.
func (u *Tx) failuresOf(ctx context.Context, f *core.Flow) (failures []string, err error) {
	if f.Bad == 0 || f.State == core.FlowCancelling {
		return nil, nil
	}
	if f.Bad <= len(f.BadNames) {
		return u.failuresAmong(ctx, f, f.BadNames)
	}
	here := u.membersHere(f)
	if failures, err = u.failuresAmong(ctx, f, slices.Collect(maps.Keys(here))); err != nil {
		return nil, err
	}
	for after := ""; len(failures) < core.MaxBadNames; {
		loaded, err := u.Engine.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocMember, Owner: Owner(f.ID.UUID), After: after, Limit: badPage}}})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, doc := range loaded.Scanned[0] {
			if _, known := here[doc.Key]; !known {
				names = append(names, doc.Key)
			}
		}
		some, err := u.failuresAmong(ctx, f, names)
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

// failuresAmong looks at some members as the unit has left them. Members that the unit does not have are terminal, and do not change while their
// flow is locked.
func (u *Tx) failuresAmong(ctx context.Context, f *core.Flow, names []string) (failures []string, err error) {
	members, err := u.peekMembers(ctx, f, names)
	if err != nil {
		return nil, err
	}
	var downs []core.NodeRef
	suspects := map[string]*core.Execution{}
	for _, x := range members {
		if x.CountsBad() {
			suspects[x.Member.Name] = x
			for _, edge := range u.graph.from[x.ID.UUID] {
				downs = append(downs, edge.edge.To)
			}
		}
	}
	after, err := u.peekOrErased(ctx, f, downs)
	if err != nil {
		return nil, err
	}
	for name, x := range suspects {
		edges := u.graph.from[x.ID.UUID]
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

// membersHere are the members of a flow that the unit has, by name: some may be as new as their names.
func (u *Tx) membersHere(f *core.Flow) map[string]base.UUID {
	here := map[string]base.UUID{}
	for id, ent := range u.Entries {
		if ent.Exec.Member != nil && ent.Exec.FlowID == f.ID && !ent.removed {
			here[ent.Exec.Member.Name] = id
		}
	}
	return here
}

// peekMembers reads members by name, and the edges that lead from them.
func (u *Tx) peekMembers(ctx context.Context, f *core.Flow, names []string) (map[base.UUID]*core.Execution, error) {
	var ids []base.UUID
	var want store.Want
	here := u.membersHere(f)
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
	if err := u.absorbGraph(loaded); err != nil {
		return nil, err
	}
	found, err := u.peek(ctx, ids)
	if err != nil {
		return nil, err
	}
	maps.Copy(found, erased)
	return found, nil
}

// peek reads executions without a lock. Those that the unit has are returned as it left them.
func (u *Tx) peek(ctx context.Context, ids []base.UUID) (map[base.UUID]*core.Execution, error) {
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

// ReadIf reads rows, if any are named.
func (e *Engine) ReadIf(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if len(want.Docs)+len(want.Owned)+len(want.Executions)+len(want.Scans)+len(want.History) == 0 {
		return &store.Loaded{}, nil
	}
	return e.Store.Read(ctx, want)
}
