package api

import (
	"maps"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// FlowState is the state of a flow.
type FlowState string

// States of a flow. Completed, failed and cancelled are terminal.
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

// FlowView is a flow as it is read.
type FlowView struct {
	ID        ID        `json:"flow_id" doc:"Id of the flow."`
	Partition int       `json:"partition" minimum:"0" maximum:"255" doc:"N of the full form {fp:N}:<uuid> of its id and of those of its members."`
	Namespace string    `json:"namespace" doc:"Namespace of the flow."`
	Kind      string    `json:"kind" doc:"Kind of flow."`
	State     FlowState `json:"state" enum:"open,cancelling,completed,failed,cancelled" doc:"State of the flow."`
	// Phase is what an open flow does: running, waiting, suspended, blocked, idle; "" where counts are not shown.
	Phase    string            `json:"phase,omitempty" enum:"running,waiting,suspended,blocked,idle" doc:"What an open flow does now; only where counts are shown."`
	Sealed   bool              `json:"sealed" doc:"It can no longer be extended."`
	Revision int64             `json:"graph_revision" doc:"Counts the changes of the graph."`
	Nodes    int               `json:"node_count" doc:"Number of members."`
	Edges    int               `json:"edge_count" doc:"Number of edges."`
	Output   string            `json:"output,omitempty" doc:"Name of the member whose result is the flow's."`
	ParentID ID                `json:"parent_execution_id,omitempty" doc:"The member that it is the content of, or the execution that spawned its members."` // "": none
	RootID   ID                `json:"root_flow_id" doc:"The outermost flow."`
	Depth    int               `json:"depth" doc:"Nesting depth."`
	Tags     map[string]string `json:"tags,omitempty" doc:"Tags by key."`
	Creator  string            `json:"creator,omitempty" doc:"Who created it."`

	CreatedAt      time.Time `json:"created_at,omitzero" doc:"When it was created."`
	LastMutationAt time.Time `json:"last_mutation_at,omitzero" doc:"When it last changed."`
	EndedAt        time.Time `json:"ended_at,omitzero" doc:"When it ended."` // zero: it has not

	Cancelled *FlowCancellation `json:"cancel,omitempty" doc:"Who cancelled it, and how."` // nil if it was not cancelled
	// Counts is the number of members per public state, including states without members; nil in lists and in answers to changes.
	Counts MemberCounts   `json:"counts,omitempty" doc:"Members by public state, and their total. Omitted in lists and in answers to changes."`
	Joins  map[string]int `json:"joins,omitempty" doc:"Joins by state: pending, satisfied, impossible, overridden; only where counts are shown."` // nil if Counts is nil
}

// MemberCounts are numbers of members by public state. JSON also has their sum, total.
type MemberCounts map[string]int

// countTotal is the JSON name of the sum.
const countTotal = "total"

// FlowCancellation records who cancelled a flow.
type FlowCancellation struct {
	Policy CancelPolicy `json:"policy" doc:"Which members are cancelled."`
	Reason string       `json:"reason,omitempty" doc:"Why."`
	By     string       `json:"by" doc:"Who."`
	At     time.Time    `json:"requested_at,omitzero" doc:"When."`
}

// CancelPolicy says which members the cancel of a flow includes.
type CancelPolicy string

// Cancel policies, from weakest to strongest.
const (
	CancelFlowOnly CancelPolicy = "flow_only"      // none: they continue, and so do their edges
	CancelPending  CancelPolicy = "cancel_pending" // those that have not started
	CancelAll      CancelPolicy = "cancel_all"     // all that have not ended
)

// FlowCancelProgress is the progress of a cancel. It continues without the caller.
type FlowCancelProgress struct {
	State          FlowState    `json:"state" doc:"Current state of the flow."`
	Policy         CancelPolicy `json:"policy,omitempty" doc:"The effective policy."`
	Reason         string       `json:"reason,omitempty" doc:"The effective reason."`
	Cancelled      int          `json:"cancelled" doc:"Members that were cancelled."`
	FinishedBefore int          `json:"finished_before" doc:"Members that had ended, or ended on their own."`
	Remaining      int          `json:"remaining" doc:"Members that have not ended."` // that are still to be cancelled; none with flow_only
	// AlreadyTerminal: the flow had completed or failed before, and the call changed nothing.
	AlreadyTerminal bool `json:"already_terminal,omitempty" doc:"The flow had completed or failed before; the call changed nothing."`
}

// FlowRun is a flow after the call that created or changed it, without counts.
type FlowRun struct {
	Created bool          `json:"created" doc:"Whether this call created the flow; for extend and seal, whether it changed something."`
	Members map[string]ID `json:"members" doc:"Ids of the executions that the call named, by name."`
	FlowView
}

// FlowGraph is the graph of a flow, or a part of it.
type FlowGraph struct {
	Flow       FlowView     `json:"flow" doc:"The flow, without counts."`
	Members    []FlowMember `json:"nodes" nil:"[]" doc:"The members by name."`
	Edges      []EdgeView   `json:"edges" nil:"[]" doc:"Edges that start at these members."`
	NextCursor string       `json:"next_cursor,omitempty" doc:"Cursor of the next part; absent at the end."` // "": nothing follows
}

// FlowMember is a member of a flow.
type FlowMember struct {
	Name        string    `json:"name" doc:"Its name in the flow."`
	ID          ID        `json:"execution_id" doc:"Its execution."`
	Kind        string    `json:"kind" doc:"Kind of work."`
	Lane        string    `json:"lane" doc:"Lane of the member."`
	Status      Status    `json:"status" doc:"The stored status."`
	Reason      string    `json:"reason,omitempty" doc:"Reason for the status."`
	PublicState string    `json:"public_state" doc:"Coarser status for users."`
	Optional    bool      `json:"may_fail,omitempty" doc:"The flow does not fail if this member fails."`
	SubFlow     bool      `json:"sub_flow,omitempty" doc:"Its content is a graph."`
	RunIndex    int       `json:"run_index" doc:"Number of replays before this run."`
	Join        *JoinView `json:"join,omitempty" doc:"Its dependencies; absent if no edge leads to it."`
	StartedAt   time.Time `json:"started_at,omitzero" doc:"When a worker first claimed it."`
	EndedAt     time.Time `json:"ended_at,omitzero" doc:"When it ended."`
	// DeletedAt is when the member was deleted individually. Its execution no longer exists; the flow keeps its place in the
	// graph and its outcome. Zero if it was not deleted.
	DeletedAt time.Time `json:"deleted_at,omitzero" doc:"When it was deleted individually: the execution no longer exists, but the flow keeps its place in the graph and its outcome. Absent if not deleted."`
}

// EdgeKind says which outcomes of the upstream member satisfy an edge.
type EdgeKind string

// Kinds of edges; "" is OnSuccess.
const (
	OnSuccess EdgeKind = "success_only"
	OnFailure EdgeKind = "failure_only" // failed, expired, cancelled
	OnEnd     EdgeKind = "any_terminal"
)

// EdgeView is an edge with its state.
type EdgeView struct {
	ID         string    `json:"edge_id" doc:"Id of the edge."`
	From       string    `json:"upstream" doc:"Name of the upstream member."`
	FromID     ID        `json:"upstream_id" doc:"Its execution."`
	To         string    `json:"downstream" doc:"Name of the downstream member."`
	ToID       ID        `json:"downstream_id" doc:"Its execution."`
	Kind       EdgeKind  `json:"kind" enum:"success_only,failure_only,any_terminal" doc:"Outcomes of the upstream member that satisfy the edge."`
	Pass       string    `json:"pass,omitempty" doc:"Name under which the downstream member receives the result."`
	State      string    `json:"state" enum:"pending,satisfied,impossible" doc:"Whether the upstream member ended with such an outcome."`
	Outcome    Status    `json:"upstream_outcome,omitempty" doc:"Outcome of the upstream member."` // "" while pending
	Run        int       `json:"upstream_run,omitempty" doc:"Run of the upstream member."`         // 0 while pending
	ResolvedAt time.Time `json:"resolved_at,omitzero" doc:"When it was decided."`
}

// Child is a child from the view of its parent.
type Child struct {
	Name          string `json:"name" doc:"Its name."`
	ID            ID     `json:"execution_id" doc:"Its execution."`
	Outcome       Status `json:"outcome,omitempty" doc:"Its outcome; absent while it has not ended."`
	HasResult     bool   `json:"has_result,omitempty" doc:"It has a result: GET /result of its execution returns it."` // which ChildResult fetches
	ResultType    string `json:"result_content_type,omitempty" doc:"Content type of the result."`
	ResultSize    int    `json:"result_size,omitempty" doc:"Size of the result in bytes."`
	FailureReason string `json:"failure_reason,omitempty" doc:"Why it did not succeed."`
}

// MarshalJSON writes the counts as the HTTP API shows them, with their total.
func (c MemberCounts) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (c MemberCounts) AppendJSON(text []byte) ([]byte, error) {
	all := make(map[string]int, len(c)+1)
	maps.Copy(all, c)
	total := 0
	for _, n := range c {
		total += n
	}
	all[countTotal] = total
	return jsonx.Append(text, all)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *MemberCounts) UnmarshalJSON(text []byte) error { return readAnswer(text, c) }

// ReadJSON reads the next value of an answer.
func (c *MemberCounts) ReadJSON(d *jsonx.Decoder) {
	var all map[string]int
	if d.Into(&all) {
		delete(all, countTotal)
		*c = all
	}
}

// MarshalJSON writes the flow as the HTTP API shows it (U31).
func (v FlowView) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&v) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (v *FlowView) UnmarshalJSON(text []byte) error {
	*v = FlowView{}
	return readAnswer(text, v)
}

