package wire

import "github.com/flowfabric/flowfabric/api"

// SubmitFlowRequest submits a flow.
type SubmitFlowRequest struct {
	Empty bool `query:"empty" doc:"Create an empty flow to be extended later: the body has only kind, flow_id and tags."`
	Body  struct {
		FlowSubmission
		DryRun bool `json:"dry_run,omitempty" doc:"Check the flow and write nothing."`
	}
}

// FlowSubmission is a flow to submit (U89).
type FlowSubmission struct {
	Kind           string                 `json:"kind" required:"true" maxLength:"128" doc:"Kind of flow."`
	FlowID         string                 `json:"flow_id,omitempty" doc:"Id chosen by the caller, which makes the submit repeatable."`
	IdempotencyKey string                 `json:"idempotency_key,omitempty" maxLength:"256" doc:"A second submit with this key returns the first flow."`
	Defaults       *NodeFields            `json:"defaults,omitempty" doc:"Defaults for fields that nodes omit."`
	Nodes          []FlowNode             `json:"nodes,omitempty" doc:"The members, at most 5000."`
	Edges          []FlowEdge             `json:"edges,omitempty" most:"100000" doc:"Dependencies, at most 50000, in addition to those of after."`
	Output         string                 `json:"output,omitempty" doc:"Name of the member whose result is the flow's."`
	Seal           *bool                  `json:"seal,omitempty" doc:"Whether the flow can no longer be extended; default true."`
	Tags           map[string]string      `json:"tags,omitempty" doc:"Tags by key."`
	Budgets        []api.BudgetDefinition `json:"budgets,omitempty" doc:"Budgets created with the flow that cover its members, up to 4."`
}

// The parts of graphs are declared in package api, because a spawn is also a worker command.
type (
	// NodeFields are the fields of a submission that a node can have (U32).
	NodeFields = api.NodeFields
	// FlowNode is a member of a graph to submit (U89), or a child to spawn (U75).
	FlowNode = api.FlowNode
	// SubFlow is a graph that is the content of a member.
	SubFlow = api.SubFlow
	// JoinSpec says how many of its edges a member needs.
	JoinSpec = api.JoinSpec
	// FlowEdge is an edge to create.
	FlowEdge = api.FlowEdge
	// OnSatisfied is what happens to members that a join no longer needs (F22). "" is let_run.
	OnSatisfied = api.OnSatisfied
)

// Values of OnSatisfied.
const (
	LetRun          = api.OnSatisfiedLetRun
	CancelRemaining = api.OnSatisfiedCancelRemaining
)

// ExtendFlowRequest extends a flow.
type ExtendFlowRequest struct {
	ByFlow
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the graph revision differs."`
	Body    FlowExtension
}

// FlowExtension is what to add to a flow (U90).
type FlowExtension struct {
	Defaults *NodeFields `json:"defaults,omitempty" doc:"Defaults for fields that nodes omit."`
	Nodes    []FlowNode  `json:"nodes,omitempty" doc:"New members, at most 5000."`
	Members  []NewMember `json:"members,omitempty" doc:"Existing executions."`
	Edges    []FlowEdge  `json:"edges,omitempty" most:"100000" doc:"Dependencies, at most 50000."`
	Seal     bool        `json:"seal,omitempty" doc:"Seal the flow afterwards."`
}

// NewMember is an execution that becomes a member.
type NewMember struct {
	ExecutionID string `json:"execution_id" required:"true" doc:"The execution."`
	Name        string `json:"name" required:"true" maxLength:"64" doc:"Its name in the flow."`
}
