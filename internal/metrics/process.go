package metrics

// The metrics of a process.
var (
	processCPU = Metric{Name: "process_cpu_seconds_total", Type: TypeCounter, Help: "Processor time so far, of the program and of the system for it."}
	maxFDs     = Metric{Name: "process_max_fds", Type: TypeGauge, Help: "Files that may be open."}
	openFDs    = Metric{Name: "process_open_fds", Type: TypeGauge, Help: "Files that are open."}
	received   = Metric{Name: "process_network_receive_bytes_total", Type: TypeCounter, Help: "Bytes that came over the network in which the process is."}
	sent       = Metric{Name: "process_network_transmit_bytes_total", Type: TypeCounter, Help: "Bytes that went over the network in which the process is."}
	resident   = Metric{Name: "process_resident_memory_bytes", Type: TypeGauge, Help: "Memory that is in use."}
	startTime  = Metric{Name: "process_start_time_seconds", Type: TypeGauge, Help: "When the process started, in seconds since 1970."}
	virtual    = Metric{Name: "process_virtual_memory_bytes", Type: TypeGauge, Help: "Addresses that are in use."}
	maxVirtual = Metric{Name: "process_virtual_memory_max_bytes", Type: TypeGauge, Help: "Addresses that may be in use."}
)

// Process tells what this process takes of its machine (U214): process_*. Only Linux tells it; what cannot be read is missing.
func Process() Collector { return process{} }

type process struct{}
