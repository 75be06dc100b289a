package api

import (
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Attempt is one attempt at an execution. Its index counts from 0 over the whole life of the execution.
type Attempt struct {
	ID         string        `json:"attempt_id" doc:"Id of the attempt."`
	Index      int           `json:"attempt_index" doc:"Counts from 0 over the whole life of the execution."`
	Type       string        `json:"type" enum:"initial,retry,reclaim,replay" doc:"What led to it."`
	State      string        `json:"state,omitempty" enum:"started,interrupted,ended_success,ended_failure,ended_cancelled,interrupted_reclaimed" doc:"How far it is."`
	StartedAt  time.Time     `json:"started_at,omitzero" doc:"When it was first taken."`
	EndedAt    time.Time     `json:"ended_at,omitzero" doc:"When it ended."`
	Running    time.Duration `json:"running_ms,omitempty" doc:"Time under ended leases."`
	FirstEpoch int64         `json:"first_lease_epoch,omitempty" doc:"Epoch of its first lease."`
	LastEpoch  int64         `json:"last_lease_epoch,omitempty" doc:"Epoch of its last lease."`
	WorkerID   string        `json:"worker_id,omitempty" doc:"Worker that last had it."`
	InstanceID string        `json:"worker_instance_id,omitempty" doc:"Instance that last had it."`
	Failure    *Failure      `json:"failure,omitempty" doc:"What went wrong."`
	// Interruption is what interrupted it, or what it resumed from; nil: nothing did.
	Interruption *Interruption    `json:"interruption,omitempty" doc:"What interrupted it, or what it resumed from."`
	Lineage      *Lineage         `json:"lineage,omitempty" doc:"What it follows."`              // nil for the first attempt
	Usage        map[string]int64 `json:"usage,omitempty" doc:"What it has used, by dimension."` // nil: nothing
	// ResumedFrom is set in a task: released, delayed, ...
	ResumedFrom string `json:"resumed_from,omitempty" doc:"In a task: what the attempt goes on after."`
}

// Interruption is why an attempt stopped for a while.
type Interruption struct {
	Kind string    `json:"kind" doc:"suspended, delayed, waiting_children, released, lease_expired or lease_revoked."`
	At   time.Time `json:"at,omitzero" doc:"When."`
}

// Lineage says what an attempt follows.
type Lineage struct {
	PreviousIndex int    `json:"previous_index" doc:"Index of the attempt before."`
	Class         string `json:"class,omitempty" doc:"Class of the failure before a retry."`
	Category      string `json:"category,omitempty" doc:"Category of the failure before a retry."`
	Cause         string `json:"cause,omitempty" doc:"Cause of a takeover."` // lease_expired, lease_revoked, worker_dead
	Reason        string `json:"reason,omitempty" doc:"Reason of a replay."`
	By            string `json:"by,omitempty" doc:"Who replayed."`
	ReplayNumber  int    `json:"replay_number,omitempty" doc:"How many replays there were, this one included."`
}

// Lease is the right of one worker to run an execution. ID, Epoch and AttemptID are its fence: what a worker sends with all
// three is accepted only while the lease is the current one.
type Lease struct {
	ExecutionID  ID            `json:"execution_id,omitempty" doc:"Execution that it is for."`
	ID           string        `json:"lease_id" doc:"Id of the lease."`
	Epoch        int64         `json:"lease_epoch" doc:"Grows by one with every acquisition."`
	AttemptID    string        `json:"attempt_id,omitempty" doc:"Attempt that runs under it."`
	AttemptIndex int           `json:"attempt_index" doc:"Index of that attempt."`
	WorkerID     string        `json:"worker_id,omitempty" doc:"Worker that has it."`
	InstanceID   string        `json:"worker_instance_id,omitempty" doc:"Instance that has it."`
	AcquiredAt   time.Time     `json:"acquired_at,omitzero" doc:"When it was acquired."`
	RenewedAt    time.Time     `json:"last_renewed_at,omitzero" doc:"When it was last renewed."`
	ExpiresAt    time.Time     `json:"expires_at,omitzero" doc:"When it lapses unless it is renewed."`
	TTL          time.Duration `json:"ttl_ms,omitempty" doc:"How long a renewal lasts."`
}

// Fence is the text form of the fence: <lease_id>.<lease_epoch>.<attempt_id>.
func (l Lease) Fence() string {
	return l.ID + "." + strconv.FormatInt(l.Epoch, 10) + "." + l.AttemptID
}

// Check finds parts of the fence that are no ids: invalid_id. Absent parts are for the engine to refuse.
func (l Lease) Check() error {
	for _, part := range []struct{ name, text string }{{"lease_id", l.ID}, {"attempt_id", l.AttemptID}} {
		if _, ok := base.ParseUUID(part.text); !ok && part.text != "" {
			err := Errorf(string(base.CodeInvalidID), "%s is not a UUID", base.QuoteID(part.text))
			return Within("lease", err.At(part.name, "hand the lease back as the claim gave it"))
		}
	}
	return nil
}

// LeaseRecord is one entry of the lease history.
type LeaseRecord struct {
	Epoch        int64     `json:"lease_epoch" doc:"Epoch of the lease."`
	LeaseID      string    `json:"lease_id" doc:"Id of the lease."`
	AttemptIndex int       `json:"attempt_index" doc:"Attempt that ran under it."`
	WorkerID     string    `json:"worker_id" doc:"Worker that had it."`
	InstanceID   string    `json:"worker_instance_id" doc:"Instance that had it."`
	AcquiredAt   time.Time `json:"acquired_at,omitzero" doc:"When it was acquired."`
	EndedAt      time.Time `json:"ended_at,omitzero" doc:"When it ended; absent while it runs."`
	End          string    `json:"end,omitempty" doc:"What ended it."` // complete, fail, delay, release, expired, revoked, ...; "" while it runs
	Late         bool      `json:"late,omitempty" doc:"The command that ended it came after the lapse."`
}

// StepRecord is the remembered result of a step.
type StepRecord struct {
	Name         string    `json:"name" doc:"Name of the step."`
	RunIndex     int       `json:"run_index" doc:"Run that wrote it."`
	AttemptIndex int       `json:"attempt_index" doc:"Attempt that wrote it."`
	LeaseEpoch   int64     `json:"lease_epoch" doc:"Lease under which it was written."`
	CreatedAt    time.Time `json:"created_at,omitzero" doc:"When it was written."`
	Result       Payload   `json:"result,omitempty" spread:"shown" doc:"The result."`
}

// MarshalJSON writes the attempt as the HTTP API shows it.
func (a Attempt) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&a) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (a *Attempt) UnmarshalJSON(text []byte) error { return readAnswer(text, a) }

