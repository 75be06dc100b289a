package flowfabrictest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// report prints the state after a failed test.
func (e *Env) report() {
	var text strings.Builder
	fmt.Fprintf(&text, "flowfabrictest: seed %d, clock at %s\n", e.cfg.Seed, e.Now().Format(time.RFC3339Nano))
	for _, x := range e.unfinished() {
		e.timeline(&text, x)
	}
	if log := e.log.String(); log != "" {
		fmt.Fprintf(&text, "log of engine and workers:\n%s", log)
	}
	e.tb.Log(text.String())
}

// timeline writes the state of an execution and its events.
func (e *Env) timeline(to *strings.Builder, x *flowfabric.Execution) {
	fmt.Fprintf(to, "unfinished: %s, kind %s, lane %s: %s\n", x.ID, x.Kind, x.Lane, explanation(x))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	options := ops.ReadOptions{EventFilter: ops.EventFilter{ExecutionID: x.ID}, After: api.FromStart, Limit: 1000}
	for {
		page, err := e.Events().Read(ctx, options)
		if err != nil {
			fmt.Fprintf(to, "  its events cannot be read: %v\n", err)
			return
		}
		for _, event := range page.Events {
			fmt.Fprintf(to, "  +%-14s %-20s %s\n", event.At.Sub(e.cfg.Start), event.Kind, event.Data)
		}
		if options.After = page.Next; page.AtEnd {
			return
		}
	}
}

// explanation says why an execution has not ended.
func explanation(x *flowfabric.Execution) string {
	switch {
	case x.Lease != nil:
		return fmt.Sprintf("%s, attempt %d, leased to %s until %s", x.Status, x.Lease.AttemptIndex, x.Lease.InstanceID, x.Lease.ExpiresAt.Format(time.RFC3339Nano))
	case x.Status == flowfabric.StatusDelayed:
		return fmt.Sprintf("%s (%s) until %s", x.Status, x.Reason, x.DelayUntil.Format(time.RFC3339Nano))
	case x.Status == flowfabric.StatusSuspended:
		return fmt.Sprintf("%s (%s) since %s", x.Status, x.Reason, x.StatusSince.Format(time.RFC3339Nano))
	case x.Held != nil:
		return fmt.Sprintf("%s (%s), held by %s: %s", x.Status, x.Reason, x.Held.By, x.Held.Reason)
	default:
		return fmt.Sprintf("%s (%s)", x.Status, x.Reason)
	}
}

// late is the tolerance for a due timer: timers are rounded to a grid.
const late = 50 * time.Millisecond

// checkInvariants fails the test for executions that cannot continue, or that did not end properly.
func (e *Env) checkInvariants() {
	now := e.Now()
	for _, x := range e.list(ops.Filter{}) {
		for _, problem := range e.problems(x, now) {
			e.tb.Errorf("flowfabrictest: execution %s (%s): %s", x.ID, x.Kind, problem)
		}
	}
}

func (e *Env) problems(x *flowfabric.Execution, now time.Time) []string {
	found := stranded(x, now)
	if x.Status.Terminal() {
		found = append(found, unended(x)...)
	}
	found = append(found, e.waitProblems(x, now)...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	attempts, err := e.Executions().Attempts(ctx, x.ID)
	if err != nil {
		return append(found, fmt.Sprintf("its attempts cannot be read: %v", err))
	}
	for i, a := range attempts {
		if a.Index != i {
			found = append(found, fmt.Sprintf("attempt %d is at index %d", a.Index, i))
		}
		open := a.State == "started" || a.State == "interrupted"
		if open && (x.Status.Terminal() || i < len(attempts)-1) {
			found = append(found, fmt.Sprintf("attempt %d is still %s", a.Index, a.State))
		}
	}
	return found
}

// stranded says why an unfinished execution can never continue; "" if it can.
func stranded(x *flowfabric.Execution, now time.Time) []string {
	var found []string
	overdue := func(what string, at time.Time) {
		if at.Add(late).Before(now) {
			found = append(found, fmt.Sprintf("it is %s, and its %s was %s ago", x.Status, what, now.Sub(at)))
		}
	}
	switch {
	case x.Status.Terminal():
		return nil
	case x.Status == flowfabric.StatusDelayed && x.DelayUntil.IsZero():
		found = append(found, "it is delayed without a time")
	case x.Status == flowfabric.StatusDelayed:
		overdue("moment", x.DelayUntil)
	case x.Status == flowfabric.StatusRunning && x.Lease == nil:
		found = append(found, "it runs without a lease")
	case x.Status != flowfabric.StatusRunning && x.Reason == "":
		found = append(found, fmt.Sprintf("it is %s without a reason", x.Status))
	}
	if !x.DeadlineAt.IsZero() {
		overdue("deadline", x.DeadlineAt)
	}
	return found
}

// unended reports what an ended execution should not have, or lacks.
func unended(x *flowfabric.Execution) []string {
	var found []string
	if x.CompletedAt.IsZero() {
		found = append(found, fmt.Sprintf("it is %s without a time", x.Status))
	}
	if x.Lease != nil {
		found = append(found, fmt.Sprintf("it is %s and still leased", x.Status))
	}
	if x.HasResult && x.Status != flowfabric.StatusSucceeded {
		found = append(found, fmt.Sprintf("it is %s and has a result", x.Status))
	}
	return found
}
