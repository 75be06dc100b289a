package metrics

import "sync"

// Observer counts values by how high they are. A lock costs less than numbers that processors take from each other one by one, and
// whoever reads finds count and sum of the same values.
type Observer struct {
	mu     sync.Mutex
	values Spread
}

// New makes the observers, of every combination of labels that is known.
func (h Histogram) New() *Histograms {
	return newVector(h.Metric, func() *Observer { return &Observer{values: *newSpread(h.Metric, nil)} }, (*Observer).sample)
}

// Observe adds a value.
func (o *Observer) Observe(value float64) {
	o.mu.Lock()
	o.values.Observe(value)
	o.mu.Unlock()
}

// sample reads the observer.
func (o *Observer) sample() Sample {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.values.sample()
}

// Spread is a histogram in plain memory.
type Spread struct {
	labels []string
	bounds []float64
	counts []uint64 // one a bound, and those above all bounds
	sum    float64
}

func newSpread(of Metric, labels []string) *Spread {
	return &Spread{labels: labels, bounds: of.Buckets, counts: make([]uint64, len(of.Buckets)+1)}
}

// Observe adds a value. What is no number is above all bounds.
func (s *Spread) Observe(value float64) {
	at := 0
	for at < len(s.bounds) && !(value <= s.bounds[at]) {
		at++
	}
	s.counts[at]++
	s.sum += value
}

// sample reads the histogram.
func (s *Spread) sample() Sample {
	below, points := uint64(0), make([]float64, len(s.bounds))
	for i := range s.bounds {
		below += s.counts[i]
		points[i] = float64(below)
	}
	return Sample{Labels: s.labels, Value: s.sum, Count: float64(below + s.counts[len(s.bounds)]), Points: points}
}
