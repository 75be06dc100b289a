package flowfabric

import "github.com/flowfabric/flowfabric/api"

// Checkup is the outcome of Doctor.
type Checkup = api.Checkup

// Check is the outcome of one check.
type Check = api.Check

// The states of a check.
const (
	CheckOK   = api.CheckOK
	CheckWarn = api.CheckWarn // it works, but needs attention
	CheckFail = api.CheckFail // it does not work, or a guarantee does not hold
)

// NewCheckup combines checks: it is OK if none of them failed.
func NewCheckup(checks ...Check) Checkup { return api.NewCheckup(checks...) }

// Rollback is a loss of acknowledged commits: the database lost them in a failover to a standby that was behind, or in a restore
// of an older copy.
type Rollback = api.Rollback

// Setting is a setting in force.
type Setting = api.Setting

// BackupOptions are the options of Backup.
type BackupOptions struct {
	// Progress is called from time to time with the number of pages copied so far. It is called from other goroutines, one at a
	// time; may be nil.
	Progress func(pages, total int)
}
