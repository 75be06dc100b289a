package flowfabric

import (
	"context"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// Flows are graphs of executions: members, and edges that make one member wait for the end of another. A flow is submitted whole, or
// made empty and extended. Every call takes the id of the flow; flow_not_found when there is none.
type Flows interface {
	// Submit hands in a whole graph, all of it or nothing. When it returns without an error the graph is durable, and members that
	// wait for nobody may start. The same flow again, by its idempotency key or its id, finds the one that there is.
	//
	// Codes, with the place at fault in the field: invalid_flow, flow_limit_exceeded, nesting_limit_exceeded, those of Client.Submit for
	// a node, duplicate_name, unknown_name, self_referencing_edge, dependency_already_exists, cycle_detected with the cycle,
	// join_without_edges, invalid_join, quorum_exceeds_edges, partition_mismatch, idempotency_conflict, flow_already_exists.
	Submit(ctx context.Context, f Flow) (*FlowRun, error)
	// Check does everything that Submit does but write, and answers the names of the members, each after all that it waits for.
	//
	// Codes: those of Submit.
	Check(ctx context.Context, f Flow) (order []string, err error)
	// Create makes an empty flow, which is not sealed. ID, Kind and Tags count; invalid_argument for anything else.
	//
	// Codes: invalid_flow, flow_already_exists for another one with the id.
	Create(ctx context.Context, f Flow) (*FlowRun, error)
	// Extend adds members and edges, all of them or nothing. A node belongs into one call with the edges that lead to it: it cannot
	// start before they hold. What is there already changes nothing.
	//
	// Codes: those of Submit, flow_not_found, flow_already_terminal, flow_sealed, stale_graph_revision with the present one,
	// execution_not_found, execution_already_in_flow, name_taken, execution_not_in_flow, edge_id_taken, join_already_decided,
	// downstream_already_started.
	Extend(ctx context.Context, id ID, x FlowExtension) (*FlowRun, error)
	// Seal says that nothing more comes: a flow whose members have all ended then ends. Sealing twice is no error.
	//
	// Codes: flow_not_found, flow_already_terminal, stale_graph_revision.
	Seal(ctx context.Context, id ID, o ...SealOptions) (*FlowRun, error)
	// Get shows a flow and how many of its members are in which state, all of one moment. Codes: flow_not_found.
	Get(ctx context.Context, id ID) (*FlowView, error)
	// Wait returns the flow when it has ended, however it ended. It waits as long as ctx allows. Codes: flow_not_found.
	Wait(ctx context.Context, id ID) (*FlowView, error)
	// Graph shows all members and edges. Codes: flow_not_found.
	Graph(ctx context.Context, id ID) (*FlowGraph, error)
	// GraphPage gives a part of the graph: members by name, and the edges that lead from those. Codes: flow_not_found, invalid_cursor.
	GraphPage(ctx context.Context, id ID, o ...PageOptions) (*FlowGraph, error)
	// List walks the flows, newest first, without counts. Codes: invalid_argument, invalid_cursor.
	List(ctx context.Context, q ...FlowQuery) iter.Seq2[*FlowView, error]
	// Page gives one page of them. Codes: invalid_argument, invalid_cursor.
	Page(ctx context.Context, q ...FlowQuery) (Page[*FlowView], error)
	// Members walks the members by name. Codes: flow_not_found, invalid_argument.
	Members(ctx context.Context, id ID, q ...MemberQuery) iter.Seq2[FlowMember, error]
	// MembersPage gives one page of them. Codes: flow_not_found, invalid_argument, invalid_cursor.
	MembersPage(ctx context.Context, id ID, q ...MemberQuery) (Page[FlowMember], error)
	// Edges walks the edges, or those of one member. Codes: flow_not_found, execution_not_in_flow.
	Edges(ctx context.Context, id ID, q ...EdgeQuery) iter.Seq2[EdgeView, error]
	// EdgesPage gives one page of them. Codes: flow_not_found, execution_not_in_flow, invalid_cursor.
	EdgesPage(ctx context.Context, id ID, q ...EdgeQuery) (Page[EdgeView], error)
	// Edge shows one edge. Codes: flow_not_found, edge_not_found, invalid_id.
	Edge(ctx context.Context, id ID, edge string) (*EdgeView, error)
	// SetJoin says how many of its edges a member needs, before any leads to it. The same again changes nothing.
	//
	// Codes: flow_not_found, execution_not_in_flow, invalid_join, join_already_fixed, flow_already_terminal.
	SetJoin(ctx context.Context, id ID, member string, j Join) (*JoinView, error)
	// Join shows what a member waits for: numbers, and the members that have not ended. Codes: flow_not_found, execution_not_in_flow.
	Join(ctx context.Context, id ID, member string) (*JoinView, error)
	// Cancel ends a flow and, by its policy, its members. What has ended keeps its outcome. A stronger policy replaces a weaker one;
	// otherwise a repeat shows how far it is. A flow that has completed or failed is left as it is, and that is no error.
	//
	// Codes: flow_not_found, invalid_argument for a policy that is none.
	Cancel(ctx context.Context, id ID, c FlowCancel) (FlowCancelProgress, error)
	// Delete removes a flow that has ended, with its members, their sub-flows and children, and everything of them. They vanish at once;
	// their rows go soon after.
	//
	// Codes: flow_not_found, stale_graph_revision, flow_not_terminal while a member works, retained naming the cause: somebody retains a
	// member (retain), children of one have not ended (children), the flow belongs to an execution (parent), or its end is still being
	// told to all members (follow_up).
	Delete(ctx context.Context, id ID, o ...FlowDeletion) error
	// Usage shows what the members have used in all, by dimension. Codes: flow_not_found.
	Usage(ctx context.Context, id ID) (map[string]int64, error)
	// SetTags replaces each key that is given and deletes those whose value is nil, all or nothing, and answers all tags.
	//
	// Codes: flow_not_found, invalid_tag_key, invalid_argument, idempotency_conflict.
	SetTags(ctx context.Context, id ID, changes map[string]*string, o ...FlowAction) (map[string]string, error)
	// ReplaceTags makes these the tags of the flow. Codes: those of SetTags.
	ReplaceTags(ctx context.Context, id ID, tags map[string]string, o ...FlowAction) (map[string]string, error)

	sealed()
}

// Flow is a graph to submit.
type Flow struct {
	ID             ID     // minted by the client when empty, so that a repeat finds what it made
	Kind           string // 1..128 bytes of 0x21..0x7e
	IdempotencyKey string // one flow of a namespace has it for a day
	// Defaults is what nodes have that leave it out: kind, input, lane, priority, times, tags, policy.
	Defaults Node
	Nodes    []Node // at most 5000
	Edges    []Edge // besides those of the nodes; at most 50 000 in all
	Output   string // name of the node whose result is that of the flow; "": none
	Unsealed bool   // more may come: it does not end before Seal
	Tags     map[string]string
	Budgets  []BudgetDefinition // that are made with the flow and cover its members; up to 4
}

// FlowExtension is what is added to a flow.
type FlowExtension struct {
	Revision *int64 // refuse with stale_graph_revision when the graph has another; nil: whatever it is
	Defaults Node
	Nodes    []Node       // at most 5000
	Members  []Membership // executions that are there already
	Edges    []Edge       // between members by name or id; at most 50 000
	Seal     bool         // nothing more comes after this
	// RequestKey makes the call repeatable for 24 hours; minted by the client when empty.
	RequestKey string
}

// Membership is an execution that is a member of a flow under a name, or becomes one.
type Membership = api.Membership

// SealOptions are what a seal may carry.
type SealOptions struct {
	Revision   *int64 // refuse with stale_graph_revision when the graph has another; nil: whatever it is
	RequestKey string // minted by the client when empty
}

// FlowDeletion is what the removal of a flow may carry.
type FlowDeletion struct {
	Reason     string // stands in the event and the audit log
	Revision   *int64 // refuse with stale_graph_revision when the graph has another; nil: whatever it is
	RequestKey string // minted by the client when empty
}

// FlowAction is what a change of a flow may carry.
type FlowAction struct {
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
}

// FlowRun is a flow as the call left it that made or changed it, without counts.
type FlowRun struct {
	FlowView
	Members map[string]ID // those that the call named
	Created bool          // whether this call made the flow; of Extend and Seal whether it changed something
}

// FlowState is the state of a flow.
type FlowState string

// The states of a flow. Completed, failed and cancelled are terminal.
const (
	FlowOpen       FlowState = "open"
	FlowCancelling FlowState = "cancelling" // its members are being cancelled
	FlowCompleted  FlowState = "completed"
	FlowFailed     FlowState = "failed"
	FlowCancelled  FlowState = "cancelled"
)

// Terminal reports whether s is final: only a replay of a member leaves completed and failed.
func (s FlowState) Terminal() bool {
	return s == FlowCompleted || s == FlowFailed || s == FlowCancelled
}

// FlowView is a flow as a reader sees it.
type FlowView struct {
	ID        ID
	Partition int // N of the full form {fp:N}:<uuid> of the id and of those of its members
	Namespace string
	Kind      string
	State     FlowState
	// Phase is what one that has not ended does: running, waiting, suspended, blocked, idle; "" where there are no counts.
	Phase    string
	Sealed   bool
	Revision int64 // counts the changes of the graph
	Nodes    int
	Edges    int
	Output   string // name of the member whose result is that of the flow
	ParentID ID     // the node that it stands for, or the execution that spawned its members; "": none
	RootID   ID     // the outermost flow
	Depth    int    // how deep it lies in that
	Tags     map[string]string
	Creator  string

	CreatedAt      time.Time
	LastMutationAt time.Time
	EndedAt        time.Time // zero: it has not

	Cancelled *FlowCancellation // nil: nobody asked for its end
	// Counts is how many members are in which public state, those without members included; nil in lists and in answers to changes.
	Counts map[string]int
	Joins  map[string]int // by state: pending, satisfied, impossible, overridden; nil where Counts is
}

// FlowCancellation says who asked for the end of a flow.
type FlowCancellation struct {
	Policy CancelPolicy
	Reason string
	By     string
	At     time.Time
}

// CancelPolicy says which members the cancel of a flow reaches.
type CancelPolicy string

// The policies of a cancel, each stronger than the one before.
const (
	CancelFlowOnly CancelPolicy = "flow_only"      // none of them: they go on, and so do their edges
	CancelPending  CancelPolicy = "cancel_pending" // those that no worker has had
	CancelAll      CancelPolicy = "cancel_all"     // all that have not ended
)

// FlowCancel says how a flow is cancelled.
type FlowCancel struct {
	Policy CancelPolicy  // "": CancelAll
	Reason string        // at most 1024 bytes
	Wait   time.Duration // return when nothing remains, or after so long, at most 5 minutes; 0: at once
	// Progress is called while it waits, whenever more is known; nil: it is not.
	Progress   func(FlowCancelProgress)
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
}

// FlowCancelProgress tells how far the end of a flow is. What remains goes on being cancelled without the caller.
type FlowCancelProgress struct {
	State          FlowState
	Policy         CancelPolicy // that holds now
	Reason         string
	Cancelled      int // members that it has ended
	FinishedBefore int // members that had ended, or ended by themselves
	Remaining      int // members that it still waits for: all that have not ended, of flow_only none
	// AlreadyTerminal: the flow had completed or failed before, and nothing was done.
	AlreadyTerminal bool
}

// FlowQuery selects flows. All given parts must hold; the zero value selects all.
type FlowQuery struct {
	Kind        string
	State       FlowState
	Tags        map[string]string
	CreatedFrom time.Time // included
	CreatedTo   time.Time // excluded
	Creator     string    // made by this principal
	PageOptions
}

// MemberQuery selects members of a flow.
type MemberQuery struct {
	State string // public state; "": all
	PageOptions
}

// EdgeQuery selects edges of a flow: all, or those that lead from or to a member, which is named by name or id.
type EdgeQuery struct {
	From string
	To   string
	PageOptions
}

// FlowGraph is the graph of a flow, or a part of it.
type FlowGraph struct {
	Flow       FlowView     // without counts
	Members    []FlowMember // by name
	Edges      []EdgeView   // that lead from those members
	NextCursor string       // of a part: where the next one begins; "": nothing follows
}

// FlowMember is a member of a flow.
type FlowMember struct {
	Name        string
	ID          ID
	Kind        string
	Lane        string
	Status      Status
	Reason      string
	PublicState string
	Optional    bool // its failure is none of the flow's (Node.MayFail)
	SubFlow     bool // a flow stands in its place
	RunIndex    int
	Join        *JoinView // nil: no edge leads to it
	StartedAt   time.Time
	EndedAt     time.Time
	// DeletedAt is when the member was deleted alone. Its execution is gone; the flow keeps its place in the graph and how it ended. Zero: it
	// is there.
	DeletedAt time.Time
}

// JoinView is a join with its numbers.
type JoinView = api.JoinView

// EdgeView is an edge with its state.
type EdgeView struct {
	Edge
	FromID     ID
	ToID       ID
	State      string // pending, satisfied, impossible
	Outcome    Status // how the first ended; "" of a pending one
	Run        int    // which run of it that was
	ResolvedAt time.Time
}
