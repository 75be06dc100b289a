package api

import (
	"maps"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

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
	ID        ID        `json:"flow_id" doc:"Id of the flow."`
	Partition int       `json:"partition" minimum:"0" maximum:"255" doc:"N of the full form {fp:N}:<uuid> of its id and of those of its members."`
	Namespace string    `json:"namespace" doc:"Namespace that it belongs to."`
	Kind      string    `json:"kind" doc:"Kind of flow."`
	State     FlowState `json:"state" enum:"open,cancelling,completed,failed,cancelled" doc:"How far it is."`
	// Phase is what one that has not ended does: running, waiting, suspended, blocked, idle; "" where there are no counts.
	Phase    string            `json:"phase,omitempty" enum:"running,waiting,suspended,blocked,idle" doc:"What an open one does now; where counts are shown."`
	Sealed   bool              `json:"sealed" doc:"Nothing more comes to it."`
	Revision int64             `json:"graph_revision" doc:"Counts the changes of the graph."`
	Nodes    int               `json:"node_count" doc:"Its members."`
	Edges    int               `json:"edge_count" doc:"The edges between them."`
	Output   string            `json:"output,omitempty" doc:"Name of the member whose result is that of the flow."`
	ParentID ID                `json:"parent_execution_id,omitempty" doc:"The node that it stands for, or the execution that spawned its members."` // "": none
	RootID   ID                `json:"root_flow_id" doc:"The outermost flow."`
	Depth    int               `json:"depth" doc:"How deep it lies in that."`
	Tags     map[string]string `json:"tags,omitempty" doc:"Tags by key."`
	Creator  string            `json:"creator,omitempty" doc:"Who made it."`

	CreatedAt      time.Time `json:"created_at,omitzero" doc:"When it was made."`
	LastMutationAt time.Time `json:"last_mutation_at,omitzero" doc:"When it last changed."`
	EndedAt        time.Time `json:"ended_at,omitzero" doc:"When it ended."` // zero: it has not

	Cancelled *FlowCancellation `json:"cancel,omitempty" doc:"Who asked for its end, and how."` // nil: nobody did
	// Counts is how many members are in which public state, those without members included; nil in lists and in answers to changes.
	Counts MemberCounts   `json:"counts,omitempty" doc:"Members by public state, and their total. Lists and answers to changes leave it out."`
	Joins  map[string]int `json:"joins,omitempty" doc:"Joins by state: pending, satisfied, impossible, overridden; where counts are shown."` // nil where Counts is
}

// MemberCounts are numbers of members by public state. In JSON their sum is one more of them, total.
type MemberCounts map[string]int

// countTotal is the member of counts that has their sum (F59).
const countTotal = "total"

// FlowCancellation says who asked for the end of a flow.
type FlowCancellation struct {
	Policy CancelPolicy `json:"policy" doc:"Which members it reaches."`
	Reason string       `json:"reason,omitempty" doc:"Why."`
	By     string       `json:"by" doc:"Who."`
	At     time.Time    `json:"requested_at,omitzero" doc:"When."`
}

// CancelPolicy says which members the cancel of a flow reaches.
type CancelPolicy string

// The policies of a cancel, each stronger than the one before.
const (
	CancelFlowOnly CancelPolicy = "flow_only"      // none of them: they go on, and so do their edges
	CancelPending  CancelPolicy = "cancel_pending" // those that no worker has had
	CancelAll      CancelPolicy = "cancel_all"     // all that have not ended
)

// FlowCancelProgress is how far the end of a flow is. What remains goes on being cancelled without the caller.
type FlowCancelProgress struct {
	State          FlowState    `json:"state" doc:"State of the flow now."`
	Policy         CancelPolicy `json:"policy,omitempty" doc:"The policy that holds."`
	Reason         string       `json:"reason,omitempty" doc:"The reason that holds."`
	Cancelled      int          `json:"cancelled" doc:"Members that it has ended."`
	FinishedBefore int          `json:"finished_before" doc:"Members that had ended, or ended by themselves."`
	Remaining      int          `json:"remaining" doc:"Members that have not ended."` // that it still waits for: of flow_only none
	// AlreadyTerminal: the flow had completed or failed before, and nothing was done.
	AlreadyTerminal bool `json:"already_terminal,omitempty" doc:"The flow had completed or failed before: nothing was done."`
}

