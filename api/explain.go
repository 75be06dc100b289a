package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Explanation says why an execution is not running, computed by the rules that decide it.
type Explanation struct {
	ExecutionID ID        `json:"execution_id" doc:"Id of the execution."`
	Status      Status    `json:"status" doc:"The stored status."`
	Reason      string    `json:"reason" doc:"Reason for the status."`
	Since       time.Time `json:"since,omitzero" doc:"Since when it has this status and reason."`
	Summary     string    `json:"summary" doc:"Summary in one or two sentences."`
	Blockers    []Blocker `json:"blockers" nil:"[]" doc:"All causes that keep it from running, in the order in which to remove them; empty if it runs or has ended."`
	// NextEligibleAt is zero if unknown.
	NextEligibleAt time.Time        `json:"next_eligible_at,omitzero" doc:"When it can be claimed if nothing else changes; absent if unknown."`
	Position       *QueuePosition   `json:"position,omitempty" doc:"Position in the queue, if ready."`
	Workers        CandidateWorkers `json:"workers" doc:"Workers that could claim it."`
	History        []StatusChange   `json:"history" nil:"[]" doc:"Last changes of status and reason, oldest first, as far as the event log reaches."`
	Holder         *LeaseHolder     `json:"holder,omitempty" doc:"Worker that runs it."`
	Outcome        string           `json:"outcome,omitempty" doc:"How it ended, if it has."`
}

// Blocker is one cause that keeps an execution from running.
type Blocker struct {
	Code    string          `json:"code" doc:"suspended, dependencies, children, subflow, delay, operator_hold, grant, lane_state, lane_cap, no_live_worker, no_capable_worker, budget, rate, concurrency, workers_busy or in_line."`
	Message string          `json:"message" doc:"One sentence with its numbers."`
	Since   time.Time       `json:"since,omitzero" doc:"Since when."`
	Until   time.Time       `json:"until,omitzero" doc:"When it ends without intervention."` // zero: it does not, or unknown
	Data    json.RawMessage `json:"data,omitempty" doc:"Details by name."`                   // an object
}

// QueuePosition is the position of an execution in its lane.
type QueuePosition struct {
	Ahead       int    `json:"ahead" doc:"Ready executions before it; exact up to 10,000."`
	AtLeast     bool   `json:"at_least,omitempty" doc:"There are more than ahead."`
	FairnessKey string `json:"fairness_key,omitempty" doc:"Fairness key that it shares turns with."` // "": the lane has no fairness
	AheadOfKey  int    `json:"ahead_of_key,omitempty" doc:"Those ahead with the same key."`
	Keys        int    `json:"keys,omitempty" doc:"Keys that take turns."`
	Weight      int    `json:"weight,omitempty" doc:"Weight of its key."`
}

// CandidateWorkers are the workers that could claim an execution.
type CandidateWorkers struct {
	Live     int               `json:"live" doc:"Live worker instances."`
	OnLane   int               `json:"on_lane" doc:"Those that claim from its lane."`
	Matching int               `json:"matching" doc:"Those that also accept its kind and namespace."`
	Nearest  []CandidateWorker `json:"nearest" nil:"[]" doc:"The five with the fewest obstacles."`
}

// CandidateWorker is a worker instance and why it cannot claim an execution.
type CandidateWorker struct {
	WorkerID   string   `json:"worker_id" doc:"The worker."`
	InstanceID string   `json:"worker_instance_id" doc:"Its instance."`
	Unmet      []string `json:"unmet" nil:"[]" doc:"Why it cannot claim it: lane, namespace, kind, capability:<token>, draining or no_free_place."`
}

// StatusChange is a change of status or reason.
type StatusChange struct {
	At     time.Time `json:"at" doc:"When."`
	Status Status    `json:"status" doc:"Status from then on."`
	Reason string    `json:"reason" doc:"Its reason."`
	Event  string    `json:"event,omitempty" doc:"Kind of the event."`
}

// LeaseHolder is the worker that runs an execution.
type LeaseHolder struct {
	WorkerID     string    `json:"worker_id" doc:"The worker."`
	InstanceID   string    `json:"worker_instance_id" doc:"Its instance."`
	LeaseID      string    `json:"lease_id" doc:"Id of its lease."`
	LeaseEpoch   int64     `json:"lease_epoch" doc:"Epoch of its lease."`
	AcquiredAt   time.Time `json:"acquired_at" doc:"When it claimed the execution."`
	RenewedAt    time.Time `json:"renewed_at" doc:"When the lease was last renewed."`
	ExpiresAt    time.Time `json:"expires_at" doc:"When the lease lapses unless renewed."`
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
func (n CandidateWorkers) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&n) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (n *CandidateWorkers) UnmarshalJSON(text []byte) error { return readAnswer(text, n) }

// MarshalJSON writes the worker as the HTTP API shows it.
func (n CandidateWorker) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&n) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (n *CandidateWorker) UnmarshalJSON(text []byte) error { return readAnswer(text, n) }

// MarshalJSON writes the change as the HTTP API shows it.
func (c StatusChange) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *StatusChange) UnmarshalJSON(text []byte) error { return readAnswer(text, c) }

// MarshalJSON writes the holder as the HTTP API shows it.
func (h LeaseHolder) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&h) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (h *LeaseHolder) UnmarshalJSON(text []byte) error { return readAnswer(text, h) }
