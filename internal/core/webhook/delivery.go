package webhook

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// The states of a delivery.
const (
	Pending   = "pending"   // it waits for an attempt, its first or a further one
	Done      = "delivered" // the receiver has it
	Dead      = "dead"      // its tenth attempt failed
	Cancelled = "cancelled" // the receiver answered 410 while it was pending
)

// Attempt is one request and what became of it.
type Attempt struct {
	At         base.Time `json:"at"`
	Status     int       `json:"status,omitempty"` // of HTTP; 0: there was no answer
	DurationMS int64     `json:"duration_ms"`
	Error      string    `json:"error,omitempty"`
	Answer     []byte    `json:"answer,omitempty"` // the first MaxAnswer bytes
}

// Delivery is one event on its way to one endpoint. The event itself is kept beside it.
type Delivery struct {
	ID         base.UUID `json:"delivery_id"`
	EventID    base.UUID `json:"event_id"`
	Kind       string    `json:"kind"`     // of the event
	EventAt    base.Time `json:"event_at"` // of the event
	State      string    `json:"state"`
	CreatedAt  base.Time `json:"created_at"`
	Attempts   int       `json:"attempts"`           // in its life
	Failures   int       `json:"failures,omitempty"` // since it was last sent on purpose
	DueAt      base.Time `json:"due_at,omitzero"`    // of the next attempt, after a failure
	FinishedAt base.Time `json:"finished_at,omitzero"`
	Last       *Attempt  `json:"last,omitempty"`
}

// Answered returns the delivery after an attempt that ended now, and what the answer means. An attempt that was interrupted counts for nothing: kept
// is false.
func (d Delivery) Answered(a Answer, at, now base.Time, jitter float64) (next Delivery, v Verdict, kept bool) {
	if Interrupted(a) {
		return d, Verdict{}, false
	}
	d.Attempts++
	d.Last = &Attempt{At: at, Status: a.Status, DurationMS: a.Duration.Milliseconds(), Error: a.Err, Answer: a.Body}
	v = Judge(a)
	d.DueAt = 0
	switch v.Outcome {
	case Delivered:
		d.State, d.FinishedAt, d.Failures = Done, now, 0
		return d, v, true
	case Gone:
		d.State, d.FinishedAt = Cancelled, now
		return d, v, true
	}
	d.Failures++
	if pause, again := v.Delay(d.Failures, jitter); again {
		d.State, d.DueAt = Pending, now.Add(pause.Milliseconds())
	} else {
		d.State, d.FinishedAt = Dead, now
	}
	return d, v, true
}

// Again returns the delivery as it is sent once more on purpose, with all attempts before it.
func (d Delivery) Again() Delivery {
	d.State, d.Failures, d.DueAt, d.FinishedAt = Pending, 0, 0, 0
	return d
}

// Cancel returns the delivery as it is not sent any more.
func (d Delivery) Cancel(now base.Time) Delivery {
	d.State, d.DueAt, d.FinishedAt = Cancelled, 0, now
	return d
}

// Interrupted reports whether the sender gave an attempt up for reasons of its own.
func Interrupted(a Answer) bool { return a.Err == ErrInterrupted }
