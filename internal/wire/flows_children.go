package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// The calls on what a running worker spawned, and on what it was given.
var (
	ListChildren = Call[PageByID, Page[api.FlowMember]]{&Operation{
		ID: "list_children", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/children", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Children", Command: "get --children", Summary: "List what the present run of an execution spawned, by name",
		Status: []int{http.StatusOK},
	}}
	ReadInput = Call[ReadInputRequest, Raw]{&Operation{
		ID: "read_input", Rule: "U39", Method: http.MethodGet, Path: "/v1/executions/{id}/inputs/{name}", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.NamedInput", Command: "input --name", Summary: "Deliver what a member got from another, as that left it",
		Status: []int{http.StatusOK, http.StatusNoContent}, Raw: true,
	}}
	SpawnChildren = Call[SpawnRequest, api.Spawned]{&Operation{
		ID: "spawn_children", Rule: "U75", Method: http.MethodPost, Path: "/v1/executions/{id}/spawn", Roles: Work,
		Go: "Work.Do(spawn)", NoCommand: workerOnly, Summary: "Start work below a running execution, and wait for it if asked", Status: []int{http.StatusOK},
	}}
	WaitForChildren = Call[WaitChildrenRequest, api.ChildrenWaited]{&Operation{
		ID: "wait_for_children", Rule: "U75", Method: http.MethodPost, Path: "/v1/executions/{id}/wait-children", Roles: Work,
		Go: "Work.Do(wait_children)", NoCommand: workerOnly, Summary: "Give the work back until its children have ended", Status: []int{http.StatusOK},
	}}
)

// ReadInputRequest delivers a named input.
type ReadInputRequest struct {
	ByID
	Name string `path:"name" doc:"Name of the input."`
}

// SpawnFields are what is spawned.
type SpawnFields struct {
	Defaults    *NodeFields   `json:"defaults,omitempty" doc:"What children have that leave it out."`
	Edges       []FlowEdge    `json:"edges,omitempty" most:"100000" doc:"Which child waits for which."`
	OnParentEnd string        `json:"on_parent_end,omitempty" enum:"cancel_on_failure,cancel,detach" doc:"What becomes of children whose parent ends; cancel_on_failure if absent."`
	Wait        *ChildrenWait `json:"wait,omitempty" doc:"Give the work back until they have ended, in the same transaction."`
}

// SpawnRequest spawns children.
type SpawnRequest struct {
	FencedByID
	Body struct {
		LeaseField
		Children []FlowNode `json:"children" required:"true" doc:"The children, at most 1000. A name that there is already stands for the child that has it."`
		SpawnFields
	}
}

// ChildrenWaitFields say what is waited for.
type ChildrenWaitFields struct {
	Names       []string    `json:"names,omitempty" doc:"Children by name; all of this run if absent."`
	Policy      string      `json:"policy,omitempty" enum:"all_of,any_of,quorum" doc:"How many must have ended; all_of if absent."`
	K           int         `json:"k,omitempty" minimum:"0" doc:"Of quorum: so many."`
	Kind        string      `json:"kind,omitempty" enum:"success_only,failure_only,any_terminal" doc:"Which ends count; any_terminal if absent."`
	OnSatisfied OnSatisfied `json:"on_satisfied,omitempty" enum:"let_run,cancel_remaining" doc:"What becomes of children that are not needed any more; let_run if absent."`
}

// ChildrenWait is a wait for children.
type ChildrenWait struct {
	ChildrenWaitFields
	TimeoutMS *int64 `json:"timeout_ms,omitempty" minimum:"1" maximum:"31536000000" doc:"Wait no longer than this; for ever if absent."`
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
