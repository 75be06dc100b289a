package wire

import (
	"encoding/json"
	"net/http"
)

// ExplainExecution says why an execution is not running (U44).
var ExplainExecution = Call[ExplainRequest, Explanation]{&Operation{
	ID: "explain_execution", Rule: "U44", Method: http.MethodGet, Path: "/v1/executions/{id}/explain", Roles: Read | Submit, Only: ownToo,
	Go: "Executions.Explain", Command: "explain", Summary: "Say why an execution is not running, or wait until that changes",
	Status: []int{http.StatusOK}, Waits: true,
}}

// ExplainRequest asks why an execution is not running.
type ExplainRequest struct {
	ByID
	WaitFields
}

// Explanation says why an execution is not running (U31).
type Explanation struct {
	ExecutionID    string         `json:"execution_id" doc:"Id of the execution."`
	Status         string         `json:"status" doc:"The one stored status."`
	Reason         string         `json:"reason" doc:"Why it has this status."`
	Since          Time           `json:"since,omitzero" doc:"Since when it has status and reason."`
	Summary        string         `json:"summary" doc:"The answer in one sentence or two."`
	Blockers       []Blocker      `json:"blockers" doc:"Every cause that keeps it from running, the first to be removed first. None of what runs or is over."`
	NextEligibleAt Time           `json:"next_eligible_at,omitzero" doc:"When it may be claimed if nothing else changes; absent when nobody knows."`
	Position       *LinePlace     `json:"position,omitempty" doc:"Its place in line, of what is ready."`
	Workers        NearWorkers    `json:"workers" doc:"Who could take it."`
	History        []StatusChange `json:"history" doc:"The last changes of status and reason, oldest first, as far as the event log tells them."`
	Holder         *LeaseHolder   `json:"holder,omitempty" doc:"Who runs it."`
	Outcome        string         `json:"outcome,omitempty" doc:"Of what is over: how it ended."`
}

// Blocker is one cause that keeps an execution from running.
type Blocker struct {
	Code    string          `json:"code" doc:"suspended, dependencies, children, subflow, delay, operator_hold, grant, lane_state, lane_cap, no_live_worker, no_capable_worker, budget, rate, concurrency, workers_busy or in_line."`
	Message string          `json:"message" doc:"One sentence with its numbers."`
	Since   Time            `json:"since,omitzero" doc:"Since when it stands."`
	Until   Time            `json:"until,omitzero" doc:"When it ends by itself."`
	Data    json.RawMessage `json:"data,omitempty" doc:"Its numbers, by name."`
}

// LinePlace is the place of an execution in its lane.
type LinePlace struct {
	Ahead       int    `json:"ahead" doc:"Ready executions that come before it; exact up to 10 000."`
	AtLeast     bool   `json:"at_least,omitempty" doc:"There are more than ahead."`
	FairnessKey string `json:"fairness_key,omitempty" doc:"Key whose turns it shares."`
	AheadOfKey  int    `json:"ahead_of_key,omitempty" doc:"Those ahead under its own key."`
	Keys        int    `json:"keys,omitempty" doc:"Keys that take turns."`
	Weight      int    `json:"weight,omitempty" doc:"Weight of its key."`
}

// NearWorkers tells who could take an execution.
type NearWorkers struct {
	Live     int          `json:"live" doc:"Live worker instances."`
	OnLane   int          `json:"on_lane" doc:"Those of them that take from its lane."`
	Matching int          `json:"matching" doc:"Those of them that take such work."`
	Nearest  []NearWorker `json:"nearest" doc:"The five that come nearest."`
}

// NearWorker is a worker instance and what keeps it from taking an execution.
type NearWorker struct {
	WorkerID   string   `json:"worker_id" doc:"The worker."`
	InstanceID string   `json:"worker_instance_id" doc:"Its instance."`
	Unmet      []string `json:"unmet" doc:"What keeps it away: lane, namespace, kind, capability:<token>, draining or no_free_place."`
}

// StatusChange is a change of status or reason.
type StatusChange struct {
	At     Time   `json:"at" doc:"When."`
	Status string `json:"status" doc:"Status from then on."`
	Reason string `json:"reason" doc:"Its reason."`
	Event  string `json:"event,omitempty" doc:"Kind of the event that told it."`
}

// LeaseHolder is who runs an execution.
type LeaseHolder struct {
	WorkerID     string `json:"worker_id" doc:"The worker."`
	InstanceID   string `json:"worker_instance_id" doc:"Its instance."`
	LeaseID      string `json:"lease_id" doc:"Id of its lease."`
	LeaseEpoch   int64  `json:"lease_epoch" doc:"Epoch of its lease."`
	AcquiredAt   Time   `json:"acquired_at" doc:"Since when it runs there."`
	RenewedAt    Time   `json:"renewed_at" doc:"When the lease was last renewed."`
	ExpiresAt    Time   `json:"expires_at" doc:"When the lease runs out unless it is renewed."`
	AttemptIndex int    `json:"attempt_index" doc:"Index of the attempt."`
}
