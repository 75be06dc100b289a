package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Execution is one piece of work as it is read. Absent times are the zero time.
type Execution struct {
	ID             ID                `json:"execution_id" doc:"Id of the execution."`
	Partition      int               `json:"partition" minimum:"0" maximum:"255" doc:"N of the full form {fp:N}:<uuid> of its id."`
	Namespace      string            `json:"namespace" doc:"Namespace of the execution."`
	Kind           string            `json:"kind" doc:"Kind of work."`
	Lane           string            `json:"lane" doc:"Lane of the execution."`
	Status         Status            `json:"status" enum:"ready,delayed,blocked,granted,running,suspended,succeeded,failed,cancelled,expired,skipped" doc:"The stored status."`
	Reason         string            `json:"reason,omitempty" doc:"Reason for the status."`                                      // may be ""
	PublicState    string            `json:"public_state" doc:"Coarser status for users: waiting, active, completed and so on."` // waiting, delayed, active, completed, ...
	BlockingDetail json.RawMessage   `json:"blocking_detail,omitempty" doc:"Details of what blocks it."`
	StatusSince    time.Time         `json:"status_since,omitzero" doc:"When status or reason last changed."`
	Priority       int               `json:"priority" minimum:"0" maximum:"9000" doc:"Larger starts earlier."`
	Tags           map[string]string `json:"tags,omitempty" doc:"Tags by key."`
	Creator        string            `json:"creator,omitempty" doc:"Who submitted it."`
	IdempotencyKey string            `json:"idempotency_key,omitempty" doc:"Idempotency key of the submit."`
	FlowID         ID                `json:"flow_id,omitempty" doc:"Flow that it belongs to."`                // "" outside a flow
	RootFlowID     ID                `json:"root_flow_id,omitempty" doc:"Outermost flow that it belongs to."` // "" outside a flow
	Name           string            `json:"name,omitempty" doc:"Its name in the flow."`                      // or among the children of its parent
	ParentID       ID                `json:"parent_id,omitempty" doc:"Execution that spawned it."`            // "" unless spawned
	RunIndex       int               `json:"run_index" doc:"Number of replays before this run."`

	CreatedAt      time.Time `json:"created_at,omitzero" doc:"When it was submitted."`
	QueuedAt       time.Time `json:"queued_at,omitzero" doc:"Time that counts for its position in the queue."`
	StartedAt      time.Time `json:"started_at,omitzero" doc:"When a worker first claimed it."`
	CompletedAt    time.Time `json:"completed_at,omitzero" doc:"When it ended."`
	DeadlineAt     time.Time `json:"deadline_at,omitzero" doc:"When it expires."`
	DelayUntil     time.Time `json:"delay_until,omitzero" doc:"It does not start before this time."`
	LastMutationAt time.Time `json:"last_mutation_at,omitzero" doc:"When the record last changed."`

	TotalAttempts int      `json:"total_attempts" doc:"Number of attempts."`
	RetryCount    int      `json:"retry_count" doc:"Retries in this run."`
	ReclaimCount  int      `json:"reclaim_count" doc:"Reclaims after lost workers, in this run."`
	ReplayCount   int      `json:"replay_count" doc:"Number of replays."`
	Attempt       *Attempt `json:"attempt,omitempty" doc:"The last attempt."` // nil before the first
	Lease         *Lease   `json:"lease,omitempty" doc:"The current lease."`  // nil unless running

	Held         *Hold         `json:"held,omitempty" doc:"Hold by an operator."` // nil unless an operator holds it
	Progress     *Progress     `json:"progress,omitempty" doc:"What the worker last reported."`
	Failure      *Failure      `json:"failure,omitempty" doc:"What went wrong last."`
	Cancellation *Cancellation `json:"cancellation,omitempty" doc:"Who cancelled it and why."`

	// Input and Result are loaded by Get and Wait up to 64 KiB; in lists, and for larger payloads, Data is nil: use
	// Executions().Input and Executions().Result.
	Input     Payload   `json:"input,omitempty" spread:"shown" doc:"The input."`
	Result    Payload   `json:"result,omitempty" spread:"shown" doc:"The result."`
	HasResult bool      `json:"has_result" doc:"Whether there is a result, even an empty one."`
	Retained  *Retained `json:"retained,omitempty" doc:"Who excluded it from retention, and until when."` // nil unless kept from retention

	// Fields that Get and Wait set, and lists do not.
	StateVector StateVector       `json:"state_vector,omitzero" doc:"The state in seven parts, with view=full."`
	Inputs      []NamedInput      `json:"inputs,omitempty" doc:"Results of other members that it received, without the bytes, with view=full."`
	Policy      json.RawMessage   `json:"policy,omitempty" doc:"The frozen policy, with view=full."` // every field of it
	RetryOrigin string            `json:"retry_origin,omitempty" enum:"submission,worker,lane,default,none" doc:"Where the retry policy in policy comes from, with view=full: the submission, the default of the worker that failed last, that of the lane at the submit, or that of the engine; none if it was submitted before there were defaults, and is not retried."`
	Suspension  *OpenSuspension   `json:"suspension,omitempty" doc:"The open suspension, with view=full."`    // nil unless suspended
	Join        *JoinView         `json:"join,omitempty" doc:"The dependencies in its flow, with view=full."` // nil if no edge leads to it
	Budgets     []ExecutionBudget `json:"budgets,omitempty" doc:"The budgets with reservations of its lease, and those created with it, with view=full."`
	Traceparent string            `json:"traceparent,omitempty" doc:"W3C trace context of the submit, with view=full."` // "" if it had none

	// Other fields of the record; Get and Wait set them, lists over HTTP do not.
	Next              string        `json:"next,omitempty" enum:"initial,retry,reclaim,replay,resume" doc:"How its next attempt begins, with view=full; absent if none is due."`
	BlockedOn         string        `json:"blocked_on,omitempty" doc:"What has no capacity for it, with view=full: budget:<id>, rate:<quota> or slots:<quota>."` // "" unless admission blocks it
	DelayReason       string        `json:"delay_reason,omitempty" doc:"Why it is delayed, with view=full."`                                                     // "" when it is not
	Grant             *IssuedGrant  `json:"grant,omitempty" doc:"The active grant, without its key, with view=full."`                                            // nil unless granted
	LeaseEpoch        int64         `json:"lease_epoch,omitempty" doc:"Epoch of its last lease, with view=full."`                                                // 0 before the first
	LastLease         *EndedLease   `json:"last_lease,omitempty" doc:"The last ended lease, with view=full; absent after the next claim or replay."`
	Slots             []string      `json:"slots,omitempty" doc:"Keys of the slots that it holds, with view=full."` // sorted
	RunStartedAt      time.Time     `json:"run_started_at,omitzero" doc:"When a worker first claimed it since the submit or the last replay, with view=full."`
	AttemptDeadlineAt time.Time     `json:"attempt_deadline_at,omitzero" doc:"When its attempt times out, with view=full."`                 // zero unless the attempt has a timeout
	AttemptRemaining  time.Duration `json:"attempt_remaining_ms,omitempty" doc:"Remaining time of an interrupted attempt, with view=full."` // 0: all of it
	WakeAt            time.Time     `json:"wake_at,omitzero" doc:"Its earliest timer, with view=full."`
}

