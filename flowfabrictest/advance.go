package flowfabrictest

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric"
)

// Advance turns the clock by d, fires what is due in order, and settles at each step.
//
// Every moment at which an execution has something due (a start, a retry, the end of a lease, a deadline) is a step of its own.
// While handlers run, so is every other timer: each look at the store and each heartbeat. While none runs, that upkeep is done
// once, just before the next such moment, which is why days cost no more than minutes.
func (e *Env) Advance(d time.Duration) {
	e.tb.Helper()
	if d < 0 {
		e.tb.Fatalf("flowfabrictest: the clock does not go back by %s", -d)
	}
	e.Settle()
	target := e.clock.Now().Add(d)
	for {
		at, pending := e.clock.next()
		if !pending || at.After(target) {
			break
		}
		if leap := e.leap(target); leap.After(at) {
			at = leap
		}
		e.clock.turnTo(at)
		for e.clock.fire() {
			e.Settle()
		}
	}
	e.clock.turnTo(target)
}

// justBefore is the distance to a moment at which workers have renewed everything and what is due then is not due yet: one tick of
// the store's clock.
const justBefore = time.Millisecond

// leap is how far the clock may be turned at once so that nothing which concerns an execution comes too late.
func (e *Env) leap(target time.Time) time.Time {
	now := e.clock.Now()
	if e.busy() {
		return now
	}
	earlier := func(due time.Time) {
		if soon := due.Add(-justBefore); soon.Before(target) {
			target = soon
		}
	}
	for _, x := range e.unfinished() {
		for _, due := range dueTimes(x) {
			earlier(due)
		}
	}
	for _, due := range e.waitsDue() {
		earlier(due)
	}
	return target
}

// dueTimes lists the moments at which something happens to the execution by itself.
func dueTimes(x *flowfabric.Execution) []time.Time {
	var due []time.Time
	if x.Status == flowfabric.StatusDelayed {
		due = append(due, x.DelayUntil)
	}
	if x.Lease != nil {
		due = append(due, x.Lease.ExpiresAt)
	}
	if !x.DeadlineAt.IsZero() {
		due = append(due, x.DeadlineAt)
	}
	return due
}

// busy reports whether handlers run.
func (e *Env) busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.workers {
		if w.shift.busy.Load() > 0 {
			return true
		}
	}
	return false
}

// unfinished lists what has not ended.
func (e *Env) unfinished() []*flowfabric.Execution {
	e.tb.Helper()
	return e.list(flowfabric.Filter{Status: []flowfabric.Status{
		flowfabric.StatusReady, flowfabric.StatusDelayed, flowfabric.StatusBlocked, flowfabric.StatusGranted,
		flowfabric.StatusRunning, flowfabric.StatusSuspended,
	}})
}

// list reads all executions that match; nil when they cannot be read, which fails the test.
func (e *Env) list(f flowfabric.Filter) []*flowfabric.Execution {
	e.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all []*flowfabric.Execution
	for x, err := range e.alive(ctx).client.Executions().List(ctx, flowfabric.ListOptions{Filter: f, Order: flowfabric.CreatedAsc, Limit: 1000}) {
		if err != nil {
			e.tb.Errorf("flowfabrictest: list: %v", err)
			return nil
		}
		all = append(all, x)
	}
	return all
}
