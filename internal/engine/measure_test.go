package engine_test

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// gauge reads a metric that has no labels.
func gauge(t *testing.T, e *engine.Engine, m metrics.Gauge) float64 {
	t.Helper()
	for _, collect := range []func() []metrics.Family{e.Gauges.Known, e.Collector().Collect} { // the first does not wait for the store
		for _, family := range collect() {
			if family.Name == m.Name {
				return family.Samples[0].Value
			}
		}
	}
	t.Fatalf("no %s", m.Name)
	return 0
}

func TestU212_rows_that_are_set_aside_are_counted_until_they_are_mended(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		bad := w.submit(core.Submission{Kind: "bad", DelayMS: ptr(int64(1000))})
		closeEngine(t, w.e)
		poison := &poisoned{Store: w.store, id: bad.UUID}
		w.store = poison
		w.e = w.openEngine(poison)
		same(t, "none at first", gauge(t, w.e, metrics.Quarantined), 0)
		w.turn(1000)
		eventually(t, "one is set aside", func() bool { return gauge(t, w.e, metrics.Quarantined) == 1 })
		poison.cure.Store(true)
		w.turn(5000)
		w.becomes(bad, core.Ready)
		w.turn(5000)
		eventually(t, "none is left", func() bool { return gauge(t, w.e, metrics.Quarantined) == 0 })
	})
}

func TestU212_every_timer_that_the_sweep_turns_has_a_label_of_the_table(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{}, func(t *testing.T, w *world) {
		labels, known := w.e.TimerLabels(), metrics.TimersFired.Describe().Labels[0].Values
		slices.Sort(labels)
		same(t, "labels", labels, slices.Sorted(slices.Values(known)))
	})
}

func TestU213_the_distance_between_the_clocks_is_told(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.unaudited = true
		w.setBack(5000)
		w.turn(1000) // to the next look at the store
		eventually(t, "the host is 5 s ahead", func() bool { return gauge(t, w.e, metrics.ClockSkewSeconds) == 5 })
	})
}

func TestU199_a_stopped_engine_tells_what_it_counted_and_asks_no_store(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{})
		closeEngine(t, w.e)
		families, err := metrics.Registry{w.e.Collector()}.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, family := range families {
			found[family.Name] = true
		}
		same(t, "counters", found[metrics.Submitted.Name], true)
		same(t, "gauges", found[metrics.Executions.Name], false)
	})
}
