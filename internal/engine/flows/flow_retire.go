package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// membersLook is how many members of a flow are looked at to see whether all of them were deleted. If those were and others are left, the
// flow is looked at once more than it need be.
const membersLook = 20

// unlisted is a finished flow that no list of executions leads to, and what is left of its members.
type unlisted struct {
	flow    *core.Flow
	members []*core.Execution
}

// retireUnlisted arms the removal of finished flows without members, or with deleted members only, where a change made it earlier (L139, L140). It
// runs before the scan of the executions records its position. Repeating it arms the same timers.
func (e *Graphs) retireUnlisted(ctx context.Context, t *txn.FollowUp[work.TaskArgs], when departures) error {
	scan := store.Scan{Kind: docFlowMark, Limit: flowLook}
	for {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return err
		}
		marks := loaded.Scanned[0]
		flows, err := e.unlistedFlows(ctx, marks)
		if err != nil {
			return err
		}
		if err := e.armUnlisted(ctx, t, flows, when); err != nil || len(marks) < flowLook {
			return err
		}
		scan.After = marks[len(marks)-1].Key
	}
}

// unlistedFlows returns those of the flows of marks that are not reached through a list of executions. One that cannot be read does not stop the
// others.
func (e *Graphs) unlistedFlows(ctx context.Context, marks []store.Doc) (found []unlisted, err error) {
	var want store.Want
	for i := range marks {
		want.Docs = append(want.Docs, FlowRef(flowOfMark(marks[i].Key)))
	}
	loaded, err := e.ReadIf(ctx, want)
	if err != nil {
		return nil, err
	}
	var flows []*core.Flow
	want = store.Want{}
	for _, doc := range loaded.Docs {
		f := &core.Flow{}
		if ReadDoc(&doc, f) == nil && f.Finished() {
			flows = append(flows, f)
			want.Scans = append(want.Scans, store.Scan{Kind: DocMember, Owner: txn.Owner(f.ID.UUID), Limit: membersLook})
		}
	}
	if len(flows) == 0 {
		return nil, nil
	}
	if loaded, err = e.Store.Read(ctx, want); err != nil {
		return nil, err
	}
	for i, f := range flows {
		if members, all := deletedMembers(loaded.Scanned[i]); all {
			found = append(found, unlisted{f, members})
		}
	}
	return found, nil
}

// deletedMembers are what is left of members that were deleted; all reports whether there are no others.
func deletedMembers(docs []store.Doc) (members []*core.Execution, all bool) {
	for i := range docs {
		m, err := readMember(&docs[i])
		if err != nil || m.erased == nil {
			return nil, false
		}
		members = append(members, m.erased.Execution())
	}
	return members, true
}

// armUnlisted arms the removal of flows in one transaction.
func (e *Graphs) armUnlisted(ctx context.Context, t *txn.FollowUp[work.TaskArgs], flows []unlisted, when departures) error {
	if len(flows) == 0 {
		return nil
	}
	u, err := e.Begin(ctx, store.Want{Docs: []store.DocRef{t.Ref}, LockDocs: true})
	if err != nil {
		return err
	}
	defer u.StoreTx.Rollback(ctx)
	if u.Doc(t.Ref) == nil {
		return nil // another process has done it
	}
	for _, of := range flows {
		var leaves flowDeparture
		for _, x := range of.members {
			if t.Args.Lane == "" || x.Class.Lane == t.Args.Lane {
				leaves.add(when(u, x, of.flow))
			}
		}
		if len(of.members) == 0 && t.Args.Default != nil {
			leaves.add(emptyDeparture(of.flow, *t.Args.Retention), emptyDeparture(of.flow, *t.Args.Default))
		}
		armFlow(u, t.Ref, of.flow.ID.UUID, &leaves)
	}
	return u.Commit(ctx, []string{t.Kind})
}

// emptyDeparture returns when retention may remove a flow without members.
func emptyDeparture(f *core.Flow, defaults core.RetentionByStatus) departure {
	at, ends := f.RemovableAt(defaults)
	return departure{at, ends}
}

// armFlow arms the removal of a flow on behalf of work, if it may be removed earlier than before.
func armFlow(u *txn.Tx, work store.DocRef, flow base.UUID, leaves *flowDeparture) {
	if leaves.sooner && !leaves.never { // one id for all pages, so that a large flow is not looked at for each of them
		u.AddTaskAs(work.Key+"/"+flow.String(), taskRemoveFlow, taskArgs{Flow: flow}, removalTimer(u, leaves.at))
	}
}
