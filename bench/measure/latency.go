package measure

import (
	"slices"
	"sync"
	"time"
)

// Durations gathers how long something took, from many goroutines. The zero value is empty and ready.
type Durations struct {
	mu  sync.Mutex
	all []time.Duration
}

// Add adds one.
func (d *Durations) Add(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, took)
}

// Len is how many there are.
func (d *Durations) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// Latency describes all that were added, in milliseconds.
func (d *Durations) Latency() Latency {
	d.mu.Lock()
	defer d.mu.Unlock()
	return LatencyOf(d.all)
}

// Latency describes many durations in milliseconds. Percentiles are values that occurred.
type Latency struct {
	N         int      `json:"n"`
	Mean      float64  `json:"mean"`
	P50       float64  `json:"p50"`
	P95       float64  `json:"p95"`
	P99       float64  `json:"p99"`
	P999      float64  `json:"p999"`
	Max       float64  `json:"max"`
	Histogram []Bucket `json:"histogram"`
}

// Bucket counts durations above the bound of the bucket before it and up to its own.
type Bucket struct {
	UpTo float64 `json:"up_to"` // milliseconds
	N    int     `json:"n"`
}

// LatencyOf describes durations; it sorts them.
func LatencyOf(all []time.Duration) Latency {
	l := Latency{N: len(all), Histogram: []Bucket{}}
	if len(all) == 0 {
		return l
	}
	slices.Sort(all)
	var sum float64
	bound := firstBound
	for _, d := range all {
		ms := Millis(d)
		sum += ms
		for ms > bound {
			bound *= 2
		}
		if last := len(l.Histogram) - 1; last >= 0 && l.Histogram[last].UpTo == bound {
			l.Histogram[last].N++
			continue
		}
		l.Histogram = append(l.Histogram, Bucket{UpTo: bound, N: 1})
	}
	l.Mean = sum / float64(len(all))
	l.P50, l.P95, l.P99, l.P999 = percentile(all, 0.5), percentile(all, 0.95), percentile(all, 0.99), percentile(all, 0.999)
	l.Max = Millis(all[len(all)-1])
	return l
}

// firstBound is the bound of the lowest bucket in milliseconds; each further one is twice the one before.
const firstBound = 0.125

// percentile of sorted durations, in milliseconds.
func percentile(sorted []time.Duration, p float64) float64 {
	return Millis(sorted[min(int(p*float64(len(sorted))), len(sorted)-1)])
}

// Millis is a duration in milliseconds, to the microsecond.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
