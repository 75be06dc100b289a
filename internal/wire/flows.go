package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// flowCalls are section 2.5, and the parts of sections 2.1 and 2.3 about graphs.
var flowCalls = []*Operation{
	row(SubmitFlow), row(ListFlows), row(GetFlow), row(ExtendFlow), row(SealFlow), row(CancelFlow), row(DeleteFlow), row(GetGraph), row(ListFlowMembers), row(ListFlowEdges), row(GetFlowEdge), row(GetFlowUsage),
	row(ListFlowEvents), row(GetJoin), row(SetJoin), row(PatchFlowTags), row(PutFlowTags), row(ListChildren), row(ReadInput), row(SpawnChildren), row(WaitForChildren),
}

// Operations that create and change flows.
var (
	SubmitFlow = Call[SubmitFlowRequest, api.FlowRun]{&Operation{
		ID: "submit_flow", Rule: "U89", Method: http.MethodPost, Path: "/v1/flows", Roles: Submit,
		Go: "Flows.Submit", Command: "flow submit", Summary: "Submit a flow, create an empty one, or check one",
		Status: []int{http.StatusCreated, http.StatusOK},
	}}
	// CheckFlow is a submit with dry_run, which has its own answer.
	CheckFlow  = variant[SubmitFlowRequest, FlowChecked](SubmitFlow.Operation)
	ExtendFlow = Call[ExtendFlowRequest, api.FlowRun]{&Operation{
		ID: "extend_flow", Rule: "U90", Method: http.MethodPost, Path: "/v1/flows/{id}/extend", Roles: Submit, Only: ownToo,
		Go: "Flows.Extend", Command: "flow extend", Summary: "Add members and edges to a flow", Status: []int{http.StatusOK},
	}}
	SealFlow = Call[SealFlowRequest, api.FlowRun]{&Operation{
		ID: "seal_flow", Rule: "U90", Method: http.MethodPost, Path: "/v1/flows/{id}/seal", Roles: Submit, Only: ownToo,
		Go: "Flows.Seal", Command: "flow seal", Summary: "Seal a flow: it can no longer be extended", Status: []int{http.StatusOK},
	}}
	CancelFlow = Call[CancelFlowRequest, api.FlowCancelProgress]{&Operation{
		ID: "cancel_flow", Rule: "U93", Method: http.MethodPost, Path: "/v1/flows/{id}/cancel", Roles: Operate | Submit, Only: ownToo,
		Go: "Flows.Cancel", Command: "flow cancel", Summary: "Cancel a flow and, by policy, its members",
		Status: []int{http.StatusOK, http.StatusAccepted}, Waits: true,
	}}
	DeleteFlow = Call[DeleteFlowRequest, None]{&Operation{
		ID: "delete_flow", Rule: "U55", Method: http.MethodDelete, Path: "/v1/flows/{id}", Roles: Admin,
		Go: "Flows.Delete", Command: "flow delete", Summary: "Delete a finished flow with its members and all their data", Status: []int{http.StatusNoContent},
	}}
	SetJoin = Call[SetJoinRequest, api.JoinView]{&Operation{
		ID: "set_join", Rule: "U92", Method: http.MethodPut, Path: "/v1/flows/{id}/members/{name}/join", Roles: Submit, Only: ownToo,
		Go: "Flows.SetJoin", Command: "flow join --policy", Summary: "Set how many of its edges a member needs, before it has any", Status: []int{http.StatusOK},
	}}
	PatchFlowTags = Call[PatchFlowTagsRequest, Tags]{&Operation{
		ID: "patch_flow_tags", Rule: "U94", Method: http.MethodPatch, Path: "/v1/flows/{id}/tags", Roles: Operate | Submit, Only: ownToo,
		Audit: "set_flow_tags", Go: "Flows.SetTags", Command: "flow tags", Summary: "Change the tags of a flow by JSON merge patch", Status: []int{http.StatusOK},
	}}
	PutFlowTags = Call[PutFlowTagsRequest, Tags]{&Operation{
		ID: "put_flow_tags", Rule: "U94", Method: http.MethodPut, Path: "/v1/flows/{id}/tags", Roles: Operate | Submit, Only: ownToo,
		Audit: "set_flow_tags", Go: "Flows.ReplaceTags", Command: "flow tags --replace", Summary: "Replace all tags of a flow", Status: []int{http.StatusOK},
	}}
)

