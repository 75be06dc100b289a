package sqlite

import "testing"

// The directory of a process is one that cannot be synced.
func TestI1_a_log_whose_name_is_not_synced_is_not_in_use(t *testing.T) {
	t.Parallel()
	log := &writeAhead{path: "/proc/self/comm"}
	t.Cleanup(func() { _ = log.close() })
	if err := log.sync(); err == nil || log.file != nil {
		t.Errorf("%v; in use: %v", err, log.file != nil)
	}
}
