package flowfabric

import "github.com/flowfabric/flowfabric/api"

// NewCheckup combines checks: it is OK if none of them failed.
func NewCheckup(checks ...api.Check) api.Checkup { return api.NewCheckup(checks...) }

// BackupOptions are the options of Backup.
type BackupOptions struct {
	// Progress is called from time to time with the number of pages copied so far. It is called from other goroutines, one at a
	// time; may be nil.
	Progress func(pages, total int)
}
