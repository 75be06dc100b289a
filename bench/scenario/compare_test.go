package scenario

import (
	"testing"

	"github.com/flowfabric/flowfabric/bench/measure"
)

func reported(throughput, p99 measure.Spread) *Report {
	return &Report{
		Scenario: "cycle", Valid: true,
		Summary: Summary{ThroughputPerS: throughput, LatencyMS: map[string]LatencySummary{"start": {P99: p99}}},
	}
}

func spread(low, median, high float64) measure.Spread {
	return measure.Spread{Median: median, Min: low, Max: high, N: 3}
}

func TestU262_compare_tells_what_is_worse_beyond_the_bounds_and_the_spread(t *testing.T) {
	t.Parallel()
	old := reported(spread(95, 100, 105), spread(9, 10, 11))
	for _, c := range []struct {
		name                     string
		next                     *Report
		throughput, p99          string
		throughputRatio, p99Most float64
	}{
		{"the same", reported(spread(95, 100, 105), spread(9, 10, 11)), "same", "same", 1, 11.0 / 9},
		{"slower by more than a tenth, apart", reported(spread(80, 85, 88), spread(9, 10, 11)), "worse", "same", 0.85, 11.0 / 9},
		{"slower by more than a tenth, overlapping", reported(spread(80, 85, 96), spread(9, 10, 11)), "same", "same", 0.85, 11.0 / 9},
		{"slower by less than a tenth, apart", reported(spread(90, 92, 94), spread(9, 10, 11)), "same", "same", 0.92, 11.0 / 9},
		{"faster", reported(spread(120, 130, 140), spread(5, 6, 7)), "better", "better", 1.3, 7.0 / 9},
		{"later by more than a fifth, apart", reported(spread(95, 100, 105), spread(12, 13, 18)), "same", "worse", 1, 2},
		{"later by less than a fifth, apart", reported(spread(95, 100, 105), spread(11.5, 11.9, 12)), "same", "same", 1, 12.0 / 9},
	} {
		all, err := Compare([]*Report{old}, []*Report{c.next})
		if err != nil || len(all) != 2 {
			t.Fatalf("%s: %v %v", c.name, all, err)
		}
		if all[0].Verdict != c.throughput || all[1].Verdict != c.p99 {
			t.Errorf("%s: %s and %s, want %s and %s", c.name, all[0].Verdict, all[1].Verdict, c.throughput, c.p99)
		}
		if all[0].Ratio != c.throughputRatio || all[1].RatioMax != c.p99Most {
			t.Errorf("%s: ratios %v and %v, want %v and %v", c.name, all[0].Ratio, all[1].RatioMax, c.throughputRatio, c.p99Most)
		}
	}
}

func TestU262_compare_refuses_what_cannot_be_compared(t *testing.T) {
	t.Parallel()
	old := reported(spread(1, 1, 1), spread(1, 1, 1))
	invalid, other, elsewhere, larger := *old, *old, *old, *old
	invalid.Valid = false
	other.Scenario = "steady"
	elsewhere.Via = "http"
	larger.Params = map[string]any{"n": 1.0}
	for _, next := range []*Report{&invalid, &other, &elsewhere, &larger} {
		if all, err := Compare([]*Report{old}, []*Report{next}); err == nil {
			t.Errorf("%+v was compared: %v", next, all)
		}
	}
}
