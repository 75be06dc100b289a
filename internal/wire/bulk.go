package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// bulkCalls are section 2.2.
var bulkCalls = []*Operation{row(StartBulk), row(ListBulk), row(GetBulk), row(ListBulkItems), row(StopBulk)}

// The calls on bulk jobs.
var (
	StartBulk = Call[StartBulkRequest, api.BulkJob]{&Operation{
		ID: "start_bulk", Rule: "U57", Method: http.MethodPost, Path: "/v1/bulk", Roles: Operate, Only: map[Role]Condition{Operate: NoRemoval},
		Audit: "bulk", Go: "Operate.Bulk", Command: "cancel --where", Summary: "Act on many executions by a durable job, or show what it would meet",
		Status: []int{http.StatusAccepted, http.StatusOK},
	}}
	ListBulk = Call[ListBulkRequest, api.Page[*api.BulkJob]]{&Operation{
		ID: "list_bulk", Rule: "U58", Method: http.MethodGet, Path: "/v1/bulk", Roles: Read,
		Go: "Operate.BulkJobs", Command: "bulk list", Summary: "List bulk jobs", Status: []int{http.StatusOK},
	}}
	GetBulk = Call[GetBulkRequest, api.BulkJob]{&Operation{
		ID: "get_bulk", Rule: "U58", Method: http.MethodGet, Path: "/v1/bulk/{id}", Roles: Read,
		Go: "Operate.BulkStatus", Command: "bulk get", Summary: "Show a bulk job, or wait for its end", Status: []int{http.StatusOK}, Waits: true,
	}}
	ListBulkItems = Call[ListBulkItemsRequest, api.Page[api.BulkItem]]{&Operation{
		ID: "list_bulk_items", Rule: "U58", Method: http.MethodGet, Path: "/v1/bulk/{id}/items", Roles: Read,
		Go: "Operate.BulkItems", Command: "bulk items", Summary: "List what a bulk job did", Status: []int{http.StatusOK},
	}}
	StopBulk = Call[StopBulkRequest, api.BulkJob]{&Operation{
		ID: "stop_bulk", Rule: "U58", Method: http.MethodPost, Path: "/v1/bulk/{id}/stop", Roles: Operate,
		Go: "Operate.StopBulk", Command: "bulk stop", Summary: "Stop a bulk job; what is done stays done", Status: []int{http.StatusOK},
	}}
)

// StartBulkRequest starts a bulk job.
type StartBulkRequest struct{ Body BulkRequest }

// BulkRequest says what to do to which executions (U57).
type BulkRequest struct {
	Action        string   `json:"action" required:"true" enum:"cancel,replay,priority,hold,release_hold,resume,signal,tag,retain,delete" doc:"What to do."`
	Filter        *Filter  `json:"filter,omitempty" oneof:"which" doc:"Those that match."`
	IDs           []string `json:"ids,omitempty" oneof:"which" doc:"These."`
	All           bool     `json:"all,omitempty" oneof:"which" doc:"All of them."`
	Args          BulkArgs `json:"args,omitzero" doc:"What the action needs."`
	DryRun        bool     `json:"dry_run,omitempty" doc:"Count and show a sample, change nothing."`
	MaxAffected   *int     `json:"max_affected,omitempty" minimum:"0" maximum:"100000" doc:"Refuse when more would be affected."`
	RatePerSecond int      `json:"rate_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"At most so many executions a second; 0: as fast as it goes."`
	Reason        string   `json:"reason,omitempty" maxLength:"1024" doc:"Why; stands in the events."`
}

// BulkArgs are the fields of the action's own body.
type BulkArgs struct {
	Priority     *int               `json:"priority,omitempty" doc:"Of priority."`
	Tags         map[string]*string `json:"tags,omitempty" doc:"Of tag; null deletes."`
	Until        Time               `json:"until,omitzero" doc:"Of retain; absent: for ever."`
	DelayMS      int64              `json:"delay_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"Of resume."`
	Name         string             `json:"name,omitempty" maxLength:"128" doc:"Of signal: approved, rejected or another word."`
	Suffix       string             `json:"suffix,omitempty" maxLength:"128" doc:"Of signal: tells apart what one person says twice."`
	Lane         string             `json:"lane,omitempty" maxLength:"64" doc:"Of signal: refuse executions that are in another lane."`
	Comment      string             `json:"comment,omitempty" maxLength:"4096" doc:"Of signal: why."`
	PayloadField                    // of signal
	ReplayFields                    // of replay
}

// Foreign returns the name of the first argument that is given and that another action reads; "" if there is none.
func (a *BulkArgs) Foreign(action string) string {
	for _, of := range []struct {
		name, action string
		given        bool
	}{
		{"priority", api.BulkPriority, a.Priority != nil},
		{"tags", api.BulkTag, len(a.Tags) > 0},
		{"until", api.BulkRetain, !a.Until.IsZero()},
		{"delay_ms", api.BulkResume, a.DelayMS != 0},
		{"name", api.BulkSignal, a.Name != ""},
		{"suffix", api.BulkSignal, a.Suffix != ""},
		{"lane", api.BulkSignal, a.Lane != ""},
		{"comment", api.BulkSignal, a.Comment != ""},
		{"payload", api.BulkSignal, !a.Payload.IsNothing()},
		{"deadline_at", api.BulkReplay, !a.DeadlineAt.IsZero()},
		{"keep_steps", api.BulkReplay, a.KeepSteps},
		{"cascade", api.BulkReplay, a.Cascade != ""},
		{"ignore_dependencies", api.BulkReplay, a.IgnoreDependencies},
	} {
		if of.given && of.action != action {
			return of.name
		}
	}
	return ""
}

// ListBulkRequest lists bulk jobs.
type ListBulkRequest struct{ PageFields }

// BulkByID names a bulk job in the path.
type BulkByID struct {
	ID string `path:"id" argument:"job_id" doc:"Id of the job."`
}

// GetBulkRequest shows a bulk job.
type GetBulkRequest struct {
	BulkByID
	WaitFields
}

// ListBulkItemsRequest lists what a bulk job did.
type ListBulkItemsRequest struct {
	BulkByID
	PageFields
	OK *bool `query:"ok" doc:"Only those done, or only those refused."`
}

// StopBulkRequest stops a bulk job.
type StopBulkRequest struct {
	BulkByID
	Body struct {
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Why."`
	}
}
