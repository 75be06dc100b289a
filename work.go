package flowfabric

import (
	"context"
	"encoding/json"
	"time"
)

// Work is the worker protocol itself. A Worker speaks it; use it only to build a worker of another sort.
type Work interface {
	// Register makes an instance known, or replaces what is known of it. Codes: invalid_argument, invalid_capabilities,
	// instance_id_taken, namespace_forbidden.
	Register(ctx context.Context, r Registration) (Registered, error)
	// Heartbeat says that an instance is alive and renews its leases, each with its own answer.
	Heartbeat(ctx context.Context, instanceID string, leases []Lease) (Heartbeat, error)
	// Claim takes up to Max pieces of work, waiting up to Wait while there is none. Fewer than Max, or none, is no error.
	//
	// Codes: invalid_argument, invalid_capabilities, namespace_forbidden, instance_id_taken, worker_not_registered for an instance that
	// was marked dead.
	Claim(ctx context.Context, r ClaimRequest) (ClaimAnswer, error)
	// ClaimResumed takes this execution, which waits to go on. Codes: execution_not_found, not_a_resumed_execution,
	// grant_outstanding, lane_mismatch, lane_not_claimable, capability_mismatch, instance_id_taken, worker_not_registered.
	ClaimResumed(ctx context.Context, id ID, r TargetedClaim) (*Claimed, error)
	// Reclaim takes this execution over from a worker that vanished. Codes: execution_not_found, execution_not_reclaimable,
	// execution_not_eligible, lease_conflict, grant_outstanding, lane_mismatch, lane_not_claimable, capability_mismatch,
	// execution_not_active, instance_id_taken, worker_not_registered.
	Reclaim(ctx context.Context, id ID, r TargetedClaim) (*Claimed, error)
	// Grant takes work for a worker in two steps: it picks and admits as Claim does and promises what it finds, up to Max executions, to
	// this worker and instance alone. Each grant has a key with which they claim it. None is no error.
	//
	// Codes: those of Claim, signing_key_missing; with ExecutionID also execution_not_found, execution_not_active, execution_not_eligible,
	// lease_conflict, grant_outstanding, lane_mismatch, lane_not_claimable, capability_mismatch, admission_refused.
	Grant(ctx context.Context, r GrantRequest) ([]Grant, error)
	// ClaimGrant takes what was promised. The grant is used up: a second time gives the same lease to the same worker, and is
	// grant_unknown for everybody else. Codes: those of VerifyGrant, invalid_argument, instance_id_taken, worker_not_registered.
	ClaimGrant(ctx context.Context, key GrantKey, r GrantClaim) (*Claimed, error)
	// VerifyGrant reports whether the key is that of a grant that is out. Codes: grant_malformed, grant_expired, grant_unknown_kid,
	// grant_unknown, grant_signature_mismatch.
	VerifyGrant(ctx context.Context, key GrantKey) error
	// ReturnGrant ends a grant before its time: what it took is free at once, and others may claim the execution. Codes: those of
	// VerifyGrant.
	ReturnGrant(ctx context.Context, key GrantKey) error
	// Do sends commands under leases. Each is accepted or refused for itself, in its Err; those of one execution are done in
	// the given order. The error of the call concerns all of them: batch_too_large above 1000.
	//
	// Codes of an item: fence_required, partial_fence, stale_lease, lease_expired, lease_revoked, execution_not_active,
	// execution_not_found, invalid_argument, payload_too_large, step_limit_exceeded; of suspend and waitpoint also those of Task.Suspend
	// and Task.NewWaitpoint; of spawn and wait_children those of Task.Spawn and Task.WaitForChildren; of what has Usage also invalid_usage, reserved_dimension, amount_out_of_range, of usage idempotency_conflict.
	Do(ctx context.Context, items ...WorkItem) ([]WorkAnswer, error)

	sealed()
}

// Registration is what an instance tells of itself.
type Registration struct {
	WorkerID      string
	InstanceID    string
	Namespaces    []string // none: all of the client's; never more
	Lanes         []string
	Kinds         []string // none: all
	Capabilities  []string
	MaxConcurrent int
	LivenessTTL   time.Duration // 30 s; not seen for so long: gone
	Version       string
	Labels        map[string]string
}

// Registered is the answer to Register.
type Registered struct {
	Outcome   string // registered, refreshed
	ExpiresAt time.Time
	Drain     bool // take nothing new
}

// Heartbeat is the answer to Heartbeat.
type Heartbeat struct {
	Registered bool // false: register again
	ExpiresAt  time.Time
	Drain      bool
	Leases     []Renewal // in the order of the request
}

// Renewal is the answer to one renewal.
type Renewal struct {
	ExpiresAt time.Time
	TTL       time.Duration
	Drain     bool // the instance that has the lease is to finish what it has
	Err       error
}

// ClaimRequest asks for work.
type ClaimRequest struct {
	WorkerID     string
	InstanceID   string
	Lanes        []string      // 1..64
	Max          int           // 1..1000; 0: 1
	Wait         time.Duration // 0..60 s
	Capabilities []string
	Kinds        []string      // none: all
	Namespaces   []string      // none: all of the client's; never more
	LaneOrder    string        // "rotate" (default) or "listed"
	LeaseTTL     time.Duration // 500 ms..24 h; 0: 30 s
	RequestKey   string        // makes the claim repeatable while its leases are held; minted by the client when empty
	// Repeat says that the claim was sent before under the same RequestKey. If it is answered with nothing, the earlier calls get nothing any
	// more either, also where they still wait at another server.
	Repeat bool

	Brief bool // leave out policies and effect keys, which take time to write: a Worker does not look at them
}

