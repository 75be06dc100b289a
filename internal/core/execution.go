package core

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

// Execution is the record of L8: all state that affects decisions about one execution.
//
// Pointers and slices in it are replaced, never changed in place, so that a shallow copy is a snapshot (see Clone).
type Execution struct {
	// Identity. Class carries namespace, lane, kind, capabilities and fairness key, none of which ever changes (L10).
	ID             base.ID
	Class          *Class
	Creator        string
	CreatorKey     string // see Submitter
	IdempotencyKey string
	FlowID         base.ID     // absent outside a flow
	ParentID       base.ID     // absent unless spawned (F38)
	Member         *Membership // nil outside a flow
	Trace          *base.Trace // of the submit (U215), nil when it had none

	// Version is the version of the stored row when the record was loaded; every write changes it. It is not part of the record. It is 0 for a new
	// execution.
	Version int64 `json:"-"`

	// Input.
	Input  Payload // Data is not loaded unless requested
	Policy *Policy // never nil; frozen with the execution (L12)
	// What of its retry policy is a default: that of GivenPolicy differs.
	RetryOrigin  RetryOrigin
	RetryLeftOut RetryMembers
	Tags         base.Tags

	// Queue.
	Status         Status
	Reason         Reason
	Next           Next
	BlockingDetail json.RawMessage
	StatusSince    base.Time
	Priority       int
	QueuedAt       base.Time
	DelayUntil     base.Time
	DelayReason    Reason
	Dependency     Reason // WaitingForChildren while a join is pending, WaitingForSubflow while a sub-flow is open or may begin, else ReasonNone
	Held           *Hold
	BlockedOn      string // admission key while blocked by admission (S44), else ""
	OrderKey       int64  // under which it is filed in the queue while Queued (S6)
	Grant          *Grant

	// Lease.
	LeaseEpoch int64
	Lease      *Lease     // present iff running (LI1)
	LastLease  *LastLease // the lease that ended last, kept until the next acquisition or replay

	// Attempt.
	TotalAttempts    int
	Attempt          *Attempt    // the last attempt, nil before the first
	AttemptRemaining base.Millis // of the attempt's timeout while interrupted; 0: nothing stored, the next lease gets the full timeout
	AttemptDeadline  base.Time   // while running under an attempt timeout
	ReplayLineage    *Lineage    // of the attempt that a replay will start

	// Counters.
	RetryCount   int
	ReclaimCount int
	ReplayCount  int      // = run_index
	Retries      *Retries // of this run; nil: only their number counts

	Holds       []string         // slot keys that the execution occupies (S41, S5), sorted
	Reservation *Reservation     // of the present grant or lease; nil: admission took nothing but slots
	Budgets     []ScopedBudget   // that apply to it by scope execution or flow (B6)
	Usage       map[string]int64 // meters of all attempts, by dimension (B18); replaced, never changed in place
	RetryAt     base.Time        // while blocked on an unreadable record: when to try again (S45)
	WallHoldAt  base.Time        // while running under a limit of wall_ms: when its hold is used up (B17)

	// Outcome.
	Result       *Payload // nil: no result; Data is nil if it was not loaded
	ResultEpoch  int64    // epoch of the lease under which the result was written: stores file its bytes under it
	ResultOf     base.ID  // the owner of that lease, for a flow node (F47); absent: the execution itself
	Failure      *Failure
	Cancellation *Cancellation
	Retain       *Retain

	Progress *Progress
	Waits    *Waits    // nil until the first waitpoint or suspension
	Children *Children // nil until the first spawn of the run
	Earlier  []base.ID // the flows below it that earlier runs left; replaced, never changed in place

	// Times.
	CreatedAt      base.Time
	StartedAt      base.Time
	RunStartedAt   base.Time
	CompletedAt    base.Time
	DeadlineAt     base.Time
	LastMutationAt base.Time
	WakeAt         base.Time // earliest armed timer (L19), absent when none is armed
	TimerAt        base.Time // due time of the store's timer entry that will wake it; at most WakeAt plus the grid (L19)
}

