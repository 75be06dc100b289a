package postgres

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/store"
)

// BenchmarkCycles measures the whole way of an execution through the contract, with everything written: submit, claim, complete,
// in batches, by two committers. An operation is one batch.
func BenchmarkCycles(b *testing.B) {
	for _, n := range []int{100, 500} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s, _ := openNew(b, Config{})
			const committers = 2
			work := make(chan struct{})
			var all sync.WaitGroup
			for i := range committers {
				c := newCycler(b, s, fmt.Sprintf("lane%d", i))
				all.Go(func() {
					for range work {
						c.cycle(b, n)
					}
				})
			}
			b.ResetTimer()
			for range b.N {
				work <- struct{}{}
			}
			close(work)
			all.Wait()
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "cycles/s")
		})
	}
}

// cycler brings executions of one class through their lives.
type cycler struct {
	s     *Store
	lane  core.Lane
	class *core.Class
	floor int64 // of the queue: the order of the last row taken, as a picker remembers it
}

func newCycler(t testing.TB, s *Store, lane string) *cycler {
	t.Helper()
	known, err := s.Register(t.Context(),
		[]core.Lane{{Name: lane, Settings: core.LaneSettings{State: core.LaneActive}, Revision: 1, RegisteredBy: "submit"}},
		[]core.Class{{Namespace: "default", Lane: lane, Kind: "mail"}})
	if err != nil {
		t.Fatalf("Register: %v", err)
	}
	return &cycler{s: s, lane: known.Lanes[0], class: known.Classes[0], floor: math.MinInt64}
}

func (c *cycler) cycle(t testing.TB, n int) {
	c.submit(t, n)
	c.complete(t, c.claim(t, n))
}

// within runs one transaction, again while others keep it from a lock.
func (c *cycler) within(t testing.TB, want store.Want, decide func(*store.Loaded) *store.Changes) {
	var err error = &store.Fault{Kind: store.Busy}
	for try := 0; try < 20 && store.FaultOf(err) == store.Busy; try++ {
		var tx store.Tx
		var loaded *store.Loaded
		if tx, loaded, err = c.s.Begin(t.Context(), want); err == nil {
			err = tx.Commit(t.Context(), decide(loaded))
		}
	}
	if err != nil && t.Context().Err() == nil {
		t.Errorf("transaction: %v", err)
	}
}

func mint(now base.Time) base.UUID {
	var random [10]byte
	_, _ = rand.Read(random[:])
	return base.MintUUID(now, random)
}

func (c *cycler) execution(now base.Time) *core.Execution {
	input := make([]byte, 256)
	return &core.Execution{
		ID: base.IDOf(mint(now)), Class: c.class, Creator: "alice", Policy: core.DefaultPolicy(),
		Input:  core.Payload{ContentType: "application/json", Data: input, Size: len(input)},
		Status: core.Ready, Reason: core.WaitingForWorker, Next: core.NextInitial,
		StatusSince: now, QueuedAt: now, OrderKey: int64(now), CreatedAt: now, LastMutationAt: now,
	}
}

func (c *cycler) event(kind string, x *core.Execution, now base.Time) core.Event {
	return core.Event{
		Kind: kind, At: now, Namespace: c.class.Namespace, ExecutionID: x.ID, Class: c.class, AttemptIndex: -1,
		Actor: core.Actor{Type: "client", ID: "alice"}, Data: eventdata.OfJSON(json.RawMessage(`{"public_state":"waiting"}`)),
	}
}

func queued(x *core.Execution) store.QueueRow {
	return store.QueueRow{Class: x.Class.ID, Order: x.OrderKey, ID: x.ID.UUID}
}

func (c *cycler) submit(t testing.TB, n int) (list []*core.Execution) {
	c.within(t, store.Want{}, func(got *store.Loaded) *store.Changes {
		ch := &store.Changes{Dictionary: got.Dictionary}
		for range n {
			x := c.execution(got.Now)
			ch.Insert = append(ch.Insert, x)
			ch.Enqueue = append(ch.Enqueue, queued(x))
			ch.Events = append(ch.Events, c.event("execution.submitted", x, got.Now))
		}
		list = ch.Insert
		return ch
	})
	return list
}

