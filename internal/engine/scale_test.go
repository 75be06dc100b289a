package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// scaled is a size of the specification. The race detector looks at the engine, not at the size of tables.
func scaled(n int) int {
	if underRaceDetector {
		return n / 20
	}
	return n
}

// witness is a store that counts the rows of executions and of queues that transactions load and write.
type witness struct {
	store.Store
	rows  atomic.Int64
	lanes atomic.Int64 // rows of lanes written
}

func (s *witness) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := s.Store.Begin(ctx, want)
	if err == nil {
		s.rows.Add(int64(len(loaded.Executions)))
	}
	return witnessedTx{tx, s}, loaded, err
}

type witnessedTx struct {
	store.Tx
	s *witness
}

func (t witnessedTx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	loaded, err := t.Tx.Load(ctx, want)
	if err == nil {
		t.s.rows.Add(int64(len(loaded.Executions)))
	}
	return loaded, err
}

func (t witnessedTx) Commit(ctx context.Context, ch *store.Changes) error {
	t.s.rows.Add(int64(len(ch.Insert) + len(ch.Update) + len(ch.Renew) + len(ch.Assume) + len(ch.Remove) + len(ch.Enqueue) + len(ch.Dequeue)))
	t.s.lanes.Add(int64(len(ch.Lanes)))
	return t.Tx.Commit(ctx, ch)
}

func TestSC1_pause_and_resume_of_a_lane_with_a_hundred_thousand_rows_touch_none_of_them(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true // a hundred thousand rows that were not touched
		first, second := w.submit(core.Submission{Priority: 9}), w.submit(core.Submission{Priority: 8})
		for range 10 {
			w.submitMany(scaled(10_000), core.Submission{})
		}
		closeEngine(t, w.e)
		seen := &witness{Store: w.store}
		w.e = w.openEngine(seen)
		same(t, "the first", given(w.claim()), first)
		if seen.rows.Load() == 0 {
			t.Fatal("the claim was not seen: this proves nothing")
		}

		before := seen.rows.Load()
		must(w.e.SetLaneState(w.ctx(), operator, "default", core.LanePaused, engine.Operator{}))(t)
		w.nothing()
		must(w.e.SetLaneState(w.ctx(), operator, "default", core.LaneActive, engine.Operator{}))(t)
		same(t, "rows touched", seen.rows.Load()-before, 0)
		same(t, "writes", seen.lanes.Load(), 2)
		same(t, "the next", given(w.claim()), second)
	})
}

func TestSC9_ten_thousand_keys_wait_and_none_is_served_twice_before_the_others(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Second}, func(t *testing.T, w *world) {
		w.unaudited = true // ten thousand leases, of which only the order matters here
		w.lane("default", core.LaneSettings{Fairness: "key"})
		keys := scaled(10_000)
		all := make([]core.Submission, keys)
		for i := range all {
			all[i] = fairKey(fmt.Sprint("key", i))
			all[i].Kind, all[i].Priority = "k", i%10
		}
		for range 2 { // everybody has more than the one turn gives
			for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
				ok(t, item.Err)
			}
		}
		picks := keys / 4 // the whole round is walked in core, where a pick costs nothing
		served := map[string]int{}
		r := ask()
		for n := 0; n < picks; {
			r.Max = min(1000, picks-n)
			tasks := w.take(r)
			if len(tasks) == 0 {
				t.Fatalf("nothing after %d picks", n)
			}
			n += len(tasks)
			for key, got := range keysOf(tasks) {
				if served[key] += got; served[key] > 1 {
					t.Fatalf("%s is served again after %d picks", key, n)
				}
			}
		}
		same(t, "keys served", len(served), picks)
	})
}

func TestSC12_a_crash_storm_of_a_thousand_leases_leaves_no_place_taken(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		leases := scaled(1000)
		w.capped("default", leases)
		w.submitMany(leases+1, core.Submission{})
		r := ask()
		r.Max = leases
		same(t, "the cap", len(w.take(r)), leases)
		w.nothing()
		places := func() int64 {
			return must(w.store.Read(w.ctx(), store.Want{Counters: []string{"lane:default"}}))(t).Counters["lane:default"]
		}
		same(t, "places taken", places(), int64(leases))
		w.pass(30_000)
		w.onlyStatus("k", core.Ready, leases+1)
		eventually(t, "no place is left behind", func() bool { return places() == 0 }) // lists know of a lapse before it is written
		same(t, "the cap again", len(w.take(r)), leases)
	})
}
