package metrics

// runtimeSums are metrics of Go's runtime that are sums of values of package runtime/metrics, which are read without stopping the
// program. Their names are those that the Prometheus client library uses.
var runtimeSums = []struct {
	Metric
	of []string
}{
	{
		Metric{Name: "go_gc_gogc_percent", Type: TypeGauge, Help: "Heap growth before the next collection, in percent (GOGC)."},
		[]string{"/gc/gogc:percent"},
	},
	{
		Metric{Name: "go_gc_gomemlimit_bytes", Type: TypeGauge, Help: "Memory limit of the runtime (GOMEMLIMIT)."},
		[]string{"/gc/gomemlimit:bytes"},
	},
	{
		Metric{Name: "go_memstats_alloc_bytes", Type: TypeGauge, Help: "Memory of objects on the heap."},
		[]string{"/memory/classes/heap/objects:bytes"},
	},
	{
		Metric{Name: "go_memstats_alloc_bytes_total", Type: TypeCounter, Help: "Memory allocated for objects in total."},
		[]string{"/gc/heap/allocs:bytes"},
	},
	{
		Metric{Name: "go_memstats_buck_hash_sys_bytes", Type: TypeGauge, Help: "Memory of profiling tables."},
		[]string{"/memory/classes/profiling/buckets:bytes"},
	},
	{
		Metric{Name: "go_memstats_frees_total", Type: TypeCounter, Help: "Objects freed in total."},
		[]string{"/gc/heap/frees:objects", "/gc/heap/tiny/allocs:objects"},
	},
	{
		Metric{Name: "go_memstats_gc_sys_bytes", Type: TypeGauge, Help: "Memory of the heap's metadata."},
		[]string{"/memory/classes/metadata/other:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_alloc_bytes", Type: TypeGauge, Help: "Memory of objects on the heap; the same as go_memstats_alloc_bytes."},
		[]string{"/memory/classes/heap/objects:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_idle_bytes", Type: TypeGauge, Help: "Unused memory of the heap."},
		[]string{"/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_inuse_bytes", Type: TypeGauge, Help: "Heap memory in use."},
		[]string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_objects", Type: TypeGauge, Help: "Objects on the heap."},
		[]string{"/gc/heap/objects:objects"},
	},
	{
		Metric{Name: "go_memstats_heap_released_bytes", Type: TypeGauge, Help: "Heap memory returned to the system."},
		[]string{"/memory/classes/heap/released:bytes"},
	},
	{
		Metric{Name: "go_memstats_heap_sys_bytes", Type: TypeGauge, Help: "Heap memory obtained from the system."},
		[]string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes"},
	},
	{
		Metric{Name: "go_memstats_mallocs_total", Type: TypeCounter, Help: "Objects allocated in total."},
		[]string{"/gc/heap/allocs:objects", "/gc/heap/tiny/allocs:objects"},
	},
	{
		Metric{Name: "go_memstats_mcache_inuse_bytes", Type: TypeGauge, Help: "Memory of mcache structures in use."},
		[]string{"/memory/classes/metadata/mcache/inuse:bytes"},
	},
	{
		Metric{Name: "go_memstats_mcache_sys_bytes", Type: TypeGauge, Help: "Memory of mcache structures."},
		[]string{"/memory/classes/metadata/mcache/inuse:bytes", "/memory/classes/metadata/mcache/free:bytes"},
	},
	{
		Metric{Name: "go_memstats_mspan_inuse_bytes", Type: TypeGauge, Help: "Memory of mspan structures in use."},
		[]string{"/memory/classes/metadata/mspan/inuse:bytes"},
	},
	{
		Metric{Name: "go_memstats_mspan_sys_bytes", Type: TypeGauge, Help: "Memory of mspan structures."},
		[]string{"/memory/classes/metadata/mspan/inuse:bytes", "/memory/classes/metadata/mspan/free:bytes"},
	},
	{
		Metric{Name: "go_memstats_next_gc_bytes", Type: TypeGauge, Help: "Heap size at which the next collection ends."},
		[]string{"/gc/heap/goal:bytes"},
	},
	{
		Metric{Name: "go_memstats_other_sys_bytes", Type: TypeGauge, Help: "Other memory of the runtime."},
		[]string{"/memory/classes/other:bytes"},
	},
	{
		Metric{Name: "go_memstats_stack_inuse_bytes", Type: TypeGauge, Help: "Memory of stacks."},
		[]string{"/memory/classes/heap/stacks:bytes"},
	},
	{
		Metric{Name: "go_memstats_stack_sys_bytes", Type: TypeGauge, Help: "Memory of stacks, including those of system threads."},
		[]string{"/memory/classes/heap/stacks:bytes", "/memory/classes/os-stacks:bytes"},
	},
	{
		Metric{Name: "go_memstats_sys_bytes", Type: TypeGauge, Help: "Memory obtained from the system."},
		[]string{"/memory/classes/total:bytes"},
	},
	{
		Metric{Name: "go_sched_gomaxprocs_threads", Type: TypeGauge, Help: "Threads that can run Go code concurrently (GOMAXPROCS)."},
		[]string{"/sched/gomaxprocs:threads"},
	},
}
