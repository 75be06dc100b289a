package api

import "time"

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

	Spawn    *Spawn           // spawn; flowfabric.Spawning makes one
	Children *ChildrenOptions // wait_children; of spawn: to wait in the same transaction
}

// Suspension is what a handler waits for.
type Suspension struct {
	Key          string          // names the wait: a handler that runs again passes the waits it has passed; everything else must then be the same
	Waitpoints   []Binding       // at most 64
	Until        Condition       // the zero Condition: any signal at the first waitpoint
	ReasonCode   string          // one of the Waiting constants; "": WaitingForSignal
	Timeout      time.Duration   // 0: by TimeoutAt, else by the policy, else none
	TimeoutAt    time.Time       // the same moment in every call of the handler: one that is reckoned anew each time is another wait
	OnTimeout    TimeoutBehavior // "": by the policy, else FailOnTimeout
	ResumeDelay  time.Duration
	Continuation Payload // given to whoever goes on; at most 64 KiB
	ID           string  // of the suspension; "": minted
}

// NewWaitpoint is what a worker says of a waitpoint that it makes.
type NewWaitpoint struct {
	Key            string
	ExpiresIn      time.Duration // 0: a day
	ID             string        // "": minted
	IdempotencyKey string        // "": a new one at each call
}

// Spawn is work to start below a task, as it travels.
type Spawn struct {
	Children    []FlowNode  // at most 1000
	Defaults    *NodeFields // what children have that leave it out; nil: nothing
	Edges       []FlowEdge  // between children, besides those of After
	OnParentEnd ParentEnd
}

// Graph is what is spawned as a graph, in which the children are the nodes.
func (s *Spawn) Graph() SubFlow {
	return SubFlow{Defaults: s.Defaults, Nodes: s.Children, Edges: s.Edges}
}

// ParentEnd says what becomes of children whose parent ends. A retry is no end.
type ParentEnd string

// What becomes of them; "" is CancelOnFailure.
const (
	CancelOnFailure ParentEnd = "cancel_on_failure" // they go on if it succeeds, else they are cancelled
	CancelOnEnd     ParentEnd = "cancel"
	Detach          ParentEnd = "detach" // they go on
)

// ChildrenOptions say what a task waits for. The zero value: the end of all children of this run, however they end.
type ChildrenOptions struct {
	Names  []string   // none: all that there are when the wait begins
	Policy JoinPolicy // how many are enough; "": JoinAll
	K      int        // of JoinQuorum
	Kind   EdgeKind   // which ends count; "": OnEnd
	// CancelRemaining cancels those that are not needed any more.
	CancelRemaining bool
	Timeout         time.Duration // 0: none; at most a year
}
