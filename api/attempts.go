package api

import (
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Attempt is one attempt at an execution. Its index counts from 0 over the lifetime of the execution.
type Attempt struct {
	ID         string        `json:"attempt_id" doc:"Id of the attempt."`
	Index      int           `json:"attempt_index" doc:"Counts from 0 over the lifetime of the execution."`
	Type       string        `json:"type" enum:"initial,retry,reclaim,replay" doc:"What started it."`
	State      string        `json:"state,omitempty" enum:"started,interrupted,ended_success,ended_failure,ended_cancelled,interrupted_reclaimed" doc:"State of the attempt."`
	StartedAt  time.Time     `json:"started_at,omitzero" doc:"When it was first claimed."`
	EndedAt    time.Time     `json:"ended_at,omitzero" doc:"When it ended."`
	Running    time.Duration `json:"running_ms,omitempty" doc:"Running time under ended leases."`
	FirstEpoch int64         `json:"first_lease_epoch,omitempty" doc:"Epoch of its first lease."`
	LastEpoch  int64         `json:"last_lease_epoch,omitempty" doc:"Epoch of its last lease."`
	WorkerID   string        `json:"worker_id,omitempty" doc:"Worker that last ran it."`
	InstanceID string        `json:"worker_instance_id,omitempty" doc:"Instance that last ran it."`
	Failure    *Failure      `json:"failure,omitempty" doc:"How it failed."`
	// Interruption is what interrupted it, or what it resumed from; nil if it was not interrupted.
	Interruption *Interruption    `json:"interruption,omitempty" doc:"What interrupted it, or what it resumed from."`
	Lineage      *Lineage         `json:"lineage,omitempty" doc:"The attempt that it follows, and why."`      // nil for the first attempt
	Usage        map[string]int64 `json:"usage,omitempty" doc:"Usage by dimension."`                          // nil: nothing
	Stream       *AttemptStream   `json:"stream,omitempty" doc:"What there is of its stream. Not in a task."` // nil in a task
	// ResumedFrom is set in a task: released, delayed, ...
	ResumedFrom string `json:"resumed_from,omitempty" doc:"In a task: what the attempt resumes after."`
}

// Interruption is why an attempt was interrupted.
type Interruption struct {
	Kind string    `json:"kind" doc:"suspended, delayed, waiting_children, released, lease_expired or lease_revoked."`
	At   time.Time `json:"at,omitzero" doc:"When."`
}

// Lineage describes the attempt before, and why there is a new one.
type Lineage struct {
	PreviousIndex int    `json:"previous_index" doc:"Index of the previous attempt."`
	Class         string `json:"class,omitempty" doc:"Class of the failure before a retry."`
	Category      string `json:"category,omitempty" doc:"Category of the failure before a retry."`
	Cause         string `json:"cause,omitempty" doc:"Cause of a reclaim."` // lease_expired, lease_revoked, worker_dead
	Reason        string `json:"reason,omitempty" doc:"Reason of a replay."`
	By            string `json:"by,omitempty" doc:"Who requested the replay."`
	ReplayNumber  int    `json:"replay_number,omitempty" doc:"Number of replays, including this one."`
}

// Lease is the right of one worker to run an execution. ID, Epoch and AttemptID are its fence: a call with all three is accepted
// only while the lease is the current one.
type Lease struct {
	ExecutionID  ID            `json:"execution_id,omitempty" doc:"Execution that it belongs to."`
	ID           string        `json:"lease_id" doc:"Id of the lease."`
	Epoch        int64         `json:"lease_epoch" doc:"Grows by one with every lease."`
	AttemptID    string        `json:"attempt_id,omitempty" doc:"Attempt that runs under it."`
	AttemptIndex int           `json:"attempt_index" doc:"Index of that attempt."`
	WorkerID     string        `json:"worker_id,omitempty" doc:"Worker that holds it."`
	InstanceID   string        `json:"worker_instance_id,omitempty" doc:"Instance that holds it."`
	AcquiredAt   time.Time     `json:"acquired_at,omitzero" doc:"When it was acquired."`
	RenewedAt    time.Time     `json:"last_renewed_at,omitzero" doc:"When it was last renewed."`
	ExpiresAt    time.Time     `json:"expires_at,omitzero" doc:"When it lapses unless renewed."`
	TTL          time.Duration `json:"ttl_ms,omitempty" doc:"Duration of a renewal."`
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
	WorkerID     string    `json:"worker_id" doc:"Worker that held it."`
	InstanceID   string    `json:"worker_instance_id" doc:"Instance that held it."`
	AcquiredAt   time.Time `json:"acquired_at,omitzero" doc:"When it was acquired."`
	EndedAt      time.Time `json:"ended_at,omitzero" doc:"When it ended; absent while it is current."`
	End          string    `json:"end,omitempty" doc:"How it ended."` // complete, fail, delay, release, expired, revoked, ...; "" while it runs
	Late         bool      `json:"late,omitempty" doc:"The command that ended it arrived after the lease had lapsed."`
}

// StepRecord is the stored result of a step.
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

// fencedLease is a lease as workers receive it.
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

// MarshalJSON writes the lease as the HTTP API shows it to workers, with its fence as text.
func (l Lease) MarshalJSON() ([]byte, error) { return jsonx.Marshal(l.fenced()) }

// Members returns the JSON members of a lease with its fence: one. It is for packages of this module.
func (l *Lease) Members(string) []jsonx.Member { return []jsonx.Member{{}} }

// AppendMembers appends the lease with its fence to a JSON object. It is for packages of this module.
func (l *Lease) AppendMembers(text []byte, name, _ string) ([]byte, error) {
	return jsonx.Append(jsonx.AppendName(text, name, ""), l.fenced())
}

// ReadMember reads the lease. It is for packages of this module.
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
