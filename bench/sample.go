package bench

import (
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/bench/measure"
)

// Value is one figure of a sample.
type Value struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // "1/s", "ms"
}

// Sample is what one turn of a scenario measured.
type Sample struct {
	StartedAt time.Time         `json:"started_at"`
	DurationS float64           `json:"duration_s"`
	Values    []Value           `json:"values"`
	Settings  map[string]string `json:"settings,omitempty"` // of the store, where they matter
	Failures  []string          `json:"failures,omitempty"` // checks that did not hold; a sample with any is not valid
}

// Rate adds a figure in things a second.
func (s *Sample) Rate(name string, n int, took time.Duration) {
	s.Values = append(s.Values, Value{Name: name, Value: float64(n) / took.Seconds(), Unit: "1/s"})
}

// Fail notes a check that did not hold.
func (s *Sample) Fail(format string, args ...any) {
	s.Failures = append(s.Failures, fmt.Sprintf(format, args...))
}

// Latency adds two percentiles of durations.
func (s *Sample) Latency(name string, all []time.Duration) {
	l := measure.LatencyOf(all)
	s.Values = append(s.Values, Value{Name: name + ".p50", Value: l.P50, Unit: "ms"}, Value{Name: name + ".p99", Value: l.P99, Unit: "ms"})
}

// Summary is the middle and the spread of a figure over the samples.
type Summary struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	measure.Spread
}

// Summarize gathers figures of one name over samples, in the order in which they first occur.
func Summarize(samples []*Sample) []Summary {
	values := map[string][]float64{}
	var order []Summary
	for _, s := range samples {
		for _, v := range s.Values {
			if values[v.Name] == nil {
				order = append(order, Summary{Name: v.Name, Unit: v.Unit})
			}
			values[v.Name] = append(values[v.Name], v.Value)
		}
	}
	for i := range order {
		order[i].Spread = measure.SpreadOf(values[order[i].Name])
	}
	return order
}
