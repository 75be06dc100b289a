package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Checkup is what the doctor found.
type Checkup struct {
	OK     bool    `json:"ok" doc:"Nothing failed."` // there may be warnings
	Checks []Check `json:"checks" doc:"One entry a check."`
}

// Check is what is said of one thing.
type Check struct {
	Name   string `json:"name" doc:"What was checked."`               // stable: store, version, durability, schema, clock, ...
	State  string `json:"state" enum:"ok,warn,fail" doc:"How it is."` // CheckOK, CheckWarn or CheckFail
	Detail string `json:"detail" doc:"What that means."`              // what was found and what it means
	Hint   string `json:"hint,omitempty" doc:"What to do."`           // "" when nothing is to be done
}

// The states of a check.
const (
	CheckOK   = "ok"
	CheckWarn = "warn" // it works, but somebody should look
	CheckFail = "fail" // it does not work, or promises are not kept
)

// NewCheckup puts checks together: OK when none of them failed.
func NewCheckup(checks ...Check) Checkup {
	found := Checkup{OK: true, Checks: append([]Check{}, checks...)}
	for _, c := range checks {
		found.OK = found.OK && c.State != CheckFail
	}
	return found
}

// Integrity is the outcome of a recount.
type Integrity struct {
	OK          bool         `json:"ok" doc:"There is no difference."`
	Checked     []string     `json:"checked" doc:"What was recounted."`
	Differences []Difference `json:"differences,omitempty" doc:"What does not agree."`
}

// Difference is something that does not agree with the records.
type Difference struct {
	What   string `json:"what" doc:"What was recounted."`
	Key    string `json:"key" doc:"Of which thing."`
	Stored int64  `json:"stored" doc:"What is stored."`
	Found  int64  `json:"found" doc:"What the recount found."`
}

// Rollbacks are the losses that were acknowledged.
type Rollbacks struct {
	Rollbacks []Rollback `json:"rollbacks" doc:"The oldest first; empty when none was open."`
}

// Rollback is a loss of acknowledged commits: the database came back without them, after a failover to a standby that was behind or
// a restore of an older copy.
type Rollback struct {
	From        int64     `json:"from_position" doc:"The newest position of the event log that was known before."`
	To          int64     `json:"to_position" doc:"Where the event log ended when the loss was noticed."`
	Incarnation string    `json:"incarnation" doc:"Names the database as it came back."`
	At          time.Time `json:"at,omitzero" doc:"When the loss was noticed."`
}

// MarshalJSON writes the losses as the HTTP API shows them.
func (r Rollbacks) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Rollbacks) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }

// MarshalJSON writes the loss as the HTTP API shows it.
func (r Rollback) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Rollback) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }
