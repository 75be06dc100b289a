package txn

import (
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Caller is on whose behalf a command runs (W5).
type Caller struct {
	Principal  string
	Actor      string   // actor type of its events (E24): client, worker, operator; engine for the engine's own
	Namespaces []string // nil: all of them
	KeyID      string   `json:",omitempty"` // of the API key; "" without one. What belongs to a key goes by it, as names are not unique
	RequestID  string
	Address    string `json:",omitempty"` // where the call came from, for the audit log
	// RequestKey makes commands repeatable that carry no key of their own (W4).
	RequestKey string `json:"-"`
	// Repeated is set when the call repeats one that was answered before (U13); nil: the caller does not need it.
	Repeated *atomic.Bool `json:"-"`
	// Feed bounds what it reads of the event log to the feeds of the instances that it registered (U106); nil: not bounded.
	Feed *Feed `json:"-"`
	// HidesShared leaves the events of lanes, quotas, workers and the sweep out of what it reads of the event log, and HidesKeys those of signing
	// keys: it has no role that may see them (E35).
	HidesShared bool `json:"-"`
	HidesKeys   bool `json:"-"`
	// WorkLanes bounds its commands on executions to those in these lanes (U122); nil: not bounded.
	WorkLanes []string `json:"-"`
	// OwnWork bounds what it adds to its graphs to executions that it submitted itself (U122).
	OwnWork bool `json:"-"`
	// OwnInstances bounds its commands on workers to the instances that it registered (U103).
	OwnInstances bool `json:"-"`
	// Bounded counts its rows of the audit log against the bound of the namespace (U101).
	Bounded bool `json:"-"`
}

// Feed is what a worker may read of the event log.
type Feed struct {
	Lanes []string // only what happens in these; none: in all
}

// Again notes that the call repeats one that was answered before.
func (c Caller) Again() {
	if c.Repeated != nil {
		c.Repeated.Store(true)
	}
}

// Operator is what every operator command may carry (L107).
type Operator struct {
	Reason     string
	RequestKey string // recorded for 24 h (L118)
	Expect     core.Expect
	Revision   *int64 // of a lane, key or namespace: refuse when it is another (U17); nil: whatever it is
}

// SubmitAnswer is the answer to a submit (L79).
type SubmitAnswer struct {
	Outcome     string // created, duplicate
	ID          base.ID
	PublicState string
	Priority    int
	Created     *View // what was created, if it was asked for
}

// SubmitItem is the answer to one item of a bulk submit (L87): an answer or an error.
type SubmitItem struct {
	SubmitAnswer
	Err error
}

// ClaimRequest asks for work (S15). Zero values take the defaults of S15.
type ClaimRequest struct {
	WorkerID     string
	InstanceID   string
	Lanes        []string // 1..64
	Max          int      // 1..1000; 0 = 1
	Wait         time.Duration
	Capabilities []string
	Kinds        []string // none: all
	Namespaces   []string // none: all of the caller's
	LaneOrder    string   // rotate (default), listed
	TTL          base.Millis
	GrantTTL     base.Millis // of a grant instead of a lease; 0: a lease
	RequestKey   string
	Repeat       bool // the call was sent before under its RequestKey: if it is answered with nothing, so are the earlier ones (L117)
}

// ClaimAnswer is what a claim found (S21). No task is no error.
type ClaimAnswer struct {
	Tasks []Task
	Drain bool // the instance is to finish what it has (S53)
	Now   base.Time
}

// Task is an execution under a new lease (S21).
type Task struct {
	Execution   *core.Execution // a snapshot, input loaded
	How         string          // fresh, resumed, reclaimed
	ResumedFrom core.Interruption
	Resumed     *core.Observation // the wait that has ended, with payloads and continuation, if the task continues after a suspension (W80)
	Inputs      []core.NamedInput // of a member of a graph, by name; those without Data are read by name (F37)

	ChildrenCause string      // what ended the wait for children after which the task continues (F41); "": it continues after something else
	Children      []ChildView // those that it waited for, as they were when the wait ended

	GrantKey keyring.GrantKey // of an execution that is promised and not leased (S27)

	Remaining map[base.UUID]map[string]int64 // what may still be used of each limit that it is charged to (U28)
}

// TargetedRequest names the worker of a targeted claim (S34, S35).
type TargetedRequest struct {
	WorkerID     string
	InstanceID   string
	Capabilities []string
	Lane         string // "": whatever it is
	TTL          base.Millis
	GrantTTL     base.Millis // of a grant instead of a lease; 0: a lease
	RequestKey   string
	Force        bool // operator claim only
	Reason       string
	Expect       core.Expect // operator claim only
}

// LeaseView is a lease as shown to its holder.
type LeaseView struct {
	ID         base.UUID
	Epoch      int64
	AttemptID  base.UUID
	InstanceID string
	ExpiresAt  base.Time
	TTL        base.Millis
}

// LeaseRef names a lease to renew.
type LeaseRef struct {
	ID    base.GivenID
	Fence core.Fence
	TTL   base.Millis // 0: the lease's own
}

// RenewItem is the answer to one renewal (L38): the lease or an error.
type RenewItem struct {
	Lease LeaseView
	Drain bool // the instance is to finish what it has (U66)
	Err   error
}

// HeartbeatAnswer is the answer to a heartbeat (S51).
type HeartbeatAnswer struct {
	Registered bool
	ExpiresAt  base.Time
	Drain      bool
	DrainedBy  string // who asked for it
	Leases     []RenewItem
}

// RegisterAnswer is the answer to a registration (S49).
type RegisterAnswer struct {
	Outcome   string // registered, refreshed
	ExpiresAt base.Time
	Drain     bool
	DrainedBy string // who asked for it
}

// View is an execution as a reader sees it (L120): the record and the state of its lane.
type View struct {
	Execution *core.Execution
	Lane      core.LaneState
}

// Page is a part of a list (L134).
type Page struct {
	Items []View
	Next  string // "" when nothing follows
	AsOf  base.Time
}

// ListRequest asks for a page (L131..L134).
type ListRequest struct {
	Filter core.Filter
	Order  store.Order
	Limit  *int // nil: 100
	Cursor string
}

// CountAnswer is a count (L136).
type CountAnswer struct {
	Total   int
	AtLeast bool
	Counts  map[string]int // by value, if asked for (U35)
	AsOf    base.Time
}

// StepAnswer is the answer to a step (L149).
type StepAnswer struct {
	Outcome string // stored, exists
	Record  core.StepRecord
}

// LaneView is a lane with its counts, as far as the caller may see them (S2, U100).
type LaneView struct {
	Lane        core.Lane
	Counts      map[core.Status]int
	AtLeast     bool      // some count stopped at 10 000
	OldestReady base.Time // since when the execution waits that waits longest; absent: none is ready
	Workers     int       // live instances that take from it
	Rates       Rates
}

// WorkerView is a registered instance (S54).
type WorkerView struct {
	Worker core.Worker
	State  string // live, draining, dead
	Leases int
}

// WorkerQuery filters a list of workers (S54).
type WorkerQuery struct {
	Namespace  string
	Lane       string
	Capability string
	State      string // "" = live; draining, dead, all
	Cursor     string
	Limit      *int
}

// ChildView is a child as its parent sees it (F41).
type ChildView struct {
	Name          string
	ID            base.ID
	Outcome       core.Status // StatusNone: it has not ended
	Result        *core.ResultRef
	FailureReason string
}
