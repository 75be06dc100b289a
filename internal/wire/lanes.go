package wire

import "net/http"

// laneCalls are the lanes of section 2.6.
var laneCalls = []*Operation{row(ListLanes), row(GetLane), row(PutLane), row(PauseLane), row(ResumeLane), row(DrainLane), row(DisableLane)}

// shared bounds operate and admin on what all namespaces share.
var shared = map[Role]Condition{Operate: SharedThings, Admin: SharedThings}

// The calls on lanes.
var (
	ListLanes = Call[ListLanesRequest, Page[Lane]]{&Operation{
		ID: "list_lanes", Rule: "U100", Method: http.MethodGet, Path: "/v1/lanes", Roles: Read,
		Go: "Lanes.List", Command: "lanes list", Summary: "List the lanes", Status: []int{http.StatusOK},
	}}
	GetLane = Call[ByLane, Lane]{&Operation{
		ID: "get_lane", Rule: "U100", Method: http.MethodGet, Path: "/v1/lanes/{lane}", Roles: Read,
		Go: "Lanes.Get", Command: "lanes get", Summary: "Show a lane", Status: []int{http.StatusOK},
	}}
	PutLane = Call[PutLaneRequest, Lane]{&Operation{
		ID: "put_lane", Rule: "U100", Method: http.MethodPut, Path: "/v1/lanes/{lane}", Roles: Operate, Only: shared,
		Go: "Lanes.Put", Command: "lanes set", Summary: "State all settings of a lane", Status: []int{http.StatusOK},
	}}
	PauseLane = Call[LaneActionRequest, Lane]{&Operation{
		ID: "pause_lane", Rule: "U100", Method: http.MethodPost, Path: "/v1/lanes/{lane}/pause", Roles: Operate, Only: shared,
		Go: "Lanes.Pause", Command: "lanes pause", Summary: "Let submits in and nothing out", Status: []int{http.StatusOK},
	}}
	ResumeLane = Call[LaneActionRequest, Lane]{&Operation{
		ID: "resume_lane", Rule: "U100", Method: http.MethodPost, Path: "/v1/lanes/{lane}/resume", Roles: Operate, Only: shared,
		Go: "Lanes.Resume", Command: "lanes resume", Summary: "Open a lane again", Status: []int{http.StatusOK},
	}}
	DrainLane = Call[LaneActionRequest, Lane]{&Operation{
		ID: "drain_lane", Rule: "U100", Method: http.MethodPost, Path: "/v1/lanes/{lane}/drain", Roles: Operate, Only: shared,
		Go: "Lanes.Drain", Command: "lanes drain", Summary: "Let work out and no submits in", Status: []int{http.StatusOK},
	}}
	DisableLane = Call[LaneActionRequest, Lane]{&Operation{
		ID: "disable_lane", Rule: "U100", Method: http.MethodPost, Path: "/v1/lanes/{lane}/disable", Roles: Operate, Only: shared,
		Go: "Lanes.Disable", Command: "lanes disable", Summary: "Close a lane both ways", Status: []int{http.StatusOK},
	}}
)

// ListLanesRequest lists lanes.
type ListLanesRequest struct{ PageFields }

// ByLane names a lane in the path.
type ByLane struct {
	Lane string `path:"lane" doc:"Name of the lane."`
}

// LaneSettings are all settings of a lane; what is absent takes its default.
type LaneSettings struct {
	State           string         `json:"state,omitempty" enum:"active,paused,draining,disabled" doc:"active if absent."`
	MaxConcurrent   int            `json:"max_concurrent,omitempty" minimum:"0" maximum:"1000000" doc:"Executions at a time; 0: no cap."`
	AgeingMS        int64          `json:"ageing_ms,omitempty" minimum:"0" maximum:"1000000000000" doc:"Waiting that one point of priority is worth; 0: priority always wins."`
	Fairness        string         `json:"fairness,omitempty" enum:"auto,off,namespace,key" doc:"Among whom the lane is shared. auto, if absent: namespaces take turns, and in a namespace priority and age decide; off: priority and age alone."`
	FairnessWeights map[string]int `json:"fairness_weights,omitempty" doc:"Shares by key, 1 to 1000."`
	RetentionMS     *Retention     `json:"retention_ms,omitempty" doc:"How long finished executions are kept."`
}

// Retention is how long finished executions are kept, by the status they ended in; -1 for ever, absent: the next rule's.
type Retention struct {
	Succeeded *int64 `json:"succeeded,omitempty" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
	Failed    *int64 `json:"failed,omitempty" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
	Cancelled *int64 `json:"cancelled,omitempty" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
	Expired   *int64 `json:"expired,omitempty" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
	Skipped   *int64 `json:"skipped,omitempty" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
}

// Lane is a lane with its settings and counts.
type Lane struct {
	Lane string `json:"lane" doc:"Name of the lane."`
	LaneSettings
	Revision      int64          `json:"revision" doc:"Counts the changes of the settings."`
	Since         Time           `json:"since,omitzero" doc:"When it was registered."`
	RegisteredBy  string         `json:"registered_by,omitempty" doc:"submit or put_lane."`
	Counts        map[string]int `json:"counts,omitempty" doc:"Executions by status."`
	AtLeast       bool           `json:"at_least,omitempty" doc:"Some count stopped at 10 000."`
	OldestReadyAt Time           `json:"oldest_ready_at,omitzero" doc:"Since when the oldest ready execution waits."`
	Workers       *int           `json:"workers,omitempty" doc:"Live instances that take from it."`
	Rates         *LaneRates     `json:"rates,omitempty" doc:"What goes through it."`
}

// LaneRates are executions a second.
type LaneRates struct {
	Submitted Rate `json:"submitted" doc:"Submitted a second."`
	Started   Rate `json:"started" doc:"Started a second."`
	Completed Rate `json:"completed" doc:"Ended a second."`
}

// Rate is an average over two spans.
type Rate struct {
	OneMinute   float64 `json:"1m" doc:"Over one minute."`
	FiveMinutes float64 `json:"5m" doc:"Over five minutes."`
}

// PutLaneRequest states a lane.
type PutLaneRequest struct {
	ByLane
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    struct {
		LaneSettings
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Why; stands in the event."`
	}
}

// LaneActionRequest sets the state of a lane alone.
type LaneActionRequest struct {
	ByLane
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    struct {
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Why; stands in the event."`
	}
}
