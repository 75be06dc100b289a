package metrics

// The metrics of a process.
var (
	processCPU = Metric{Name: "process_cpu_seconds_total", Type: TypeCounter, Help: "Processor time used, user and system."}
	maxFDs     = Metric{Name: "process_max_fds", Type: TypeGauge, Help: "Maximum number of open files."}
	openFDs    = Metric{Name: "process_open_fds", Type: TypeGauge, Help: "Open files."}
	received   = Metric{Name: "process_network_receive_bytes_total", Type: TypeCounter, Help: "Bytes received in the network namespace of the process."}
	sent       = Metric{Name: "process_network_transmit_bytes_total", Type: TypeCounter, Help: "Bytes sent in the network namespace of the process."}
	resident   = Metric{Name: "process_resident_memory_bytes", Type: TypeGauge, Help: "Resident memory."}
	startTime  = Metric{Name: "process_start_time_seconds", Type: TypeGauge, Help: "Start time of the process, in seconds since 1970."}
	virtual    = Metric{Name: "process_virtual_memory_bytes", Type: TypeGauge, Help: "Virtual memory."}
	maxVirtual = Metric{Name: "process_virtual_memory_max_bytes", Type: TypeGauge, Help: "Maximum virtual memory."}
)

// Process returns the resource use of this process (U214): process_*. It exists only on Linux; values that cannot be read are
// missing.
func Process() Collector { return process{} }

type process struct{}
