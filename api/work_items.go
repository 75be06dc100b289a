package api

import "time"

// Op is a command with a lease.
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
	OpFrames    Op = "frames"
	OpUsage     Op = "usage"

	OpSpawn        Op = "spawn"
	OpWaitChildren Op = "wait_children"
)

// WorkItem is one command with a lease. Each command uses only its own fields.
type WorkItem struct {
	Op    Op
	ID    ID
	Lease Lease // ID, Epoch and AttemptID are used
	// Override lets an operator complete or fail without a lease while the execution runs. RequestKey makes that repeatable; the
	// client generates it if empty.
	Override   bool
	RequestKey string

	TTL        time.Duration  // renew; 0: the lease's own
	Percent    *int           // progress; nil: unchanged
	Message    string         // fail; progress: "" leaves it unchanged
	Result     Payload        // complete, step; the zero Payload: no result
	Class      string         // fail: transient (default), timeout, infra_crash, permanent, cancelled
	Category   string         // fail; default the class's name
	Detail     Payload        // fail; at most 64 KiB are kept
	RetryAfter *time.Duration // fail; nil: by the policy
	Default    *DefaultPolicy // fail: used from now on if the submission does not say how it is retried; nil: nothing is said
	Reason     string         // release, cancel, override
	Until      time.Time      // delay: until this time
	Delay      time.Duration  // delay: duration by the store's clock, instead of Until
	Step       string         // step: its name
	Suspension *Suspension    // suspend; its Key is the idempotency key
	Waitpoint  *NewWaitpoint  // waitpoint
	Frames     []NewFrame     // frames
	ClientSeq  *int64         // frames: grows with every call under a lease; nil: a repeat of the call appends again
	Usage      Usage          // usage; complete, fail, delay, suspend and wait_children book its Amounts as already spent

	Spawn    *Spawn           // spawn; flowfabric.Spawning makes one
	Children *ChildrenOptions // wait_children; spawn: wait in the same transaction
}

// Suspension is what a handler waits for.
type Suspension struct {
	Key          string          // identifies the wait: a handler that runs again skips waits that have ended; all other fields must then be equal
	Waitpoints   []Binding       // at most 64
	Until        Condition       // the zero Condition: any signal at the first waitpoint
	ReasonCode   string          // one of the Waiting constants; "": WaitingForSignal
	Timeout      time.Duration   // 0: by TimeoutAt, else by the policy, else none
	TimeoutAt    time.Time       // must be equal in every call of the handler: a recomputed time is a different wait
	OnTimeout    TimeoutBehavior // "": by the policy, else FailOnTimeout
	ResumeDelay  time.Duration
	Continuation Payload // passed to the handler that continues; at most 64 KiB
	ID           string  // of the suspension; "": generated
}

// NewWaitpoint are the options of a new waitpoint.
type NewWaitpoint struct {
	Key            string
	ExpiresIn      time.Duration // 0: a day
	ID             string        // "": generated
	IdempotencyKey string        // "": each call makes a new one
}

// Spawn describes children to start, in API form.
type Spawn struct {
	Children    []FlowNode  // at most 1000
	Defaults    *NodeFields // defaults for fields that children omit; may be nil
	Edges       []FlowEdge  // between children, in addition to those of After
	OnParentEnd ParentEnd
}

// Graph returns the children as a graph.
func (s *Spawn) Graph() SubFlow {
	return SubFlow{Defaults: s.Defaults, Nodes: s.Children, Edges: s.Edges}
}

// ParentEnd is what happens to children when their parent ends. A retry is not an end.
type ParentEnd string

// Values of ParentEnd; "" is CancelOnFailure.
const (
	CancelOnFailure ParentEnd = "cancel_on_failure" // they continue if it succeeds, else they are cancelled
	CancelOnEnd     ParentEnd = "cancel"
	Detach          ParentEnd = "detach" // they continue
)

// ChildrenOptions say what a task waits for. The zero value: the end of all children of this run, with any outcome.
type ChildrenOptions struct {
	Names  []string   // empty: all that exist when the wait begins
	Policy JoinPolicy // how many are needed; "": JoinAll
	K      int        // of JoinQuorum
	Kind   EdgeKind   // which outcomes count; "": OnEnd
	// CancelRemaining cancels children that are no longer needed.
	CancelRemaining bool
	Timeout         time.Duration // 0: none; at most a year
}
