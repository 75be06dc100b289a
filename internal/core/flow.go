package core

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

// Flow is a graph of executions (section 1 of the flows): the record of the graph as a whole. Its members are executions with a Membership; its
// edges are records of their upstreams. Any change to these that concerns the graph requires the lock of the flow.
type Flow struct {
	ID         base.ID   `json:"flow_id"`
	Namespace  string    `json:"namespace"`
	Kind       string    `json:"kind"`
	Creator    string    `json:"creator"`
	CreatorKey string    `json:"creator_key,omitempty"` // see Submitter
	Tags       base.Tags `json:"tags,omitempty"`

	State    FlowState `json:"state"`
	Sealed   bool      `json:"sealed"`
	Revision int64     `json:"graph_revision"` // incremented by every request that changed the graph (F17)
	Nodes    int       `json:"node_count"`
	Edges    int       `json:"edge_count"`
	Quorums  bool      `json:"quorums,omitempty"` // one of its joins is a quorum
	Output   string    `json:"output,omitempty"`  // name of the member whose result is that of the flow

	Parent    base.ID `json:"parent_execution_id,omitzero"` // the flow node that it belongs to, or the execution that spawned its members
	ParentRun int     `json:"parent_run,omitempty"`         // the run of the parent
	Root      base.ID `json:"root_flow_id"`
	Depth     int     `json:"depth"` // 0: a root

	Open     int            `json:"open"`               // members that are not terminal
	Ends     FlowEnds       `json:"ends"`               // how the others have ended
	Bad      int            `json:"bad,omitempty"`      // members whose end is a failure unless it was handled (F5)
	BadNames []string       `json:"names,omitempty"`    // names of the first of those
	Failures []string       `json:"failures,omitempty"` // of a failed flow: names of members (F5), up to the number that events show
	Cancel   *FlowCancel    `json:"cancel,omitempty"`   // the latest cancel request
	Trace    *base.Trace    `json:"trace,omitempty"`    // of the submit (U215)
	Budgets  []ScopedBudget `json:"budgets,omitempty"`  // that apply to its members by scope flow, inner flows first (B6)

	Keep        *base.Millis `json:"keep,omitempty"`          // the shortest retention in the policies of the members; nil: none states one
	Fingerprint []byte       `json:"fingerprint,omitempty"`   // of the submit (F11)
	OnParentEnd string       `json:"on_parent_end,omitempty"` // of a children flow (F44)

	CreatedAt      base.Time `json:"created_at"`
	LastMutationAt base.Time `json:"last_mutation_at"`
	EndedAt        base.Time `json:"ended_at,omitzero"`
}

// FlowEnds counts the members of a flow that have ended, by public state.
type FlowEnds struct {
	Completed int `json:"completed,omitempty"`
	Failed    int `json:"failed,omitempty"`
	Cancelled int `json:"cancelled,omitempty"`
	Expired   int `json:"expired,omitempty"`
	Skipped   int `json:"skipped,omitempty"`
}

// of returns the count for a terminal status.
func (n *FlowEnds) of(s Status) *int {
	switch s {
	case Succeeded:
		return &n.Completed
	case Failed:
		return &n.Failed
	case Cancelled:
		return &n.Cancelled
	case Expired:
		return &n.Expired
	default:
		return &n.Skipped
	}
}

// FlowState is the state of a flow (section 2 of the flows). Words are stored.
type FlowState string

// The states of a flow.
const (
	FlowOpen       FlowState = "open"
	FlowCancelling FlowState = "cancelling"
	FlowCompleted  FlowState = "completed"
	FlowFailed     FlowState = "failed"
	FlowStopped    FlowState = "cancelled"
)

// Terminal reports whether the flow has ended.
func (s FlowState) Terminal() bool { return s == FlowCompleted || s == FlowFailed || s == FlowStopped }

// FlowStates lists every state.
func FlowStates() []FlowState {
	return []FlowState{FlowOpen, FlowCancelling, FlowCompleted, FlowFailed, FlowStopped}
}

// KindChildren is the kind of the flow that contains the children of a worker (F38).
const KindChildren = "children"