// FlowRun is a flow as the call left it that made or changed it, without counts.
type FlowRun struct {
	Created bool          `json:"created" doc:"Whether this call made the flow; of extend and seal whether it changed something."`
	Members map[string]ID `json:"members" doc:"Ids of the executions that the call named, by name."`
	FlowView
}

// FlowGraph is the graph of a flow, or a part of it.
type FlowGraph struct {
	Flow       FlowView     `json:"flow" doc:"The flow, without counts."`
	Members    []FlowMember `json:"nodes" nil:"[]" doc:"The members by name."`
	Edges      []EdgeView   `json:"edges" nil:"[]" doc:"The edges that lead from those."`
	NextCursor string       `json:"next_cursor,omitempty" doc:"Cursor of the next part; absent at the end."` // "": nothing follows
}

// FlowMember is a member of a flow.
type FlowMember struct {
	Name        string    `json:"name" doc:"Its name in the flow."`
	ID          ID        `json:"execution_id" doc:"Its execution."`
	Kind        string    `json:"kind" doc:"Kind of work."`
	Lane        string    `json:"lane" doc:"Queue that it goes through."`
	Status      Status    `json:"status" doc:"The one stored status."`
	Reason      string    `json:"reason,omitempty" doc:"Why it has that status."`
	PublicState string    `json:"public_state" doc:"Status in the words of users."`
	Optional    bool      `json:"may_fail,omitempty" doc:"Its failure is none of the flow's."`
	SubFlow     bool      `json:"sub_flow,omitempty" doc:"A graph stands in its place."`
	RunIndex    int       `json:"run_index" doc:"How often it was opened again by replay."`
	Join        *JoinView `json:"join,omitempty" doc:"What it waits for; absent of one that no edge leads to."`
	StartedAt   time.Time `json:"started_at,omitzero" doc:"When a worker first took it."`
	EndedAt     time.Time `json:"ended_at,omitzero" doc:"When it ended."`
	// DeletedAt is when the member was deleted alone. Its execution is gone; the flow keeps its place in the graph and how it ended. Zero: it
	// is there.
	DeletedAt time.Time `json:"deleted_at,omitzero" doc:"When it was deleted alone: its execution is gone, and the flow keeps its place in the graph and how it ended. Absent while it is there."`
}

// EdgeKind says which ends of a member let the next one go on.
type EdgeKind string

// The kinds of edges; "" is OnSuccess.
const (
	OnSuccess EdgeKind = "success_only"
	OnFailure EdgeKind = "failure_only" // failed, expired, cancelled
	OnEnd     EdgeKind = "any_terminal"
)

// EdgeView is an edge with its state.
type EdgeView struct {
	ID         string    `json:"edge_id" doc:"Id of the edge."`
	From       string    `json:"upstream" doc:"Name of the member that is waited for."`
	FromID     ID        `json:"upstream_id" doc:"Its execution."`
	To         string    `json:"downstream" doc:"Name of the member that waits."`
	ToID       ID        `json:"downstream_id" doc:"Its execution."`
	Kind       EdgeKind  `json:"kind" enum:"success_only,failure_only,any_terminal" doc:"Which ends of the first let the second go on."`
	Pass       string    `json:"pass,omitempty" doc:"Name under which the second gets the result of the first."`
	State      string    `json:"state" enum:"pending,satisfied,impossible" doc:"Whether the first has ended so."`
	Outcome    Status    `json:"upstream_outcome,omitempty" doc:"How the first ended."`  // "" of a pending one
	Run        int       `json:"upstream_run,omitempty" doc:"Which run of it that was."` // 0 of a pending one
	ResolvedAt time.Time `json:"resolved_at,omitzero" doc:"When."`
}

// Child is a child as its parent sees it.
type Child struct {
	Name          string `json:"name" doc:"Its name."`
	ID            ID     `json:"execution_id" doc:"Its execution."`
	Outcome       Status `json:"outcome,omitempty" doc:"How it ended; absent: it has not."`
	HasResult     bool   `json:"has_result,omitempty" doc:"It left a result: the route /result of its execution delivers it."` // which ChildResult fetches
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

// MarshalJSON writes who asked for the end as the HTTP API shows it.
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

// AppendJSON adds what MarshalJSON writes to a text. The run of an edge that is decided is shown also if it is the first, 0.
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
