package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// Operations on children of a running execution, and on its named inputs.
var (
	ListChildren = Call[PageByID, Page[api.FlowMember]]{&Operation{
		ID: "list_children", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/children", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Children", Command: "get --children", Summary: "List the children of the current run of an execution, by name",
		Status: []int{http.StatusOK},
	}}
	ReadInput = Call[ReadInputRequest, Raw]{&Operation{
		ID: "read_input", Rule: "U39", Method: http.MethodGet, Path: "/v1/executions/{id}/inputs/{name}", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.NamedInput", Command: "input --name", Summary: "Return the result that a member received from another one, unchanged",
		Status: []int{http.StatusOK, http.StatusNoContent}, Raw: true,
	}}
	SpawnChildren = Call[SpawnRequest, api.SpawnResult]{&Operation{
		ID: "spawn_children", Rule: "U75", Method: http.MethodPost, Path: "/v1/executions/{id}/spawn", Roles: Work,
		Go: "Work.Do(spawn)", NoCommand: workerOnly, Summary: "Start children of a running execution, and optionally wait for them", Status: []int{http.StatusOK},
	}}
	WaitForChildren = Call[WaitChildrenRequest, api.ChildrenWaited]{&Operation{
		ID: "wait_for_children", Rule: "U75", Method: http.MethodPost, Path: "/v1/executions/{id}/wait-children", Roles: Work,
		Go: "Work.Do(wait_children)", NoCommand: workerOnly, Summary: "Give the work back until its children have ended", Status: []int{http.StatusOK},
	}}
)

// ReadInputRequest returns a named input.
type ReadInputRequest struct {
	ByID
	Name string `path:"name" doc:"Name of the input."`
}

// SpawnFields describe the children.
type SpawnFields struct {
	Defaults    *NodeFields   `json:"defaults,omitempty" doc:"Defaults for fields that children omit."`
	Edges       []FlowEdge    `json:"edges,omitempty" most:"100000" doc:"Dependencies between children."`
	OnParentEnd string        `json:"on_parent_end,omitempty" enum:"cancel_on_failure,cancel,detach" doc:"What happens to children when the parent ends; default cancel_on_failure."`
	Wait        *ChildrenWait `json:"wait,omitempty" doc:"Give the work back until they have ended, in the same transaction."`
}

// SpawnRequest spawns children.
type SpawnRequest struct {
	FencedByID
	Body struct {
		LeaseField
		Children []FlowNode `json:"children" required:"true" doc:"The children, at most 1000. An existing name refers to the existing child."`
		SpawnFields
	}
}

// ChildrenWaitFields select the children to wait for.
type ChildrenWaitFields struct {
	Names       []string    `json:"names,omitempty" doc:"Children by name; default: all of this run."`
	Policy      string      `json:"policy,omitempty" enum:"all_of,any_of,quorum" doc:"How many must have ended; default all_of."`
	K           int         `json:"k,omitempty" minimum:"0" doc:"For quorum: the number."`
	Kind        string      `json:"kind,omitempty" enum:"success_only,failure_only,any_terminal" doc:"Which outcomes count; default any_terminal."`
	OnSatisfied OnSatisfied `json:"on_satisfied,omitempty" enum:"let_run,cancel_remaining" doc:"What happens to children that are no longer needed; default let_run."`
}

// ChildrenWait is a wait for children.
type ChildrenWait struct {
	ChildrenWaitFields
	TimeoutMS *int64 `json:"timeout_ms,omitempty" minimum:"1" maximum:"31536000000" doc:"Maximum wait; absent: no limit."`
	UsageField
}

// WaitChildrenRequest waits for children.
type WaitChildrenRequest struct {
	FencedByID
	Body struct {
		LeaseField
		ChildrenWait
	}
}
