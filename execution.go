package flowfabric

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// Status is the one stored status of an execution.
type Status = api.Status

// The statuses. Succeeded, failed, cancelled, expired and skipped are terminal.
const (
	StatusReady     = api.StatusReady
	StatusDelayed   = api.StatusDelayed
	StatusBlocked   = api.StatusBlocked
	StatusGranted   = api.StatusGranted
	StatusRunning   = api.StatusRunning
	StatusSuspended = api.StatusSuspended
	StatusSucceeded = api.StatusSucceeded
	StatusFailed    = api.StatusFailed
	StatusCancelled = api.StatusCancelled
	StatusExpired   = api.StatusExpired
	StatusSkipped   = api.StatusSkipped
)

// Execution is one piece of work as a reader sees it. Absent moments are the zero time.
type Execution struct {
	ID             ID
	Partition      int // N of the full form {fp:N}:<uuid> of the id
	Namespace      string
	Kind           string
	Lane           string
	Status         Status
	Reason         string // why it is in that status; "" when there is nothing to say
	PublicState    string // waiting, delayed, active, completed, ...
	StateVector    StateVector
	Suspension     *OpenSuspension // nil unless suspended
	Join           *JoinView       // which members of its flow it waits for; nil when no edge leads to it
	BlockingDetail json.RawMessage
	StatusSince    time.Time
	Priority       int
	Tags           map[string]string
	Creator        string
	IdempotencyKey string
	FlowID         ID     // "" outside a flow
	RootFlowID     ID     // the outermost flow; "" outside a flow
	Name           string // in the flow, or among the children of who spawned it
	ParentID       ID     // "" unless spawned
	RunIndex       int

	CreatedAt      time.Time
	QueuedAt       time.Time
	StartedAt      time.Time
	CompletedAt    time.Time
	DeadlineAt     time.Time
	DelayUntil     time.Time
	LastMutationAt time.Time

	TotalAttempts int
	RetryCount    int
	ReclaimCount  int
	ReplayCount   int
	Attempt       *Attempt // the last one; nil before the first
	Lease         *Lease   // nil unless running

	Held         *Hold // nil unless an operator holds it
	Progress     *Progress
	Failure      *Failure
	Cancellation *Cancellation
	Retained     *Retained // nil unless kept from retention

	// Input and Result. Get and Wait load what has at most 64 KiB; lists, and Get for what is larger, leave Data nil:
	// Executions().Input and Executions().Result deliver it.
	Input      Payload
	InputSize  int
	HasResult  bool
	Result     Payload
	ResultSize int

	Inputs      []NamedInput      // what it got from members of its flow that it waited for, without the bytes; Get and Wait show them, lists do not
	Policy      json.RawMessage   // as it was frozen at the submit, every field; Get and Wait show it, lists do not
	Budgets     []ExecutionBudget // those that its lease is charged to, and those that were made for it; Get and Wait show them, lists do not
	Traceparent string            // W3C trace context of the submit, "" when it had none; Get and Wait show it, lists do not

	// What else the record holds; Get and Wait show it, lists over HTTP do not.
	Next              string        // how its next attempt begins: initial, retry, reclaim, replay, resume; "" while none is to begin
	BlockedOn         string        // what has no room for it: budget:<id>, rate:<quota>, slots:<quota>; "" unless admission blocks it
	DelayReason       string        // why it is delayed; "" when it is not
	Grant             *IssuedGrant  // nil unless granted
	LeaseEpoch        int64         // of the last lease; 0 before the first
	LastLease         *EndedLease   // nil before the first has ended, and from the next claim or replay on
	Slots             []string      // keys of the slots that it occupies, sorted
	RunStartedAt      time.Time     // when a worker first took it since the submit or the last replay
	AttemptDeadlineAt time.Time     // when its attempt times out; zero unless it runs under such a limit
	AttemptRemaining  time.Duration // of that limit, while the attempt is interrupted; 0: all of it
	WakeAt            time.Time     // its earliest timer
}

// OpenSuspension is a wait that has not ended, in short; Executions.Suspension has all of it.
type OpenSuspension struct {
	ID          string
	SuspendedAt time.Time
	ReasonCode  string
	TimeoutAt   time.Time
	OnTimeout   TimeoutBehavior
	EscalatedAt time.Time
	Waitpoints  []Binding // at which signals count, with their ids and keys
}

// StateVector is the state of an execution in seven parts.
type StateVector struct {
	LifecyclePhase   string
	OwnershipState   string
	EligibilityState string
	BlockingReason   string
	TerminalOutcome  string
	AttemptState     string
	PublicState      string
}

