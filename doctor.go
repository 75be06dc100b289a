package flowfabric

import "time"

// Checkup is the outcome of Doctor.
type Checkup struct {
	OK     bool // nothing failed; there may be warnings
	Checks []Check
}

// Check is what is said of one thing.
type Check struct {
	Name   string // stable: store, version, durability, schema, clock, ...
	State  string // CheckOK, CheckWarn or CheckFail
	Detail string // what was found and what it means
	Hint   string // what to do; "" when nothing is to be done
}

// The states of a check.
const (
	CheckOK   = "ok"
	CheckWarn = "warn" // it works, but somebody should look
	CheckFail = "fail" // it does not work, or promises are not kept
)

// NewCheckup puts checks together: OK when none of them failed.
func NewCheckup(checks ...Check) Checkup {
	found := Checkup{OK: true, Checks: checks}
	for _, c := range checks {
		found.OK = found.OK && c.State != CheckFail
	}
	return found
}

// Rollback is a loss of acknowledged commits: the database came back without them, after a failover to a standby that was behind or
// a restore of an older copy.
type Rollback struct {
	From        int64  // the newest position of the event log that was known before
	To          int64  // where the event log ended when the loss was noticed
	Incarnation string // names the database as it came back
	At          time.Time
}

// Setting is a setting in force.
type Setting struct {
	Name   string // of its environment variable: FF_MAX_PAYLOAD
	Value  string // "" when it is not set; of a secret "set"
	Source string // "default", "file", "environment", "flag", or "program" for what a program gave to Open
}

// BackupOptions say how a copy is made.
type BackupOptions struct {
	// Progress hears now and then how many pages of the copy are there. It is called from other goroutines, one at a time; nil: nobody
	// wants to know.
	Progress func(pages, total int)
}
