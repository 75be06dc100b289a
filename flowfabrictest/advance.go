package flowfabrictest

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
)

// Advance moves the clock by d, fires due timers in order, and settles after each step.
//
// Every time at which an execution has something due (a start, a retry, the end of a lease, a deadline) is a separate step. While
// handlers run, so is every other timer: each poll of the store and each heartbeat. While none runs, this upkeep happens only
// once, just before the next such time, so that days take no longer than minutes.
func (e *Env) Advance(d time.Duration) {
	e.tb.Helper()
	if d < 0 {
		e.tb.Fatalf("flowfabrictest: the clock cannot go back by %s", -d)
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

// justBefore is the distance to a due time at which workers have renewed everything but nothing is due yet: one tick of the
// store's clock.
const justBefore = time.Millisecond

// leap is how far the clock can move at once without delaying anything that concerns an execution.
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

// dueTimes lists the times at which something is due for an execution.
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

// busy reports whether handlers are running.
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

// unfinished lists executions that have not ended.
func (e *Env) unfinished() []*flowfabric.Execution {
	e.tb.Helper()
	return e.list(ops.Filter{Status: []flowfabric.Status{
		flowfabric.StatusReady, flowfabric.StatusDelayed, flowfabric.StatusBlocked, flowfabric.StatusGranted,
		flowfabric.StatusRunning, flowfabric.StatusSuspended,
	}})
}

// list reads all matching executions; on an error it fails the test and returns nil.
func (e *Env) list(f ops.Filter) []*flowfabric.Execution {
	e.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all []*flowfabric.Execution
	for x, err := range e.alive(ctx).client.Executions().List(ctx, ops.ListOptions{Filter: f, Order: ops.CreatedAsc, Limit: 1000}) {
		if err != nil {
			e.tb.Errorf("flowfabrictest: list: %v", err)
			return nil
		}
		all = append(all, x)
	}
	return all
}
