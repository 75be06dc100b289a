package flowfabric

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
)

// ExplainOptions say whether to wait.
type ExplainOptions struct {
	// Wait makes the call wait until status, reason or causes change, for so long; 0: it answers at once, more than a minute
	// counts as one.
	Wait time.Duration
}

// Explanation says why an execution is not running, by the rules that decide over it.
type Explanation struct {
	ExecutionID    ID
	Status         Status
	Reason         string
	Since          time.Time // of status and reason
	Summary        string
	Blockers       []Blocker // every cause, in the order in which they stand in the way; none of what runs or is over
	NextEligibleAt time.Time // when it may be claimed if nothing else changes; zero: nobody knows
	Position       *LinePlace
	Workers        NearWorkers
	History        []StatusChange // the last changes, oldest first, as far as the event log tells them
	Holder         *LeaseHolder   // who runs it
	Outcome        string         // of what is over: how it ended
}

// Blocker is one cause that keeps an execution from running.
type Blocker struct {
	// Code is suspended, dependencies, children, subflow, delay, operator_hold, grant, lane_state, lane_cap, no_live_worker,
	// no_capable_worker, budget, rate, concurrency, workers_busy or in_line.
	Code    string
	Message string // one sentence with its numbers
	Since   time.Time
	Until   time.Time       // when it ends by itself; zero: it does not, or nobody knows
	Data    json.RawMessage // its numbers by name; an object
}

// LinePlace is the place of an execution in its lane.
type LinePlace struct {
	Ahead       int    // ready executions that come before it; exact up to 10 000
	AtLeast     bool   // there are more
	FairnessKey string // whose turns it shares; "": the lane has no fairness
	AheadOfKey  int    // those of them under its own key
	Keys        int    // that take turns
	Weight      int    // of its key
}

// NearWorkers tells who could take an execution.
type NearWorkers struct {
	Live     int // instances
	OnLane   int // those that take from its lane
	Matching int // those that take such work
	Nearest  []NearWorker
}

// NearWorker is a worker instance and what keeps it from taking an execution.
type NearWorker struct {
	WorkerID   string
	InstanceID string
	Unmet      []string // lane, namespace, kind, capability:<token>, draining, no_free_place
}

// StatusChange is a change of status or reason.
type StatusChange struct {
	At     time.Time
	Status Status
	Reason string
	Event  string // kind of the event that told it
}

// LeaseHolder is who runs an execution.
type LeaseHolder struct {
	WorkerID     string
	InstanceID   string
	LeaseID      string
	LeaseEpoch   int64
	AcquiredAt   time.Time
	RenewedAt    time.Time
	ExpiresAt    time.Time
	AttemptIndex int
}

func explanationOf(e core.Explanation) *Explanation {
	shown := &Explanation{
		ExecutionID: ID(e.ExecutionID.String()), Status: Status(e.Status.String()), Reason: e.Reason.String(), Since: e.Since.Std(),
		Summary: e.Summary, NextEligibleAt: e.NextEligibleAt.Std(), Outcome: e.Outcome,
		Workers: NearWorkers{Live: e.Workers.Live, OnLane: e.Workers.OnLane, Matching: e.Workers.Matching},
	}
	for _, b := range e.Blockers {
		shown.Blockers = append(shown.Blockers, Blocker{Code: b.Code, Message: b.Message, Since: b.Since.Std(), Until: b.Until.Std(), Data: b.Data})
	}
	for _, w := range e.Workers.Nearest {
		shown.Workers.Nearest = append(shown.Workers.Nearest, NearWorker(w))
	}
	for _, c := range e.History {
		shown.History = append(shown.History, StatusChange{At: c.At.Std(), Status: Status(c.Status.String()), Reason: c.Reason.String(), Event: c.Event})
	}
	if e.Position != nil {
		place := LinePlace(*e.Position)
		shown.Position = &place
	}
	if r := e.Running; r != nil {
		shown.Holder = &LeaseHolder{
			WorkerID: r.Lease.WorkerID, InstanceID: r.Lease.InstanceID, LeaseID: r.Lease.ID.String(), LeaseEpoch: r.Epoch,
			AcquiredAt: r.Lease.AcquiredAt.Std(), RenewedAt: r.Lease.RenewedAt.Std(), ExpiresAt: r.Lease.ExpiresAt.Std(), AttemptIndex: r.Attempt,
		}
	}
	return shown
}
