package storetest

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/store"
)

func counterTests() []test {
	return []test{
		{"S41: counters change by differences and count 0 when absent", counterDifferences, anyStore},
		{"S41: concurrent differences add up", concurrentDifferences, anyStore},
		{"S37: concurrent holders never pass a limit that they check", limitIsKept, anyStore},
		{"S37: a counter is locked before it exists", absentCounterIsLocked, anyStore},
	}
}

func counterDifferences(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	names := []string{"lane:1", "quota:a:ü", "never"}
	want := store.Want{Counters: names}
	sum := map[string]int64{"lane:1": 0, "quota:a:ü": 0, "never": 0}
	for _, step := range []map[string]int64{
		{"lane:1": 3, "quota:a:ü": 1},
		{"lane:1": -1},
		{"quota:a:ü": -1},
		{"lane:1": -2, "quota:a:ü": 5},
		{"lane:1": 1 << 40, "quota:a:ü": 0},
	} {
		w.put(ctx, want, &store.Changes{Counters: step})
		for name, difference := range step {
			sum[name] += difference
		}
		read := w.read(ctx, want)
		tx, locked := w.begin(ctx, want)
		tx.Rollback(ctx)
		for _, name := range names {
			if read.Counters[name] != sum[name] || locked.Counters[name] != sum[name] {
				t.Fatalf("counter %s: read %d, locked %d, want %d", name, read.Counters[name], locked.Counters[name], sum[name])
			}
		}
	}
}

func concurrentDifferences(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	err := together(crowd, func(i int) error {
		for n := range int64(12) {
			// The sum passes 0 repeatedly, so that the row is removed and created again.
			difference := map[string]int64{"a": 1 - 2*(n%2), "b": n + 1}
			want := store.Want{Counters: []string{"b", "a"}}
			if i%2 == 1 {
				want = store.Want{}
			}
			if err := insist(ctx, w.s, want, func(*store.Loaded) *store.Changes { return &store.Changes{Counters: difference} }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := w.read(ctx, store.Want{Counters: []string{"a", "b"}}).Counters
	if got["a"] != 0 || got["b"] != crowd*78 {
		t.Fatalf("sums %v, want a 0 and b %d", got, crowd*78)
	}
}

func limitIsKept(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	const limit = 2
	want := store.Want{Counters: []string{"slots"}}
	err := together(crowd, func(int) error {
		for range 6 {
			admitted := false
			err := insist(ctx, w.s, want, func(got *store.Loaded) *store.Changes {
				if admitted = got.Counters["slots"] < limit; !admitted {
					return nil
				}
				return &store.Changes{Counters: map[string]int64{"slots": 1}}
			})
			if err != nil {
				return err
			}
			if !admitted {
				continue
			}
			if got, err := w.s.Read(ctx, want); err != nil || got.Counters["slots"] > limit {
				return fmt.Errorf("slots in use %v, the limit is %d: %w", got, limit, err)
			}
			free := func(*store.Loaded) *store.Changes { return &store.Changes{Counters: map[string]int64{"slots": -1}} }
			if err := insist(ctx, w.s, want, free); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.read(ctx, want).Counters["slots"]; got != 0 {
		t.Fatalf("%d slots in use after all were freed", got)
	}
}

func absentCounterIsLocked(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	want := store.Want{Counters: []string{"slots"}}
	tx, _ := w.begin(ctx, want)
	w.busy(ctx, want)
	w.commit(ctx, tx, &store.Changes{Counters: map[string]int64{"slots": 1}})
	tx, got := w.begin(ctx, want)
	tx.Rollback(ctx)
	if got.Counters["slots"] != 1 {
		t.Fatalf("counter %d, want 1", got.Counters["slots"])
	}
}
