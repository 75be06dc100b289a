package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Explanation says why an execution is not running, by the rules that decide over it.
type Explanation struct {
	ExecutionID ID        `json:"execution_id" doc:"Id of the execution."`
	Status      Status    `json:"status" doc:"The one stored status."`
	Reason      string    `json:"reason" doc:"Why it has this status."`
	Since       time.Time `json:"since,omitzero" doc:"Since when it has status and reason."`
	Summary     string    `json:"summary" doc:"The answer in one sentence or two."`
	Blockers    []Blocker `json:"blockers" nil:"[]" doc:"Every cause that keeps it from running, the first to be removed first. None of what runs or is over."`
	// NextEligibleAt is zero when nobody knows.
	NextEligibleAt time.Time      `json:"next_eligible_at,omitzero" doc:"When it may be claimed if nothing else changes; absent when nobody knows."`
	Position       *LinePlace     `json:"position,omitempty" doc:"Its place in line, of what is ready."`
	Workers        NearWorkers    `json:"workers" doc:"Who could take it."`
	History        []StatusChange `json:"history" nil:"[]" doc:"The last changes of status and reason, oldest first, as far as the event log tells them."`
	Holder         *LeaseHolder   `json:"holder,omitempty" doc:"Who runs it."`
	Outcome        string         `json:"outcome,omitempty" doc:"Of what is over: how it ended."`
}

// Blocker is one cause that keeps an execution from running.
type Blocker struct {
	Code    string          `json:"code" doc:"suspended, dependencies, children, subflow, delay, operator_hold, grant, lane_state, lane_cap, no_live_worker, no_capable_worker, budget, rate, concurrency, workers_busy or in_line."`
	Message string          `json:"message" doc:"One sentence with its numbers."`
	Since   time.Time       `json:"since,omitzero" doc:"Since when it stands."`
	Until   time.Time       `json:"until,omitzero" doc:"When it ends by itself."` // zero: it does not, or nobody knows
	Data    json.RawMessage `json:"data,omitempty" doc:"Its numbers, by name."`   // an object
}

// LinePlace is the place of an execution in its lane.
type LinePlace struct {
	Ahead       int    `json:"ahead" doc:"Ready executions that come before it; exact up to 10 000."`
	AtLeast     bool   `json:"at_least,omitempty" doc:"There are more than ahead."`
	FairnessKey string `json:"fairness_key,omitempty" doc:"Key whose turns it shares."` // "": the lane has no fairness
	AheadOfKey  int    `json:"ahead_of_key,omitempty" doc:"Those ahead under its own key."`
	Keys        int    `json:"keys,omitempty" doc:"Keys that take turns."`
	Weight      int    `json:"weight,omitempty" doc:"Weight of its key."`
}

// NearWorkers tells who could take an execution.
type NearWorkers struct {
	Live     int          `json:"live" doc:"Live worker instances."`
	OnLane   int          `json:"on_lane" doc:"Those of them that take from its lane."`
	Matching int          `json:"matching" doc:"Those of them that take such work."`
	Nearest  []NearWorker `json:"nearest" nil:"[]" doc:"The five that come nearest."`
}

// NearWorker is a worker instance and what keeps it from taking an execution.
type NearWorker struct {
	WorkerID   string   `json:"worker_id" doc:"The worker."`
	InstanceID string   `json:"worker_instance_id" doc:"Its instance."`
	Unmet      []string `json:"unmet" nil:"[]" doc:"What keeps it away: lane, namespace, kind, capability:<token>, draining or no_free_place."`
}

// StatusChange is a change of status or reason.
type StatusChange struct {
	At     time.Time `json:"at" doc:"When."`
	Status Status    `json:"status" doc:"Status from then on."`
	Reason string    `json:"reason" doc:"Its reason."`
	Event  string    `json:"event,omitempty" doc:"Kind of the event that told it."`
}

// LeaseHolder is who runs an execution.
type LeaseHolder struct {
	WorkerID     string    `json:"worker_id" doc:"The worker."`
	InstanceID   string    `json:"worker_instance_id" doc:"Its instance."`
	LeaseID      string    `json:"lease_id" doc:"Id of its lease."`
	LeaseEpoch   int64     `json:"lease_epoch" doc:"Epoch of its lease."`
	AcquiredAt   time.Time `json:"acquired_at" doc:"Since when it runs there."`
	RenewedAt    time.Time `json:"renewed_at" doc:"When the lease was last renewed."`
	ExpiresAt    time.Time `json:"expires_at" doc:"When the lease runs out unless it is renewed."`
	AttemptIndex int       `json:"attempt_index" doc:"Index of the attempt."`
}

// MarshalJSON writes the explanation as the HTTP API shows it.
func (e Explanation) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&e) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (e *Explanation) UnmarshalJSON(text []byte) error { return readAnswer(text, e) }

// MarshalJSON writes the cause as the HTTP API shows it.
func (b Blocker) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&b) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (b *Blocker) UnmarshalJSON(text []byte) error { return readAnswer(text, b) }

// MarshalJSON writes the workers as the HTTP API shows them.
func (n NearWorkers) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&n) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (n *NearWorkers) UnmarshalJSON(text []byte) error { return readAnswer(text, n) }

// MarshalJSON writes the worker as the HTTP API shows it.
func (n NearWorker) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&n) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (n *NearWorker) UnmarshalJSON(text []byte) error { return readAnswer(text, n) }

// MarshalJSON writes the change as the HTTP API shows it.
func (c StatusChange) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *StatusChange) UnmarshalJSON(text []byte) error { return readAnswer(text, c) }

// MarshalJSON writes the holder as the HTTP API shows it.
func (h LeaseHolder) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&h) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (h *LeaseHolder) UnmarshalJSON(text []byte) error { return readAnswer(text, h) }
