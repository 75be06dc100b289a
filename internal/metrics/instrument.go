package metrics

import (
	"slices"
	"sync"
	"sync/atomic"
)

// The instruments of a metric, one per combination of label values.
type (
	// Counters are the instruments of a Counter.
	Counters = Vector[Count]
	// Gauges are the instruments of a Gauge.
	Gauges = Vector[Level]
	// Histograms are the instruments of a Histogram.
	Histograms = Vector[Observer]
)

// Vector are the instruments of one metric. It is safe for concurrent use.
type Vector[T any] struct {
	of    Metric
	fresh func() *T
	read  func(*T) Sample

	mu  sync.RWMutex
	all map[string]labelled[T]
}

// labelled is an instrument with its labels.
type labelled[T any] struct {
	labels     []string
	instrument *T
}

// newVector creates the instruments with known labels, so that rate() sees their first increase.
func newVector[T any](of Metric, instrument func() *T, read func(*T) Sample) *Vector[T] {
	v := &Vector[T]{of: of, fresh: instrument, read: read, all: map[string]labelled[T]{}}
	for _, values := range of.combinations() {
		v.With(values...)
	}
	return v
}

// With returns the instrument with these label values, in the order of the metric's labels. On hot paths keep the result. A
// lookup does not allocate.
func (v *Vector[T]) With(labels ...string) *T {
	var space [128]byte
	key := appendKey(space[:0], labels)
	v.mu.RLock()
	found, known := v.all[string(key)]
	v.mu.RUnlock()
	if known {
		return found.instrument
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if found, known = v.all[string(key)]; !known { // another goroutine may have created it
		found = labelled[T]{slices.Clone(labels), v.fresh()}
		v.all[string(key)] = found
	}
	return found.instrument
}

// Collect reads the instruments.
func (v *Vector[T]) Collect() []Family {
	family := v.of.Family()
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, one := range v.all {
		sample := v.read(one.instrument)
		sample.Labels = one.labels
		family.Samples = append(family.Samples, sample)
	}
	return []Family{family}
}

// appendKey joins labels with a separator that valid UTF-8 cannot contain.
func appendKey(key []byte, labels []string) []byte {
	for _, label := range labels {
		key = append(append(key, label...), 0xff)
	}
	return key
}

// Count is a counter.
type Count struct{ n atomic.Uint64 }

// New creates the counters for every known combination of labels.
func (c Counter) New() *Counters {
	return newVector(c.Metric, func() *Count { return &Count{} }, func(n *Count) Sample { return Sample{Value: float64(n.n.Load())} })
}

// Inc adds one.
func (c *Count) Inc() { c.n.Add(1) }

// Add adds n; n below 1 is ignored.
func (c *Count) Add(n int64) {
	if n > 0 {
		c.n.Add(uint64(n))
	}
}

// Level is a gauge.
type Level struct{ n atomic.Int64 }

// New creates the gauges for every known combination of labels.
func (g Gauge) New() *Gauges {
	return newVector(g.Metric, func() *Level { return &Level{} }, func(l *Level) Sample { return Sample{Value: float64(l.n.Load())} })
}

// Inc adds one.
func (l *Level) Inc() { l.n.Add(1) }

// Dec subtracts one.
func (l *Level) Dec() { l.n.Add(-1) }
