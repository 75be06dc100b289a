package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// executionCalls are the reads of section 2.1, and submit.
var executionCalls = []*Operation{
	row(SubmitExecution), row(SubmitExecutions), row(ListExecutions), row(CountExecutions), row(ExportExecutions), row(GetExecution), row(GetExecutionState),
	row(GetExecutionInput), row(GetExecutionResult), row(ListAttempts), row(GetAttempt), row(ListLeases), row(ListSteps), row(ListExecutionEvents),
	row(ExplainExecution),
}

// ownToo limits submit to what the key itself submitted.
var ownToo = map[Role]Condition{Submit: OwnWork}

// ownOrLanes is ownToo for what workers also read.
var ownOrLanes = map[Role]Condition{Submit: OwnWork, Work: OwnLanes}

// Operations that submit and read executions.
var (
	SubmitExecution = Call[SubmitRequest, SubmitAnswer]{&Operation{
		ID: "submit_execution", Rule: "U32", Method: http.MethodPost, Path: "/v1/executions", Roles: Submit,
		Go: "Client.Submit", Command: "submit", Summary: "Submit an execution",
		Status: []int{http.StatusCreated, http.StatusOK}, Waits: true,
	}}
	// SubmitBriefly is a submit whose answer does not show the execution.
	SubmitBriefly = variant[SubmitRequest, api.SubmitResult](SubmitExecution.Operation)
	// SubmitAndShow is a submit for a server, which shows the new execution.
	SubmitAndShow    = variant[SubmitRequest, Submitted](SubmitExecution.Operation)
	SubmitExecutions = Call[SubmitManyRequest, Items[api.SubmitResult]]{&Operation{
		ID: "submit_executions", Rule: "U33", Method: http.MethodPost, Path: "/v1/executions/bulk", Roles: Submit,
		Go: "Client.SubmitMany", Command: "submit --bulk", Summary: "Submit many executions", Status: []int{http.StatusOK},
	}}
	// SubmitMany is the same without the JSON form.
	SubmitMany     = variant[SubmitManyRequest, SubmitResults](SubmitExecutions.Operation)
	ListExecutions = Call[ListExecutionsRequest, Page[*api.Execution]]{&Operation{
		ID: "list_executions", Rule: "U34", Method: http.MethodGet, Path: "/v1/executions", Roles: Read,
		Go: "Executions.List", Command: "list", Summary: "List and search executions", Status: []int{http.StatusOK},
	}}
	CountExecutions = Call[CountRequest, api.Count]{&Operation{
		ID: "count_executions", Rule: "U35", Method: http.MethodGet, Path: "/v1/executions/count", Roles: Read,
		Go: "Executions.Count", Command: "count", Summary: "Count executions", Status: []int{http.StatusOK},
	}}
	ExportExecutions = Call[ExportRequest, Raw]{&Operation{
		ID: "export_executions", Rule: "U36", Method: http.MethodGet, Path: "/v1/executions/export", Roles: Read,
		NoGo: "programs use Executions.List and read what they need", Command: "export",
		Summary: "Export executions as NDJSON, with the cursor to continue from in the last line", Status: []int{http.StatusOK}, Raw: true,
	}}
	GetExecution = Call[GetExecutionRequest, api.Execution]{&Operation{
		ID: "get_execution", Rule: "U37", Method: http.MethodGet, Path: "/v1/executions/{id}", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Client.Get", Command: "get", Summary: "Show an execution, or wait for its end", Status: []int{http.StatusOK}, Waits: true,
	}}
	GetExecutionState = Call[ByID, ExecutionState]{&Operation{
		ID: "get_execution_state", Rule: "U38", Method: http.MethodGet, Path: "/v1/executions/{id}/state", Roles: Read | Submit | Work, Only: ownOrLanes,
		NoGo: "use Client.Get", NoCommand: "use get", Summary: "Show the status of an execution", Status: []int{http.StatusOK},
	}}
	GetExecutionInput = Call[ByID, Raw]{&Operation{
		ID: "get_execution_input", Rule: "U39", Method: http.MethodGet, Path: "/v1/executions/{id}/input", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Input", Command: "get --input", Summary: "Return the input unchanged", Status: []int{http.StatusOK}, Raw: true,
	}}
	GetExecutionResult = Call[GetResultRequest, Raw]{&Operation{
		ID: "get_execution_result", Rule: "U40", Method: http.MethodGet, Path: "/v1/executions/{id}/result", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Result", Command: "result", Summary: "Return the result, or wait for it",
		Status: []int{http.StatusOK, http.StatusNoContent}, Waits: true, Raw: true,
	}}
	ListAttempts = Call[ListAttemptsRequest, Page[api.Attempt]]{&Operation{
		ID: "list_attempts", Rule: "U41", Method: http.MethodGet, Path: "/v1/executions/{id}/attempts", Roles: Read,
		Go: "Executions.Attempts", Command: "attempts", Summary: "List the attempts of an execution", Status: []int{http.StatusOK},
	}}
	GetAttempt = Call[GetAttemptRequest, api.Attempt]{&Operation{
		ID: "get_attempt", Rule: "U41", Method: http.MethodGet, Path: "/v1/executions/{id}/attempts/{n}", Roles: Read,
		Go: "Executions.Attempt", NoCommand: "use attempts", Summary: "Show one attempt", Status: []int{http.StatusOK},
	}}
	ListLeases = Call[PageByID, Page[api.LeaseRecord]]{&Operation{
		ID: "list_leases", Rule: "U41", Method: http.MethodGet, Path: "/v1/executions/{id}/leases", Roles: Read,
		Go: "Executions.Leases", Command: "attempts --leases", Summary: "List the leases of an execution", Status: []int{http.StatusOK},
	}}
	ListSteps = Call[ListStepsRequest, Page[api.StepRecord]]{&Operation{
		ID: "list_steps", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/steps", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Steps", Command: "attempts --steps", Summary: "List stored steps", Status: []int{http.StatusOK},
	}}
	ListExecutionEvents = Call[ExecutionEventsRequest, api.EventPage]{&Operation{
		ID: "list_execution_events", Rule: "U43", Method: http.MethodGet, Path: "/v1/executions/{id}/events", Roles: Read | Submit, Only: ownToo,
		Go: "Events.Read", Command: "events", Summary: "Read or follow the events of an execution",
		Status: []int{http.StatusOK}, Waits: true, Streams: true,
	}}
)

