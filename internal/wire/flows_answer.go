package wire

import "github.com/flowfabric/flowfabric/api"

// Flow is a graph of executions as readers see it (U31).
type Flow struct {
	FlowID            string            `json:"flow_id" doc:"Id of the flow."`
	Partition         int               `json:"partition" minimum:"0" maximum:"255" doc:"N of the full form {fp:N}:<uuid> of its id and of those of its members."`
	Namespace         string            `json:"namespace" doc:"Namespace that it belongs to."`
	Kind              string            `json:"kind" doc:"Kind of flow."`
	State             string            `json:"state" enum:"open,cancelling,completed,failed,cancelled" doc:"How far it is."`
	Phase             string            `json:"phase,omitempty" enum:"running,waiting,suspended,blocked,idle" doc:"What an open one does now; where counts are shown."`
	Sealed            bool              `json:"sealed" doc:"Nothing more comes to it."`
	GraphRevision     int64             `json:"graph_revision" doc:"Counts the changes of the graph."`
	NodeCount         int               `json:"node_count" doc:"Its members."`
	EdgeCount         int               `json:"edge_count" doc:"The edges between them."`
	Output            string            `json:"output,omitempty" doc:"Name of the member whose result is that of the flow."`
	ParentExecutionID string            `json:"parent_execution_id,omitempty" doc:"The node that it stands for, or the execution that spawned its members."`
	RootFlowID        string            `json:"root_flow_id" doc:"The outermost flow."`
	Depth             int               `json:"depth" doc:"How deep it lies in that."`
	Tags              map[string]string `json:"tags,omitempty" doc:"Tags by key."`
	Creator           string            `json:"creator,omitempty" doc:"Who made it."`
	CreatedAt         Time              `json:"created_at,omitzero" doc:"When it was made."`
	LastMutationAt    Time              `json:"last_mutation_at,omitzero" doc:"When it last changed."`
	EndedAt           Time              `json:"ended_at,omitzero" doc:"When it ended."`
	Cancel            *FlowCancel       `json:"cancel,omitempty" doc:"Who asked for its end, and how."`
	Counts            map[string]int    `json:"counts,omitempty" doc:"Members by public state, and their total. Lists and answers to changes leave it out."`
	Joins             map[string]int    `json:"joins,omitempty" doc:"Joins by state: pending, satisfied, impossible, overridden; where counts are shown."`
}

// FlowCancel says who asked for the end of a flow.
type FlowCancel struct {
	Policy      string `json:"policy" doc:"Which members it reaches."`
	Reason      string `json:"reason,omitempty" doc:"Why."`
	By          string `json:"by" doc:"Who."`
	RequestedAt Time   `json:"requested_at,omitzero" doc:"When."`
}

// FlowAnswer is the flow, and whether this call made it.
type FlowAnswer struct {
	Created bool              `json:"created" doc:"Whether this call made the flow; of extend and seal whether it changed something."`
	Members map[string]string `json:"members" doc:"Ids of the executions that the call named, by name."`
	Flow
}

// FlowChecked is the answer to a dry run.
type FlowChecked struct {
	OK    bool     `json:"ok" doc:"It would be taken."`
	Order []string `json:"order" doc:"The members, each after all that it waits for."`
}

// FlowMember is a member of a flow (F60).
type FlowMember struct {
	Name        string        `json:"name" doc:"Its name in the flow."`
	ExecutionID string        `json:"execution_id" doc:"Its execution."`
	Kind        string        `json:"kind" doc:"Kind of work."`
	Lane        string        `json:"lane" doc:"Queue that it goes through."`
	Status      string        `json:"status" doc:"The one stored status."`
	Reason      string        `json:"reason,omitempty" doc:"Why it has that status."`
	PublicState string        `json:"public_state" doc:"Status in the words of users."`
	MayFail     bool          `json:"may_fail,omitempty" doc:"Its failure is none of the flow's."`
	SubFlow     bool          `json:"sub_flow,omitempty" doc:"A graph stands in its place."`
	RunIndex    int           `json:"run_index" doc:"How often it was opened again by replay."`
	Join        *api.JoinView `json:"join,omitempty" doc:"What it waits for; absent of one that no edge leads to."`
	StartedAt   Time          `json:"started_at,omitzero" doc:"When a worker first took it."`
	EndedAt     Time          `json:"ended_at,omitzero" doc:"When it ended."`
	DeletedAt   Time          `json:"deleted_at,omitzero" doc:"When it was deleted alone: its execution is gone, and the flow keeps its place in the graph and how it ended. Absent while it is there."`
}

// Edge makes one member wait for another (F1).
type Edge struct {
	EdgeID          string `json:"edge_id" doc:"Id of the edge."`
	Upstream        string `json:"upstream" doc:"Name of the member that is waited for."`
	UpstreamID      string `json:"upstream_id" doc:"Its execution."`
	Downstream      string `json:"downstream" doc:"Name of the member that waits."`
	DownstreamID    string `json:"downstream_id" doc:"Its execution."`
	Kind            string `json:"kind" enum:"success_only,failure_only,any_terminal" doc:"Which ends of the first let the second go on."`
	Pass            string `json:"pass,omitempty" doc:"Name under which the second gets the result of the first."`
	State           string `json:"state" enum:"pending,satisfied,impossible" doc:"Whether the first has ended so."`
	UpstreamOutcome string `json:"upstream_outcome,omitempty" doc:"How the first ended."`
	UpstreamRun     *int   `json:"upstream_run,omitempty" doc:"Which run of it that was."`
	ResolvedAt      Time   `json:"resolved_at,omitzero" doc:"When."`
}

// Graph is a flow's graph, or a part of a large one (F60).
type Graph struct {
	Flow       Flow         `json:"flow" doc:"The flow, without counts."`
	Nodes      []FlowMember `json:"nodes" doc:"The members by name."`
	Edges      []Edge       `json:"edges" doc:"The edges that lead from those."`
	NextCursor string       `json:"next_cursor,omitempty" doc:"Cursor of the next part; absent at the end."`
}

// FlowUsage is what the members of a flow have used.
type FlowUsage struct {
	FlowID string           `json:"flow_id" doc:"The flow."`
	Usage  map[string]int64 `json:"usage" doc:"What was used, by dimension."`
}

// FlowCancelled tells how far the end of a flow is (U93).
type FlowCancelled struct {
	State           string `json:"state" doc:"State of the flow now."`
	Policy          string `json:"policy,omitempty" doc:"The policy that holds."`
	Reason          string `json:"reason,omitempty" doc:"The reason that holds."`
	Cancelled       int    `json:"cancelled" doc:"Members that it has ended."`
	FinishedBefore  int    `json:"finished_before" doc:"Members that had ended, or ended by themselves."`
	Remaining       int    `json:"remaining" doc:"Members that have not ended."`
	AlreadyTerminal bool   `json:"already_terminal,omitempty" doc:"The flow had completed or failed before: nothing was done."`
}
