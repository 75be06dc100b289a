package flowfabric

import "github.com/flowfabric/flowfabric/api"

// Checkup is the outcome of Doctor.
type Checkup = api.Checkup

// Check is what is said of one thing.
type Check = api.Check

// The states of a check.
const (
	CheckOK   = api.CheckOK
	CheckWarn = api.CheckWarn // it works, but somebody should look
	CheckFail = api.CheckFail // it does not work, or promises are not kept
)

// NewCheckup puts checks together: OK when none of them failed.
func NewCheckup(checks ...Check) Checkup { return api.NewCheckup(checks...) }

// Rollback is a loss of acknowledged commits: the database came back without them, after a failover to a standby that was behind or
// a restore of an older copy.
type Rollback = api.Rollback

// Setting is a setting in force.
type Setting = api.Setting

// BackupOptions say how a copy is made.
type BackupOptions struct {
	// Progress is told now and then how many pages of the copy are there. It is called from other goroutines, one at a time; nil: it is not
	// asked for.
	Progress func(pages, total int)
}