// Operations that read flows.
var (
	ListFlows = Call[ListFlowsRequest, Page[*api.FlowView]]{&Operation{
		ID: "list_flows", Rule: "U91", Method: http.MethodGet, Path: "/v1/flows", Roles: Read | Submit, Only: map[Role]Condition{Submit: OwnListed},
		Go: "Flows.List", Command: "flow list", Summary: "List flows, newest first", Status: []int{http.StatusOK},
	}}
	GetFlow = Call[GetFlowRequest, api.FlowView]{&Operation{
		ID: "get_flow", Rule: "U91", Method: http.MethodGet, Path: "/v1/flows/{id}", Roles: Read | Submit, Only: ownToo,
		Go: "Flows.Get", Command: "flow get", Summary: "Show a flow, or wait for its end", Status: []int{http.StatusOK}, Waits: true,
	}}
	GetGraph = Call[GetGraphRequest, api.FlowGraph]{&Operation{
		ID: "get_graph", Rule: "U91", Method: http.MethodGet, Path: "/v1/flows/{id}/graph", Roles: Read | Submit, Only: ownToo,
		Go: "Flows.Graph", Command: "flow graph", Summary: "Show the members of a flow and the edges between them", Status: []int{http.StatusOK},
	}}
	ListFlowMembers = Call[ListMembersRequest, Page[api.FlowMember]]{&Operation{
		ID: "list_flow_members", Rule: "U91", Method: http.MethodGet, Path: "/v1/flows/{id}/members", Roles: Read | Submit, Only: ownToo,
		Go: "Flows.Members", Command: "flow get --members", Summary: "List the members of a flow by name", Status: []int{http.StatusOK},
	}}
	ListFlowEdges = Call[ListEdgesRequest, Page[api.EdgeView]]{&Operation{
		ID: "list_flow_edges", Rule: "U91", Method: http.MethodGet, Path: "/v1/flows/{id}/edges", Roles: Read | Submit, Only: ownToo,
		Go: "Flows.Edges", Command: "flow get --edges", Summary: "List the edges of a flow, or those of a member", Status: []int{http.StatusOK},
	}}
	GetFlowEdge = Call[GetEdgeRequest, api.EdgeView]{&Operation{
		ID: "get_flow_edge", Rule: "U91", Method: http.MethodGet, Path: "/v1/flows/{id}/edges/{edge}", Roles: Read | Submit, Only: ownToo,
		Go: "Flows.Edge", NoCommand: "use flow get --edges", Summary: "Show one edge", Status: []int{http.StatusOK},
	}}
	GetFlowUsage = Call[ByFlow, FlowUsage]{&Operation{
		ID: "get_flow_usage", Rule: "U91", Method: http.MethodGet, Path: "/v1/flows/{id}/usage", Roles: Read | Submit, Only: ownToo,
		Go: "Flows.Usage", Command: "flow get --usage", Summary: "Show the total usage of the members of a flow", Status: []int{http.StatusOK},
	}}
	ListFlowEvents = Call[FlowEventsRequest, api.EventPage]{&Operation{
		ID: "list_flow_events", Rule: "U91", Method: http.MethodGet, Path: "/v1/flows/{id}/events", Roles: Read | Submit, Only: ownToo,
		Go: "Events.Read", Command: "events --flow", Summary: "Read or follow the events of a flow and its members",
		Status: []int{http.StatusOK}, Waits: true, Streams: true,
	}}
	GetJoin = Call[ByMember, api.JoinView]{&Operation{
		ID: "get_join", Rule: "U92", Method: http.MethodGet, Path: "/v1/flows/{id}/members/{name}/join", Roles: Submit, Only: ownToo,
		Go: "Flows.Join", Command: "flow join", Summary: "Show the join of a member", Status: []int{http.StatusOK},
	}}
)