// FlowCancel states who cancelled a flow, how and why (F49).
type FlowCancel struct {
	Policy      CancelPolicy `json:"policy"`
	Reason      string       `json:"reason,omitempty"`
	By          string       `json:"by"`
	Source      string       `json:"source"` // flow, parent
	RequestedAt base.Time    `json:"requested_at"`
	Cancelled   int          `json:"cancelled"`       // members that it has ended so far
	Before      int          `json:"finished_before"` // members that had ended before, or ended by themselves
}

// CancelPolicy states which members a cancel of their flow affects (section 9 of the flows). Words are stored.
type CancelPolicy string

// The policies, in ascending order of strength (F52).
const (
	CancelFlowOnly CancelPolicy = "flow_only"
	CancelPending  CancelPolicy = "cancel_pending"
	CancelAll      CancelPolicy = "cancel_all"
)

// strength orders the policies; 0 for an unknown one.
func (p CancelPolicy) strength() int {
	switch p {
	case CancelFlowOnly:
		return 1
	case CancelPending:
		return 2
	case CancelAll:
		return 3
	default:
		return 0
	}
}

// MaxBadNames bounds the number of failed members that a flow remembers: as many as its last event names (F63).
const MaxBadNames = 100

// SourceJoin, SourceFlow and SourceParent are the sources of cancellations made by a graph (L108).
const (
	SourceFlow   = "flow"
	SourceJoin   = "join"
	SourceParent = "parent"
)

// emit appends an event about the flow itself (E24).
func (f *Flow) emit(fx *Effects, kind string, o *eventdata.Builder) {
	fx.Events = append(fx.Events, Event{
		Kind: kind, At: fx.Now, Namespace: f.Namespace, FlowID: f.ID, RootFlowID: f.Root, AttemptIndex: -1,
		Tags: f.Tags, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.Done(),
	})
}

func (f *Flow) emitGraph(fx *Effects, kind string, nodes, edges int) {
	var o eventdata.Builder
	o.Str(eventdata.FieldKind, f.Kind)
	o.Num(eventdata.FieldGraphRevision, f.Revision)
	o.Num(eventdata.FieldNodesAdded, int64(nodes))
	o.Num(eventdata.FieldEdgesAdded, int64(edges))
	f.emit(fx, kind, &o)
}

func (f *Flow) emitCancelRequested(fx *Effects) {
	var o eventdata.Builder
	o.Str(eventdata.FieldPolicy, string(f.Cancel.Policy))
	o.StrIf(eventdata.FieldReason, f.Cancel.Reason)
	o.Num(eventdata.FieldMembers, int64(f.Open))
	f.emit(fx, "flow.cancel_requested", &o)
}

func (f *Flow) emitEnded(fx *Effects, failures []string) {
	var o eventdata.Builder
	o.Open(eventdata.FieldCounts)
	o.Num(eventdata.FieldCompleted, int64(f.Ends.Completed))
	o.Num(eventdata.FieldFailed, int64(f.Ends.Failed))
	o.Num(eventdata.FieldCancelled, int64(f.Ends.Cancelled))
	o.Num(eventdata.FieldExpired, int64(f.Ends.Expired))
	o.Num(eventdata.FieldSkipped, int64(f.Ends.Skipped))
	o.Shut()
	o.Strs(eventdata.FieldFailures, failures)
	f.emit(fx, "flow."+string(f.State), &o)
}

// EmitDeleted emits that the flow was deleted on request, with all its members. Retention removes without an event.
func (f *Flow) EmitDeleted(fx *Effects, reason string) {
	var o eventdata.Builder
	o.Num(eventdata.FieldMembers, int64(f.Nodes))
	o.StrIf(eventdata.FieldReason, reason)
	f.emit(fx, "flow.deleted", &o)
}

func (f *Flow) emitReopened(fx *Effects, member, cascade string) {
	var o eventdata.Builder
	o.Str(eventdata.FieldMember, member)
	o.Str(eventdata.FieldCascade, cascade)
	f.emit(fx, "flow.reopened", &o)
}
