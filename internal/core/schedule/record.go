package schedule

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Schedule is the record of a schedule (T1, T2). No function changes one that it is given.
type Schedule struct {
	ID         base.UUID  `json:"schedule_id"`
	Namespace  string     `json:"namespace"`
	Name       string     `json:"name"`
	Revision   int64      `json:"revision"` // of the definition, from 1
	Definition Definition `json:"definition"`

	State     State     `json:"state"`
	Pause     Pause     `json:"paused,omitzero"`
	EndedAt   base.Time `json:"ended_at,omitempty"` // of an ended schedule
	ThroughAt base.Time `json:"through_at"`         // every moment up to it is settled
	NextAt    base.Time `json:"next_at,omitempty"`  // the next moment; 0: none, or the schedule is not active
	NextDueAt base.Time `json:"next_due_at,omitempty"`
	TimerAt   base.Time `json:"timer_at,omitempty"` // the earliest alarm in the index; 0: none

	Runs          int64    `json:"runs,omitempty"`            // submits by the clock (T35)
	Open          []Firing `json:"open,omitempty"`            // firings whose work has not ended, in the order in which they started
	Queue         []Firing `json:"queue,omitempty"`           // firings that wait, in order of their moments
	Run           *Firing  `json:"run,omitempty"`             // the row that the next moment extends if it is skipped or missed for the same reason
	FailuresInRow int      `json:"failures_in_row,omitempty"` // T34
	Counts        Counts   `json:"counts,omitzero"`
	Rows          int64    `json:"rows,omitempty"`   // of the history
	Latest        *Firing  `json:"latest,omitempty"` // the firing that was decided last

	CreatedAt base.Time `json:"created_at"`
	UpdatedAt base.Time `json:"updated_at"` // of the definition
	By        string    `json:"by"`         // who put it last, the creator of what it submits
}

// Pause is who paused a schedule, and why. The zero Pause is none.
type Pause struct {
	By     string    `json:"by"`
	At     base.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Counts counts what became of moments in the life of a schedule.
type Counts struct {
	Submitted int64 `json:"submitted"`
	Skipped   int64 `json:"skipped"`
	Missed    int64 `json:"missed"`
	Refused   int64 `json:"refused"`
}

// State is the state of a schedule.
type State string

// The values of State.
const (
	Active State = "active"
	Paused State = "paused"
	Ended  State = "ended" // no moment is left
)

// Bounds of a record (T2), and of what one transaction does (T22).
const (
	MaxOpen       = 1000
	MaxQueue      = 1000
	maxSubmits    = 100
	maxFlows      = 1
	onTime        = base.Minute // a moment is late after it (T25)
	maxCounted    = 100_000     // moments that are counted one by one
	engineName    = "engine"    // who pauses after failures
	DefaultKeep   = 30 * base.Day
	maxTrimmed    = 100
	maxBackfilled = 10_000
)

// copy returns a record that may be changed.
func (r *Schedule) copy() Schedule {
	c := *r
	c.Open, c.Queue = slices.Clone(r.Open), slices.Clone(r.Queue)
	if r.Run != nil {
		run := *r.Run
		c.Run = &run
	}
	return c
}

// runsUsedUp reports whether max_runs was reached (T35).
func (r *Schedule) runsUsedUp() bool {
	return r.Definition.MaxRuns > 0 && r.Runs >= r.Definition.MaxRuns
}

// jitter returns the jitter of the schedule.
func (r *Schedule) jitter() base.Millis { return Jitter(r.ID, r.Definition.JitterMS) }
