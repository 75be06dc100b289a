package claims

import (
	"maps"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// asideLong is how long a row that was set aside is kept in aside after its next try.
const asideLong = 10 * time.Minute

// aside is a row in a queue that makes picks panic. Picks pass over it until its pause is over, and then try it again (S63).
type aside struct {
	failures int // in a row
	until    time.Time
	call     *claim // the call that was served when it panicked; nil: none
	logged   bool   // an event was written for it
	tried    bool   // its pause is over, and its queues are read again
}

// run takes rows, leases them and commits.
func (k *pick) run() (err error) {
	e := k.p.e
	ctx, cancel := k.p.e.Bounded()
	defer cancel()
	u, err := e.BeginPick(ctx, k.since, k.Want())
	if err != nil {
		return err
	}
	defer func() {
		err = k.gaveUp(u, recover(), err)
		u.StoreTx.Rollback(ctx)
	}()
	k.sort(u)
	if err := k.fill(ctx, u); err != nil {
		return err
	}
	u.AttachSpans(k.Spans())
	if err := u.Commit(ctx, []string{"claim"}); err != nil {
		return err
	}
	k.committed = true
	k.grant(u)
	return nil
}

// gaveUp returns the error of a pick that panicked. After its commit the outcome for the calls is unknown.
func (k *pick) gaveUp(u *txn.Tx, recovered any, err error) error {
	switch {
	case recovered == nil:
		return err
	case k.committed:
		return &store.Fault{Kind: store.Unknown, Err: k.p.e.Caught(txn.InClaim, recovered, nil)}
	default:
		return txn.NewPanicked("claim_work", store.Recovered(recovered), u.Row)
	}
}

// planFor plans a pick for calls that are being served. If that panics, they keep waiting.
func (p *picker) planFor(calls []*claim) *pick {
	planned := false
	defer func() {
		if !planned {
			p.giveUp(calls)
		}
	}()
	k := p.plan(calls)
	planned = true
	return k
}

// giveUp lets calls keep waiting for a while for which nothing was done. The order of the queues is rebuilt: the plan that panicked may have taken
// some queues out of it.
func (p *picker) giveUp(calls []*claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sortAnew()
	maps.DeleteFunc(p.taking, func(k *pick, _ bool) bool {
		return slices.ContainsFunc(k.calls, func(c *claim) bool { return slices.Contains(calls, c) })
	})
	p.pause = p.e.Cfg.Clock.Now().Add(txn.RestartPause)
	p.unserved(calls, nil)
}

// lost answers calls whose outcome is unknown.
func (p *picker) lost(calls []*claim, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, call := range calls {
		if slices.Contains(p.waiting, call) {
			p.finish(call, txn.UnknownOutcome(err))
		}
	}
}

// blame sets aside what made a pick panic: the row being handled, or the call being served if it has panicked with another row before. If neither
// is known, the calls are served one by one, until the one at fault is alone. The lock is held.
func (p *picker) blame(k *pick, fault *txn.Panicked) bool {
	p.e.ReportPanic(txn.InClaim, "", fault)
	call := k.call
	if call == nil && len(k.calls) == 1 {
		call = k.calls[0]
	}
	switch row := fault.Row; {
	case !row.IsZero() && (k.call == nil || k.call.struck.IsZero() || k.call.struck == row):
		p.setAside(row, k.call, k.now)
	case call != nil:
		p.acquit(call)
		if slices.Contains(p.waiting, call) {
			p.finish(call, fault.Public)
		}
	default:
		p.alone = len(k.calls)
	}
	return true
}

// setAside keeps a row from picks for a while, longer each time. The lock is held.
func (p *picker) setAside(row base.UUID, call *claim, now base.Time) {
	if p.aside[row] == nil {
		txn.SetIn(&p.aside, row, &aside{})
	}
	if call != nil {
		call.struck = row
	}
	s := p.aside[row]
	pause := txn.LaterBy(s.failures)
	s.failures++
	s.until = p.e.Cfg.Clock.Now().Add(time.Duration(pause) * time.Millisecond)
	s.call, s.logged, s.tried = call, false, false
	p.e.Gauges.Rows.Add(row.String(), now.Add(pause))
}

// acquit releases the rows that were set aside because of a call that turned out to be at fault itself. The lock is held.
func (p *picker) acquit(guilty *claim) {
	for row, s := range p.aside {
		if s.call == guilty {
			delete(p.aside, row)
			p.e.Gauges.Rows.Drop(row.String())
		}
	}
	p.resetQueues()
}

// tryAside lets rows be tried again whose pause is over. The lock is held.
func (p *picker) tryAside(now time.Time) {
	for row, s := range p.aside {
		switch {
		case s.until.After(now):
		case !s.tried:
			s.tried = true
			p.resetQueues()
		case now.Sub(s.until) > asideLong:
			delete(p.aside, row)
		}
	}
}

// asideNow returns the rows that a pick passes over. The lock is held.
func (p *picker) asideNow(now time.Time) map[base.UUID]aside {
	if len(p.aside) == 0 {
		return nil
	}
	passed := map[base.UUID]aside{}
	for row, s := range p.aside {
		if s.until.After(now) {
			passed[row] = *s
		}
	}
	return passed
}

// passesAside reports whether the pick passes over a row that was set aside, and writes an event the first time.
func (k *pick) passesAside(u *txn.Tx, a *askedQueue, row store.QueueRow) bool {
	s, found := k.aside[row.ID]
	if !found {
		return false
	}
	a.bad = append(a.bad, row)
	if _, known := a.classQueue.bad[row.ID]; !known {
		k.ended = true // it took the place of another row
	}
	if !s.logged {
		left := s.until.Sub(u.Engine.Cfg.Clock.Now())
		u.Changes.Events = append(u.Changes.Events, txn.Quarantined(row.ID, base.CodeInternal, s.failures, u.Now, u.Now.Add(max(left.Milliseconds(), 0))))
		k.logged = append(k.logged, row.ID)
	}
	return true
}

// learnAside records which rows a committed pick has written events for, and releases those that it has given out. The lock is held.
func (k *pick) learnAside() {
	for _, row := range k.logged {
		if s := k.p.aside[row]; s != nil {
			s.logged = true
		}
	}
	if len(k.p.aside) == 0 {
		return
	}
	for tasks := range maps.Values(k.given) {
		for _, t := range tasks {
			delete(k.p.aside, t.ent.Exec.ID.UUID)
		}
	}
}

// resetQueues drops everything known of the rows in queues. The lock is held.
func (p *picker) resetQueues() {
	for _, q := range p.queues {
		p.reset(q)
		p.doubtReady(q)
	}
}
