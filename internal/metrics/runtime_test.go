package metrics_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

// runtimeNames are the metrics of a program in Go as its tools and dashboards know them.
const runtimeNames = `
go_gc_duration_seconds go_gc_gogc_percent go_gc_gomemlimit_bytes go_goroutines go_info go_memstats_alloc_bytes go_memstats_alloc_bytes_total
go_memstats_buck_hash_sys_bytes go_memstats_frees_total go_memstats_gc_sys_bytes go_memstats_heap_alloc_bytes go_memstats_heap_idle_bytes
go_memstats_heap_inuse_bytes go_memstats_heap_objects go_memstats_heap_released_bytes go_memstats_heap_sys_bytes go_memstats_last_gc_time_seconds
go_memstats_mallocs_total go_memstats_mcache_inuse_bytes go_memstats_mcache_sys_bytes go_memstats_mspan_inuse_bytes go_memstats_mspan_sys_bytes
go_memstats_next_gc_bytes go_memstats_other_sys_bytes go_memstats_stack_inuse_bytes go_memstats_stack_sys_bytes go_memstats_sys_bytes
go_sched_gomaxprocs_threads go_threads`

// readings are the values of a collector's metrics, which must have one sample each, by name.
func readings(t *testing.T, c metrics.Collector) map[string]metrics.Sample {
	t.Helper()
	families, err := metrics.Registry{c}.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]metrics.Sample{}
	for _, family := range families {
		if len(family.Samples) != 1 || family.Help == "" || strings.HasSuffix(family.Name, "_total") != (family.Type == metrics.TypeCounter) {
			t.Errorf("%+v", family)
		}
		all[family.Name] = family.Samples[0]
	}
	return all
}

func TestU214_the_runtime_tells_of_itself(t *testing.T) {
	t.Parallel()
	runtime.GC()
	all := readings(t, metrics.Runtime())
	for _, name := range strings.Fields(runtimeNames) {
		sample, shown := all[name]
		if delete(all, name); !shown || sample.Value < 0 || sample.Value == 0 && (strings.HasSuffix(name, "_sys_bytes") || strings.HasSuffix(name, "_inuse_bytes")) {
			t.Errorf("%s: %v %+v", name, shown, sample)
		}
	}
	for name := range all {
		t.Errorf("%s is new", name)
	}
}

func TestU214_what_the_runtime_tells_fits_together(t *testing.T) {
	t.Parallel()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	all := readings(t, metrics.Runtime())
	value := func(name string) float64 { return all["go_"+name].Value }
	if value("memstats_alloc_bytes_total") < float64(stats.TotalAlloc) || value("memstats_mallocs_total") < float64(stats.Mallocs) || value("memstats_frees_total") < float64(stats.Frees) {
		t.Errorf("less than a moment ago: %+v", all)
	}
	if value("memstats_heap_inuse_bytes")+value("memstats_heap_idle_bytes") != value("memstats_heap_sys_bytes") || value("memstats_heap_objects") != value("memstats_mallocs_total")-value("memstats_frees_total") {
		t.Errorf("parts are not the whole: %+v", all)
	}
	if value("sched_gomaxprocs_threads") != float64(runtime.GOMAXPROCS(0)) || value("goroutines") < 2 || value("threads") < 1 || value("memstats_last_gc_time_seconds") < 1e9 {
		t.Errorf("%+v", all)
	}
	if info := all["go_info"]; info.Value != 1 || info.Labels[0] != runtime.Version() {
		t.Errorf("%+v", info)
	}
	if pauses := all["go_gc_duration_seconds"]; pauses.Count < 1 || pauses.Value <= 0 || pauses.Points[0] > pauses.Points[4] || pauses.Points[4] <= 0 {
		t.Errorf("%+v", pauses)
	}
	_, _, text := page(t, metrics.Registry{metrics.Runtime()}, "")
	for _, line := range []string{"# TYPE go_gc_duration_seconds summary\ngo_gc_duration_seconds{quantile=\"0\"} ", "go_gc_duration_seconds{quantile=\"0.75\"} ", "\ngo_gc_duration_seconds_sum ", "\ngo_gc_duration_seconds_count "} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s", line)
		}
	}
}
