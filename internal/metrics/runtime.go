package metrics

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Metrics of Go's runtime that are not from runtime/metrics.
var (
	goroutines = Metric{Name: "go_goroutines", Type: TypeGauge, Help: "Goroutines."}
	threads    = Metric{Name: "go_threads", Type: TypeGauge, Help: "Threads created."}
	goInfo     = Metric{Name: "go_info", Type: TypeGauge, Labels: []Label{{Name: "version"}}, Help: "1, with the version of Go."}
	gcPauses   = Metric{
		Name: "go_gc_duration_seconds", Type: TypeSummary, Buckets: []float64{0, 0.25, 0.5, 0.75, 1},
		Help: "Pauses of the program for garbage collection.",
	}
	gcLast = Metric{Name: "go_memstats_last_gc_time_seconds", Type: TypeGauge, Help: "End of the last garbage collection, in seconds since 1970."}
)

// Runtime returns metrics of the Go runtime (U214): go_*.
func Runtime() Collector { return goRuntime{} }

type goRuntime struct{}

// Collect reads the runtime.
func (goRuntime) Collect() []Family {
	created, _ := runtime.ThreadCreateProfile(nil)
	all := []Family{goroutines.Reading(float64(runtime.NumGoroutine())), threads.Reading(float64(created)), goInfo.Reading(1, runtime.Version())}
	return append(append(all, collections()...), sums()...)
}

// collections returns garbage collection metrics.
func collections() []Family {
	stats := debug.GCStats{PauseQuantiles: make([]time.Duration, len(gcPauses.Buckets))}
	debug.ReadGCStats(&stats)
	pauses := Sample{Value: stats.PauseTotal.Seconds(), Count: float64(stats.NumGC)}
	for _, quantile := range stats.PauseQuantiles {
		pauses.Points = append(pauses.Points, quantile.Seconds())
	}
	return []Family{{gcPauses, []Sample{pauses}}, gcLast.Reading(float64(stats.LastGC.UnixNano()) / 1e9)}
}

// sums adds up values of runtime/metrics.
func sums() []Family {
	var samples []metrics.Sample
	for _, sum := range runtimeSums {
		for _, name := range sum.of {
			samples = append(samples, metrics.Sample{Name: name})
		}
	}
	metrics.Read(samples)
	var all []Family
	for _, sum := range runtimeSums {
		value := uint64(0)
		for range sum.of {
			if samples[0].Value.Kind() == metrics.KindUint64 { // otherwise this release of Go does not have it
				value += samples[0].Value.Uint64()
			}
			samples = samples[1:]
		}
		all = append(all, sum.Metric.Reading(float64(value)))
	}
	return all
}