// Payload is bytes with their declared content type (L7). Size is kept when Data is not loaded.
type Payload struct {
	ContentType string
	Data        []byte
	Size        int
}

// Hold is an operator's hold (L115).
type Hold struct {
	By     string    `json:"by"`
	At     base.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Grant is an outstanding signed grant (S27).
type Grant struct {
	Hash       []byte    `json:"hash"`
	Kid        string    `json:"kid"`
	WorkerID   string    `json:"worker_id"`
	InstanceID string    `json:"worker_instance_id"`
	IssuedAt   base.Time `json:"issued_at"`
	ExpiresAt  base.Time `json:"expires_at"`
	RequestKey string    `json:"request_key,omitempty"`
}

// Lease is the right of one worker to run the execution (section 7 of the lifecycle).
type Lease struct {
	ID         base.UUID
	AttemptID  base.UUID
	WorkerID   string
	InstanceID string
	AcquiredAt base.Time
	RenewedAt  base.Time
	TTL        base.Millis
	ExpiresAt  base.Time
	RequestKey string
	GrantHash  []byte
}

// LastLease is the lease that ended last (L8). Its recorded answer is in the lease history (L40).
type LastLease struct {
	ID        base.UUID
	Epoch     int64
	AttemptID base.UUID
	EndedAt   base.Time
	End       LeaseEnd
	Budgets   []base.UUID // that a lapsed lease was charged to: late reports of its holder are booked there (B7, L36)
}

// Attempt is one attempt (L25). Only the last attempt of an execution may not be final (L26).
type Attempt struct {
	ID           base.UUID
	Index        int
	Type         AttemptType
	State        AttemptState
	StartedAt    base.Time
	EndedAt      base.Time
	RunningMS    base.Millis // time under ended leases
	FirstEpoch   int64
	LastEpoch    int64
	WorkerID     string
	InstanceID   string
	Failure      *Failure
	Interruption Interruption // while interrupted; after a resume, what it resumed from (L98)
	InterruptAt  base.Time
	Lineage      *Lineage         // nil for the initial attempt
	Usage        map[string]int64 // meters of this attempt (B18); replaced, never changed in place
	UsageBefore  map[string]int64 // what Usage was when the newest lease of this attempt began
}

// Lineage states what an attempt follows (L28).
type Lineage struct {
	PreviousIndex int    `json:"previous_index"`
	Class         string `json:"class,omitempty"`         // retry
	Category      string `json:"category,omitempty"`      // retry
	Cause         string `json:"cause,omitempty"`         // reclaim: lease_expired, lease_revoked, worker_dead
	Reason        string `json:"reason,omitempty"`        // replay
	By            string `json:"by,omitempty"`            // replay
	ReplayNumber  int    `json:"replay_number,omitempty"` // replay
}

// Failure is what went wrong (L90).
type Failure struct {
	Class      string    `json:"class"`
	Category   string    `json:"category"`
	Message    string    `json:"message"`
	Detail     []byte    `json:"detail,omitempty"`              // nil: none
	DetailType string    `json:"detail_content_type,omitempty"` // of the detail; "": application/octet-stream
	At         base.Time `json:"at"`
}

// Cancellation states who cancelled and why (L108).
type Cancellation struct {
	Source string `json:"source"`
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// Retain protects a finished execution from retention and delete (U54).
type Retain struct {
	Until  base.Time `json:"until,omitzero"` // absent: forever
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// Progress is what the worker last reported (L99).
type Progress struct {
	Percent   *int      `json:"percent,omitempty"`
	Message   *string   `json:"message,omitempty"`
	UpdatedAt base.Time `json:"updated_at"`
}

// Clone returns a snapshot of x: commands on one do not change the other.
func (x *Execution) Clone() *Execution {
	y := *x
	if x.Lease != nil {
		lease := *x.Lease
		y.Lease = &lease
	}
	if x.Attempt != nil {
		attempt := *x.Attempt
		y.Attempt = &attempt
	}
	return &y
}

// RunIndex returns the number of replays (L8).
func (x *Execution) RunIndex() int { return x.ReplayCount }

// Class is the claim class of an execution (S13), with the texts that executions of one class share. It is immutable and shared; ID is the number
// under which the store files it.
type Class struct {
	ID           int32
	Namespace    string
	Lane         string
	Kind         string
	Capabilities []string // required, sorted and unique (S10)
	FairnessKey  string   // as given by the policy, "" when absent (the namespace then counts, S24)
	Needs        string   // Needs.Text of what admission asks for; "" when nothing
}

// Effects collects what one command did besides changing the record, and carries the inputs of the command.
type Effects struct {
	Now       base.Time
	Actor     Actor
	RequestID string
	Jitter    float64    // a random number in [0,1) for this command (L94)
	Budgets   *BudgetSet // the budgets of Execution.ChargedTo, loaded and locked; nil: it has none
	settling  base.Time  // while timers act as of their due times: the actual time

	Events  []Event
	History []LeaseRecord  // leases that ended
	Patches []AttemptPatch // final states of attempts whose lease had ended before
	// RatesBack lists the admissions returned by a grant that ended unused (S40).
	RatesBack []RateAdmission
	Waits     []WaitWrite // records of waitpoints, suspensions, signals and links, in order of creation
	// FailedByEngine are attempts that failed without a report of their worker, which can therefore not log it.
	FailedByEngine []FailedAttempt
}

// FailedAttempt is an attempt that failed.
type FailedAttempt struct {
	ID              base.ID
	Kind            string
	Attempt         int
	Class, Category string
	RetryAt         base.Time // absent: the execution has failed too
	Reason          Reason    // then: why
}

func (x *Execution) failedByEngine(fx *Effects) {
	failed := FailedAttempt{ID: x.ID, Kind: x.Class.Kind, Attempt: x.Attempt.Index, Class: x.Failure.Class, Category: x.Failure.Category}
	if x.Status.Terminal() {
		failed.Reason = x.Reason
	} else {
		failed.RetryAt = x.QueuedAt
	}
	fx.FailedByEngine = append(fx.FailedByEngine, failed)
}

// Actor is who caused an event (E24).
type Actor struct {
	Type string // client, worker, operator, approver, engine
	ID   string
}

// EngineActor is the engine itself, the actor of changes that no caller requested.
func EngineActor() Actor { return Actor{Type: "engine", ID: "engine"} }

// SilentChange is the kind of a log entry that is not an event and is never shown. It makes the lists of an execution be updated after a change of
// status or reason without an event, as on the return from an admission block (E25).
const SilentChange = ""

// Event is one row of the event log (E24).
type Event struct {
	Kind         string
	At           base.Time
	Namespace    string
	ExecutionID  base.ID
	Class        *Class // nil for events that concern no execution
	FlowID       base.ID
	RootFlowID   base.ID
	AttemptIndex int // -1: does not apply
	InstanceID   string
	Tags         base.Tags
	Actor        Actor
	RequestID    string
	Data         eventdata.Data
}

// LeaseRecord is one entry of the lease history (L40). It contains the state of its attempt at the end of the lease, so that attempts need no rows
// of their own.
type LeaseRecord struct {
	ExecutionID base.ID
	Epoch       int64
	LeaseID     base.UUID
	RunIndex    int
	Attempt     Attempt // as of the end of this lease
	WorkerID    string
	InstanceID  string
	AcquiredAt  base.Time
	EndedAt     base.Time
	End         LeaseEnd
	Late        bool            // the command that ended it came after the lapse (L36)
	Answer      json.RawMessage // recorded answer of a lease-ending command (L34), nil otherwise
	Result      *Payload        // what complete stored
	Replaces    bool            // an entry of this epoch exists already: the lapse that a late command replaces
}

// AttemptPatch changes the attempt in the lease history entry of an epoch: an attempt that ends while it waits or is taken over gets its final
// state there (L30).
type AttemptPatch struct {
	ExecutionID base.ID
	Epoch       int64
	State       AttemptState
	EndedAt     base.Time
	Failure     *Failure
}