// ByID identifies an execution in the path.
type ByID struct {
	ID string `path:"id" argument:"execution_id" doc:"Id of the execution, full form or bare UUID."`
}

// PageByID selects a page of a list of an execution.
type PageByID struct {
	ByID
	PageFields
}

// SubmitRequest submits. A body that is not JSON is the input itself; the other fields are then in the query.
type SubmitRequest struct {
	WaitFields
	Encoding       Encoding           `query:"encoding" enum:"bytes" doc:"bytes shows payloads as base64."`
	Kind           string             `query:"kind" doc:"With a raw body: kind of work."`
	Lane           string             `query:"lane" doc:"With a raw body: lane."`
	Priority       *int               `query:"priority" doc:"With a raw body: priority."`
	IdempotencyKey string             `query:"idempotency_key" doc:"With a raw body: idempotency key."`
	Tags           map[string]*string `query:"tag." doc:"With a raw body: tag.<key>=<value>."`
	Body           api.Submission
	Raw            Raw `accept:"*/*" doc:"The input."`
}

// SubmitAnswer is the execution, and whether this call created it.
type SubmitAnswer struct {
	Outcome string `json:"outcome" enum:"created,duplicate" doc:"Whether this call created it."`
	api.Execution
}

// MarshalJSON writes both, for encoding/json.
func (a SubmitAnswer) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&a) }

// UnmarshalJSON reads what MarshalJSON writes.
func (a *SubmitAnswer) UnmarshalJSON(text []byte) error { return DecodeAnswer(text, a) }

// SubmitManyRequest submits a batch. As NDJSON each line is a Submission.
type SubmitManyRequest struct {
	Body struct {
		Items  []api.Submission `json:"items" most:"10000" required:"true" doc:"The executions to submit."`
		Atomic bool             `json:"atomic,omitempty" doc:"All or nothing."`
	}
	Raw Raw `accept:"application/x-ndjson" doc:"One submission per line, committed as they arrive."`
}

// Submitted is the result of a submit, for a server.
type Submitted struct {
	api.SubmitResult
	Created *api.Execution // the new execution as a read immediately afterwards would show it; nil: it existed before
}

// SubmitResults are the results of a batch of submissions, in order.
type SubmitResults []api.SubmitResult

// ReadJSON reads what the HTTP API writes.
func (all *SubmitResults) ReadJSON(d *jsonx.Decoder) {
	var read struct {
		Items []api.SubmitResult `json:"items"`
	}
	if d.Into(&read) {
		*all = read.Items
	}
}

// GetExecutionRequest shows an execution.
type GetExecutionRequest struct {
	ByID
	WaitFields
	View View `query:"view" enum:"summary,full" doc:"Level of detail."`
	EncodingField
}

// ExecutionState is only the status.
type ExecutionState struct {
	Status      string `json:"status" doc:"The stored status."`
	PublicState string `json:"public_state" doc:"Coarser status for users."`
}

// GetResultRequest returns the result.
type GetResultRequest struct {
	ByID
	WaitFields
}

// GetAttemptRequest shows one attempt.
type GetAttemptRequest struct {
	ByID
	N string `path:"n" doc:"Index of the attempt, or latest."`
	EncodingField
}

// ListAttemptsRequest lists the attempts.
type ListAttemptsRequest struct {
	PageByID
	EncodingField
}

// ListStepsRequest lists the steps of a run.
type ListStepsRequest struct {
	PageByID
	Run    *int `query:"run" minimum:"0" doc:"Run whose steps are listed; default: the current one."`
	Inline bool `query:"inline" doc:"Include results over 64 KiB. A page then ends before 8 MiB are exceeded."`
	EncodingField
}

// ExecutionEventsRequest reads the events of an execution.
type ExecutionEventsRequest struct {
	ByID
	WaitFields
	PositionFields
}
