package metrics

import (
	"slices"
	"sync"
	"sync/atomic"
)

// The instruments of a metric, one for each combination of label values.
type (
	// Counters are the counts of a Counter.
	Counters = Vector[Count]
	// Gauges are the levels of a Gauge.
	Gauges = Vector[Level]
	// Histograms are the observers of a Histogram.
	Histograms = Vector[Observer]
)

// Vector are the instruments of one metric. Anybody may use it at any time.
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

// newVector makes the instruments whose labels are known: a rate sees their first step.
func newVector[T any](of Metric, instrument func() *T, read func(*T) Sample) *Vector[T] {
	v := &Vector[T]{of: of, fresh: instrument, read: read, all: map[string]labelled[T]{}}
	for _, values := range of.combinations() {
		v.With(values...)
	}
	return v
}

// With finds or makes the instrument of these label values, which stand in the order of the metric's labels. Keep it where every
// nanosecond counts. To find one makes no garbage.
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
	if found, known = v.all[string(key)]; !known { // another may have been faster
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

// appendKey makes one text of several labels. What parts them is in no text that is valid UTF-8.
func appendKey(key []byte, labels []string) []byte {
	for _, label := range labels {
		key = append(append(key, label...), 0xff)
	}
	return key
}

// Count only grows.
type Count struct{ n atomic.Uint64 }

// New makes the counts, of every combination of labels that is known.
func (c Counter) New() *Counters {
	return newVector(c.Metric, func() *Count { return &Count{} }, func(n *Count) Sample { return Sample{Value: float64(n.n.Load())} })
}

// Inc counts one.
func (c *Count) Inc() { c.n.Add(1) }

// Add counts several. Less than one counts nothing.
func (c *Count) Add(n int64) {
	if n > 0 {
		c.n.Add(uint64(n))
	}
}

// Level goes up and down.
type Level struct{ n atomic.Int64 }

// New makes the levels, of every combination of labels that is known.
func (g Gauge) New() *Gauges {
	return newVector(g.Metric, func() *Level { return &Level{} }, func(l *Level) Sample { return Sample{Value: float64(l.n.Load())} })
}

// Inc goes up by one.
func (l *Level) Inc() { l.n.Add(1) }

// Dec goes down by one.
func (l *Level) Dec() { l.n.Add(-1) }