// OpenSuspension is a summary of a suspension that has not ended; Executions.Suspension returns all of it.
type OpenSuspension struct {
	ID          string           `json:"suspension_id" doc:"Id of the suspension."`
	SuspendedAt time.Time        `json:"suspended_at" doc:"When the suspension began."`
	ReasonCode  string           `json:"reason_code" doc:"What it waits for."`
	TimeoutAt   time.Time        `json:"timeout_at,omitzero" doc:"When it times out."`
	OnTimeout   TimeoutBehavior  `json:"timeout_behavior,omitempty" doc:"What happens then."`
	EscalatedAt time.Time        `json:"escalated_at,omitzero" doc:"When it timed out and was escalated to operators."`
	Waitpoints  []BoundWaitpoint `json:"waitpoints" nil:"[]" doc:"The waitpoints that receive its signals."`
}

// BoundWaitpoint is a waitpoint of a suspension.
type BoundWaitpoint struct {
	WaitpointID string `json:"waitpoint_id" doc:"Id of the waitpoint."`
	Key         string `json:"waitpoint_key" doc:"Its key."`
}

// StateVector is the state of an execution in seven parts.
type StateVector struct {
	LifecyclePhase   string `json:"lifecycle_phase" doc:"Phase of its life."`
	OwnershipState   string `json:"ownership_state" doc:"Whether a worker holds it."`
	EligibilityState string `json:"eligibility_state" doc:"Whether it can be claimed."`
	BlockingReason   string `json:"blocking_reason" doc:"What prevents a claim."`
	TerminalOutcome  string `json:"terminal_outcome" doc:"How it ended."`
	AttemptState     string `json:"attempt_state" doc:"State of the last attempt."`
	PublicState      string `json:"public_state" doc:"Coarser status for users."`
}