// Attempt is one attempt at an execution. Its index counts from 0 over the whole life of the execution.
type Attempt struct {
	ID         string
	Index      int
	Type       string // initial, retry, reclaim, replay
	State      string // started, interrupted, ended_success, ended_failure, ended_cancelled, interrupted_reclaimed
	StartedAt  time.Time
	EndedAt    time.Time
	Running    time.Duration // time under ended leases
	FirstEpoch int64
	LastEpoch  int64
	WorkerID   string
	InstanceID string
	Failure    *Failure
	// Interruption is what interrupted it, or what it resumed from: suspended, delayed, released, lease_expired, ...
	Interruption  string
	InterruptedAt time.Time
	Lineage       *Lineage         // nil for the first attempt
	Usage         map[string]int64 // what it has used, by dimension; nil: nothing
}

// Lineage says what an attempt follows.
type Lineage struct {
	PreviousIndex int
	Class         string // of the failure before a retry
	Category      string // of the failure before a retry
	Cause         string // of a reclaim: lease_expired, lease_revoked, worker_dead
	Reason        string // of a replay
	By            string // of a replay
	ReplayNumber  int
}

// Lease is the right of one worker to run an execution. ID, Epoch and AttemptID are its fence: what a worker sends with all
// three is accepted only while the lease is the current one.
type Lease struct {
	ExecutionID  ID
	ID           string
	Epoch        int64
	AttemptID    string
	AttemptIndex int
	WorkerID     string
	InstanceID   string
	AcquiredAt   time.Time
	RenewedAt    time.Time
	ExpiresAt    time.Time
	TTL          time.Duration
}

// Fence is the text form of the fence: <lease_id>.<lease_epoch>.<attempt_id>.
func (l Lease) Fence() string {
	return l.ID + "." + strconv.FormatInt(l.Epoch, 10) + "." + l.AttemptID
}

// fence is the fence of the lease that goes with a command.
func (l Lease) fence() (core.Fence, error) {
	fence, err := l.parts()
	return fence, within("lease", err)
}

// parts parses the three parts of the fence; absent ones are for the rules to refuse (fence_required, partial_fence).
func (l Lease) parts() (core.Fence, error) {
	fence := core.Fence{Epoch: l.Epoch}
	for _, part := range []struct {
		name string
		text string
		into *core.UUID
	}{{"lease_id", l.ID, &fence.LeaseID}, {"attempt_id", l.AttemptID, &fence.AttemptID}} {
		parsed, ok := core.ParseUUID(part.text)
		if !ok && part.text != "" {
			err := newError(core.CodeInvalidID, "%s is not a UUID", core.QuoteID(part.text))
			return core.Fence{}, err.At(part.name, "hand the lease back as the claim gave it")
		}
		*part.into = parsed
	}
	return fence, nil
}

// Failure is what went wrong in an attempt.
type Failure struct {
	Class    string // transient, timeout, infra_crash, permanent, cancelled
	Category string
	Message  string
	Detail   Payload // at most 64 KiB, bit for bit; the zero Payload: none
	At       time.Time
}

// Cancellation says who cancelled and why.
type Cancellation struct {
	Source string // operator, worker, ...
	By     string
	Reason string
}

// Hold is an operator's hold.
type Hold struct {
	By     string
	At     time.Time
	Reason string
}

// Retained keeps a finished execution from retention and deletion.
type Retained struct {
	Until  time.Time // zero: for ever
	By     string
	Reason string
}

// Progress is what the worker last reported.
type Progress struct {
	Percent   *int
	Message   *string
	UpdatedAt time.Time
}

// LeaseRecord is one entry of the lease history.
type LeaseRecord struct {
	Epoch        int64
	LeaseID      string
	AttemptIndex int
	WorkerID     string
	InstanceID   string
	AcquiredAt   time.Time
	EndedAt      time.Time // zero while it runs
	End          string    // how it ended: complete, fail, delay, release, expired, revoked, ...; "" while it runs
	Late         bool      // the command that ended it came after the lapse
}

// StepRecord is the remembered result of a step.
type StepRecord struct {
	Name         string
	RunIndex     int
	AttemptIndex int
	LeaseEpoch   int64
	CreatedAt    time.Time
	Result       Payload
}

