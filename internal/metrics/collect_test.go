package metrics_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

func TestU199_metrics_that_contradict_each_other_are_not_shown(t *testing.T) {
	t.Parallel()
	m := metrics.Metric{Name: "a", Type: metrics.TypeGauge, Labels: labels("x"), Help: "A."}
	other := m
	other.Help = "B."
	short := metrics.Family{Metric: spread.Metric, Samples: []metrics.Sample{{Labels: []string{"a"}}}}
	for what, c := range map[string]struct {
		all  metrics.Registry
		says string
	}{
		"the same sample twice":       {metrics.Registry{fixed{m.Reading(1, "v")}, fixed{m.Reading(2, "w"), m.Reading(1, "v")}}, `a has two samples with the labels ["v"]`},
		"one name for two metrics":    {metrics.Registry{fixed{m.Reading(1, "v")}, fixed{other.Reading(1, "w")}}, "a is two different metrics"},
		"too few labels":              {metrics.Registry{fixed{m.Reading(1)}}, "a has a sample with 0 labels"},
		"too many labels":             {metrics.Registry{fixed{m.Reading(1, "v", "w")}}, "a has a sample with 2 labels"},
		"a histogram without buckets": {metrics.Registry{fixed{short}}, "h has a sample with 1 labels"},
	} {
		code, _, text := page(t, c.all, "")
		if code != 500 || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s", what, code, text)
		}
	}
	code, _, text := page(t, metrics.Compressed(metrics.Registry{fixed{m.Reading(1)}}), "gzip")
	if code != 500 || !strings.Contains(text, "a has a sample") {
		t.Errorf("compressed: %d %s", code, text)
	}
}

func TestU199_two_collectors_may_share_a_metric(t *testing.T) {
	t.Parallel()
	m := metrics.Metric{Name: "a", Type: metrics.TypeGauge, Labels: labels("x"), Help: "A."}
	shows(t, metrics.Registry{fixed{m.Reading(2, "w")}, fixed{m.Reading(1, "v")}}, "# HELP a A.\n# TYPE a gauge\na{x=\"v\"} 1\na{x=\"w\"} 2\n")
}

func TestU199_what_a_collector_keeps_is_not_touched(t *testing.T) {
	t.Parallel()
	family := metrics.Metric{Name: "a", Type: metrics.TypeGauge, Labels: labels("x"), Help: "A."}.Family()
	family.Add(2, "w")
	family.Add(1, "v")
	if _, err := (metrics.Registry{fixed{family}}).Gather(); err != nil || family.Samples[0].Value != 2 {
		t.Errorf("%v %v", err, family.Samples)
	}
}

func TestU199_code_and_table_are_compared_both_ways(t *testing.T) {
	t.Parallel()
	var all fixed
	for _, m := range metrics.All() {
		if m.Place == metrics.Worker {
			all = append(all, m.Family())
		}
	}
	if err := metrics.Compare(metrics.Worker, all); err != nil {
		t.Error(err)
	}
	changed := all[1]
	changed.Help += " And more."
	for what, c := range map[string]struct {
		has  fixed
		says string
	}{
		"one is missing":       {all[1:], all[0].Name + " is only in the table"},
		"one is unknown":       {append(all[:len(all):len(all)], metrics.Metric{Name: "ff_new_total"}.Family()), "ff_new_total is not in the table"},
		"one is there twice":   {append(all[:len(all):len(all)], all[0]), all[0].Name + " is not in the table, or twice"},
		"one is another":       {append(fixed{changed, all[0]}, all[2:]...), changed.Name + " is not in the table"},
		"one of another place": {append(all[:len(all):len(all)], metrics.Claims.Family()), metrics.Claims.Name + " is not in the table"},
	} {
		if err := metrics.Compare(metrics.Worker, c.has); err == nil || err.Error() != c.says && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestU199_a_counter_never_goes_down(t *testing.T) {
	t.Parallel()
	c := metrics.Counter{Metric: metrics.Metric{Name: "a_total", Type: metrics.TypeCounter, Help: "A."}}.New()
	c.With().Add(5)
	c.With().Add(-3)
	c.With().Add(0)
	shows(t, metrics.Registry{c}, "# HELP a_total A.\n# TYPE a_total counter\na_total 5\n")
}

func TestU199_samples_whose_labels_are_known_exist_from_the_start(t *testing.T) {
	t.Parallel()
	m := metrics.Metric{Name: "a_total", Type: metrics.TypeCounter, Help: "A.", Labels: []metrics.Label{{Name: "y", Values: []string{"1", "2"}}, {Name: "x", Values: []string{"v"}}}}
	shows(t, metrics.Registry{metrics.Counter{Metric: m}.New()}, "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"v\",y=\"1\"} 0\na_total{x=\"v\",y=\"2\"} 0\n")
}

func TestU199_to_find_an_instrument_makes_no_garbage(t *testing.T) {
	c := metrics.HTTPRequests.New()
	if n := testing.AllocsPerRun(100, func() { c.With("/v1/executions/{id}", "GET", "200").Inc() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestU199_anybody_may_measure_while_somebody_reads(t *testing.T) {
	t.Parallel()
	const hands, times = 8, 500
	counters, levels, spreads := metrics.HTTPRequests.New(), metrics.HTTPInFlight.New(), spread.New()
	registry := metrics.Registry{counters, levels, spreads}
	var all sync.WaitGroup
	for hand := range hands {
		all.Go(func() {
			for i := range times {
				lane := string(rune('a' + (hand+i)%4))
				counters.With("/"+lane, "GET", "200").Inc()
				levels.With("call").Inc()
				spreads.With(lane).Observe(1)
				levels.With("call").Dec()
				if i%50 == 0 {
					consistent(t, registry)
				}
			}
		})
	}
	all.Wait()
	requests, level, seen, sum := 0.0, 0.0, 0.0, 0.0
	for _, family := range registry.Collect() {
		for _, s := range family.Samples {
			switch family.Type {
			case metrics.TypeCounter:
				requests += s.Value
			case metrics.TypeGauge:
				level += s.Value
			default:
				seen, sum = seen+s.Count, sum+s.Value
			}
		}
	}
	if got, want := [4]float64{requests, level, seen, sum}, [4]float64{hands * times, 0, hands * times, hands * times}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// consistent fails if a reading contradicts itself.
func consistent(t *testing.T, r metrics.Registry) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, family := range families {
		for _, s := range family.Samples {
			if family.Type == metrics.TypeHistogram && (s.Points[len(s.Points)-1] != s.Count || s.Value != s.Count) { // every value is 1
				t.Errorf("%+v", s)
			}
		}
	}
}
