package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// readings are the samples of a metric by their labels.
func readings(t *testing.T, c metrics.Collector, m metrics.Gauge) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, family := range must(metrics.Registry{c}.Gather())(t) {
		if family.Name == m.Name {
			for _, sample := range family.Samples {
				values[fmt.Sprint(sample.Labels)] = sample.Value
			}
		}
	}
	return values
}

// projected waits until the search rows hold all that was committed. It returns how long ago since is, in seconds.
func (w *world) projected(since base.Time) float64 {
	w.t.Helper()
	w.turn(4000) // no gauge that was read before counts any more
	ok(w.t, w.e.Follower.ReachAll(w.ctx()))
	return float64(w.now().Sub(since)) / 1000
}

func TestU199_U202_gauges_of_many_lanes_ask_the_store_a_few_times_and_tell_the_oldest_of_all(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		s := w.searching()
		const lanes = metrics.MaxValues + 30
		since, all := w.now(), make([]core.Submission, lanes)
		for i := range all {
			all[i] = core.Submission{Lane: fmt.Sprintf("l%03d", i), Kind: "k"}
		}
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
			ok(t, item.Err)
		}
		waited := w.projected(since)
		s.n.Store(0)
		ages := readings(t, w.e.Collector(), metrics.OldestReadySeconds)
		same(t, "labels", len(ages), metrics.MaxValues) // one of the bounded values is that of the lane default, which has no work
		for label, age := range ages {
			same(t, label, age, waited)
		}
		if n := s.n.Load(); n > 16 {
			t.Fatalf("the store was asked %d times about %d lanes", n, lanes)
		}
	})
}

// shortSighted is a store that looks at few rows at a time, as if there were many.
type shortSighted struct {
	store.Store
	rows     int
	filtered atomic.Int64 // looks that named classes
}

func (s *shortSighted) FirstOfLanes(ctx context.Context, q store.Query, each int) ([]store.LaneHit, error) {
	if q.Classes != nil {
		s.filtered.Add(1)
	}
	q.Limit = min(q.Limit, s.rows)
	return s.Store.FirstOfLanes(ctx, q, each)
}

func TestU202_the_oldest_of_a_lane_is_told_however_much_older_work_other_lanes_have(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		w.e = w.openEngine(&shortSighted{Store: w.store, rows: 3})
		since, want := w.now(), map[string]float64{}
		for i := range 8 {
			lane := fmt.Sprint("l", i)
			w.submitMany(3, core.Submission{Lane: lane})
			w.turn(10)
			want["["+lane+"]"] = float64(-10 * i)
		}
		waited := w.projected(since)
		for label := range want {
			want[label] = waited + want[label]/1000
		}
		got := readings(t, w.e.Collector(), metrics.OldestReadySeconds)
		for label, age := range got {
			if diff := age - want[label]; diff > 1e-6 || diff < -1e-6 {
				t.Errorf("%s: %v, want %v", label, age, want[label])
			}
		}
		same(t, "labels", len(got), len(want))
	})
}

func TestU202_a_look_at_all_lanes_names_no_classes(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		s := &shortSighted{Store: w.store, rows: 1000}
		w.e = w.openEngine(s)
		w.submitMany(2, core.Submission{Lane: "l"})
		w.projected(w.now())
		readings(t, w.e.Collector(), metrics.OldestReadySeconds)
		same(t, "looks that named classes", s.filtered.Load(), int64(0))
	})
}

func TestU202_a_lane_that_had_no_work_is_not_told_to_have_none_without_end(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		s := &partlyDown{searches: &searches{Store: w.store}}
		w.e = w.openEngine(s)
		w.complete(w.started(core.Submission{}))
		w.projected(w.now())
		none := map[string]float64{"[default]": 0}
		same(t, "nothing waits", readings(t, w.e.Collector(), metrics.OldestReadySeconds), none)
		s.firsts.Store(true)
		w.turn(60_000)
		same(t, "for a while", readings(t, w.e.Collector(), metrics.OldestReadySeconds), none)
		w.turn(300_000)
		same(t, "not known", readings(t, w.e.Collector(), metrics.OldestReadySeconds), map[string]float64{})
		s.firsts.Store(false)
		w.turn(60_000)
		same(t, "nothing waits", readings(t, w.e.Collector(), metrics.OldestReadySeconds), none)
	})
}

// partlyDown is a store that refuses some questions.
type partlyDown struct {
	*searches
	counts, firsts atomic.Bool
}

var errRefusesNow = errors.New("refuses now")

func (f *partlyDown) CountBy(ctx context.Context, q store.Query, by store.GroupBy, limit int) ([]store.Group, error) {
	if f.counts.Load() {
		return nil, &store.Fault{Kind: store.Unavailable, Err: errRefusesNow}
	}
	return f.searches.CountBy(ctx, q, by, limit)
}

func (f *partlyDown) FirstOfLanes(ctx context.Context, q store.Query, each int) ([]store.LaneHit, error) {
	if f.firsts.Load() {
		return nil, &store.Fault{Kind: store.Unavailable, Err: errRefusesNow}
	}
	return f.searches.FirstOfLanes(ctx, q, each)
}

func TestU202_a_gauge_that_cannot_be_read_removes_no_other_and_the_oldest_grows_on(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		s := &partlyDown{searches: &searches{Store: w.store}}
		w.e = w.openEngine(s)
		since := w.now()
		w.submit(core.Submission{})
		waited := w.projected(since)
		s.counts.Store(true)
		same(t, "no counts", readings(t, w.e.Collector(), metrics.Executions), map[string]float64{})
		same(t, "the oldest", readings(t, w.e.Collector(), metrics.OldestReadySeconds), map[string]float64{"[default]": waited})
		if families := readings(t, w.e.Collector(), metrics.Workers); len(families) != 3 {
			t.Fatalf("workers: %v", families)
		}
		s.counts.Store(false)
		s.firsts.Store(true)
		waited = w.projected(since)
		same(t, "counts", readings(t, w.e.Collector(), metrics.Executions), map[string]float64{"[default ready]": 1})
		same(t, "the claim is not known", readings(t, w.e.Collector(), metrics.OldestReadySeconds), map[string]float64{"[default]": waited})
		s.firsts.Store(false)
		w.take(ask())
		w.projected(since)
		same(t, "claimed", readings(t, w.e.Collector(), metrics.OldestReadySeconds), map[string]float64{"[default]": 0})
	})
}
