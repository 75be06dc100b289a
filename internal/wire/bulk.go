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
		Audit: "bulk", Go: "Operate.Bulk", Command: "cancel --where", Summary: "Act on many executions with a durable job, or show what it would match",
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
		Go: "Operate.BulkItems", Command: "bulk items", Summary: "List the items of a bulk job with their outcomes", Status: []int{http.StatusOK},
	}}
	StopBulk = Call[StopBulkRequest, api.BulkJob]{&Operation{
		ID: "stop_bulk", Rule: "U58", Method: http.MethodPost, Path: "/v1/bulk/{id}/stop", Roles: Operate,
		Go: "Operate.StopBulk", Command: "bulk stop", Summary: "Stop a bulk job; changes made so far stay", Status: []int{http.StatusOK},
	}}
)

// StartBulkRequest starts a bulk job.
type StartBulkRequest struct{ Body BulkRequest }

// BulkRequest says what to do to which executions (U57).
type BulkRequest struct {
	Action        string   `json:"action" required:"true" enum:"cancel,replay,priority,hold,release_hold,resume,signal,tag,retain,delete" doc:"The action."`
	Filter        *Filter  `json:"filter,omitempty" oneof:"which" doc:"Executions that match."`
	IDs           []string `json:"ids,omitempty" oneof:"which" doc:"These executions."`
	All           bool     `json:"all,omitempty" oneof:"which" doc:"All executions."`
	Args          BulkArgs `json:"args,omitzero" doc:"Arguments of the action."`
	DryRun        bool     `json:"dry_run,omitempty" doc:"Count and show a sample, change nothing."`
	MaxAffected   *int     `json:"max_affected,omitempty" minimum:"0" maximum:"100000" doc:"Refuse if more match."`
	RatePerSecond int      `json:"rate_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Maximum executions per second; 0: no limit."`
	Reason        string   `json:"reason,omitempty" maxLength:"1024" doc:"Reason, recorded in the events."`
}

// BulkArgs are the fields of the action's own request body.
type BulkArgs struct {
	Priority     *int               `json:"priority,omitempty" doc:"For priority."`
	Tags         map[string]*string `json:"tags,omitempty" doc:"For tag; null deletes."`
	Until        Time               `json:"until,omitzero" doc:"For retain; absent: forever."`
	DelayMS      int64              `json:"delay_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"For resume."`
	Name         string             `json:"name,omitempty" maxLength:"128" doc:"For signal: approved, rejected or another word."`
	Suffix       string             `json:"suffix,omitempty" maxLength:"128" doc:"For signal: distinguishes several decisions of one person."`
	Lane         string             `json:"lane,omitempty" maxLength:"64" doc:"For signal: refuse executions in another lane."`
	Comment      string             `json:"comment,omitempty" maxLength:"4096" doc:"For signal: comment."`
	PayloadField                    // for signal
	ReplayFields                    // for replay
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

// BulkByID identifies a bulk job in the path.
type BulkByID struct {
	ID string `path:"id" argument:"job_id" doc:"Id of the job."`
}

// GetBulkRequest shows a bulk job.
type GetBulkRequest struct {
	BulkByID
	WaitFields
}

// ListBulkItemsRequest lists the items of a bulk job.
type ListBulkItemsRequest struct {
	BulkByID
	PageFields
	OK *bool `query:"ok" doc:"Only applied items, or only refused ones."`
}

// StopBulkRequest stops a bulk job.
type StopBulkRequest struct {
	BulkByID
	Body struct {
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Reason."`
	}
}
