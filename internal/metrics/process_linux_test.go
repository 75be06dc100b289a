package metrics_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

func TestU214_a_process_tells_what_it_takes(t *testing.T) {
	t.Parallel()
	all := readings(t, metrics.Process())
	for name, bounds := range map[string][2]float64{
		"process_cpu_seconds_total":            {0, 3600},
		"process_max_fds":                      {16, 1 << 40},
		"process_network_receive_bytes_total":  {0, 1e18},
		"process_network_transmit_bytes_total": {0, 1e18},
		"process_open_fds":                     {3, 10000},
		"process_resident_memory_bytes":        {1 << 20, 1 << 36},
		"process_start_time_seconds":           {float64(time.Now().Add(-time.Hour).Unix()), float64(time.Now().Add(time.Minute).Unix())},
		"process_virtual_memory_bytes":         {1 << 20, 1 << 50},
		"process_virtual_memory_max_bytes":     {1 << 20, 1 << 64},
	} {
		value, shown := all[name]
		if delete(all, name); !shown || !(value.Value >= bounds[0] && value.Value <= bounds[1]) {
			t.Errorf("%s: %v %v, want %v", name, shown, value.Value, bounds)
		}
	}
	for name := range all {
		t.Errorf("%s is new", name)
	}
}

func TestU214_open_files_and_their_limit_are_counted(t *testing.T) {
	t.Parallel()
	const files, others = 100, 20 // other tests open and close some meanwhile
	before := readings(t, metrics.Process())
	for range files {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
	}
	after := readings(t, metrics.Process())
	if opened := after["process_open_fds"].Value - before["process_open_fds"].Value; opened < files-others || opened > files+others {
		t.Errorf("%v files were opened", opened)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || after["process_max_fds"].Value != float64(limit.Cur) {
		t.Errorf("%v %v", err, after["process_max_fds"])
	}
}