// MarshalJSON writes it as the HTTP API shows it.
func (i Interruption) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&i) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (i *Interruption) UnmarshalJSON(text []byte) error { return readAnswer(text, i) }

// fencedLease is a lease as workers see it.
type fencedLease struct {
	Lease
	Fence string `json:"fence,omitempty"`
}

func (l Lease) fenced() *fencedLease {
	if l.ID == "" || l.AttemptID == "" {
		return &fencedLease{Lease: l}
	}
	return &fencedLease{l, l.Fence()}
}

// MarshalJSON writes the lease as the HTTP API shows it to workers, with the text of its fence.
func (l Lease) MarshalJSON() ([]byte, error) { return jsonx.Marshal(l.fenced()) }

// Members are those that a lease stands in where it is shown with its fence: one. It serves packages of this module.
func (l *Lease) Members(string) []jsonx.Member { return []jsonx.Member{{}} }

// AppendMembers adds the lease with its fence to the text of an object. It serves packages of this module.
func (l *Lease) AppendMembers(text []byte, name, _ string) ([]byte, error) {
	return jsonx.Append(jsonx.AppendName(text, name, ""), l.fenced())
}

// ReadMember reads the lease. It serves packages of this module.
func (l *Lease) ReadMember(d *jsonx.Decoder, _, _ string) { d.Into(l) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (l *Lease) UnmarshalJSON(text []byte) error { return readAnswer(text, l) }

// MarshalJSON writes the entry as the HTTP API shows it.
func (r LeaseRecord) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *LeaseRecord) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }

// MarshalJSON writes the step as the HTTP API shows it.
func (s StepRecord) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *StepRecord) UnmarshalJSON(text []byte) error { return readAnswer(text, s) }
