package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

const retireBatch = 1000

// retireLane arms the removal of what ended in the lane before its retention got shorter (L139). Where it got longer the timers that
// stand find out. It locks no execution: an entry of the due index may be stale, and the removal looks at the execution.
func (e *Graphs) retireLane(ctx context.Context, t *txn.FollowUp[work.TaskArgs]) error {
	old := core.LaneSettings{RetentionMS: *t.Args.Retention}
	return e.retire(ctx, t, core.Filter{Lane: []string{t.Args.Lane}}, func(u *txn.Tx, x *core.Execution, f *core.Flow) (before, after departure) {
		lane := u.SettingsOf(x)
		return departureOf(x, f, &old, e.Cfg.Retention), departureOf(x, f, &lane, e.Cfg.Retention)
	})
}

// departure is when retention may have a finished execution.
type departure struct {
	at   base.Time
	ends bool // false: never
}

// departureOf is when retention may have an execution, or if f is not nil that flow, as far as this member of it is concerned (L140).
func departureOf(x *core.Execution, f *core.Flow, lane *core.LaneSettings, defaults core.RetentionByStatus) departure {
	at, ends := x.RemoveAt(lane, defaults)
	if f != nil {
		at, ends = x.FlowRemovableAt(f, lane, defaults)
	}
	return departure{at, ends}
}

// sooner reports whether a change has made a departure earlier: the timer of before does not do.
func (after departure) sooner(before departure) bool {
	return after.ends && (!before.ends || after.at < before.at)
}

// departures returns when retention could remove an execution before a change, and when it may after it. f is its flow; nil outside one.
type departures func(u *txn.Tx, x *core.Execution, f *core.Flow) (before, after departure)

// retire arms the removal of what has ended and matches, where a change made it earlier.
func (e *Graphs) retire(ctx context.Context, t *txn.FollowUp[work.TaskArgs], f core.Filter, when departures) error {
	if t.Args.Cursor == "" {
		if err := e.Follower.ReachAll(ctx); err != nil {
			return err
		}
		if err := e.retireUnlisted(ctx, t, when); err != nil {
			return err
		}
	}
	for _, status := range core.Statuses() {
		if status.Terminal() {
			f.Status = append(f.Status, status.String())
		}
	}
	for more := true; more; {
		page, err := e.List(ctx, txn.EngineCaller, txn.ListRequest{Filter: f, Order: store.IDAsc, Limit: txn.Ptr(retireBatch), Cursor: t.Args.Cursor})
		if err != nil {
			return err
		}
		t.Args.Cursor = page.Next
		if more, err = e.retirePage(ctx, t, page, when); err != nil {
			return err
		}
	}
	return nil
}

// retirePage arms one page and notes how far the work is, in one transaction. It reports whether there is more to do.
func (e *Graphs) retirePage(ctx context.Context, t *txn.FollowUp[work.TaskArgs], page txn.Page, when departures) (more bool, err error) {
	flows, err := e.finishedFlows(ctx, page)
	if err != nil {
		return false, err
	}
	u, err := e.Begin(ctx, store.Want{Docs: []store.DocRef{t.Ref}, LockDocs: true})
	if err != nil {
		return false, err
	}
	defer u.StoreTx.Rollback(ctx)
	if u.Doc(t.Ref) == nil {
		return false, nil // another process has done it
	}
	leaving := map[base.UUID]*flowDeparture{}
	for _, item := range page.Items {
		x := item.Execution
		f := flows[x.FlowID.UUID]
		if x.Member != nil && f == nil {
			continue // the end of its flow arms the removal
		}
		before, after := when(u, x, f)
		switch {
		case f != nil:
			if leaving[f.ID.UUID] == nil {
				leaving[f.ID.UUID] = &flowDeparture{}
			}
			leaving[f.ID.UUID].add(before, after)
		case after.sooner(before):
			u.Timer(txn.TimerRetain, removalTimer(u, after.at), x.ID.UUID)
		}
	}
	for id, leaves := range leaving {
		armFlow(u, t.Ref, id, leaves)
	}
	if t.Args.Cursor != "" {
		u.PutDoc(t.Doc())
	}
	return t.Args.Cursor != "", u.Commit(ctx, []string{t.Kind})
}

// flowDeparture is what some members of a flow determine about its removal: not before the last of them. The removal itself checks the others.
type flowDeparture struct {
	at     base.Time
	sooner bool // one of them may go earlier than before
	never  bool // one of them is kept for ever
}

func (d *flowDeparture) add(before, after departure) {
	d.at = max(d.at, after.at)
	d.sooner = d.sooner || after.sooner(before)
	d.never = d.never || !after.ends
}

// finishedFlows are the flows of executions on a page, those that have ended with all their members.
func (e *Graphs) finishedFlows(ctx context.Context, page txn.Page) (map[base.UUID]*core.Flow, error) {
	var want store.Want
	flows := map[base.UUID]*core.Flow{}
	for _, item := range page.Items {
		id := item.Execution.FlowID.UUID
		if _, known := flows[id]; item.Execution.Member != nil && !known {
			flows[id] = nil
			want.Docs = append(want.Docs, FlowRef(id))
		}
	}
	loaded, err := e.ReadIf(ctx, want)
	if err != nil {
		return nil, err
	}
	for _, doc := range loaded.Docs {
		f := &core.Flow{}
		if ReadDoc(&doc, f) == nil && f.Finished() { // one that cannot be read holds up none of the others
			flows[f.ID.UUID] = f
		}
	}
	return flows, nil
}

// removalTimer is when the timer of a removal acts that was made possible at a moment: now, if that has passed.
func removalTimer(u *txn.Tx, at base.Time) base.Time {
	if at <= u.Now {
		return u.Now
	}
	return txn.RemovalTimer(at, u.Now)
}

// retireAll arms the removal of what ended before the default got shorter (L139). What its policy or its lane keeps is kept. The default is
// that of the task: the process that works it off may have another one.
func (e *Graphs) retireAll(ctx context.Context, t *txn.FollowUp[work.TaskArgs]) error {
	return e.retire(ctx, t, core.Filter{}, func(u *txn.Tx, x *core.Execution, f *core.Flow) (before, after departure) {
		lane := u.SettingsOf(x)
		return departureOf(x, f, &lane, *t.Args.Retention), departureOf(x, f, &lane, *t.Args.Default)
	})
}
