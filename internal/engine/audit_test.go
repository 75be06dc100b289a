package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// exits are the events that end a lease (L146).
var exits = map[string]bool{
	"lease.released": true, "lease.expired": true, "lease.revoked": true, "attempt.ended": true, "execution.completed": true,
}

// audit holds every execution of the world, and its part of the log, to the invariants of the specification. It runs after
// every test.
func (w *world) audit() {
	w.t.Helper()
	ctx := w.ctx()
	all := map[core.UUID]*core.Execution{}
	r := engine.ListRequest{Order: store.IDAsc, Limit: ptr(1000)}
	for {
		page, err := w.e.List(ctx, client, r)
		if err != nil {
			return // the test has closed its engine
		}
		for _, item := range page.Items {
			all[item.Execution.ID.UUID] = item.Execution
		}
		if page.Next == "" {
			break
		}
		r.Cursor = page.Next
	}
	told := map[core.UUID][]engine.LoggedEvent{}
	for _, ev := range w.events(engine.EventFilter{}) {
		told[ev.ExecutionID.UUID] = append(told[ev.ExecutionID.UUID], ev)
	}
	looked := 0
	for id, x := range all {
		auditRecord(w.t, x)
		auditLog(w.t, x, told[id])
		if looked++; looked <= 20 {
			w.auditHistory(x)
		}
	}
}

// auditRecord checks what a record must fulfil by itself.
func auditRecord(t *testing.T, x *core.Execution) {
	t.Helper()
	broken := func(rule, what string) { t.Errorf("%s: %s: %s", rule, x.ID, what) }
	if (x.Status == core.Running) != (x.Lease != nil) {
		broken("LI1", "running without a lease, or a lease without running")
	}
	if (x.CompletedAt != 0) != x.Status.Terminal() {
		broken("LI5", "completed_at")
	}
	if x.CompletedAt != 0 && x.StartedAt > x.CompletedAt || x.StatusSince > x.LastMutationAt || x.CreatedAt > x.LastMutationAt {
		broken("LI5", "times run backwards")
	}
	if (x.Status == core.Running || x.Status.Terminal()) != (x.Next == core.NextNone) {
		broken("LI4", "next is "+x.Next.String()+" while "+x.Status.String())
	}
	if x.Status.Terminal() && (x.WakeAt != 0 || len(x.Holds) != 0 || x.Held != nil || x.DelayUntil != 0) {
		broken("L16", "something is left after the end")
	}
	if x.Status == core.Delayed && (x.DelayUntil == 0 || x.WakeAt == 0) {
		broken("LI10", "delayed without a timer")
	}
	if x.Status == core.Running && (x.WakeAt == 0 || x.TimerAt == 0) {
		broken("LI10", "running without a timer")
	}
	if x.Attempt != nil && (x.Attempt.Index != x.TotalAttempts-1 || x.Status.Terminal() && !x.Attempt.State.Final()) {
		broken("LI7", "the last attempt")
	}
	if x.Policy.Retry != nil && x.RetryCount > x.Policy.Retry.MaxRetries || x.ReclaimCount > x.Policy.MaxReclaims || x.ReplayCount > x.Policy.MaxReplays {
		broken("LI9", "a counter is above its cap")
	}
}

// auditLog checks that the log tells the same story as the record: leases pair up, one completion a run (L145, L146, EI8).
func auditLog(t *testing.T, x *core.Execution, events []engine.LoggedEvent) {
	t.Helper()
	open, epoch := int64(0), int64(0)
	completed, replayed := 0, 0
	for _, ev := range events {
		var data struct {
			Epoch int64 `json:"lease_epoch"`
			Late  bool  `json:"late"`
		}
		if err := json.Unmarshal(ev.Data.JSON(), &data); err != nil {
			t.Errorf("E24: %s: data of %s: %v", x.ID, ev.Kind, err)
		}
		switch {
		case ev.Kind == "lease.acquired":
			if open != 0 {
				t.Errorf("L146: %s: epoch %d begins while %d is open", x.ID, data.Epoch, open)
			}
			if data.Epoch != epoch+1 {
				t.Errorf("LI2: %s: epoch %d after %d", x.ID, data.Epoch, epoch)
			}
			open, epoch = data.Epoch, data.Epoch
		case exits[ev.Kind] && data.Epoch != 0 && !data.Late:
			if data.Epoch != open {
				t.Errorf("L146: %s: %s ends epoch %d while %d is open", x.ID, ev.Kind, data.Epoch, open)
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
	if epoch != x.LeaseEpoch || (open != 0) != (x.Status == core.Running) {
		t.Errorf("L146: %s: the log ends in epoch %d (open %d), the record in %d, %s", x.ID, epoch, open, x.LeaseEpoch, x.Status)
	}
	ended := 0
	if x.Status.Terminal() {
		ended = 1
	}
	if replayed != x.ReplayCount || completed != replayed+ended {
		t.Errorf("L145: %s: %d completions and %d replays told, %s after %d replays", x.ID, completed, replayed, x.Status, x.ReplayCount)
	}
}

// auditHistory checks attempts and lease history of one execution.
func (w *world) auditHistory(x *core.Execution) {
	w.t.Helper()
	attempts := w.attempts(x.ID.Given())
	if len(attempts) != x.TotalAttempts {
		w.t.Errorf("LI7: %s: %d attempts of %d", x.ID, len(attempts), x.TotalAttempts)
	}
	for i, a := range attempts {
		if a.Index != i || i < len(attempts)-1 && !a.State.Final() {
			w.t.Errorf("LI7: %s: attempt %d has index %d and is %s", x.ID, i, a.Index, a.State)
		}
		if l := a.Lineage; (a.Type == core.AttemptInitial) != (l == nil) || l != nil && l.PreviousIndex >= i {
			w.t.Errorf("L28: %s: lineage of attempt %d: %+v", x.ID, i, l)
		}
	}
	entries, _, err := w.e.Leases(w.ctx(), client, x.ID.Given(), 0, 1000)
	ok(w.t, err)
	for i, entry := range entries {
		if entry.Epoch != int64(i+1) || entry.EndedAt == 0 != (x.Lease != nil && entry.Epoch == x.LeaseEpoch) {
			w.t.Errorf("LI2: %s: entry %d of the lease history: epoch %d, ended at %s by %s", x.ID, i, entry.Epoch, entry.EndedAt, entry.End)
		}
		if i > 0 && entry.AcquiredAt < entries[i-1].EndedAt && !entries[i-1].Late {
			w.t.Errorf("I2: %s: leases %d and %d overlap", x.ID, i, i+1)
		}
	}
}
