package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// laneCalls are the lanes of section 2.6.
var laneCalls = []*Operation{row(ListLanes), row(GetLane), row(PutLane), row(PauseLane), row(ResumeLane), row(DrainLane), row(DisableLane)}

// shared limits operate and admin on entities that all namespaces share.
var shared = map[Role]Condition{Operate: SharedThings, Admin: SharedThings}

// The calls on lanes.
var (
	ListLanes = Call[ListLanesRequest, api.Page[*api.Lane]]{&Operation{
		ID: "list_lanes", Rule: "U100", Method: http.MethodGet, Path: "/v1/lanes", Roles: Read,
		Go: "Lanes.List", Command: "lanes list", Summary: "List lanes", Status: []int{http.StatusOK},
	}}
	GetLane = Call[ByLane, api.Lane]{&Operation{
		ID: "get_lane", Rule: "U100", Method: http.MethodGet, Path: "/v1/lanes/{lane}", Roles: Read,
		Go: "Lanes.Get", Command: "lanes get", Summary: "Show a lane", Status: []int{http.StatusOK},
	}}
	PutLane = Call[PutLaneRequest, api.Lane]{&Operation{
		ID: "put_lane", Rule: "U100", Method: http.MethodPut, Path: "/v1/lanes/{lane}", Roles: Operate, Only: shared,
		Go: "Lanes.Put", Command: "lanes set", Summary: "Set all settings of a lane", Status: []int{http.StatusOK},
	}}
	PauseLane = Call[LaneActionRequest, api.Lane]{&Operation{
		ID: "pause_lane", Rule: "U100", Method: http.MethodPost, Path: "/v1/lanes/{lane}/pause", Roles: Operate, Only: shared,
		Go: "Lanes.Pause", Command: "lanes pause", Summary: "Accept submits to a lane, but start nothing", Status: []int{http.StatusOK},
	}}
	ResumeLane = Call[LaneActionRequest, api.Lane]{&Operation{
		ID: "resume_lane", Rule: "U100", Method: http.MethodPost, Path: "/v1/lanes/{lane}/resume", Roles: Operate, Only: shared,
		Go: "Lanes.Resume", Command: "lanes resume", Summary: "Resume a lane", Status: []int{http.StatusOK},
	}}
	DrainLane = Call[LaneActionRequest, api.Lane]{&Operation{
		ID: "drain_lane", Rule: "U100", Method: http.MethodPost, Path: "/v1/lanes/{lane}/drain", Roles: Operate, Only: shared,
		Go: "Lanes.Drain", Command: "lanes drain", Summary: "Refuse submits to a lane, but finish its work", Status: []int{http.StatusOK},
	}}
	DisableLane = Call[LaneActionRequest, api.Lane]{&Operation{
		ID: "disable_lane", Rule: "U100", Method: http.MethodPost, Path: "/v1/lanes/{lane}/disable", Roles: Operate, Only: shared,
		Go: "Lanes.Disable", Command: "lanes disable", Summary: "Refuse submits to a lane, and start nothing", Status: []int{http.StatusOK},
	}}
)

// ListLanesRequest lists lanes.
type ListLanesRequest struct{ PageFields }

// ByLane identifies a lane in the path.
type ByLane struct {
	Lane string `path:"lane" doc:"Name of the lane."`
}

// PutLaneRequest sets all settings of a lane.
type PutLaneRequest struct {
	ByLane
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		api.LaneSettings
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Reason, recorded in the event."`
	}
}

// LaneActionRequest sets only the state of a lane.
type LaneActionRequest struct {
	ByLane
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Reason, recorded in the event."`
	}
}
