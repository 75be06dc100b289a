package model

import (
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// watch remembers of every execution what must never fall.
type watch struct {
	created  core.Time
	epoch    int64
	mutated  core.Time
	started  core.Time
	attempts int
}

// broken lists the invariants that what a store holds does not satisfy. They are stated here anew, without the rules.
func broken(s *subject, got *state, watched map[core.UUID]watch, swept bool, now core.Time) []string {
	var found []string
	for id := range watched {
		if got.records[id] == nil { // removed: the id may be used anew
			delete(watched, id)
		}
	}
	for id, r := range got.records {
		for _, check := range []func(*record) string{lease, words, times, ended, attempts, counters, reachable, slots, vector} {
			if text := check(r); text != "" {
				found = append(found, fmt.Sprintf("%s %s: %s", s.name, r.x.ID, text))
			}
		}
		if text := leaseEvents(r, s.told[id]); text != "" {
			found = append(found, fmt.Sprintf("%s %s: %s", s.name, r.x.ID, text))
		}
		if swept && r.x.WakeAt != 0 && r.x.WakeAt <= now {
			found = append(found, fmt.Sprintf("%s %s: I16: the sweep left a timer due at %s", s.name, r.x.ID, r.x.WakeAt))
		}
		if text := fell(watched, r.x); text != "" {
			found = append(found, fmt.Sprintf("%s %s: %s", s.name, r.x.ID, text))
		}
	}
	return append(found, membership(s, got)...)
}

// lease is LI1 and LI2.
func lease(r *record) string {
	x := r.x
	if (x.Status == core.Running) != (x.Lease != nil) {
		return "LI1: running without a lease, or the reverse"
	}
	if x.Lease != nil && (x.Attempt == nil || x.Lease.AttemptID != x.Attempt.ID) {
		return "LI1: the lease is for another attempt"
	}
	ended := x.LeaseEpoch
	if x.Lease != nil {
		ended--
	}
	if int64(len(r.history)) != ended {
		return fmt.Sprintf("LI2: epoch %d, but %d leases have ended", x.LeaseEpoch, len(r.history))
	}
	seen := map[core.UUID]bool{}
	for i, entry := range r.history {
		switch {
		case entry.Epoch != int64(i+1):
			return fmt.Sprintf("LI2: entry %d of the lease history has epoch %d", i, entry.Epoch)
		case seen[entry.LeaseID]:
			return "LI2: a lease id was used twice"
		case entry.EndedAt < entry.AcquiredAt:
			return "I2: a lease ended before it began"
		case i > 0 && entry.AcquiredAt < r.history[i-1].EndedAt:
			return fmt.Sprintf("I2: leases %d and %d overlap", i, i+1)
		}
		seen[entry.LeaseID] = true
	}
	return ""
}

// words is LI4: status, reason, next and the facts behind them agree.
func words(r *record) string {
	x := r.x
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
	case x.Status == core.Blocked && x.Held == nil:
		return "LI4: blocked by nobody"
	case x.Status.Terminal() && (x.Held != nil || x.DelayUntil != 0 || x.Grant != nil):
		return "L16: over, but still held or delayed"
	case x.Next == core.NextInitial && x.TotalAttempts > 0, x.Next > core.NextInitial && x.TotalAttempts == 0:
		return fmt.Sprintf("L13: next=%s after %d attempts", x.Next, x.TotalAttempts)
	}
	return ""
}

