package metrics

import "sync"

// Observer is a histogram of values. It uses a lock, which is cheaper here than contended atomics and keeps count and sum
// consistent for readers.
type Observer struct {
	mu     sync.Mutex
	values Spread
}

// New creates the observers for every known combination of labels.
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

// Spread is a histogram without a lock.
type Spread struct {
	labels []string
	bounds []float64
	counts []uint64 // one per bound, and one above all bounds
	sum    float64
}

func newSpread(of Metric, labels []string) *Spread {
	return &Spread{labels: labels, bounds: of.Buckets, counts: make([]uint64, len(of.Buckets)+1)}
}

// Observe adds a value. NaN is counted above all bounds.
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