// ClaimAnswer is what a claim found.
type ClaimAnswer struct {
	Tasks      []*Claimed
	Drain      bool // the instance is to finish what it has
	ServerTime time.Time
}

// TargetedClaim says who takes one particular execution.
type TargetedClaim struct {
	WorkerID     string
	InstanceID   string
	Capabilities []string
	Lane         string // "": whatever it is
	LeaseTTL     time.Duration
	RequestKey   string // minted by the client when empty
}

// Claimed is an execution under a new lease.
type Claimed struct {
	ID              ID
	Partition       int // N of the full form {fp:N}:<uuid> of the id
	Kind            string
	Lane            string
	Namespace       string
	Priority        int
	Tags            map[string]string
	Input           Payload
	How             string // fresh, resumed, reclaimed
	ResumedFrom     string // of resumed: released, delayed, ...
	Attempt         Attempt
	Lease           Lease
	DeadlineAt      time.Time
	AttemptDeadline time.Time
	FlowID          ID           // "" outside a flow
	RootFlowID      ID           // the outermost flow; "" outside a flow
	Name            string       // in the flow, or among the children of who spawned it
	Inputs          []NamedInput // what it got from the members that it waited for
	ParentID        ID           // "" unless spawned
	RunIndex        int
	CreatedAt       time.Time
	Policy          json.RawMessage // as it was frozen at the submit, every field
	Trace           TraceContext    // of the submit; zero when it had none
	Resume          *Resume         // of an attempt that goes on after a suspension: how that ended
	// Remaining is what it may still report of its budgets: of each dimension with a hard limit, by id of the budget.
	Remaining map[string]map[string]int64

	brief bool // shown without its effect key
}

// NewWaitpoint is what a worker says of a waitpoint that it makes.
type NewWaitpoint struct {
	Key            string
	ExpiresIn      time.Duration // 0: a day
	ID             string        // "": minted
	IdempotencyKey string        // "": a new one at each call
}

// Op is a command under a lease.
type Op string

// The commands of Work.Do.
const (
	OpRenew     Op = "renew"
	OpProgress  Op = "progress"
	OpComplete  Op = "complete"
	OpFail      Op = "fail"
	OpRelease   Op = "release"
	OpDelay     Op = "delay"
	OpStep      Op = "step"
	OpCancel    Op = "cancel"
	OpSuspend   Op = "suspend"
	OpWaitpoint Op = "waitpoint"
	OpUsage     Op = "usage"

	OpSpawn        Op = "spawn"
	OpWaitChildren Op = "wait_children"
)

// WorkItem is one command under a lease. Each command looks at its own fields only.
type WorkItem struct {
	Op    Op
	ID    ID
	Lease Lease // ID, Epoch and AttemptID count
	// Override lets an operator complete or fail without a lease, while the execution runs. RequestKey makes that repeatable; it
	// is minted by the client when empty.
	Override   bool
	RequestKey string

	TTL        time.Duration  // renew; 0: the lease's own
	Percent    *int           // progress; nil: stays
	Message    string         // fail; progress: "" stays
	Result     Payload        // complete, step; the zero Payload: no result
	Class      string         // fail: transient (default), timeout, infra_crash, permanent, cancelled
	Category   string         // fail; default the class's name
	Detail     Payload        // fail; at most 64 KiB are kept
	RetryAfter *time.Duration // fail; nil: by the policy
	Reason     string         // release, cancel, override
	Until      time.Time      // delay: until this moment
	Delay      time.Duration  // delay: for so long by the store's clock, instead of Until
	Step       string         // step: its name
	Suspension *Suspension    // suspend; its Key is the idempotency key
	Waitpoint  *NewWaitpoint  // waitpoint
	Usage      Usage          // usage; of complete, fail, delay, suspend and wait_children its Amounts: they are booked as already spent

	Spawn    *Spawning        // spawn
	Children *ChildrenOptions // wait_children; of spawn: to wait in the same transaction
}

// WorkAnswer is the answer to one command.
type WorkAnswer struct {
	Err     error
	Outcome string      // fail: retry_scheduled, failed; step: stored, exists
	Status  Status      // complete, release, delay
	Reason  string      // fail: why there is no retry; release, delay: why it waits
	RetryAt time.Time   // fail
	Late    bool        // the lease had lapsed, and nobody had taken over
	Renewal Renewal     // renew
	Step    *StepRecord // step: what is stored
	// Of suspend, whose Outcome is suspended or already_satisfied; of waitpoint the one that was made. Of those of a suspend count ID,
	// ExecutionID, Key, SuspensionID, ExpiresAt, Token and CallbackURL: Waitpoints.Get shows the rest.
	SuspensionID string
	Waitpoints   []Waitpoint
	Resume       *Resume // of already_satisfied
	TimeoutAt    time.Time
	Usage        *UsageReceipt // usage

	Spawned *Spawned // spawn
	// Waited tells of wait_children, and of a spawn that waits, how the wait ended; nil while it lasts. Outcome is ready or waiting.
	Waited *ChildrenWaited
}

// ChildrenWaited is a wait for children that is over.
type ChildrenWaited struct {
	State    string // satisfied, impossible, timeout
	Children []Child
}
