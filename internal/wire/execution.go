package wire

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/api"
)

// Execution is one piece of work as readers see it (U26).
type Execution struct {
	ExecutionID    string            `json:"execution_id" doc:"Id of the execution."`
	Partition      int               `json:"partition" minimum:"0" maximum:"255" doc:"N of the full form {fp:N}:<uuid> of its id."`
	Namespace      string            `json:"namespace" doc:"Namespace that it belongs to."`
	Kind           string            `json:"kind" doc:"Kind of work."`
	Lane           string            `json:"lane" doc:"Queue that it goes through."`
	Status         string            `json:"status" enum:"ready,delayed,blocked,granted,running,suspended,succeeded,failed,cancelled,expired,skipped" doc:"The one stored status."`
	Reason         string            `json:"reason,omitempty" doc:"Why it has that status."`
	PublicState    string            `json:"public_state" doc:"Status in the words of users: waiting, active, completed and so on."`
	BlockingDetail json.RawMessage   `json:"blocking_detail,omitempty" doc:"What blocks it, in numbers."`
	StatusSince    Time              `json:"status_since,omitzero" doc:"When status or reason last changed."`
	Priority       int               `json:"priority" minimum:"0" maximum:"9000" doc:"Larger starts earlier."`
	Tags           map[string]string `json:"tags,omitempty" doc:"Tags by key."`
	Creator        string            `json:"creator,omitempty" doc:"Who submitted it."`
	IdempotencyKey string            `json:"idempotency_key,omitempty" doc:"Key under which it was submitted."`
	FlowID         string            `json:"flow_id,omitempty" doc:"Flow that it is a member of."`
	RootFlowID     string            `json:"root_flow_id,omitempty" doc:"The outermost flow that it is part of."`
	Name           string            `json:"name,omitempty" doc:"Its name in the flow."`
	ParentID       string            `json:"parent_id,omitempty" doc:"Execution that spawned it."`
	RunIndex       int               `json:"run_index" doc:"How often it was opened again by replay."`

	CreatedAt      Time `json:"created_at,omitzero" doc:"When it was submitted."`
	QueuedAt       Time `json:"queued_at,omitzero" doc:"Moment that its place in the queue counts from."`
	StartedAt      Time `json:"started_at,omitzero" doc:"When a worker first took it."`
	CompletedAt    Time `json:"completed_at,omitzero" doc:"When it ended."`
	DeadlineAt     Time `json:"deadline_at,omitzero" doc:"When it expires."`
	DelayUntil     Time `json:"delay_until,omitzero" doc:"Not started before this moment."`
	LastMutationAt Time `json:"last_mutation_at,omitzero" doc:"When the record last changed."`

	TotalAttempts int      `json:"total_attempts" doc:"Attempts made so far."`
	RetryCount    int      `json:"retry_count" doc:"Retries of this run."`
	ReclaimCount  int      `json:"reclaim_count" doc:"Takeovers from workers that vanished, in this run."`
	ReplayCount   int      `json:"replay_count" doc:"Replays."`
	Attempt       *Attempt `json:"attempt,omitempty" doc:"The last attempt."`
	Lease         *Lease   `json:"lease,omitempty" doc:"The lease under which it runs."`

	Held         *Hold         `json:"held,omitempty" doc:"Hold by an operator."`
	Progress     *Progress     `json:"progress,omitempty" doc:"What the worker last reported."`
	Failure      *Failure      `json:"failure,omitempty" doc:"What went wrong last."`
	Cancellation *Cancellation `json:"cancellation,omitempty" doc:"Who cancelled it and why."`

	InputShown
	ResultShown
	HasResult bool      `json:"has_result" doc:"Whether there is a result, be it empty."`
	Retained  *Retained `json:"retained,omitempty" doc:"Why and until when it is kept."`

	StateVector *StateVector          `json:"state_vector,omitempty" doc:"The state in seven parts, with view=full."`
	Inputs      []NamedInput          `json:"inputs,omitempty" doc:"What it got from the members that it waited for, without the bytes, with view=full."`
	Policy      json.RawMessage       `json:"policy,omitempty" doc:"The frozen policy, with view=full."`
	Suspension  *OpenSuspension       `json:"suspension,omitempty" doc:"The wait that is open, with view=full."`
	Join        *Join                 `json:"join,omitempty" doc:"Which members of its flow it waits for, with view=full."`
	Budgets     []api.ExecutionBudget `json:"budgets,omitempty" doc:"The budgets that its lease is charged to and those that were made for it, with view=full."`
	Traceparent string                `json:"traceparent,omitempty" doc:"W3C trace context of the submit, with view=full."`

	Next               string       `json:"next,omitempty" enum:"initial,retry,reclaim,replay,resume" doc:"How its next attempt begins, with view=full; absent while none is to begin."`
	BlockedOn          string       `json:"blocked_on,omitempty" doc:"What has no room for it, with view=full: budget:<id>, rate:<quota> or slots:<quota>."`
	DelayReason        string       `json:"delay_reason,omitempty" doc:"Why it is delayed, with view=full."`
	Grant              *IssuedGrant `json:"grant,omitempty" doc:"The grant that is out, without its key, with view=full."`
	LeaseEpoch         int64        `json:"lease_epoch,omitempty" doc:"Number of its last lease, with view=full."`
	LastLease          *EndedLease  `json:"last_lease,omitempty" doc:"The lease that ended last, with view=full; absent from the next claim or replay on."`
	Slots              []string     `json:"slots,omitempty" doc:"Keys of the slots that it occupies, with view=full."`
	RunStartedAt       Time         `json:"run_started_at,omitzero" doc:"When a worker first took it since the submit or the last replay, with view=full."`
	AttemptDeadlineAt  Time         `json:"attempt_deadline_at,omitzero" doc:"When its attempt times out, with view=full."`
	AttemptRemainingMS int64        `json:"attempt_remaining_ms,omitempty" doc:"What is left of the time of an interrupted attempt, with view=full."`
	WakeAt             Time         `json:"wake_at,omitzero" doc:"Its earliest timer, with view=full."`
}

