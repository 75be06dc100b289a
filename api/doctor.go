package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// HealthReport is a health report.
type HealthReport struct {
	OK     bool    `json:"ok" doc:"No check failed."` // there may be warnings
	Checks []Check `json:"checks" doc:"One entry per check."`
}

// Check is the result of one check.
type Check struct {
	Name   string `json:"name" doc:"What was checked."`                         // stable: store, version, durability, schema, clock, ...
	State  string `json:"state" enum:"ok,warn,fail" doc:"Result of the check."` // CheckOK, CheckWarn or CheckFail
	Detail string `json:"detail" doc:"What was found, and what it means."`      // what was found and what it means
	Hint   string `json:"hint,omitempty" doc:"What to do."`                     // "" if there is nothing to do
}

// States of a check.
const (
	CheckOK   = "ok"
	CheckWarn = "warn" // it works, but needs attention
	CheckFail = "fail" // it does not work, or a guarantee does not hold
)

// NewHealthReport builds a report; OK is true if no check failed.
func NewHealthReport(checks ...Check) HealthReport {
	found := HealthReport{OK: true, Checks: append([]Check{}, checks...)}
	for _, c := range checks {
		found.OK = found.OK && c.State != CheckFail
	}
	return found
}

// Integrity is the result of an integrity check.
type Integrity struct {
	OK          bool         `json:"ok" doc:"There are no differences."`
	Checked     []string     `json:"checked" doc:"What was checked."`
	Differences []Difference `json:"differences,omitempty" doc:"Differences between stored and computed values."`
}

// Difference is a stored value that does not match the records.
type Difference struct {
	What   string `json:"what" doc:"What was checked."`
	Key    string `json:"key" doc:"The key of the entity."`
	Stored int64  `json:"stored" doc:"What is stored."`
	Found  int64  `json:"found" doc:"What the check computed."`
}

// Rollbacks are the acknowledged losses of commits.
type Rollbacks struct {
	Rollbacks []Rollback `json:"rollbacks" doc:"Oldest first; empty if none was open."`
}

// Rollback is a loss of acknowledged commits: the database came back without them, after a failover to a standby that was behind
// or a restore of an older copy.
type Rollback struct {
	From        int64     `json:"from_position" doc:"Newest position of the event log before the loss."`
	To          int64     `json:"to_position" doc:"End of the event log when the loss was detected."`
	Incarnation string    `json:"incarnation" doc:"Identifies the database as it came back."`
	At          time.Time `json:"at,omitzero" doc:"When the loss was detected."`
}

// MarshalJSON writes the losses as the HTTP API shows them.
func (r Rollbacks) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Rollbacks) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }

// MarshalJSON writes the loss as the HTTP API shows it.
func (r Rollback) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Rollback) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }
