package flowfabric

import (
	"context"
	"iter"
	"time"
)

// Operate is what operators do to executions. Any of it may answer execution_not_found, precondition_failed (Expect) and
// idempotency_conflict (the request key was used for something else).
type Operate interface {
	// Replay opens a finished execution again, with a new attempt; a member of a flow with what hangs on it. A flow that had completed
	// or failed is then open again.
	//
	// Codes: execution_not_terminal, max_replays_exhausted, lane_not_accepting; of a member also flow_already_terminal for one of a
	// cancelled flow, dependencies_impossible with what to replay first, descendant_active, replay_too_large above 1000 members.
	Replay(ctx context.Context, id ID, o ...ReplayOptions) (*Execution, error)
	// SetPriority changes the order of what waits; 0..9000, clamped. Codes: execution_not_active.
	SetPriority(ctx context.Context, id ID, priority int, o ...Action) (*Execution, error)
	// Hold keeps the execution from starting until ReleaseHold; what runs goes on. Codes: execution_not_active.
	Hold(ctx context.Context, id ID, o ...Action) (*Execution, error)
	// ReleaseHold ends a hold. Codes: execution_not_active.
	ReleaseHold(ctx context.Context, id ID, o ...Action) (*Execution, error)
	// Revoke takes the lease away from the worker that has it; another may take the work over. Codes: no_active_lease,
	// execution_not_active.
	Revoke(ctx context.Context, id ID, o ...RevokeOptions) (Revocation, error)
	// Claim leases the execution to an operator, whatever capabilities it requires. Codes: execution_not_eligible,
	// lease_conflict, grant_outstanding, lane_not_claimable, execution_not_active.
	Claim(ctx context.Context, id ID, o ...OperatorClaim) (*Claimed, error)
	// Resume ends a wait on an operator's word, whatever it waits for. With ExpectedSuspensionID a second time is a success.
	//
	// Codes: execution_not_suspended, suspension_mismatch, execution_not_active, invalid_argument.
	Resume(ctx context.Context, id ID, o ...ResumeOptions) (*Execution, error)
	// Approve is an operator's signal to waiting work; it needs no token. Name says what: approved, rejected, or a word of your own.
	//
	// Codes: waitpoint_ambiguous without WaitpointID unless exactly one is active, waitpoint_not_found, waitpoint_closed,
	// waitpoint_expired, lane_mismatch, principal_required, invalid_signal, reserved_name, payload_too_large,
	// signal_limit_exceeded.
	Approve(ctx context.Context, id ID, a Approve) (SignalReceipt, error)
	// Retain keeps the execution from retention and Delete. Codes: invalid_argument without a reason.
	Retain(ctx context.Context, id ID, o RetainOptions) (*Execution, error)
	// EndRetain ends what Retain began.
	EndRetain(ctx context.Context, id ID, o ...Action) (*Execution, error)
	// Delete removes a finished execution and everything of it. A member of a flow can be deleted when the outermost flow has ended, which then
	// keeps its place in the graph (FlowMember.DeletedAt). Codes: execution_not_terminal, retained.
	Delete(ctx context.Context, id ID, o ...Action) error

	// Bulk starts a durable job that acts on many executions. Codes: invalid_argument, invalid_filter, bulk_limit_exceeded.
	Bulk(ctx context.Context, r BulkRequest) (*BulkJob, error)
	// BulkStatus shows a job. Codes: job_not_found.
	BulkStatus(ctx context.Context, jobID string) (*BulkJob, error)
	// WaitBulk returns the job when it is done or stopped. It waits as long as ctx allows. Codes: job_not_found.
	WaitBulk(ctx context.Context, jobID string) (*BulkJob, error)
	// StopBulk stops a job; what is done stays done. Codes: job_not_found.
	StopBulk(ctx context.Context, jobID string, o ...StopOptions) (*BulkJob, error)
	// BulkJobs walks the jobs, newest first. A job is forgotten seven days after its end.
	BulkJobs(ctx context.Context) iter.Seq2[*BulkJob, error]
	// BulkJobsPage gives one page of the jobs. Codes: invalid_cursor.
	BulkJobsPage(ctx context.Context, o ...PageOptions) (Page[*BulkJob], error)
	// BulkItems walks what a job did, in the order in which it was done. The first 10 000 executions that were refused and the
	// first 10 000 that were done are remembered, as long as the job is; of the others the job has the number.
	//
	// Codes: job_not_found, invalid_cursor.
	BulkItems(ctx context.Context, jobID string, o ...BulkItemOptions) iter.Seq2[BulkItem, error]
	// BulkItemsPage gives one page of what a job did. Codes: job_not_found, invalid_cursor.
	BulkItemsPage(ctx context.Context, jobID string, o ...BulkItemOptions) (Page[BulkItem], error)

	sealed()
}

