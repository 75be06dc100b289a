package flows

import (
	"cmp"
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// graphPage is how many members one look brings.
const graphPage = 1000

// ReadFlow reads the record of a flow. Codes: flow_not_found, also for one of another namespace.
func (e *Graphs) ReadFlow(ctx context.Context, c txn.Caller, id base.GivenID) (*core.Flow, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{FlowRef(id.UUID)}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	return flowIn(loaded, c, id)
}

// flowIn is the flow that a caller has named, among rows that were read.
func flowIn(loaded *store.Loaded, c txn.Caller, id base.GivenID) (*core.Flow, error) {
	doc, ok := loaded.Docs[FlowRef(id.UUID)]
	if !ok {
		return nil, flowNotFound(id)
	}
	f := &core.Flow{}
	if err := ReadDoc(&doc, f); err != nil {
		return nil, err
	}
	if !id.Names(f.ID) || !c.Sees(f.Namespace) {
		return nil, flowNotFound(id)
	}
	return f, nil
}

// Flow shows a flow: the record, its phase, and how many members are in which public state, all of one snapshot (F59).
func (e *Graphs) Flow(ctx context.Context, c txn.Caller, id base.GivenID) (FlowView, error) {
	for tries := 0; ; tries++ {
		listed, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{FlowRef(id.UUID)}, Scans: []store.Scan{{Kind: DocMember, Owner: txn.Owner(id.UUID)}}})
		if err != nil {
			return FlowView{}, txn.PublicFault(err)
		}
		seen, err := flowIn(listed, c, id)
		if err != nil {
			return FlowView{}, err
		}
		ids, err := memberIDs(listed.Scanned[0])
		if err != nil {
			return FlowView{}, err
		}
		loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{FlowRef(id.UUID)}, Executions: ids})
		if err != nil {
			return FlowView{}, txn.PublicFault(err)
		}
		f, err := flowIn(loaded, c, id)
		if err != nil {
			return FlowView{}, err
		}
		if f.Revision != seen.Revision || len(loaded.Executions) < len(ids) && tries < extendTries {
			continue // members have come since they were listed, or were deleted
		}
		if err := AddErased(loaded, listed.Scanned[0]); err != nil {
			return FlowView{}, err
		}
		return e.flowView(ctx, f, loaded)
	}
}

func (e *Graphs) flowView(ctx context.Context, f *core.Flow, loaded *store.Loaded) (FlowView, error) {
	dict, err := e.Dict.At(ctx, loaded.Dictionary)
	if err != nil {
		return FlowView{}, txn.PublicFault(err)
	}
	view := FlowView{Flow: f, Counts: map[string]int{}, Joins: map[string]int{}}
	for _, state := range core.PublicStates() {
		view.Counts[state] = 0
	}
	statuses := map[core.Status]int{}
	for _, x := range loaded.Executions {
		public, _ := core.Derive(x, dict.State(x.Class.Lane))
		view.Counts[public]++
		statuses[x.Status]++
		if x.Member != nil && x.Member.Join.State != core.JoinNone {
			view.Joins[x.Member.Join.State.String()]++
		}
	}
	if !f.State.Terminal() {
		view.Phase = core.Phase(func(s core.Status) bool { return statuses[s] > 0 })
	}
	return view, nil
}

// WaitFlow waits until a flow has ended or time is up, and shows it (F61).
func (e *Graphs) WaitFlow(ctx context.Context, c txn.Caller, id base.GivenID, d time.Duration) (FlowView, error) {
	_, err := txn.WaitFor(ctx, e.Engine, id.UUID, d, func(ctx context.Context) (*core.Flow, bool, error) {
		f, err := e.ReadFlow(ctx, c, id)
		return f, err == nil && f.State.Terminal(), err
	})
	if err != nil {
		return FlowView{}, err
	}
	return e.Flow(context.WithoutCancel(ctx), c, id)
}

// FlowUsage sums the meters of the members (B18).
func (e *Graphs) FlowUsage(ctx context.Context, c txn.Caller, id base.GivenID) (map[string]int64, error) {
	if _, err := e.ReadFlow(ctx, c, id); err != nil {
		return nil, err
	}
	total := map[string]int64{}
	err := e.eachMember(ctx, id.UUID, "", func(m walked) (bool, error) {
		for dimension, n := range m.x.Meters() {
			total[dimension] += n
		}
		return true, nil
	})
	return total, err
}

// walked is a member that a walk through its flow has met.
type walked struct {
	name      string
	x         *core.Execution // of one that was deleted what its flow remembers
	deletedAt base.Time       // absent: it is there
	loaded    *store.Loaded   // with the edges that lead from it
}

// edges are those that lead from the member.
func (m *walked) edges() ([]core.Edge, error) { return EdgesIn(m.loaded.Owned[EdgesOf(m.x.ID.UUID)]) }

// eachMember calls do for the members after a name, in order of their names, until it returns false. Codes: corruption, if one of them cannot
// be read.
func (e *Graphs) eachMember(ctx context.Context, flow base.UUID, after string, do func(m walked) (bool, error)) error {
	_, err := e.walkMembers(ctx, flow, after, false, do)
	return err
}

// eachReadable calls do for all members that can be read, except deleted ones. unread is the error of one that cannot be read; it does not stop the
// others (S63).
func (e *Graphs) eachReadable(ctx context.Context, flow base.UUID, do func(x *core.Execution)) (unread, err error) {
	return e.walkMembers(ctx, flow, "", true, func(m walked) (bool, error) {
		if m.deletedAt == 0 {
			do(m.x)
		}
		return true, nil
	})
}

func (e *Graphs) walkMembers(ctx context.Context, flow base.UUID, after string, tolerant bool, do func(m walked) (bool, error)) (unread, err error) {
	for {
		listed, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocMember, Owner: txn.Owner(flow), After: after, Limit: graphPage}}})
		if err != nil {
			return unread, txn.PublicFault(err)
		}
		docs := listed.Scanned[0]
		members, loaded, err := e.readMembers(ctx, flow, docs, tolerant)
		if err != nil {
			return unread, err
		}
		for i, m := range members {
			met := walked{name: docs[i].Key, x: loaded.Executions[m.id.UUID], loaded: loaded}
			if m.erased != nil {
				met.x, met.deletedAt = m.erased.Execution(), m.erased.At
			}
			if met.x == nil {
				unread = cmp.Or(unread, loaded.Unreadable[m.id.UUID])
				continue
			}
			if goOn, err := do(met); err != nil || !goOn {
				return unread, err
			}
		}
		if len(docs) < graphPage {
			return unread, nil
		}
		after = docs[len(docs)-1].Key
	}
}
