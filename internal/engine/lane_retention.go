package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

const retireBatch = 1000

// lanesKnown is how long after a change of a lane every process has heard of it, and what was decided by the old settings is
// committed.
func (e *Engine) lanesKnown() core.Millis {
	return max(3*core.Second, 3*e.cfg.PollInterval.Milliseconds())
}

// retireLane arms the removal of what ended in the lane before its retention got shorter (L139). Where it got longer the timers that
// stand find out. It locks no execution: an entry of the due index may be stale, and the removal looks at the execution.
func (e *Engine) retireLane(ctx context.Context, ref store.DocRef, t task) error {
	old := core.LaneSettings{RetentionMS: *t.Retention}
	return e.retire(ctx, ref, t, core.Filter{Lane: []string{t.Lane}}, func(u *unit, x *core.Execution) (before, after departure) {
		return departureOf(x.RemoveAt(&old, e.cfg.Retention)), departureOf(u.removeAt(x))
	})
}

// departure is when retention may have a finished execution.
type departure struct {
	at   core.Time
	ends bool // false: never
}

func departureOf(at core.Time, ends bool) departure { return departure{at, ends} }

// departures tells when retention might have an execution before a change, and when it may have it after it.
type departures func(u *unit, x *core.Execution) (before, after departure)

// retire arms the removal of what has ended and matches, where a change made it earlier.
func (e *Engine) retire(ctx context.Context, ref store.DocRef, t task, f core.Filter, when departures) error {
	if t.Cursor == "" {
		if err := e.follower.reachAll(ctx); err != nil {
			return err
		}
	}
	for _, status := range core.Statuses() {
		if status.Terminal() {
			f.Status = append(f.Status, status.String())
		}
	}
	for more := true; more; {
		page, err := e.List(ctx, engineCaller, ListRequest{Filter: f, Order: store.IDAsc, Limit: ptr(retireBatch), Cursor: t.Cursor})
		if err != nil {
			return err
		}
		t.Cursor = page.Next
		if more, err = e.retirePage(ctx, ref, &t, page, when); err != nil {
			return err
		}
	}
	return nil
}

// retirePage arms one page and notes how far the work is, in one transaction. It tells whether there is more to do.
func (e *Engine) retirePage(ctx context.Context, ref store.DocRef, t *task, page Page, when departures) (more bool, err error) {
	u, err := e.begin(ctx, store.Want{Docs: []store.DocRef{ref}, LockDocs: true})
	if err != nil {
		return false, err
	}
	defer u.tx.Rollback(ctx)
	if u.doc(ref) == nil {
		return false, nil // another process has done it
	}
	for _, item := range page.Items {
		x := item.Execution
		before, after := when(u, x)
		switch {
		case !after.ends || before.ends && before.at <= after.at: // its timer stands
		case after.at <= u.now:
			u.timer(timerRetain, u.now, x.ID.UUID)
		default:
			u.timer(timerRetain, removalTimer(after.at, u.now), x.ID.UUID)
		}
	}
	if t.Cursor != "" {
		u.putDoc(t.doc(ref))
	}
	return t.Cursor != "", u.commit(ctx, []string{t.Kind})
}
