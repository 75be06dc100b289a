package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/invariants"
	"github.com/flowfabric/flowfabric/internal/store"
)

// life is what the log tells of one execution.
type life struct {
	epoch     int64
	open      bool
	expires   base.Time // of the open lease, when it was acquired
	notBefore base.Time // a delay that stands
	at        base.Time
	outcomes  []string // of every completion
	epochs    []int64  // under which they came, 0 without a lease
	replays   int
	submitted int
}

// facts are the fields of events that this test reads.
type facts struct {
	Epoch      int64     `json:"lease_epoch"`
	Late       bool      `json:"late"`
	ExpiresAt  base.Time `json:"expires_at"`
	DelayUntil base.Time `json:"delay_until"`
	RetryAt    base.Time `json:"retry_at"`
	Outcome    string    `json:"outcome"`
	Cause      string    `json:"cause"`
}

// replayLog reads the log as a whole and checks every step of every execution (I2, I4, I6, I10, I16, SI9).
func replayLog(t *testing.T, log []engine.LoggedEvent) map[base.UUID]*life {
	t.Helper()
	lives := map[base.UUID]*life{}
	running, lapsed := 0, 0
	for _, ev := range log {
		if ev.ExecutionID.IsZero() {
			continue
		}
		l := lives[ev.ExecutionID.UUID]
		if l == nil {
			l = &life{}
			lives[ev.ExecutionID.UUID] = l
		}
		if ev.Kind == "lease.expired" {
			lapsed++
		}
		was := l.open
		if text := l.step(ev); text != "" {
			t.Errorf("%s, %s at %s: %s", ev.ExecutionID, ev.Kind, ev.At, text)
		}
		if ev.Class.Lane == "capped" && l.open != was {
			if running--; l.open {
				running += 2
			}
			if running > lanesCap {
				t.Errorf("SI9: %d run in the capped lane after %s", running, ev.Kind)
			}
		}
	}
	if lapsed == 0 {
		t.Error("no lease lapsed: no worker died in time to prove anything")
	}
	return lives
}

// step takes one event in and says what is wrong with it.
func (l *life) step(ev engine.LoggedEvent) string {
	var f facts
	if err := json.Unmarshal(ev.Data.JSON(), &f); err != nil {
		return err.Error()
	}
	if ev.At < l.at {
		return fmt.Sprintf("L5: time runs backwards from %s", l.at)
	}
	l.at = ev.At
	closes := f.Epoch != 0 && !f.Late && ev.Kind != "lease.acquired"
	if closes && (!l.open || f.Epoch != l.epoch) {
		return fmt.Sprintf("L146: closes epoch %d, open is %d (%v)", f.Epoch, l.epoch, l.open)
	}
	if closes {
		l.open = false
	}
	switch ev.Kind {
	case "execution.submitted":
		l.submitted++
		l.notBefore = f.DelayUntil
	case "lease.acquired":
		return l.acquire(ev, f)
	case "lease.expired":
		if f.Cause == "" && ev.At < l.expires {
			return fmt.Sprintf("I16: lapsed before %s", l.expires)
		}
	case "lease.released":
		l.notBefore = f.DelayUntil
	case "attempt.ended":
		l.notBefore = max(l.notBefore, f.RetryAt)
	case "execution.ready":
		if ev.At < l.notBefore {
			return fmt.Sprintf("I16: ready before %s", l.notBefore)
		}
	case "execution.completed":
		l.outcomes, l.epochs = append(l.outcomes, f.Outcome), append(l.epochs, f.Epoch)
		l.notBefore = 0
	case "execution.replayed":
		l.replays++
	}
	if len(l.outcomes) > l.replays+1 || l.submitted != 1 {
		return fmt.Sprintf("I4: %d completions after %d replays and %d submits", len(l.outcomes), l.replays, l.submitted)
	}
	return ""
}

func (l *life) acquire(ev engine.LoggedEvent, f facts) string {
	switch {
	case l.open || f.Epoch != l.epoch+1:
		return fmt.Sprintf("I10: epoch %d after %d, open %v", f.Epoch, l.epoch, l.open)
	case ev.At < l.notBefore:
		return fmt.Sprintf("LI12: claimed before %s", l.notBefore)
	case len(l.outcomes) > l.replays:
		return "I5: claimed after its end"
	}
	l.epoch, l.open, l.expires = f.Epoch, true, f.ExpiresAt
	return ""
}

