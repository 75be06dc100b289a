package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Tallies are counters in plain memory. Their owner holds a lock around all use of them: where one lock serves a whole batch that costs
// a fraction of what counters cost that anybody may use at any time.
type Tallies struct {
	of   Counter
	desc *prometheus.Desc
	all  map[string]*Tally
}

// Tally is one counter of Tallies.
type Tally struct {
	labels []string
	n      uint64
}

// Tallies makes the counters in plain memory.
func (c Counter) Tallies() *Tallies { return &Tallies{of: c, desc: c.Desc(), all: map[string]*Tally{}} }

// With finds or makes the counter of these labels. Keep it: to find it takes time.
func (t *Tallies) With(labels ...string) *Tally {
	key := strings.Join(labels, "\xff")
	found := t.all[key]
	if found == nil {
		found = &Tally{labels: labels}
		t.all[key] = found
	}
	return found
}

// Inc counts one.
func (t *Tally) Inc() { t.n++ }

// Samples are the present readings.
func (t *Tallies) Samples() []prometheus.Metric {
	var samples []prometheus.Metric
	for _, one := range t.all {
		samples = append(samples, t.of.Sample(t.desc, float64(one.n), one.labels...))
	}
	return samples
}

// Desc is the description of the counters.
func (t *Tallies) Desc() *prometheus.Desc { return t.desc }

// Spreads are histograms in plain memory, as Tallies are counters.
type Spreads struct {
	bounds []float64
	desc   *prometheus.Desc
	all    map[string]*Spread
}

// Spread is one histogram of Spreads.
type Spread struct {
	labels []string
	bounds []float64
	counts []uint64 // one a bound, and those above all bounds
	sum    float64
}

// Spreads makes the histograms in plain memory.
func (h Histogram) Spreads() *Spreads {
	return &Spreads{bounds: h.Buckets, desc: h.Desc(), all: map[string]*Spread{}}
}

// With finds or makes the histogram of these labels. Keep it: to find it takes time.
func (s *Spreads) With(labels ...string) *Spread {
	key := strings.Join(labels, "\xff")
	found := s.all[key]
	if found == nil {
		found = &Spread{labels: labels, bounds: s.bounds, counts: make([]uint64, len(s.bounds)+1)}
		s.all[key] = found
	}
	return found
}

// Observe adds a value.
func (s *Spread) Observe(value float64) {
	at := 0
	for at < len(s.bounds) && value > s.bounds[at] {
		at++
	}
	s.counts[at]++
	s.sum += value
}

// Samples are the present readings.
func (s *Spreads) Samples() []prometheus.Metric {
	var samples []prometheus.Metric
	for _, one := range s.all {
		below, buckets := uint64(0), make(map[float64]uint64, len(s.bounds))
		for i, bound := range s.bounds {
			below += one.counts[i]
			buckets[bound] = below
		}
		n := below + one.counts[len(s.bounds)]
		samples = append(samples, prometheus.MustNewConstHistogram(s.desc, n, one.sum, buckets, one.labels...))
	}
	return samples
}

// Desc is the description of the histograms.
func (s *Spreads) Desc() *prometheus.Desc { return s.desc }
