package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// asideLong is how long a row that was set aside is remembered after its next try.
const asideLong = 10 * time.Minute

// aside is a row in a queue that makes picks panic. They pass over it until its pause is over, and then try it again (S63).
type aside struct {
	failures int // in a row
	until    time.Time
	call     *claim // that was served when it panicked; nil: none
	told     bool   // by an event
	tried    bool   // its pause is over, and queues are looked at again
}

// run takes rows, leases them and commits.
func (k *pick) run() (err error) {
	e := k.p.e
	ctx, cancel := k.p.e.bounded()
	defer cancel()
	u, err := e.beginPick(ctx, k.since, k.want())
	if err != nil {
		return err
	}
	defer func() {
		err = k.gaveUp(u, recover(), err)
		u.tx.Rollback(ctx)
	}()
	k.sort(u)
	if err := k.fill(ctx, u); err != nil {
		return err
	}
	u.servesClaims(k.calls)
	if err := u.commit(ctx, []string{"claim"}); err != nil {
		return err
	}
	k.committed = true
	k.grant(u)
	return nil
}

// gaveUp is the error of a pick that panicked. After its commit nobody knows what the calls have got.
func (k *pick) gaveUp(u *unit, recovered any, err error) error {
	switch {
	case recovered == nil:
		return err
	case k.committed:
		return &store.Fault{Kind: store.Unknown, Err: k.p.e.caught(inClaim, recovered, nil)}
	default:
		return newPanicked("claim_work", store.Recovered(recovered), u.row)
	}
}

// planFor plans a pick for calls that are being served. If that panics they wait on.
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

// giveUp lets calls wait on for a while that nothing was done for. The order of the queues is made anew: the plan that panicked may have
// taken some out of it.
func (p *picker) giveUp(calls []*claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sortAnew()
	maps.DeleteFunc(p.taking, func(k *pick, _ bool) bool {
		return slices.ContainsFunc(k.calls, func(c *claim) bool { return slices.Contains(calls, c) })
	})
	p.pause = p.e.cfg.Clock.Now().Add(restartPause)
	p.unserved(calls, nil)
}

// lost answers calls of which nobody knows what they have got.
func (p *picker) lost(calls []*claim, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, call := range calls {
		if slices.Contains(p.waiting, call) {
			p.finish(call, unknownOutcome(err))
		}
	}
}

// blame sets aside what made a pick panic: the row at hand, or the call that was served if it has panicked with another row before. If neither
// is known the calls are served one by one, until the guilty one is alone. The lock is held.
func (p *picker) blame(k *pick, fault *panicked) bool {
	p.e.reportPanic(inClaim, "", fault)
	call := k.call
	if call == nil && len(k.calls) == 1 {
		call = k.calls[0]
	}
	switch row := fault.row; {
	case !row.IsZero() && (k.call == nil || k.call.struck.IsZero() || k.call.struck == row):
		p.setAside(row, k.call, k.now)
	case call != nil:
		p.acquit(call)
		if slices.Contains(p.waiting, call) {
			p.finish(call, fault.told)
		}
	default:
		p.alone = len(k.calls)
	}
	return true
}

// setAside keeps a row from picks for a while, longer each time. The lock is held.
func (p *picker) setAside(row core.UUID, call *claim, now core.Time) {
	if p.aside[row] == nil {
		setIn(&p.aside, row, &aside{})
	}
	if call != nil {
		call.struck = row
	}
	s := p.aside[row]
	pause := laterBy(s.failures)
	s.failures++
	s.until = p.e.cfg.Clock.Now().Add(time.Duration(pause) * time.Millisecond)
	s.call, s.told, s.tried = call, false, false
	p.e.gauges.rows.add(row.String(), now.Add(pause))
}

// acquit gives back the rows that were set aside on account of a call that turned out to be the one to blame. The lock is held.
func (p *picker) acquit(guilty *claim) {
	for row, s := range p.aside {
		if s.call == guilty {
			delete(p.aside, row)
			p.e.gauges.rows.drop(row.String())
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

// asideNow are the rows that a pick passes over. The lock is held.
func (p *picker) asideNow(now time.Time) map[core.UUID]aside {
	if len(p.aside) == 0 {
		return nil
	}
	passed := map[core.UUID]aside{}
	for row, s := range p.aside {
		if s.until.After(now) {
			passed[row] = *s
		}
	}
	return passed
}

// passesAside reports whether the pick passes over a row that was set aside, and says so when that is new.
func (k *pick) passesAside(u *unit, a *askedQueue, row store.QueueRow) bool {
	s, found := k.aside[row.ID]
	if !found {
		return false
	}
	a.bad = append(a.bad, row)
	if _, known := a.classQueue.bad[row.ID]; !known {
		k.ended = true // it was in the way of another row
	}
	if !s.told {
		left := s.until.Sub(u.e.cfg.Clock.Now())
		u.ch.Events = append(u.ch.Events, quarantined(row.ID, core.CodeInternal, s.failures, u.now, u.now.Add(max(left.Milliseconds(), 0))))
		k.told = append(k.told, row.ID)
	}
	return true
}

// learnAside notes what a committed pick has told of rows that were set aside, and forgets those that it has given out. The lock is held.
func (k *pick) learnAside() {
	for _, row := range k.told {
		if s := k.p.aside[row]; s != nil {
			s.told = true
		}
	}
	if len(k.p.aside) == 0 {
		return
	}
	for tasks := range maps.Values(k.given) {
		for _, t := range tasks {
			delete(k.p.aside, t.ent.x.ID.UUID)
		}
	}
}

// resetQueues forgets everything known of the rows in queues. The lock is held.
func (p *picker) resetQueues() {
	for _, q := range p.queues {
		p.reset(q)
		p.doubtReady(q)
	}
}