// checkRecords compares what callers were told, what the log tells and what the records say (I1, I5, I6, I13, I18).
func checkRecords(ctx context.Context, t *testing.T, e *engine.Engine, j *journal, lives map[base.UUID]*life) {
	t.Helper()
	for _, id := range j.all() {
		view, err := e.Describe(ctx, client, id.Given())
		l := lives[id.UUID]
		if err != nil || l == nil {
			t.Errorf("I1: %s was acknowledged: %v, in the log: %v", id, err, l != nil)
			continue
		}
		x := view.Execution
		if x.LeaseEpoch != l.epoch || x.ReplayCount != l.replays || len(l.outcomes) != l.replays+1 || !x.Status.Terminal() {
			t.Errorf("I6: %s is %s, epoch %d, %d replays; the log tells epoch %d, %d replays, outcomes %v", id, x.Status, x.LeaseEpoch, x.ReplayCount, l.epoch, l.replays, l.outcomes)
		}
		leases, _, err := e.Leases(ctx, client, id.Given(), 0, 10_000)
		if err != nil || int64(len(leases)) != min(x.LeaseEpoch, 1000) {
			t.Errorf("LI2: %s has %d leases in its history, epoch %d: %v", id, len(leases), x.LeaseEpoch, err)
		}
		for i := 1; i < len(leases); i++ {
			if leases[i].Epoch != leases[i-1].Epoch+1 || leases[i].AcquiredAt < leases[i-1].EndedAt {
				t.Errorf("I2: leases %d and %d of %s overlap", leases[i-1].Epoch, leases[i].Epoch, id)
			}
		}
	}
	completed, cancelled := j.outcomes()
	for _, c := range completed {
		text, epoch, _ := strings.Cut(c, " ")
		l := lives[mustID(text).UUID]
		if l == nil || !slices.ContainsFunc(l.epochs, func(e int64) bool { return fmt.Sprint(e) == epoch }) {
			t.Errorf("I5: the acknowledged completion of %s is not in the log", c)
		}
	}
	for _, id := range cancelled {
		if l := lives[id]; l == nil || !slices.Contains(l.outcomes, "cancelled") {
			t.Errorf("I13: the acknowledged cancellation of %s is not in the log", id)
		}
	}
}

// checkReachable looks at everything while much of it still waits, runs or is held: none of it was forgotten (I17), and it is
// filed as its record says (I18). Sweeps may be at work meanwhile.
func checkReachable(ctx context.Context, t *testing.T, e *engine.Engine, s store.Store) {
	t.Helper()
	snap := takeSnapshot(ctx, t, e, s)
	waiting := map[core.Status]int{}
	for _, r := range snap.Records {
		if !r.X.Status.Terminal() {
			waiting[r.X.Status]++
		}
	}
	if len(waiting) < 2 {
		t.Errorf("I17: of %d executions only %v are not over: this proves nothing", len(snap.Records), waiting)
	}
	for _, text := range snap.Broken() {
		t.Error(text)
	}
	t.Logf("not over when the crowd left: %v of %d", waiting, len(snap.Records))
}

func takeSnapshot(ctx context.Context, t *testing.T, e *engine.Engine, s store.Store) *invariants.Snapshot {
	t.Helper()
	log, err := readAll(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	known := map[base.UUID]bool{} // those whose submit was not answered too
	for _, ev := range log {
		if !ev.ExecutionID.IsZero() {
			known[ev.ExecutionID.UUID] = true
		}
	}
	snap, err := invariants.Take(ctx, s, slices.Collect(maps.Keys(known)))
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// checkIndexes looks at the records, the log, the queues, the places of lanes and the search rows once everything is over: they
// all say the same (I18), and no place was kept (LI17).
func checkIndexes(ctx context.Context, t *testing.T, e *engine.Engine, s store.Store) {
	t.Helper()
	found, err := invariants.Audit(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range found {
		t.Error(text)
	}
	for { // the rows follow the log
		want := map[base.UUID]core.Status{}
		for id, r := range takeSnapshot(ctx, t, e, s).Records {
			want[id] = r.X.Status
		}
		if got := searchRows(ctx, t, s); maps.Equal(got, want) {
			return
		} else if ctx.Err() != nil {
			t.Fatalf("I18: %d executions, %d search rows, and not with the same status", len(want), len(got))
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// searchRows tells under which status each execution is found.
func searchRows(ctx context.Context, t *testing.T, s store.Store) map[base.UUID]core.Status {
	t.Helper()
	rows := map[base.UUID]core.Status{}
	for _, status := range core.Statuses() {
		hits, err := s.Find(ctx, store.Query{Statuses: []core.Status{status}, Order: store.IDAsc, Limit: 1_000_000})
		if err != nil {
			t.Fatal(err)
		}
		for _, hit := range hits {
			rows[hit.ID] = status
		}
	}
	return rows
}

// readAll reads the log from its start up to now. What other engines have committed comes by and by: a budget is made last, and when the
// log tells of it, it has told all before.
func readAll(ctx context.Context, e *engine.Engine) ([]engine.LoggedEvent, error) {
	name := "mark" + rand.Text()
	mark := core.BudgetDefinition{Name: name, Dimensions: map[string]core.BudgetLimits{"tokens": {}}}
	if _, err := e.CreateBudget(ctx, operator, base.DefaultNamespace, mark, engine.AdminAction{}); err != nil {
		return nil, err
	}
	var all []engine.LoggedEvent
	for cursor := "start"; ctx.Err() == nil; {
		page, err := e.ReadEvents(ctx, client, engine.EventsRequest{After: cursor, Limit: 1000, Wait: time.Second})
		if err != nil {
			return nil, err
		}
		for _, ev := range page.Events {
			if ev.Kind == "budget.created" && ev.Data.Text("name") == name {
				return all, nil
			}
			all = append(all, ev)
		}
		cursor = page.Next
	}
	return nil, context.Cause(ctx)
}
