package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A member of a finished flow may be deleted alone (U55). Its row and all its records are then removed, except its edges. What else the graph, the
// counts and the outcome of the flow depend on stays in the doc of the member's name.

// erasedLeaves are the docs of a deleted member that go with its flow.
var erasedLeaves = []store.DocKind{docEdge, docUpstreams}

// listedMember is a member as described by the doc of its name.
type listedMember struct {
	id     base.ID
	erased *core.ErasedMember // nil: it is there
}

// readMember reads the doc of a member: its id, or what is left of one that was deleted. Codes: corruption.
func readMember(doc *store.Doc) (m listedMember, err error) {
	if len(doc.Body) > 0 && doc.Body[0] == '{' {
		m.erased = &core.ErasedMember{}
		err = ReadDoc(doc, m.erased)
		m.id = m.erased.ID
		return m, err
	}
	return m, ReadDoc(doc, &m.id)
}

// MemberList reads the docs of members.
func MemberList(docs []store.Doc) (members []listedMember, ids []base.UUID, err error) {
	for i := range docs {
		m, err := readMember(&docs[i])
		if err != nil {
			return nil, nil, err
		}
		members, ids = append(members, m), append(ids, m.id.UUID)
	}
	return members, ids, nil
}

// LiveOf are the members that were not deleted.
func LiveOf(members []listedMember) (ids []base.UUID) {
	for _, m := range members {
		if m.erased == nil {
			ids = append(ids, m.id.UUID)
		}
	}
	return ids
}

// AddErased adds what is left of deleted members to rows that were read.
func AddErased(loaded *store.Loaded, docs []store.Doc) error {
	members, _, err := MemberList(docs)
	for _, m := range members {
		if m.erased != nil {
			txn.SetIn(&loaded.Executions, m.id.UUID, m.erased.Execution())
		}
	}
	return err
}

// readMembers reads listed members, with the edges that lead from them. For a member that was deleted since it was listed it returns what is left
// of it.
func (e *Graphs) readMembers(ctx context.Context, flow base.UUID, docs []store.Doc, tolerant bool) ([]listedMember, *store.Loaded, error) {
	members, ids, err := MemberList(docs)
	if err != nil {
		return nil, nil, err
	}
	want := store.Want{Executions: LiveOf(members), SkipUnreadable: tolerant}
	for _, id := range ids {
		want.Owned = append(want.Owned, EdgesOf(id))
	}
	loaded, err := e.ReadIf(ctx, want)
	if err != nil {
		return nil, nil, txn.PublicFault(err)
	}
	var again store.Want
	for i, m := range members {
		if m.erased == nil && loaded.Executions[m.id.UUID] == nil && loaded.Unreadable[m.id.UUID] == nil {
			again.Docs = append(again.Docs, memberRef(flow, docs[i].Key))
		}
	}
	since, err := e.ReadIf(ctx, again)
	if err != nil {
		return nil, nil, txn.PublicFault(err)
	}
	for i := range members {
		if doc, ok := since.Docs[memberRef(flow, docs[i].Key)]; ok {
			if members[i], err = readMember(&doc); err != nil {
				return nil, nil, err
			}
		}
	}
	return members, loaded, nil
}

// peekOrErased is peek for members of a flow, of which some may have been deleted.
func peekOrErased(ctx context.Context, u *txn.Tx, f *core.Flow, members []core.NodeRef) (map[base.UUID]*core.Execution, error) {
	ids := make([]base.UUID, len(members))
	for i, m := range members {
		ids[i] = m.ID.UUID
	}
	found, err := peek(ctx, u, ids)
	if err != nil {
		return nil, err
	}
	var want store.Want
	for _, m := range members {
		if ref := memberRef(f.ID.UUID, m.Name); found[m.ID.UUID] == nil && !slices.Contains(want.Docs, ref) {
			want.Docs = append(want.Docs, ref)
		}
	}
	loaded, err := u.Engine.ReadIf(ctx, want)
	if err != nil {
		return nil, err
	}
	for _, doc := range loaded.Docs {
		m, err := readMember(&doc)
		if err != nil {
			return nil, err
		}
		if m.erased != nil {
			found[m.id.UUID] = m.erased.Execution()
		}
	}
	return found, nil
}

// flowsAround returns the flow of a member and the flows that contain it, outwards; none outside a flow. A command that deletes the member locks
// them, so that none of them is opened again with members that could need its result. Codes: retained, if the execution
// that one of them belongs to has not ended.
func (e *Graphs) flowsAround(ctx context.Context, x *core.Execution) (around []base.UUID, err error) {
	for x.Member != nil {
		around = append(around, x.FlowID.UUID)
		f, err := e.ReadFlow(ctx, txn.EngineCaller, x.FlowID.Given())
		if err != nil || f.Parent.IsZero() {
			return around, err
		}
		loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{f.Parent.UUID}})
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		parent := loaded.Executions[f.Parent.UUID]
		if parent == nil || parent.Children == nil || parent.Children.FlowID != f.ID {
			return around, nil // the flow belongs to a run that has ended: its results are not needed any more
		}
		if !parent.Status.Terminal() {
			return nil, base.Errorf(base.CodeRetained, "the execution that the flow belongs to has not ended").With("cause", "parent").
				With("execution_id", parent.ID.String())
		}
		x = parent
	}
	return around, nil
}