// times is LI5.
func times(r *record) string {
	x := r.x
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
func ended(r *record) string {
	x := r.x
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

// attempts is LI7.
func attempts(r *record) string {
	x := r.x
	all := core.AttemptsOf(x, r.history)
	if len(all) != x.TotalAttempts {
		return fmt.Sprintf("LI7: %d attempts, total_attempts says %d", len(all), x.TotalAttempts)
	}
	for i, a := range all {
		last := i == len(all)-1
		switch {
		case a.Index != i:
			return fmt.Sprintf("LI7: attempt %d has index %d", i, a.Index)
		case !a.State.Final() && (!last || x.Status.Terminal()):
			return fmt.Sprintf("LI7: attempt %d is %s", i, a.State)
		case (a.Type == core.AttemptInitial) != (a.Lineage == nil):
			return fmt.Sprintf("L28: attempt %d is %s with lineage %v", i, a.Type, a.Lineage)
		case a.Lineage != nil && a.Lineage.PreviousIndex != i-1:
			return fmt.Sprintf("L28: attempt %d follows %d", i, a.Lineage.PreviousIndex)
		case a.Type == core.AttemptReclaim && all[i-1].State != core.InterruptedReclaimed:
			return fmt.Sprintf("LI7: attempt %d took over from one that is %s", i, all[i-1].State)
		case a.Type == core.AttemptRetry && all[i-1].State != core.EndedFailure:
			return fmt.Sprintf("LI7: attempt %d retries one that is %s", i, all[i-1].State)
		case x.Status == core.Running && last && a.State != core.AttemptStarted:
			return "LI7: running an attempt that is " + a.State.String()
		}
	}
	return ""
}

// counters is LI9.
func counters(r *record) string {
	x, p := r.x, r.x.Policy
	retries := 0
	if p.Retry != nil {
		retries = p.Retry.MaxRetries
	}
	if x.RetryCount > retries || x.ReclaimCount > p.MaxReclaims || x.ReplayCount > p.MaxReplays {
		return fmt.Sprintf("LI9: %d retries, %d reclaims, %d replays", x.RetryCount, x.ReclaimCount, x.ReplayCount)
	}
	return ""
}

// reachable is LI10, LI11 and I17.
func reachable(r *record) string {
	x := r.x
	var first core.Time
	arm := func(at core.Time, armed bool) {
		if armed && at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	arm(x.DeadlineAt, !x.Status.Terminal())
	arm(x.DelayUntil, x.Status == core.Delayed)
	arm(x.AttemptDeadline, x.Status == core.Running)
	if x.Lease != nil {
		arm(x.Lease.ExpiresAt.Add(x.Policy.LeaseGraceMS), true)
	}
	switch {
	case (x.WakeAt == 0) != (first == 0) || x.WakeAt > first:
		return fmt.Sprintf("LI11: wakes at %s, the first timer is due at %s", x.WakeAt, first)
	case x.WakeAt != 0 && (x.TimerAt == 0 || x.TimerAt > x.WakeAt.Add(50)):
		return fmt.Sprintf("I17: wakes at %s, but its entry in the due index is for %s", x.WakeAt, x.TimerAt)
	case !x.Status.Terminal() && x.Status != core.Ready && x.WakeAt == 0 && x.Held == nil:
		return "LI10: nobody will ever look at it again"
	}
	return ""
}

// slots is LI17.
func slots(r *record) string {
	if len(r.x.Holds) > 0 && r.x.Status != core.Running {
		return fmt.Sprintf("LI17: %s and holds %v", r.x.Status, r.x.Holds)
	}
	return ""
}

// vector is I18 for the public state: the table of L20, written down once more.
func vector(r *record) string {
	x := r.x
	want := map[core.Status]string{
		core.Ready: "waiting", core.Delayed: "delayed", core.Blocked: "waiting", core.Running: "active", core.Succeeded: "completed",
		core.Failed: "failed", core.Cancelled: "cancelled", core.Expired: "expired", core.Skipped: "skipped",
	}[x.Status]
	if x.Status == core.Ready && x.Next == core.NextResume {
		want = "resumable"
	}
	if got, v := core.Derive(x, core.LaneActive); got != want || v.PublicState != want {
		return fmt.Sprintf("I18: public state %q, want %q", got, want)
	}
	return ""
}

// membership is I18 for the queue and the counters.
func membership(s *subject, got *state) []string {
	var found []string
	want := map[store.QueueRow]bool{}
	places := map[string]int64{}
	for _, r := range got.records {
		if r.x.Status == core.Ready {
			want[store.QueueRow{Class: r.x.Class.ID, Order: r.x.OrderKey, ID: r.x.ID.UUID}] = true
		}
		for _, key := range r.x.Holds {
			places[key]++
		}
	}
	for _, row := range got.queue {
		if !want[row] {
			found = append(found, fmt.Sprintf("%s: I18: the queue has a row of %s that it should not have", s.name, row.ID))
		}
		delete(want, row)
	}
	for row := range want {
		found = append(found, fmt.Sprintf("%s: I17: %s is ready and in no queue", s.name, row.ID))
	}
	for key, n := range got.counters {
		if n != places[key] {
			found = append(found, fmt.Sprintf("%s: I18: %s counts %d, %d hold it", s.name, key, n, places[key]))
		}
	}
	return found
}

// exits are the events that close a lease (L146).
var exits = []string{"lease.released", "lease.expired", "lease.revoked", "attempt.ended", "execution.completed"}

// leaseEvents is L146, LI6 and LI8, read off the events of the execution's present life.
func leaseEvents(r *record, told []core.Event) string {
	// An id may be used again after a delete: only what follows its last submit counts.
	begin := 0
	for i := range told {
		if told[i].Kind == "execution.submitted" {
			begin = i
		}
	}
	open, epoch, completed, replayed := int64(0), int64(0), 0, 0
	attempt := ""
	for _, ev := range told[begin:] {
		fields := data(ev)
		at, _ := fields["lease_epoch"].(float64)
		switch {
		case ev.Kind == "lease.acquired":
			if epoch++; int64(at) != epoch || open != 0 {
				return fmt.Sprintf("I10: epoch %v acquired after %d while %d is open", at, epoch-1, open)
			}
			if fields["how"] == "resumed" && fields["attempt_id"] != attempt {
				return "LI8: a resumption changed the attempt"
			}
			open, attempt = epoch, fmt.Sprint(fields["attempt_id"])
		case slices.Contains(exits, ev.Kind) && at != 0 && fields["late"] != true:
			if int64(at) != open {
				return fmt.Sprintf("L146: %s closes epoch %v, open is %d", ev.Kind, at, open)
			}
			open = 0
		}
		switch ev.Kind {
		case "execution.completed":
			completed++
		case "execution.replayed":
			replayed++
		}
	}
	over := 0
	if r.x.Status.Terminal() {
		over = 1
	}
	switch {
	case (open != 0) != (r.x.Lease != nil):
		return fmt.Sprintf("L146: epoch %d is open in the events, the record is %s", open, r.x.Status)
	case epoch != r.x.LeaseEpoch:
		return fmt.Sprintf("LI2: %d acquisitions told, epoch is %d", epoch, r.x.LeaseEpoch)
	case completed != replayed+over || replayed != r.x.ReplayCount:
		return fmt.Sprintf("LI6: %d completions told, %d replays, status %s", completed, replayed, r.x.Status)
	}
	return ""
}

// fell is the part of LI2 and LI5 that looks at two moments.
func fell(watched map[core.UUID]watch, x *core.Execution) string {
	now := watch{created: x.CreatedAt, epoch: x.LeaseEpoch, mutated: x.LastMutationAt, started: x.StartedAt, attempts: x.TotalAttempts}
	before, known := watched[x.ID.UUID]
	watched[x.ID.UUID] = now
	if !known || before.created != now.created {
		return ""
	}
	if now.epoch < before.epoch || now.mutated < before.mutated || now.attempts < before.attempts || before.started != 0 && now.started != before.started {
		return fmt.Sprintf("LI5: went from %+v to %+v", before, now)
	}
	return ""
}