// ReplayOptions say how to replay.
type ReplayOptions struct {
	Action
	Deadline  time.Time // zero: by the policy, else the old one if it is still ahead, else none
	KeepSteps bool      // the new run passes the steps that the last one has done
	// Cascade says which members of its flow that wait for it, near or far, run again with it; "": CascadeNone.
	Cascade Cascade
	// IgnoreDependencies lets a member that was skipped run though what it waits for has ended otherwise.
	IgnoreDependencies bool
}

// Cascade says how far a replay reaches in a flow.
type Cascade string

// How far it reaches.
const (
	CascadeNone    Cascade = "none"
	CascadeSkipped Cascade = "skipped" // those that were skipped
	CascadeAll     Cascade = "all"
)

// RevokeOptions say how to revoke.
type RevokeOptions struct {
	Action
	Hold   bool    // hold the execution in the same step, so that nobody takes it over yet
	HandTo *HandTo // promise it to this worker in the same step; nil: whoever claims it next may have it
}

// Revocation is the answer to Revoke.
type Revocation struct {
	Outcome string // revoked, already_satisfied
	// Cause is already_revoked or already_expired where the outcome is already_satisfied, and the code of HandToErr where that is set.
	Cause     string
	LeaseID   string
	Epoch     int64
	Grant     *Grant // for the worker that it is handed to; nil: to nobody
	HandToErr error  // why it could not be handed over; the lease is taken away all the same
}

// OperatorClaim says for whom an operator claims.
type OperatorClaim struct {
	Action
	WorkerID   string        // "operator"
	InstanceID string        // "operator"
	LeaseTTL   time.Duration // 30 s
	Force      bool          // also from a lane that is paused or disabled, and without room in budgets and quotas
}

// RetainOptions say for how long and why an execution is kept. The reason is required.
type RetainOptions struct {
	Action
	Until time.Time // zero: until EndRetain
}

// The actions of a bulk job.
const (
	BulkCancel      = "cancel"
	BulkReplay      = "replay"
	BulkPriority    = "priority"
	BulkHold        = "hold"
	BulkReleaseHold = "release_hold"
	BulkResume      = "resume"
	BulkSignal      = "signal"
	BulkTag         = "tag"
	BulkRetain      = "retain"
	BulkDelete      = "delete"
)

// BulkRequest says what to do to which executions: those of a filter, of a list of ids, or all of them.
type BulkRequest struct {
	Action      string // one of the Bulk constants
	Filter      Filter
	IDs         []ID
	All         bool // must be set when there is neither a filter nor a list
	DryRun      bool // count and show a sample, change nothing
	MaxAffected *int // refuse when more would be affected
	// RatePerSecond lets the job act on at most so many executions a second, also after a restart; 0: as fast as it goes.
	RatePerSecond int
	Reason        string
	RequestKey    string // minted by the client when empty

	Priority int                // of BulkPriority
	Tags     map[string]*string // of BulkTag; nil deletes
	Until    time.Time          // of BulkRetain; zero: for ever
	Delay    time.Duration      // of BulkResume
	Signal   *Approve           // of BulkSignal: its Name, Suffix, Lane, Payload and Comment, sent as Approve does

	// Of BulkReplay, as in ReplayOptions.
	Deadline           time.Time
	KeepSteps          bool
	Cascade            Cascade
	IgnoreDependencies bool
}

// BulkJob is a bulk operation and how far it got.
type BulkJob struct {
	ID        string // "" of a dry run
	Action    string
	State     string // running, done, stopped
	DryRun    bool
	Total     int
	Done      int
	Refused   map[string]int // by code
	Failed    int
	StartedAt time.Time
	EndedAt   time.Time
	Sample    []ID // of a dry run: up to 20

	RatePerSecond int // executions a second at most; 0: as fast as it goes
}

// StopOptions say why a job is stopped.
type StopOptions struct {
	Reason string // at most 1024 bytes; stands in the audit log
}

// BulkItemOptions select what of a job is shown. The zero value: everything, in pages of 100.
type BulkItemOptions struct {
	OK     *bool  // only what was done, or only what was refused
	Limit  int    // of a page; 0: 100, above 1000 counts as 1000
	Cursor string // NextCursor of the page before, of the same job with the same OK
}

// BulkItem is what a bulk job did to one execution.
type BulkItem struct {
	ID  ID
	OK  bool
	Err error // why it was refused; nil when it was done
}
