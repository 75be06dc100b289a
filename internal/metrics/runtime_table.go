package metrics

// runtimeSums are the metrics of Go's runtime that are sums of what package runtime/metrics tells. It tells that without stopping the
// program. The names are those under which programs in Go are known to Prometheus.
var runtimeSums = []struct {
	Metric
	of []string
}{
	{
		Metric{Name: "go_gc_gogc_percent", Type: TypeGauge, Help: "How much the heap may grow before it is collected, in percent (GOGC)."},
		[]string{"/gc/gogc:percent"},
	},
	{
		Metric{Name: "go_gc_gomemlimit_bytes", Type: TypeGauge, Help: "How much memory the runtime tries to stay below (GOMEMLIMIT)."},
		[]string{"/gc/gomemlimit:bytes"},
	},
	{
		Metric{Name: "go_memstats_alloc_bytes", Type: TypeGauge, Help: "Memory of objects on the heap."},
		[]string{"/memory/classes/heap/objects:bytes"},
	},
	{
		Metric{Name: "go_memstats_alloc_bytes_total", Type: TypeCounter, Help: "Memory that was given to objects so far."},
		[]string{"/gc/heap/allocs:bytes"},
	},
	{
		Metric{Name: "go_memstats_buck_hash_sys_bytes", Type: TypeGauge, Help: "Memory of the tables of profiles."},
		[]string{"/memory/classes/profiling/buckets:bytes"},
	},
	{
		Metric{Name: "go_memstats_frees_total", Type: TypeCounter, Help: "Objects that were freed so far."},
		[]string{"/gc/heap/frees:objects", "/gc/heap/tiny/allocs:objects"},
	},
	{
		Metric{Name: "go_memstats_gc_sys_bytes", Type: TypeGauge, Help: "Memory of what the runtime notes about the heap."},
		[]string{"/memory/classes/metadata/other:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_alloc_bytes", Type: TypeGauge, Help: "Memory of objects on the heap; the same as go_memstats_alloc_bytes."},
		[]string{"/memory/classes/heap/objects:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_idle_bytes", Type: TypeGauge, Help: "Memory of the heap in which there is nothing."},
		[]string{"/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_inuse_bytes", Type: TypeGauge, Help: "Memory of the heap in which there are objects."},
		[]string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_objects", Type: TypeGauge, Help: "Objects on the heap."},
		[]string{"/gc/heap/objects:objects"},
	},
	{
		Metric{Name: "go_memstats_heap_released_bytes", Type: TypeGauge, Help: "Memory of the heap that the system has back."},
		[]string{"/memory/classes/heap/released:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_sys_bytes", Type: TypeGauge, Help: "Memory that the heap had from the system."},
		[]string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes"},
	},
	{
		Metric{Name: "go_memstats_mallocs_total", Type: TypeCounter, Help: "Objects that were made so far."},
		[]string{"/gc/heap/allocs:objects", "/gc/heap/tiny/allocs:objects"},
	},
	{
		Metric{Name: "go_memstats_mcache_inuse_bytes", Type: TypeGauge, Help: "Memory of the caches of processors that are in use."},
		[]string{"/memory/classes/metadata/mcache/inuse:bytes"},
	},
	{
		Metric{Name: "go_memstats_mcache_sys_bytes", Type: TypeGauge, Help: "Memory of the caches of processors."},
		[]string{"/memory/classes/metadata/mcache/inuse:bytes", "/memory/classes/metadata/mcache/free:bytes"},
	},
	{
		Metric{Name: "go_memstats_mspan_inuse_bytes", Type: TypeGauge, Help: "Memory of the descriptions of spans that are in use."},
		[]string{"/memory/classes/metadata/mspan/inuse:bytes"},
	},
	{
		Metric{Name: "go_memstats_mspan_sys_bytes", Type: TypeGauge, Help: "Memory of the descriptions of spans."},
		[]string{"/memory/classes/metadata/mspan/inuse:bytes", "/memory/classes/metadata/mspan/free:bytes"},
	},
	{
		Metric{Name: "go_memstats_next_gc_bytes", Type: TypeGauge, Help: "Size of the heap at which the next collection ends."},
		[]string{"/gc/heap/goal:bytes"},
	},
	{
		Metric{Name: "go_memstats_other_sys_bytes", Type: TypeGauge, Help: "Memory of the runtime that is counted nowhere else."},
		[]string{"/memory/classes/other:bytes"},
	},
	{
		Metric{Name: "go_memstats_stack_inuse_bytes", Type: TypeGauge, Help: "Memory of the heap that stacks use."},
		[]string{"/memory/classes/heap/stacks:bytes"},
	},
	{
		Metric{Name: "go_memstats_stack_sys_bytes", Type: TypeGauge, Help: "Memory of stacks, those of the system's threads too."},
		[]string{"/memory/classes/heap/stacks:bytes", "/memory/classes/os-stacks:bytes"},
	},
	{
		Metric{Name: "go_memstats_sys_bytes", Type: TypeGauge, Help: "Memory that the process had from the system."},
		[]string{"/memory/classes/total:bytes"},
	},
	{
		Metric{Name: "go_sched_gomaxprocs_threads", Type: TypeGauge, Help: "Threads that run Go code at the same time (GOMAXPROCS)."},
		[]string{"/sched/gomaxprocs:threads"},
	},
}