// IssuedGrant is a grant that is out.
type IssuedGrant struct {
	Kid              string `json:"kid" doc:"Id of the key that it is signed with."`
	WorkerID         string `json:"worker_id" doc:"Worker that it is for."`
	WorkerInstanceID string `json:"worker_instance_id" doc:"Instance that it is for."`
	IssuedAt         Time   `json:"issued_at,omitzero" doc:"When it was issued."`
	ExpiresAt        Time   `json:"expires_at,omitzero" doc:"When it ends unless it is claimed before."`
}

// EndedLease is the lease that ended last.
type EndedLease struct {
	LeaseID    string `json:"lease_id" doc:"Id of the lease."`
	LeaseEpoch int64  `json:"lease_epoch" doc:"Its number."`
	AttemptID  string `json:"attempt_id" doc:"Attempt that it was for."`
	EndedAt    Time   `json:"ended_at,omitzero" doc:"When it ended."`
	End        string `json:"end" doc:"How it ended: complete, fail, expired and so on."`
}

// OpenSuspension is a wait that has not ended, in short. The route /suspension has all of it.
type OpenSuspension struct {
	SuspensionID    string           `json:"suspension_id" doc:"Id of the suspension."`
	SuspendedAt     Time             `json:"suspended_at" doc:"When the wait began."`
	ReasonCode      string           `json:"reason_code" doc:"What is waited for."`
	TimeoutAt       Time             `json:"timeout_at,omitzero" doc:"When the wait times out."`
	TimeoutBehavior string           `json:"timeout_behavior,omitempty" doc:"What happens then."`
	EscalatedAt     Time             `json:"escalated_at,omitzero" doc:"When it timed out and was left to operators."`
	Waitpoints      []BoundWaitpoint `json:"waitpoints" doc:"The waitpoints at which signals count."`
}

// ExecutionID is an execution with view=ids.
type ExecutionID struct {
	ExecutionID string `json:"execution_id" doc:"Id of the execution."`
}

// StateVector is the state of an execution in seven parts.
type StateVector struct {
	LifecyclePhase   string `json:"lifecycle_phase" doc:"Where it is in its life."`
	OwnershipState   string `json:"ownership_state" doc:"Whether a worker has it."`
	EligibilityState string `json:"eligibility_state" doc:"Whether it may be claimed."`
	BlockingReason   string `json:"blocking_reason" doc:"What keeps it from being claimed."`
	TerminalOutcome  string `json:"terminal_outcome" doc:"How it ended."`
	AttemptState     string `json:"attempt_state" doc:"State of the last attempt."`
	PublicState      string `json:"public_state" doc:"Status in the words of users."`
}

// Hold is an operator's hold.
type Hold struct {
	By     string `json:"by" doc:"Who holds it."`
	At     Time   `json:"at,omitzero" doc:"Since when."`
	Reason string `json:"reason,omitempty" doc:"Why."`
}

// Progress is what a worker last reported.
type Progress struct {
	Percent   *int    `json:"percent,omitempty" minimum:"0" maximum:"100" doc:"How much is done."`
	Message   *string `json:"message,omitempty" maxLength:"4096" doc:"What is being done."`
	UpdatedAt Time    `json:"updated_at,omitzero" doc:"When it was reported."`
}

// Failure is what went wrong in an attempt.
type Failure struct {
	Class    string `json:"class" enum:"transient,timeout,infra_crash,permanent,cancelled" doc:"Kind of failure that decides on a retry."`
	Category string `json:"category" doc:"Name of the failure."`
	Message  string `json:"message" doc:"What the worker said."`
	DetailShown
	At Time `json:"at,omitzero" doc:"When it happened."`
}

// Cancellation says who cancelled and why.
type Cancellation struct {
	Source string `json:"source" doc:"What sort of caller: operator, worker and so on."`
	By     string `json:"by" doc:"Who."`
	Reason string `json:"reason,omitempty" doc:"Why."`
}

// Retained keeps an execution from retention and deletion.
type Retained struct {
	Until  Time   `json:"until,omitzero" doc:"Until when; absent: for ever."`
	By     string `json:"by" doc:"Who keeps it."`
	Reason string `json:"reason,omitempty" doc:"Why."`
}