func (c *cycler) claim(t testing.TB, n int) (ids []base.UUID) {
	want := store.Want{ShareLanes: []int32{c.lane.ID}, Pick: []store.Pick{{Class: c.class.ID, Floor: c.floor, Limit: n}}}
	floor := c.floor
	c.within(t, want, func(got *store.Loaded) *store.Changes {
		ch := &store.Changes{Dequeue: got.Picked}
		ids = nil
		for _, row := range got.Picked {
			x := got.Executions[row.ID]
			acquire(x, got.Now)
			ids = append(ids, row.ID)
			floor = row.Order
			ch.Update = append(ch.Update, x)
			ch.Events = append(ch.Events, c.event("lease.acquired", x, got.Now))
		}
		ch.AddTimers = []store.Timer{{At: got.Now.Add(30_000), Kind: 1, IDs: ids}}
		return ch
	})
	c.floor = floor
	return ids
}

// acquire does to an execution what an acquisition does.
func acquire(x *core.Execution, now base.Time) {
	lease, attempt := mint(now), mint(now)
	x.Status, x.Reason, x.Next, x.StatusSince, x.LastMutationAt = core.Running, core.ReasonNone, core.NextNone, now, now
	x.LeaseEpoch++
	x.Lease = &core.Lease{
		ID: lease, AttemptID: attempt, WorkerID: "worker", InstanceID: "worker-1", AcquiredAt: now, RenewedAt: now,
		TTL: 30_000, ExpiresAt: now.Add(30_000), RequestKey: "request",
	}
	x.Attempt = &core.Attempt{
		ID: attempt, Type: core.AttemptInitial, State: core.AttemptStarted, StartedAt: now,
		FirstEpoch: x.LeaseEpoch, LastEpoch: x.LeaseEpoch, WorkerID: "worker", InstanceID: "worker-1",
	}
	x.TotalAttempts, x.StartedAt, x.RunStartedAt = 1, now, now
	x.WakeAt, x.TimerAt = x.Lease.ExpiresAt, x.Lease.ExpiresAt
}

func (c *cycler) complete(t testing.TB, ids []base.UUID) {
	c.within(t, store.Want{Executions: ids}, func(got *store.Loaded) *store.Changes {
		ch := &store.Changes{}
		for _, id := range ids {
			x := got.Executions[id]
			ch.History = append(ch.History, finish(x, got.Now))
			ch.Update = append(ch.Update, x)
			ch.Events = append(ch.Events, c.event("execution.completed", x, got.Now))
		}
		return ch
	})
}

// finish does to a running execution what a completion does.
func finish(x *core.Execution, now base.Time) core.LeaseRecord {
	lease := x.Lease
	x.Status, x.Reason, x.StatusSince, x.LastMutationAt, x.CompletedAt = core.Succeeded, core.Completed, now, now, now
	x.WakeAt, x.TimerAt, x.Lease = 0, 0, nil
	x.Attempt.State, x.Attempt.EndedAt = core.EndedSuccess, now
	x.LastLease = &core.LastLease{ID: lease.ID, Epoch: x.LeaseEpoch, AttemptID: lease.AttemptID, EndedAt: now, End: core.EndComplete}
	x.Result, x.ResultEpoch = &core.Payload{ContentType: "application/json", Data: []byte(`{"ok":true}`), Size: 11}, x.LeaseEpoch
	return core.LeaseRecord{
		ExecutionID: x.ID, Epoch: x.LeaseEpoch, LeaseID: lease.ID, Attempt: *x.Attempt, WorkerID: "worker", InstanceID: "worker-1",
		AcquiredAt: lease.AcquiredAt, EndedAt: now, End: core.EndComplete, Answer: json.RawMessage(`{"status":"succeeded"}`), Result: x.Result,
	}
}
