package wire

// Attempt is one attempt at an execution (U26, U28, U41).
type Attempt struct {
	AttemptID        string           `json:"attempt_id" doc:"Id of the attempt."`
	AttemptIndex     int              `json:"attempt_index" doc:"Counts from 0 over the whole life of the execution."`
	Type             string           `json:"type" enum:"initial,retry,reclaim,replay" doc:"What led to it."`
	State            string           `json:"state,omitempty" enum:"started,interrupted,ended_success,ended_failure,ended_cancelled,interrupted_reclaimed" doc:"How far it is."`
	StartedAt        Time             `json:"started_at,omitzero" doc:"When it was first taken."`
	EndedAt          Time             `json:"ended_at,omitzero" doc:"When it ended."`
	RunningMS        int64            `json:"running_ms,omitempty" doc:"Time under ended leases."`
	FirstLeaseEpoch  int64            `json:"first_lease_epoch,omitempty" doc:"Epoch of its first lease."`
	LastLeaseEpoch   int64            `json:"last_lease_epoch,omitempty" doc:"Epoch of its last lease."`
	WorkerID         string           `json:"worker_id,omitempty" doc:"Worker that last had it."`
	WorkerInstanceID string           `json:"worker_instance_id,omitempty" doc:"Instance that last had it."`
	Failure          *Failure         `json:"failure,omitempty" doc:"What went wrong."`
	Interruption     *Interruption    `json:"interruption,omitempty" doc:"What interrupted it, or what it resumed from."`
	Lineage          *Lineage         `json:"lineage,omitempty" doc:"What it follows."`
	Usage            map[string]int64 `json:"usage,omitempty" doc:"What it has used, by dimension."`
	ResumedFrom      string           `json:"resumed_from,omitempty" doc:"In a task: what the attempt goes on after."`
}

// Interruption is why an attempt stopped for a while.
type Interruption struct {
	Kind string `json:"kind" doc:"suspended, delayed, waiting_children, released, lease_expired or lease_revoked."`
	At   Time   `json:"at,omitzero" doc:"When."`
}

// Lineage says what an attempt follows.
type Lineage struct {
	PreviousIndex int    `json:"previous_index" doc:"Index of the attempt before."`
	Class         string `json:"class,omitempty" doc:"Class of the failure before a retry."`
	Category      string `json:"category,omitempty" doc:"Category of the failure before a retry."`
	Cause         string `json:"cause,omitempty" doc:"Cause of a takeover."`
	Reason        string `json:"reason,omitempty" doc:"Reason of a replay."`
	By            string `json:"by,omitempty" doc:"Who replayed."`
	ReplayNumber  int    `json:"replay_number,omitempty" doc:"How many replays there were, this one included."`
}

// Lease is the right of one worker to run an execution (U26, U27). LeaseRef reads it back.
type Lease struct {
	ExecutionID      string `json:"execution_id,omitempty" doc:"Execution that it is for."`
	LeaseID          string `json:"lease_id" doc:"Id of the lease."`
	LeaseEpoch       int64  `json:"lease_epoch" doc:"Grows by one with every acquisition."`
	AttemptID        string `json:"attempt_id,omitempty" doc:"Attempt that runs under it."`
	AttemptIndex     int    `json:"attempt_index" doc:"Index of that attempt."`
	WorkerID         string `json:"worker_id,omitempty" doc:"Worker that has it."`
	WorkerInstanceID string `json:"worker_instance_id,omitempty" doc:"Instance that has it."`
	AcquiredAt       Time   `json:"acquired_at,omitzero" doc:"When it was acquired."`
	LastRenewedAt    Time   `json:"last_renewed_at,omitzero" doc:"When it was last renewed."`
	ExpiresAt        Time   `json:"expires_at,omitzero" doc:"When it lapses unless it is renewed."`
	TTLMS            int64  `json:"ttl_ms,omitempty" doc:"How long a renewal lasts."`
	Fence            string `json:"fence,omitempty" doc:"<lease_id>.<lease_epoch>.<attempt_id>, for fenced calls."`
}

// LeaseRecord is one entry of the lease history (U41).
type LeaseRecord struct {
	LeaseEpoch       int64  `json:"lease_epoch" doc:"Epoch of the lease."`
	LeaseID          string `json:"lease_id" doc:"Id of the lease."`
	AttemptIndex     int    `json:"attempt_index" doc:"Attempt that ran under it."`
	WorkerID         string `json:"worker_id" doc:"Worker that had it."`
	WorkerInstanceID string `json:"worker_instance_id" doc:"Instance that had it."`
	AcquiredAt       Time   `json:"acquired_at,omitzero" doc:"When it was acquired."`
	EndedAt          Time   `json:"ended_at,omitzero" doc:"When it ended; absent while it runs."`
	End              string `json:"end,omitempty" doc:"What ended it."`
	Late             bool   `json:"late,omitempty" doc:"The command that ended it came after the lapse."`
}

// Step is the remembered result of a step (U76).
type Step struct {
	Name         string `json:"name" doc:"Name of the step."`
	RunIndex     int    `json:"run_index" doc:"Run that wrote it."`
	AttemptIndex int    `json:"attempt_index" doc:"Attempt that wrote it."`
	LeaseEpoch   int64  `json:"lease_epoch" doc:"Lease under which it was written."`
	CreatedAt    Time   `json:"created_at,omitzero" doc:"When it was written."`
	ResultShown
}
