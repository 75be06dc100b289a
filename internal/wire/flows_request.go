package wire

import "github.com/flowfabric/flowfabric/api"

// SubmitFlowRequest submits a graph.
type SubmitFlowRequest struct {
	Empty bool `query:"empty" doc:"Make an empty flow that is extended later: the body has kind, flow_id and tags alone."`
	Body  struct {
		FlowSubmission
		DryRun bool `json:"dry_run,omitempty" doc:"Check all of it and write nothing."`
	}
}

// FlowSubmission is a graph to submit (U89).
type FlowSubmission struct {
	Kind           string                 `json:"kind" required:"true" maxLength:"128" doc:"Kind of flow."`
	FlowID         string                 `json:"flow_id,omitempty" doc:"Id that the caller brings, which makes the submit repeatable."`
	IdempotencyKey string                 `json:"idempotency_key,omitempty" maxLength:"256" doc:"Name of the work: a second submit with it finds the flow of the first."`
	Defaults       *NodeFields            `json:"defaults,omitempty" doc:"What nodes have that leave it out."`
	Nodes          []FlowNode             `json:"nodes,omitempty" doc:"The members, at most 5000."`
	Edges          []FlowEdge             `json:"edges,omitempty" most:"100000" doc:"Who waits for whom, at most 50000; besides those of after."`
	Output         string                 `json:"output,omitempty" doc:"Name of the member whose result is that of the flow."`
	Seal           *bool                  `json:"seal,omitempty" doc:"Whether nothing more comes; true if absent."`
	Tags           map[string]string      `json:"tags,omitempty" doc:"Tags by key."`
	Budgets        []api.BudgetDefinition `json:"budgets,omitempty" doc:"Budgets that are made with the flow and cover its members, up to 4."`
}

// The parts of graphs, which package api declares: a spawn is one of the commands of work, whose values are there.
type (
	// NodeFields are the fields of a submission that a node may have (U32).
	NodeFields = api.NodeFields
	// FlowNode is a member of a graph to submit (U89), or a child to spawn (U75).
	FlowNode = api.FlowNode
	// SubFlow is a graph that stands in the place of a member.
	SubFlow = api.SubFlow
	// JoinSpec says how many of its edges a member needs.
	JoinSpec = api.JoinSpec
	// FlowEdge is an edge to make.
	FlowEdge = api.FlowEdge
	// OnSatisfied says what becomes of members that a join does not need any more (F22). "" is let_run.
	OnSatisfied = api.OnSatisfied
)

// The words of OnSatisfied.
const (
	LetRun          = api.OnSatisfiedLetRun
	CancelRemaining = api.OnSatisfiedCancelRemaining
)

// ExtendFlowRequest adds to a graph.
type ExtendFlowRequest struct {
	ByFlow
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the graph revision is another."`
	Body    FlowExtension
}

// FlowExtension is what is added to a graph (U90).
type FlowExtension struct {
	Defaults *NodeFields `json:"defaults,omitempty" doc:"What nodes have that leave it out."`
	Nodes    []FlowNode  `json:"nodes,omitempty" doc:"New members, at most 5000."`
	Members  []NewMember `json:"members,omitempty" doc:"Executions that are there already."`
	Edges    []FlowEdge  `json:"edges,omitempty" most:"100000" doc:"Who waits for whom, at most 50000."`
	Seal     bool        `json:"seal,omitempty" doc:"Nothing more comes after this."`
}

// NewMember is an execution that becomes a member.
type NewMember struct {
	ExecutionID string `json:"execution_id" required:"true" doc:"The execution."`
	Name        string `json:"name" required:"true" maxLength:"64" doc:"Its name in the flow."`
}