// IssuedGrant is an active grant: who may claim the execution with its key. The key itself is not shown.
type IssuedGrant struct {
	Kid        string    `json:"kid" doc:"Id of the signing key."`
	WorkerID   string    `json:"worker_id" doc:"Worker that it is for."`
	InstanceID string    `json:"worker_instance_id" doc:"Instance that it is for."`
	IssuedAt   time.Time `json:"issued_at,omitzero" doc:"When it was issued."`
	ExpiresAt  time.Time `json:"expires_at,omitzero" doc:"When it ends unless it is claimed."`
}

// EndedLease is the last lease that ended.
type EndedLease struct {
	ID        string    `json:"lease_id" doc:"Id of the lease."`
	Epoch     int64     `json:"lease_epoch" doc:"Its epoch."`
	AttemptID string    `json:"attempt_id" doc:"Attempt that it was for."`
	EndedAt   time.Time `json:"ended_at,omitzero" doc:"When it ended."`
	End       string    `json:"end" doc:"How it ended: complete, fail, expired and so on."`
}

// Failure describes how an attempt failed.
type Failure struct {
	Class    string    `json:"class" enum:"transient,timeout,infra_crash,permanent,cancelled" doc:"Class of the failure; it decides whether to retry."`
	Category string    `json:"category" doc:"Name of the failure."`
	Message  string    `json:"message" doc:"Message from the worker."`
	Detail   Payload   `json:"detail,omitempty" spread:"shown" doc:"The detail of the failure."` // at most 64 KiB; the zero Payload: none
	At       time.Time `json:"at,omitzero" doc:"When it happened."`
}

// Cancellation records who cancelled, and why.
type Cancellation struct {
	Source string `json:"source" doc:"Type of the caller: operator, worker and so on."`
	By     string `json:"by" doc:"Who."`
	Reason string `json:"reason,omitempty" doc:"Why."`
}

// Hold is an operator's hold.
type Hold struct {
	By     string    `json:"by" doc:"Who set it."`
	At     time.Time `json:"at,omitzero" doc:"Since when."`
	Reason string    `json:"reason,omitempty" doc:"Why."`
}

// Retained excludes a finished execution from retention and deletion.
type Retained struct {
	Until  time.Time `json:"until,omitzero" doc:"Until when; absent: forever."`
	By     string    `json:"by" doc:"Who requested it."`
	Reason string    `json:"reason,omitempty" doc:"Why."`
}

// Progress is the last progress report of the worker.
type Progress struct {
	Percent   *int      `json:"percent,omitempty" minimum:"0" maximum:"100" doc:"Percentage done."`
	Message   *string   `json:"message,omitempty" maxLength:"4096" doc:"Current activity."`
	UpdatedAt time.Time `json:"updated_at,omitzero" doc:"When it was reported."`
}

// MarshalJSON writes the execution as the HTTP API shows it. StateVector and Policy are omitted if zero.
func (x Execution) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&x) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (x *Execution) UnmarshalJSON(text []byte) error {
	*x = Execution{}
	return readAnswer(text, x)
}

// MarshalJSON writes the suspension as the HTTP API shows it.
func (s OpenSuspension) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *OpenSuspension) UnmarshalJSON(text []byte) error { return readAnswer(text, s) }

// MarshalJSON writes the grant as the HTTP API shows it.
func (g IssuedGrant) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&g) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (g *IssuedGrant) UnmarshalJSON(text []byte) error { return readAnswer(text, g) }

// MarshalJSON writes the lease as the HTTP API shows it.
func (l EndedLease) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&l) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (l *EndedLease) UnmarshalJSON(text []byte) error { return readAnswer(text, l) }

// MarshalJSON writes the failure as the HTTP API shows it.
func (f Failure) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&f) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (f *Failure) UnmarshalJSON(text []byte) error { return readAnswer(text, f) }

// MarshalJSON writes the hold as the HTTP API shows it.
func (h Hold) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&h) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (h *Hold) UnmarshalJSON(text []byte) error { return readAnswer(text, h) }

// MarshalJSON writes the retention as the HTTP API shows it.
func (r Retained) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Retained) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }

// MarshalJSON writes the progress as the HTTP API shows it.
func (p Progress) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&p) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *Progress) UnmarshalJSON(text []byte) error { return readAnswer(text, p) }