// variant is another call of an operation of the table: the same request with another answer.
func variant[Req, Ans any](o *Operation) Call[Req, Ans] { return Call[Req, Ans]{o} }

// ByFlow identifies a flow in the path.
type ByFlow struct {
	ID string `path:"id" argument:"flow_id" doc:"Id of the flow, full form or bare UUID."`
}

// ByMember identifies a member in the path.
type ByMember struct {
	ByFlow
	Name string `path:"name" doc:"Name of the member, or the id of its execution."`
}

// ListFlowsRequest lists flows.
type ListFlowsRequest struct {
	PageFields
	Kind        string             `query:"kind" doc:"Flows of this kind."`
	State       string             `query:"state" enum:"open,cancelling,completed,failed,cancelled" doc:"Flows in this state."`
	Tags        map[string]*string `query:"tag." doc:"With this tag: tag.<key>=<value>."`
	CreatedFrom Time               `query:"created_from" doc:"Created at or after this time."`
	CreatedTo   Time               `query:"created_to" doc:"Created before this time."`
	Creator     string             `query:"creator" doc:"Created by this principal."`
}

// GetFlowRequest shows a flow.
type GetFlowRequest struct {
	ByFlow
	WaitFields
}

// GetGraphRequest shows a graph, or a part of a large one.
type GetGraphRequest struct {
	ByFlow
	Limit  *int   `query:"limit" minimum:"1" maximum:"10000" doc:"Members per part; default 10000."`
	Cursor string `query:"cursor" doc:"next_cursor of the previous part."`
}

// ListMembersRequest lists members.
type ListMembersRequest struct {
	ByFlow
	PageFields
	State string `query:"state" doc:"Members in this public state."`
}

// ListEdgesRequest lists edges.
type ListEdgesRequest struct {
	ByFlow
	PageFields
	From string `query:"from" doc:"Edges from this member, by name or id."`
	To   string `query:"to" doc:"Edges to this member, by name or id."`
}

// GetEdgeRequest shows an edge.
type GetEdgeRequest struct {
	ByFlow
	Edge string `path:"edge" doc:"Id of the edge."`
}

// FlowEventsRequest reads the events of a flow.
type FlowEventsRequest struct {
	ByFlow
	WaitFields
	PositionFields
}

// SealFlowRequest seals a flow.
type SealFlowRequest struct {
	ByFlow
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the graph revision differs."`
}

// SetJoinRequest sets how many edges a member needs.
type SetJoinRequest struct {
	ByMember
	Body struct {
		Policy      string      `json:"policy" required:"true" enum:"all_of,any_of,quorum" doc:"How many edges it needs."`
		K           int         `json:"k,omitempty" minimum:"0" doc:"For quorum: the number."`
		OnSatisfied OnSatisfied `json:"on_satisfied,omitempty" enum:"let_run,cancel_remaining" doc:"What happens to members that are no longer needed; default let_run."`
	}
}

// CancelFlowRequest cancels a flow.
type CancelFlowRequest struct {
	ByFlow
	WaitFields
	Body struct {
		Policy string `json:"policy,omitempty" enum:"cancel_all,cancel_pending,flow_only" doc:"Which members are cancelled; default cancel_all."`
		Reason string `json:"reason" required:"true" maxLength:"1024" doc:"Reason."`
	}
}

// DeleteFlowRequest deletes a finished flow.
type DeleteFlowRequest struct {
	ByFlow
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the graph revision differs."`
	Body    struct {
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Reason, recorded in the event."`
	}
}

// PatchFlowTagsRequest changes tags; null deletes.
type PatchFlowTagsRequest struct {
	ByFlow
	Body map[string]*string
}

// PutFlowTagsRequest replaces all tags.
type PutFlowTagsRequest struct {
	ByFlow
	Body map[string]string
}
