package schedule

import (
	"cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Key names a firing within its schedule (T24). Keys order by moment.
type Key struct {
	Moment base.Time `json:"moment"`
	Call   base.UUID `json:"call,omitzero"` // of a run by hand or a repeated backfill, which are firings of their own; zero: the moment itself
	Run    bool      `json:"run,omitempty"` // the row is a run of moments that did not start, of which Moment is the first
}

// Compare orders keys.
func (k Key) Compare(other Key) int {
	order := cmp.Or(cmp.Compare(k.Moment, other.Moment), cmp.Compare(string(k.Call[:]), string(other.Call[:])))
	if order != 0 || k.Run == other.Run {
		return order
	}
	if k.Run {
		return 1
	}
	return -1
}

// Firing is what became of one moment, or of an uninterrupted run of moments that were skipped or missed: a row of the history (T44).
type Firing struct {
	Key
	DueAt     base.Time `json:"due_at"`
	At        base.Time `json:"at"` // of the last decision
	Cause     Cause     `json:"cause"`
	Outcome   Outcome   `json:"outcome"`
	Reason    string    `json:"reason,omitempty"`     // of a moment that did not start: a word, or the code of the refusal
	Target    base.ID   `json:"target,omitzero"`      // the execution or flow that was submitted
	Blocker   base.ID   `json:"blocker,omitzero"`     // the open work that is in the way
	Status    string    `json:"status,omitempty"`     // the final status of the target; "": it has not ended
	EndedAt   base.Time `json:"ended_at,omitempty"`   // when the target ended
	By        string    `json:"by,omitempty"`         // who ran or backfilled it
	Overlap   Overlap   `json:"overlap,omitempty"`    // of a run by hand or a backfill; "": that of the schedule
	Last      base.Time `json:"last,omitempty"`       // of a run: its last moment
	Count     int64     `json:"count,omitempty"`      // of a run: the number of its moments
	AtLeast   bool      `json:"at_least,omitempty"`   // there are more than Count
	Tries     int       `json:"tries,omitempty"`      // refusals so far
	NotBefore base.Time `json:"not_before,omitempty"` // of a moment that is retried
}

// Cause is why a moment fires (T26).
type Cause string

// The values of Cause.
const (
	CauseTimer    Cause = "timer"
	CauseCatchUp  Cause = "catch_up" // it fires although it is late
	CauseManual   Cause = "manual"
	CauseBackfill Cause = "backfill"
)

// byClock reports whether the cause counts for max_runs (T35).
func (c Cause) byClock() bool { return c == CauseTimer || c == CauseCatchUp }

// Outcome is what became of a firing.
type Outcome string

// The values of Outcome.
const (
	Submitted Outcome = "submitted"
	Queued    Outcome = "queued"
	Retrying  Outcome = "retrying"
	Skipped   Outcome = "skipped"
	Missed    Outcome = "missed"
	Refused   Outcome = "refused"
)

// Reasons of firings that were skipped or missed.
const (
	ReasonOverlap     = "overlap"       // work of an earlier moment is open
	ReasonSuperseded  = "superseded"    // a later moment waits in its place
	ReasonQueueFull   = "queue_full"    // 1000 moments wait
	ReasonTooManyOpen = "too_many_open" // 1000 firings are open
	ReasonRunsUsedUp  = "runs_used_up"  // max_runs was reached while it waited
	ReasonChanged     = "changed"       // the definition was changed before it was due, or while it waited
	ReasonCatchUp     = "catch_up_"     // and the policy: it was late
)

// Final statuses of work that count for pause_after_failures (T34). All others count neither way.
const (
	StatusSucceeded = "succeeded"
	StatusFailed    = "failed"
	StatusExpired   = "expired"
)

// backoff returns how long a moment waits after so many refusals (T29).
func backoff(tries int) base.Millis {
	const longest = 5 * base.Minute
	if tries > 8 {
		return longest
	}
	return min(base.Second<<tries, longest)
}

// Event is an event of a schedule (T57). The one who writes it adds name and id.
type Event struct {
	Type        string
	ScheduledAt base.Time // of EventFired
	LateMS      base.Millis
	Target      base.ID
	First, Last base.Time // of EventSkipped, EventMissed and EventRefused
	Count       int64
	AtLeast     bool
	Cause       Cause
	Reason      string // a word, the code of a refusal, or what a person stated
	By          string
}

// The types of events.
const (
	EventCreated = "schedule.created"
	EventUpdated = "schedule.updated"
	EventDeleted = "schedule.deleted"
	EventPaused  = "schedule.paused"
	EventResumed = "schedule.resumed"
	EventEnded   = "schedule.ended"
	EventFired   = "schedule.fired"
	EventSkipped = "schedule.skipped"
	EventMissed  = "schedule.missed"
	EventRefused = "schedule.refused"
)
