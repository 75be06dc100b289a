package txn

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// FlowAnswer answers a command that makes or extends a flow (F10).
type FlowAnswer struct {
	Flow    *core.Flow
	Members map[string]base.ID // of the nodes and members that the call named
	Created bool               // false: it was there already (F11, F13), or the call changed nothing (F17)
}

// FlowView is a flow as a reader sees it (F59): the record, what it does now, and how many of its members are in which public state, all
// of one moment.
type FlowView struct {
	*core.Flow
	Phase  string         // "" of one that has ended
	Counts map[string]int // by public state, those without members included; they sum to the members
	Joins  map[string]int // by state: pending, satisfied, impossible, overridden
}

// FlowQuery asks for flows, newest first (F60).
type FlowQuery struct {
	Namespaces  []string // none: all of the caller's
	Kind        string
	State       string
	Tags        map[string]string
	CreatedFrom base.Time
	CreatedTo   base.Time
	Creator     string // only those of this principal; "": of all
	Own         bool   // only those that the caller submitted itself (U122)
	Cursor      string
	Limit       int // 0: 100
}

// FlowPage is a part of a list of flows.
type FlowPage struct {
	Flows []*core.Flow
	Next  string
}

// MemberView is a member as a reader of its flow sees it (F60).
type MemberView struct {
	View
	Join      JoinView
	DeletedAt base.Time // of one that was deleted alone: when; the view has what its flow remembers. Absent: it is there
}

// JoinView is a join as a reader sees it (F60).
type JoinView struct {
	core.Join
	Waiting []core.NodeRef // upstreams whose edges are pending, the first 100 by name, where it was asked for
}

// FlowGraph is a flow's graph, or the part of it that begins with the members after a name (F60).
type FlowGraph struct {
	Flow    *core.Flow
	Members []MemberView // by name
	Edges   []core.Edge  // that lead from those members, by names
	Next    string       // cursor; "" when nothing follows
}

// MemberPage is a part of a list of members, by name.
type MemberPage struct {
	Members []MemberView
	Next    string
}

// EdgePage is a part of a list of edges.
type EdgePage struct {
	Edges []core.Edge
	Next  string
}

// EdgeQuery asks for edges of a flow: all of them, or those that lead from or to a member, which is named by name or id.
type EdgeQuery struct {
	From   string
	To     string
	Cursor string
	Limit  int // 0: 100
}

// CancelFlowRequest asks for the end of a flow (section 9 of the flows).
type CancelFlowRequest struct {
	Flow   base.GivenID
	Policy core.CancelPolicy // "": cancel_all
	Reason string
	Wait   time.Duration // 0..300 s
}

// CancelFlowAnswer reports the progress of a cancelled flow (F53).
type CancelFlowAnswer struct {
	State           core.FlowState
	Policy          core.CancelPolicy
	Reason          string
	Cancelled       int
	FinishedBefore  int
	Remaining       int
	AlreadyTerminal bool // it had completed or failed before: nothing was done
}

// SpawnRequest asks for children of a running worker (F38).
type SpawnRequest struct {
	ID          base.GivenID
	Fence       core.Fence
	Defaults    core.FlowNode
	Children    []core.FlowNode
	Edges       []core.FlowEdge
	OnParentEnd string
	Wait        *ChildrenWaitRequest // to wait for them in the same transaction (F43); nil: not
}

// ChildrenWaitRequest asks to wait for children (F40). The zero value waits for the end of all of them.
type ChildrenWaitRequest struct {
	ID        base.GivenID
	Fence     core.Fence
	Names     []string // none: all children of this run
	Join      core.JoinSpec
	Kind      core.EdgeKind    // "": any_terminal
	TimeoutMS base.Millis      // 0: none
	Usage     map[string]int64 // spent already (B16)
}

// SpawnAnswer answers a spawn.
type SpawnAnswer struct {
	Children map[string]base.ID
	Created  int
	Wait     *ChildrenWaitAnswer // of one that waits too
}

// ChildrenWaitAnswer answers a wait for children.
type ChildrenWaitAnswer struct {
	Waiting  bool   // the lease has ended; the work is claimed again when the wait is over
	State    string // satisfied or impossible, of one that is decided; timeout of one that ran into its own before (F42)
	Children []ChildView
}

// ChildView is a child as its parent sees it (F41).
type ChildView struct {
	Name          string
	ID            base.ID
	Outcome       core.Status // StatusNone: it has not ended
	Result        *core.ResultRef
	FailureReason string
}