// executionOf shows a record as readers see it.
func executionOf(view engine.View) *Execution {
	x := view.Execution
	public, vector := core.Derive(x, view.Lane)
	shown := &Execution{
		ID: idOf(x.ID), Partition: int(x.ID.N), Namespace: x.Class.Namespace, Kind: x.Class.Kind, Lane: x.Class.Lane,
		Status: Status(x.Status.String()), Reason: reasonText(x.Reason), PublicState: public, StateVector: StateVector(vector),
		BlockingDetail: x.BlockingDetail, StatusSince: x.StatusSince.Std(), Priority: x.Priority, Tags: maps.Clone(x.Tags),
		Creator: x.Creator, IdempotencyKey: x.IdempotencyKey, FlowID: idOf(x.FlowID), RootFlowID: idOf(x.RootFlowID()), ParentID: idOf(x.ParentID), RunIndex: x.RunIndex(),
		CreatedAt: x.CreatedAt.Std(), QueuedAt: x.QueuedAt.Std(), StartedAt: x.StartedAt.Std(), CompletedAt: x.CompletedAt.Std(),
		DeadlineAt: x.DeadlineAt.Std(), DelayUntil: x.DelayUntil.Std(), LastMutationAt: x.LastMutationAt.Std(),
		TotalAttempts: x.TotalAttempts, RetryCount: x.RetryCount, ReclaimCount: x.ReclaimCount, ReplayCount: x.ReplayCount,
		Lease: leaseOf(x), Failure: failureShown(x.Failure),
		Input: payloadOf(x.Input), InputSize: x.Input.Size,
	}
	shown.showRecord(x)
	if x.Attempt != nil {
		attempt := attemptOf(*x.Attempt)
		shown.Attempt = &attempt
	}
	if x.Member != nil {
		shown.Name, shown.Join = x.Member.Name, joinOf(engine.JoinView{Join: x.Member.Join})
	}
	if x.Waits != nil && x.Waits.Suspension != nil {
		shown.Suspension = openSuspensionOf(x.Waits)
	}
	if x.Held != nil {
		shown.Held = &Hold{By: x.Held.By, At: x.Held.At.Std(), Reason: x.Held.Reason}
	}
	if x.Progress != nil {
		shown.Progress = &Progress{Percent: x.Progress.Percent, Message: x.Progress.Message, UpdatedAt: x.Progress.UpdatedAt.Std()}
	}
	if x.Cancellation != nil {
		shown.Cancellation = &Cancellation{Source: x.Cancellation.Source, By: x.Cancellation.By, Reason: x.Cancellation.Reason}
	}
	if x.Retain != nil {
		shown.Retained = &Retained{Until: x.Retain.Until.Std(), By: x.Retain.By, Reason: x.Retain.Reason}
	}
	if x.Result != nil {
		shown.HasResult, shown.Result, shown.ResultSize = true, payloadOf(*x.Result), x.Result.Size
	}
	return shown
}

func reasonText(r core.Reason) string {
	if r == core.ReasonNone {
		return ""
	}
	return r.String()
}

func leaseOf(x *core.Execution) *Lease {
	l := x.Lease
	if l == nil {
		return nil
	}
	lease := &Lease{
		ExecutionID: idOf(x.ID), ID: l.ID.String(), Epoch: x.LeaseEpoch, AttemptID: l.AttemptID.String(),
		WorkerID: l.WorkerID, InstanceID: l.InstanceID,
		AcquiredAt: l.AcquiredAt.Std(), RenewedAt: l.RenewedAt.Std(), ExpiresAt: l.ExpiresAt.Std(), TTL: duration(l.TTL),
	}
	if x.Attempt != nil {
		lease.AttemptIndex = x.Attempt.Index
	}
	return lease
}

func attemptOf(a core.Attempt) Attempt {
	shown := Attempt{
		ID: a.ID.String(), Index: a.Index, Type: a.Type.String(), State: a.State.String(),
		StartedAt: a.StartedAt.Std(), EndedAt: a.EndedAt.Std(), Running: duration(a.RunningMS),
		FirstEpoch: a.FirstEpoch, LastEpoch: a.LastEpoch, WorkerID: a.WorkerID, InstanceID: a.InstanceID,
		Failure: failureShown(a.Failure), Interruption: a.Interruption.String(), InterruptedAt: a.InterruptAt.Std(), Usage: a.Meters(),
	}
	if a.Lineage != nil {
		lineage := Lineage(*a.Lineage)
		shown.Lineage = &lineage
	}
	return shown
}

func failureShown(f *core.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Class: f.Class, Category: f.Category, Message: f.Message, Detail: detailOf(f), At: f.At.Std()}
}

// detailOf is the detail of a failure, whose content type is stored only when it is not the default.
func detailOf(f *core.Failure) Payload {
	if f.Detail == nil {
		return Payload{}
	}
	if f.DetailType == "" {
		return Payload{Data: f.Detail, ContentType: contentBytes}
	}
	return Payload{Data: f.Detail, ContentType: f.DetailType}
}

func leaseRecordOf(r core.LeaseRecord) LeaseRecord {
	return LeaseRecord{
		Epoch: r.Epoch, LeaseID: r.LeaseID.String(), AttemptIndex: r.Attempt.Index, WorkerID: r.WorkerID, InstanceID: r.InstanceID,
		AcquiredAt: r.AcquiredAt.Std(), EndedAt: r.EndedAt.Std(), End: r.End.String(), Late: r.Late,
	}
}
