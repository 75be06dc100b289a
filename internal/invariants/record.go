package invariants

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Record is an execution with the leases that it had.
type Record struct {
	X       *core.Execution
	History []core.LeaseRecord // all of it, by epoch
}

// Broken lists what does not hold of the record by itself.
func (r Record) Broken() []string {
	var found []string
	for _, check := range []func(*core.Execution) string{words, times, ended, counters, waits, reachable, slots, vector} {
		if text := check(r.X); text != "" {
			found = append(found, text)
		}
	}
	if r.X.LeaseEpoch > core.MaxLeaseHistory {
		return found // the older entries are gone
	}
	for _, check := range []func(Record) string{lease, attempts} {
		if text := check(r); text != "" {
			found = append(found, text)
		}
	}
	return found
}

// words is LI4: status, reason, next and the facts behind them agree.
func words(x *core.Execution) string {
	rest := x.Status.Terminal() || x.Status == core.Running
	switch {
	case !slices.Contains(core.ReasonsOf(x.Status), x.Reason):
		return fmt.Sprintf("LI4: %s for the reason %s", x.Status, x.Reason)
	case rest != (x.Next == core.NextNone):
		return fmt.Sprintf("LI4: %s with next=%s", x.Status, x.Next)
	case x.Status == core.Delayed && (x.DelayUntil == 0 || x.DelayReason != x.Reason):
		return "LI4: delayed without a delay"
	case x.Status == core.Ready && (x.DelayUntil != 0 || x.Held != nil || x.Dependency != core.ReasonNone || x.BlockedOn != ""):
		return "LI12: ready although something holds it back"
	case x.Status == core.Blocked && x.Held == nil && x.BlockedOn == "" && x.Dependency == core.ReasonNone:
		return "LI4: blocked by nothing"
	case x.Dependency != core.ReasonNone && !x.Status.Terminal() && (x.Status != core.Blocked || x.Reason != x.Dependency):
		return fmt.Sprintf("L14: %s for the reason %s, though it waits (%s)", x.Status, x.Reason, x.Dependency)
	case (x.BlockedOn != "") != admissionBlock(x):
		return fmt.Sprintf("LI4: %s for the reason %s, and blocked on %q", x.Status, x.Reason, x.BlockedOn)
	case (x.Grant != nil) != (x.Status == core.Granted):
		return fmt.Sprintf("LI4: %s, and a grant is out: %v", x.Status, x.Grant != nil)
	case x.Status == core.Granted && (x.Held != nil || x.Dependency != core.ReasonNone || x.BlockedOn != ""):
		return "LI4: granted although something holds it back"
	case x.Status.Terminal() && (x.Held != nil || x.DelayUntil != 0 || x.Grant != nil):
		return "L16: over, but still held or delayed"
	case x.Next == core.NextInitial && x.TotalAttempts > 0, x.Next > core.NextInitial && x.TotalAttempts == 0:
		return fmt.Sprintf("L13: next=%s after %d attempts", x.Next, x.TotalAttempts)
	}
	return ""
}

// times is LI5.
func times(x *core.Execution) string {
	switch {
	case (x.CompletedAt != 0) != x.Status.Terminal():
		return "LI5: completed_at is set iff terminal"
	case x.CompletedAt != 0 && x.StartedAt > x.CompletedAt:
		return "LI5: started after it was completed"
	case x.StatusSince > x.LastMutationAt || x.CreatedAt > x.StatusSince:
		return "LI5: times run backwards"
	case x.StartedAt != 0 != (x.LeaseEpoch > 0):
		return "LI5: started_at is set iff it was ever leased"
	case x.LastLease != nil && x.Lease != nil:
		return "L8: last_lease beside a lease"
	}
	return ""
}

// ended is LI6 for what the record says of its outcome.
func ended(x *core.Execution) string {
	switch {
	case (x.Cancellation != nil) != (x.Status == core.Cancelled):
		return "L108: a cancellation is recorded iff cancelled"
	case x.Result != nil && x.Status != core.Succeeded:
		return "LI6: a result without success"
	case x.Status == core.Failed && x.Failure == nil:
		return "L90: failed without a failure"
	}
	return ""
}

// counters is LI9.
func counters(x *core.Execution) string {
	p := x.Policy
	retries := 0
	switch retry, from := x.Retry(); {
	case from == "worker": // of the worker that failed last: earlier retries may have been made by another default
		retries = x.RetryCount
	case retry != nil:
		retries = retry.MostRetries()
	}
	if x.RetryCount > retries || x.ReclaimCount > p.MaxReclaims || x.ReplayCount > p.MaxReplays {
		return fmt.Sprintf("LI9: %d retries, %d reclaims, %d replays", x.RetryCount, x.ReclaimCount, x.ReplayCount)
	}
	return ""
}

