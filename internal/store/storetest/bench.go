package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Bench measures the most frequent operations of the engine on a store: batches of inserts, claims, completions, renewals and whole cycles at
// several sizes, and the pick that finds nothing. Every benchmark reports rows per second.
func Bench(b *testing.B, open func(b *testing.B) store.Store) {
	for _, n := range []int{1, 100, 500} {
		each := func(name string, run func(ctx context.Context, b *testing.B, w *world, n int)) {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				ctx := b.Context()
				w := settle(ctx, b, open(b))
				run(ctx, b, w, n)
				b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "rows/s")
			})
		}
		each("insert", benchInsert)
		each("claim", benchClaim)
		each("complete", benchComplete)
		each("cycle", benchCycle)
		each("renew", benchRenew)
	}
	for _, classes := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("empty pick/classes=%d", classes), func(b *testing.B) {
			benchEmptyPick(b.Context(), b, settle(b.Context(), b, open(b)), classes)
		})
	}
}

func (w *world) submitBatch(ctx context.Context, n int) {
	list := w.executions(n)
	ch := &store.Changes{Insert: list}
	for _, x := range list {
		ch.Enqueue = append(ch.Enqueue, queueRow(x))
		ch.Events = append(ch.Events, event(x, w.now, 1))
	}
	w.add(ctx, ch)
}

func (w *world) claimBatch(ctx context.Context, n int) []*core.Execution {
	var running []*core.Execution
	err := insist(ctx, w.s, store.Want{ShareLanes: []int32{w.lane.ID}, Pick: []store.Pick{whole(w.class.ID, n)}}, func(got *store.Loaded) *store.Changes {
		running = running[:0]
		ch := &store.Changes{Dequeue: got.Picked}
		timer := store.Timer{At: got.Now.Add(30_000), Kind: 1}
		for _, row := range got.Picked {
			x := claimed(got.Executions[row.ID], got.Now)
			running = append(running, x)
			timer.IDs = append(timer.IDs, row.ID)
			ch.Events = append(ch.Events, event(x, got.Now, 2))
		}
		ch.Update, ch.AddTimers = running, []store.Timer{timer}
		return ch
	})
	if err != nil || len(running) != n {
		w.t.Fatalf("claimed %d of %d: %v", len(running), n, err)
	}
	return running
}

func (w *world) completeBatch(ctx context.Context, running []*core.Execution) {
	result := payload("text/plain", []byte("result"))
	err := insist(ctx, w.s, store.Want{Executions: idsOf(running)}, func(got *store.Loaded) *store.Changes {
		ch := &store.Changes{}
		for _, x := range running {
			done, record := completed(got.Executions[x.ID.UUID], &result, got.Now)
			ch.Update, ch.History = append(ch.Update, done), append(ch.History, record)
			ch.Events = append(ch.Events, event(done, got.Now, 3))
		}
		return ch
	})
	if err != nil {
		w.t.Fatalf("complete: %v", err)
	}
}

func benchInsert(ctx context.Context, b *testing.B, w *world, n int) {
	for b.Loop() {
		w.submitBatch(ctx, n)
	}
}

func benchClaim(ctx context.Context, b *testing.B, w *world, n int) {
	for b.Loop() {
		b.StopTimer()
		w.submitBatch(ctx, n)
		b.StartTimer()
		w.claimBatch(ctx, n)
	}
}

func benchComplete(ctx context.Context, b *testing.B, w *world, n int) {
	for b.Loop() {
		b.StopTimer()
		w.submitBatch(ctx, n)
		running := w.claimBatch(ctx, n)
		b.StartTimer()
		w.completeBatch(ctx, running)
	}
}

func benchCycle(ctx context.Context, b *testing.B, w *world, n int) {
	for b.Loop() {
		w.submitBatch(ctx, n)
		w.completeBatch(ctx, w.claimBatch(ctx, n))
	}
}

func benchRenew(ctx context.Context, b *testing.B, w *world, n int) {
	w.submitBatch(ctx, n)
	ids := idsOf(w.claimBatch(ctx, n))
	for b.Loop() {
		err := insist(ctx, w.s, store.Want{Executions: ids}, func(got *store.Loaded) *store.Changes {
			ch := &store.Changes{}
			for _, id := range ids {
				x := got.Executions[id]
				x.Lease.RenewedAt, x.Lease.ExpiresAt = got.Now, got.Now.Add(x.Lease.TTL)
				ch.Renew = append(ch.Renew, x)
			}
			return ch
		})
		if err != nil {
			b.Fatalf("renew: %v", err)
		}
	}
}

// benchEmptyPick picks from the queues of many classes that had work and have none.
func benchEmptyPick(ctx context.Context, b *testing.B, w *world, classes int) {
	want := store.Want{}
	for class := range classes {
		want.Pick = append(want.Pick, whole(w.class.ID+int32(class), 8))
	}
	for range 20 {
		w.submitBatch(ctx, 100)
		w.claimBatch(ctx, 100)
	}
	for b.Loop() {
		tx, got, err := w.s.Begin(ctx, want)
		if err != nil || len(got.Picked) != 0 {
			b.Fatalf("pick from empty queues: %v, %v", got, err)
		}
		tx.Rollback(ctx)
	}
}