// MarshalJSON writes the cancellation as the HTTP API shows it.
func (c FlowCancellation) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *FlowCancellation) UnmarshalJSON(text []byte) error { return readAnswer(text, c) }

// MarshalJSON writes the answer as the HTTP API shows it (U89, U90).
func (r FlowRun) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *FlowRun) UnmarshalJSON(text []byte) error {
	*r = FlowRun{}
	return readAnswer(text, r)
}

// MarshalJSON writes the graph as the HTTP API shows it (U91).
func (g FlowGraph) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&g) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (g *FlowGraph) UnmarshalJSON(text []byte) error {
	*g = FlowGraph{}
	return readAnswer(text, g)
}

// MarshalJSON writes the member as the HTTP API shows it (U91).
func (m FlowMember) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&m) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (m *FlowMember) UnmarshalJSON(text []byte) error {
	*m = FlowMember{}
	return readAnswer(text, m)
}

// MarshalJSON writes the edge as the HTTP API shows it (U91).
func (e EdgeView) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON writes. The run of a decided edge is shown even if it is 0.
func (e EdgeView) AppendJSON(text []byte) ([]byte, error) {
	type fields EdgeView
	switch {
	case e.Outcome == "":
		e.Run = 0
		return jsonx.Append(text, (*fields)(&e))
	case e.Run != 0:
		return jsonx.Append(text, (*fields)(&e))
	}
	resolved := e.ResolvedAt
	e.ResolvedAt = time.Time{}
	text, err := jsonx.Append(text, (*fields)(&e))
	if err != nil {
		return nil, err
	}
	text = append(jsonx.AppendName(text[:len(text)-1], "upstream_run", ""), '0')
	if !resolved.IsZero() {
		if text, err = jsonx.AppendTime(jsonx.AppendName(text, "resolved_at", ""), resolved); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (e *EdgeView) UnmarshalJSON(text []byte) error {
	*e = EdgeView{}
	return readAnswer(text, e)
}
