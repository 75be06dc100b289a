package sqlite

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/storetest"
)

// BenchmarkStore runs the common benchmarks with every commit synced.
func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) store.Store { return open(b, file(b), Config{}) })
}

// BenchmarkCycle inserts, claims and completes with every commit synced, with ids that follow the clock as the engine's do:
// rows of one batch lie side by side.
func BenchmarkCycle(b *testing.B) {
	for _, n := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s := open(b, file(b), Config{})
			class := seed(b, s).Class
			for b.Loop() {
				submitBatch(b, s, class, n)
				completeBatch(b, s, claimBatch(b, s, class, n))
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func happened(kind string, x *core.Execution, at base.Time) core.Event {
	return core.Event{
		Kind: kind, At: at, Namespace: x.Class.Namespace, ExecutionID: x.ID, Class: x.Class, AttemptIndex: -1,
		Actor: core.Actor{Type: "client", ID: "bench"}, Data: eventdata.OfJSON(json.RawMessage(`{"lane":"default"}`)),
	}
}

func submitBatch(b *testing.B, s *Store, class *core.Class, n int) {
	ch := &store.Changes{}
	for range n {
		x := queued(s, class)
		ch.Insert = append(ch.Insert, x)
		ch.Enqueue = append(ch.Enqueue, store.QueueRow{Class: class.ID, Order: x.OrderKey, ID: x.ID.UUID})
		ch.Events = append(ch.Events, happened("execution.submitted", x, x.CreatedAt))
	}
	commit(b, s, store.Want{}, ch)
}

func claimBatch(b *testing.B, s *Store, class *core.Class, n int) []*core.Execution {
	tx, got, err := s.Begin(b.Context(), store.Want{Pick: []store.Pick{{Class: class.ID, Floor: math.MinInt64, Limit: n}}})
	if err != nil || len(got.Picked) != n {
		b.Fatalf("picked %d of %d: %v", len(got.Picked), n, err)
	}
	now := got.Now
	ch := &store.Changes{Dequeue: got.Picked}
	timer := store.Timer{At: now.Add(30_000), Kind: 1}
	for _, row := range got.Picked {
		x := got.Executions[row.ID]
		attempt := mint(now)
		x.Status, x.Reason, x.Next, x.StatusSince, x.LastMutationAt = core.Running, core.ReasonNone, core.NextNone, now, now
		x.LeaseEpoch, x.TotalAttempts, x.StartedAt, x.RunStartedAt = 1, 1, now, now
		x.Lease = &core.Lease{
			ID: mint(now), AttemptID: attempt, WorkerID: "worker", InstanceID: "worker@host-4242", AcquiredAt: now, RenewedAt: now, TTL: 30_000, ExpiresAt: timer.At,
		}
		x.Attempt = &core.Attempt{
			ID: attempt, Type: core.AttemptInitial, State: core.AttemptStarted, StartedAt: now, FirstEpoch: 1, LastEpoch: 1, WorkerID: "worker", InstanceID: "worker@host-4242",
		}
		x.WakeAt, x.TimerAt = timer.At, timer.At
		ch.Update = append(ch.Update, x)
		ch.Events = append(ch.Events, happened("lease.acquired", x, now))
		timer.IDs = append(timer.IDs, row.ID)
	}
	ch.AddTimers = []store.Timer{timer}
	if err := tx.Commit(b.Context(), ch); err != nil {
		b.Fatal(err)
	}
	return ch.Update
}

func completeBatch(b *testing.B, s *Store, running []*core.Execution) {
	want := store.Want{}
	for _, x := range running {
		want.Executions = append(want.Executions, x.ID.UUID)
	}
	tx, got, err := s.Begin(b.Context(), want)
	if err != nil || len(got.Executions) != len(running) {
		b.Fatalf("loaded %d of %d: %v", len(got.Executions), len(running), err)
	}
	now := got.Now
	ch := &store.Changes{}
	for _, id := range want.Executions {
		x := got.Executions[id]
		x.Status, x.Reason, x.StatusSince, x.LastMutationAt, x.CompletedAt = core.Succeeded, core.Completed, now, now, now
		x.WakeAt, x.TimerAt = 0, 0
		x.Attempt.State, x.Attempt.EndedAt = core.EndedSuccess, now
		result := &core.Payload{ContentType: "text/plain", Data: []byte("result"), Size: 6}
		x.Result, x.ResultEpoch = result, 1
		ch.History = append(ch.History, core.LeaseRecord{
			ExecutionID: x.ID, Epoch: 1, LeaseID: x.Lease.ID, Attempt: *x.Attempt, WorkerID: x.Lease.WorkerID, InstanceID: x.Lease.InstanceID,
			AcquiredAt: x.Lease.AcquiredAt, EndedAt: now, End: core.EndComplete, Answer: json.RawMessage(`{"status":"succeeded"}`), Result: result,
		})
		x.LastLease = &core.LastLease{ID: x.Lease.ID, Epoch: 1, AttemptID: x.Lease.AttemptID, EndedAt: now, End: core.EndComplete}
		x.Lease = nil
		ch.Update = append(ch.Update, x)
		ch.Events = append(ch.Events, happened("execution.completed", x, now))
	}
	if err := tx.Commit(b.Context(), ch); err != nil {
		b.Fatal(err)
	}
}