// waits is WI7 as far as the record itself tells.
func waits(x *core.Execution) string {
	var w core.Waits
	if x.Waits != nil {
		w = *x.Waits
	}
	active := slices.ContainsFunc(w.Open, func(open core.OpenWaitpoint) bool { return open.Active })
	switch {
	case (w.Suspension != nil) != (x.Status == core.Suspended):
		return fmt.Sprintf("WI7: %s, and a suspension is open: %v", x.Status, w.Suspension != nil)
	case active && w.Suspension == nil:
		return "WI7: an active waitpoint without a suspension"
	case len(w.Open) > 0 && x.Status.Terminal():
		return "WI7: over with an open waitpoint"
	}
	return ""
}

// reachable is LI10, LI11 and I17. Who waits for signals or for others of his flow alone needs no timer.
func reachable(x *core.Execution) string {
	var first base.Time
	arm := func(at base.Time, armed bool) {
		if armed && at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	arm(x.DeadlineAt, !x.Status.Terminal())
	arm(x.DelayUntil, x.Status == core.Delayed)
	arm(x.AttemptDeadline, x.Status == core.Running)
	arm(x.RetryAt, admissionBlock(x))
	if x.Grant != nil {
		arm(x.Grant.ExpiresAt, true)
	}
	if x.Lease != nil {
		arm(x.Lease.ExpiresAt.Add(x.Policy.LeaseGraceMS), true)
	}
	if parked(x) {
		arm(x.Children.Wait.TimeoutAt, true)
	}
	if x.Waits != nil {
		for _, open := range x.Waits.Open {
			arm(open.ExpiresAt, true)
		}
		if x.Waits.Suspension != nil {
			arm(x.Waits.Suspension.TimeoutAt, true)
		}
	}
	switch {
	case (x.WakeAt == 0) != (first == 0) || x.WakeAt > first:
		return fmt.Sprintf("LI11: wakes at %s, the first timer is due at %s", x.WakeAt, first)
	case x.WakeAt != 0 && (x.TimerAt == 0 || x.TimerAt > x.WakeAt.Add(50)):
		return fmt.Sprintf("I17: wakes at %s, but its entry in the due index is for %s", x.WakeAt, x.TimerAt)
	case !x.Status.Terminal() && x.Status != core.Ready && x.Status != core.Suspended && x.WakeAt == 0 && x.Held == nil && x.BlockedOn == "" && x.Dependency == core.ReasonNone:
		return "LI10: it will never be looked at again"
	}
	return ""
}

// admissionBlock reports whether x waits for room: picks look at it.
func admissionBlock(x *core.Execution) bool {
	return x.Status == core.Blocked && (x.Reason == core.WaitingForBudget || x.Reason == core.WaitingForQuota)
}

// slots is LI17: who neither runs nor is promised to a worker holds the slots alone that its policy keeps while it waits (S41).
func slots(x *core.Execution) string {
	kept := func(key string) bool {
		return strings.HasPrefix(key, "slots:") && x.Policy.SlotsWhileWaiting == core.SlotsHold && !x.Status.Terminal()
	}
	lost := slices.ContainsFunc(x.Holds, func(key string) bool { return !kept(key) })
	if lost && x.Status != core.Running && x.Status != core.Granted {
		return fmt.Sprintf("LI17: %s and holds %v", x.Status, x.Holds)
	}
	return ""
}

// vector is I18 for the public state: the table of L20, written down once more.
func vector(x *core.Execution) string {
	want := map[core.Status]string{
		core.Ready: "waiting", core.Granted: "waiting", core.Delayed: "delayed", core.Blocked: "waiting", core.Running: "active", core.Suspended: "suspended", core.Succeeded: "completed",
		core.Failed: "failed", core.Cancelled: "cancelled", core.Expired: "expired", core.Skipped: "skipped",
	}[x.Status]
	if (x.Status == core.Ready || x.Status == core.Granted) && x.Next == core.NextResume {
		want = "resumable"
	}
	switch {
	case admissionBlock(x):
		want = "rate_limited"
	case x.Status == core.Blocked && x.Dependency != core.ReasonNone:
		want = "waiting_children"
	}
	if got, v := core.Derive(x, core.LaneActive); got != want || v.PublicState != want {
		return fmt.Sprintf("I18: public state %q, want %q", got, want)
	}
	return ""
}