// checkDeletable returns the refusal of the deletion of an execution. around are the flows that contain it, as they were when the deletion was
// planned: a parent that has another flow by then was opened again, and no longer depends on the ones below.
func checkDeletable(u *txn.Tx, x *core.Execution, around []base.UUID) error {
	if x.Member == nil {
		return CheckRemovable(u, x)
	}
	var flows []*core.Flow
	for _, id := range around {
		if f := flow(u, id); f != nil {
			flows = append(flows, f)
		}
	}
	if len(flows) == 0 && x.Status.Terminal() {
		return errOutdated // it has ended since
	}
	if err := x.CheckErasable(u.Now, flows); err != nil {
		return err
	}
	loaded, err := u.Engine.Store.Read(u.Engine.Background(), store.Want{Owned: []store.Owned{EdgesOf(x.ID.UUID)}})
	if err != nil {
		return txn.PublicFault(err)
	}
	if err := edgesSettled(x, loaded); err != nil {
		return err
	}
	return checkBelow(u, x)
}

// delete removes an execution on request. A member leaves its place in the graph behind.
func delete(u *txn.Tx, ent *txn.Row) {
	x := ent.Exec
	if x.Member == nil {
		u.Remove(ent)
		return
	}
	ent.Removed = true
	u.Changes.Strip, u.Changes.StripLeaves = append(u.Changes.Strip, x.ID.UUID), erasedLeaves
	u.RemoveBeside(ent)
	u.PutDoc(docOf(memberRef(x.FlowID.UUID, x.Member.Name), x.Erased(u.Now)))
}

// missingInput is the refusal of an input whose bytes do not exist: the execution that left them was deleted, or something is wrong.
func (e *Graphs) missingInput(ctx context.Context, in *core.NamedInput) error {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{in.Result.Of.UUID}, SkipUnreadable: true})
	switch {
	case err != nil:
		return txn.PublicFault(err)
	case loaded.Executions[in.Result.Of.UUID] == nil && loaded.Unreadable[in.Result.Of.UUID] == nil:
		return base.Errorf(base.CodeInputNotFound, "the execution %s, whose result %q is, was deleted", in.Result.Of.UUID, in.Name)
	default:
		return base.Errorf(base.CodeCorruption, "the result of %s that input %q names is not there", in.Result.Of, in.Name)
	}
}

// checkErased returns the refusal of a replay that would open a deleted member again, or a member that needs the result of a deleted one.
func (p *graphReplay) checkErased(ctx context.Context, u *txn.Tx, x *core.Execution) error {
	if err := p.checkErasedBelow(ctx, u, x.FlowID.UUID); err != nil {
		return err
	}
	reopened := append([]base.UUID{x.ID.UUID}, p.below...)
	var passing []base.UUID
	want := store.Want{}
	for _, id := range reopened {
		ent := u.Entries[id]
		if ent == nil {
			return errOutdated
		}
		if ent.Exec.Member.Join.Passes {
			passing = append(passing, id)
		}
		if ent.Exec.Member.Inputs {
			want.Docs = append(want.Docs, inputsRef(id))
		}
	}
	if err := loadInto(ctx, u, passing); err != nil {
		return err
	}
	loaded, err := u.Engine.ReadIf(ctx, want)
	if err != nil {
		return txn.PublicFault(err)
	}
	var inputs []core.NamedInput
	for _, id := range reopened {
		own, err := namedInputs(loaded, u.Entries[id].Exec)
		if err != nil {
			return err
		}
		inputs = append(inputs, own...)
	}
	for _, id := range passing {
		for _, ent := range graphOf(u).into[id] {
			if in, ok := ent.edge.Input(); ok {
				inputs = append(inputs, in)
			}
		}
	}
	return checkSources(ctx, u, inputs, reopened)
}

// checkErasedBelow looks for deleted members among those that a cascade reaches.
func (p *graphReplay) checkErasedBelow(ctx context.Context, u *txn.Tx, flow base.UUID) error {
	found, err := peek(ctx, u, p.reach)
	if err != nil {
		return err
	}
	var want store.Want
	for i, id := range p.reach {
		if found[id] == nil {
			want.Docs = append(want.Docs, memberRef(flow, p.names[i]))
		}
	}
	loaded, err := u.Engine.ReadIf(ctx, want)
	if err != nil {
		return txn.PublicFault(err)
	}
	for _, ref := range want.Docs { // of several the one that comes first
		doc, found := loaded.Docs[ref]
		if !found {
			continue
		}
		m, err := readMember(&doc)
		if err != nil {
			return err
		}
		if m.erased != nil && (p.r.Cascade == core.CascadeAll || m.erased.Status == core.Skipped) {
			return core.MemberDeleted(ref.Key)
		}
	}
	return nil
}

// checkSources refuses inputs whose bytes were deleted with a member. A member that is opened again produces them again.
func checkSources(ctx context.Context, u *txn.Tx, inputs []core.NamedInput, reopened []base.UUID) error {
	var of []base.UUID
	for _, in := range inputs {
		if in.Result != nil && !slices.Contains(reopened, in.From.ID.UUID) {
			of = append(of, in.Result.Of.UUID)
		}
	}
	found, err := peek(ctx, u, of)
	if err != nil {
		return err
	}
	for _, in := range inputs {
		if in.Result != nil && !slices.Contains(reopened, in.From.ID.UUID) && found[in.Result.Of.UUID] == nil {
			return core.MemberDeleted(in.From.Name)
		}
	}
	return nil
}
