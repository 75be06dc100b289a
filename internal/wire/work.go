package wire

import (
	"encoding/json"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// workCalls are the worker protocol (section 2.3), without the batch.
var workCalls = []*Operation{
	row(RegisterWorker), row(HeartbeatWorker), row(ClaimWork), row(ClaimResumed), row(ReclaimExecution), row(RenewLease), row(ReportProgress), row(CompleteExecution),
	row(FailExecution), row(ReleaseExecution), row(DelayExecution), row(PutStep),
}

// orOverride bounds operate to what it says it overrides. Admin may have a lease of its own.
var orOverride = map[Role]Condition{Operate: WithOverride}

// The calls of the worker protocol. Those under a lease name the Go call with its operation.
var (
	RegisterWorker = Call[RegisterRequest, Registered]{&Operation{
		ID: "register_worker", Rule: "U60", Method: http.MethodPost, Path: "/v1/workers", Roles: Work,
		Go: "Work.Register", Command: "work", Summary: "Make a worker instance known", Status: []int{http.StatusOK},
	}}
	HeartbeatWorker = Call[HeartbeatRequest, Heartbeat]{&Operation{
		ID: "heartbeat_worker", Rule: "U61", Method: http.MethodPost, Path: "/v1/workers/{instance}/heartbeat", Roles: Work,
		Go: "Work.Heartbeat", Command: "work", Summary: "Say that an instance is alive, and renew its leases", Status: []int{http.StatusOK},
	}}
	ClaimWork = Call[ClaimRequest, ClaimAnswer]{&Operation{
		ID: "claim_work", Rule: "U62", Method: http.MethodPost, Path: "/v1/work/claim", Roles: Work,
		Go: "Work.Claim", Command: "work", Summary: "Take work, waiting while there is none", Status: []int{http.StatusOK},
	}}
	ClaimResumed = Call[TargetedClaimRequest, Task]{&Operation{
		ID: "claim_resumed", Rule: "U63", Method: http.MethodPost, Path: "/v1/executions/{id}/claim-resumed", Roles: Work | Operate,
		Go: "Work.ClaimResumed", NoCommand: workerOnly, Summary: "Take an execution that waits to go on", Status: []int{http.StatusOK},
	}}
	ReclaimExecution = Call[TargetedClaimRequest, Task]{&Operation{
		ID: "reclaim_execution", Rule: "U63", Method: http.MethodPost, Path: "/v1/executions/{id}/reclaim", Roles: Work | Operate,
		Go: "Work.Reclaim", NoCommand: workerOnly, Summary: "Take an execution over from a worker that vanished", Status: []int{http.StatusOK},
	}}
	RenewLease = Call[RenewRequest, Renewed]{&Operation{
		ID: "renew_lease", Rule: "U66", Method: http.MethodPost, Path: "/v1/executions/{id}/renew", Roles: Work,
		Go: "Work.Do(renew)", Command: "work", Summary: "Renew a lease", Status: []int{http.StatusOK},
	}}
	ReportProgress = Call[ProgressRequest, Progressed]{&Operation{
		ID: "report_progress", Rule: "U67", Method: http.MethodPost, Path: "/v1/executions/{id}/progress", Roles: Work,
		Go: "Work.Do(progress)", NoCommand: workerOnly, Summary: "Report how far the work is", Status: []int{http.StatusOK},
	}}
	CompleteExecution = Call[CompleteRequest, Completed]{&Operation{
		ID: "complete_execution", Rule: "U68", Method: http.MethodPost, Path: "/v1/executions/{id}/complete", Roles: Work | Operate, Only: orOverride,
		Audit: "complete_override", Go: "Work.Do(complete)", Command: "work", Summary: "End an execution with success", Status: []int{http.StatusOK},
	}}
	FailExecution = Call[FailRequest, Failed]{&Operation{
		ID: "fail_execution", Rule: "U69", Method: http.MethodPost, Path: "/v1/executions/{id}/fail", Roles: Work | Operate, Only: orOverride,
		Audit: "fail_override", Go: "Work.Do(fail)", Command: "work", Summary: "Say that an attempt failed", Status: []int{http.StatusOK},
	}}
	ReleaseExecution = Call[ReleaseRequest, Left]{&Operation{
		ID: "release_execution", Rule: "U70", Method: http.MethodPost, Path: "/v1/executions/{id}/release", Roles: Work,
		Go: "Work.Do(release)", Command: "work", Summary: "Give the work back for another worker", Status: []int{http.StatusOK},
	}}
	DelayExecution = Call[DelayRequest, Left]{&Operation{
		ID: "delay_execution", Rule: "U70", Method: http.MethodPost, Path: "/v1/executions/{id}/delay", Roles: Work,
		Go: "Work.Do(delay)", NoCommand: workerOnly, Summary: "Give the work back until a moment", Status: []int{http.StatusOK},
	}}
	PutStep = Call[PutStepRequest, StepAnswer]{&Operation{
		ID: "put_step", Rule: "U76", Method: http.MethodPut, Path: "/v1/executions/{id}/steps/{name}", Roles: Work,
		Go: "Work.Do(step)", NoCommand: workerOnly, Summary: "Remember the result of a step; the first write wins",
		Status: []int{http.StatusCreated, http.StatusOK},
	}}
)

// workerOnly is why there is no command for a call that only a running handler can make.
const workerOnly = "only a running handler has use for it"

// RegisterRequest registers an instance.
type RegisterRequest struct {
	Body struct {
		WorkerID         string            `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker."`
		WorkerInstanceID string            `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of this process."`
		Namespaces       []string          `json:"namespaces,omitempty" doc:"Namespaces that it works for; all of the key's if absent."`
		Lanes            []string          `json:"lanes,omitempty" doc:"Lanes that it takes from."`
		Kinds            []string          `json:"kinds,omitempty" doc:"Kinds that it handles; all if absent."`
		Capabilities     []string          `json:"capabilities,omitempty" doc:"What it can do."`
		MaxConcurrent    int               `json:"max_concurrent,omitempty" minimum:"0" maximum:"1000000" doc:"Tasks at a time; 0: not stated."`
		LivenessTTLMS    int64             `json:"liveness_ttl_ms,omitempty" minimum:"1000" maximum:"3600000" doc:"Not seen for so long: gone; 30000 if absent."`
		Version          string            `json:"version,omitempty" doc:"Version of the program."`
		Labels           map[string]string `json:"labels,omitempty" doc:"Anything else, by key."`
	}
}

// Registered is the answer to a registration.
type Registered struct {
	Outcome   string `json:"outcome" enum:"registered,refreshed" doc:"Whether the instance was new."`
	ExpiresAt Time   `json:"expires_at,omitzero" doc:"When it counts as gone unless it is seen before."`
	Drain     bool   `json:"drain" doc:"Take nothing new."`
}

// HeartbeatRequest keeps an instance and its leases alive.
type HeartbeatRequest struct {
	Instance string `path:"instance" argument:"worker_instance_id" doc:"The instance."`
	Body     struct {
		Leases []HeldLease `json:"leases,omitempty" doc:"Leases to renew, as the claim gave them."`
	}
}

// Heartbeat is the answer to a heartbeat.
type Heartbeat struct {
	Registered bool           `json:"registered" doc:"false: register again."`
	ExpiresAt  Time           `json:"expires_at,omitzero" doc:"When the instance counts as gone unless it is seen before."`
	Drain      bool           `json:"drain" doc:"Take nothing new."`
	Leases     Items[Renewal] `json:"leases" doc:"One entry a lease, in the order of the request."`
}

// Renewal is a lease after its renewal.
type Renewal struct {
	ExpiresAt Time  `json:"expires_at,omitzero" doc:"When it lapses unless it is renewed."`
	TTLMS     int64 `json:"ttl_ms,omitempty" doc:"How long a renewal lasts."`
}

// ClaimRequest asks for work.
type ClaimRequest struct {
	Body struct {
		WorkerID         string   `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker."`
		WorkerInstanceID string   `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of this process."`
		Lanes            []string `json:"lanes" required:"true" minItems:"1" maxItems:"64" doc:"Lanes to take from, 1 to 64."`
		Max              int      `json:"max,omitempty" minimum:"0" maximum:"1000" doc:"Tasks at most; 1 if absent."`
		WaitMS           int64    `json:"wait_ms,omitempty" minimum:"0" maximum:"60000" doc:"Wait so long while there is none."`
		Capabilities     []string `json:"capabilities,omitempty" doc:"What the worker can do."`
		Kinds            []string `json:"kinds,omitempty" doc:"Kinds that it handles; all if absent."`
		Namespaces       []string `json:"namespaces,omitempty" doc:"Namespaces to take from; all of the key's if absent."`
		LaneOrder        string   `json:"lane_order,omitempty" enum:"rotate,listed" doc:"Whether lanes take turns; rotate if absent."`
		LeaseTTLMS       int64    `json:"lease_ttl_ms,omitempty" minimum:"500" maximum:"86400000" doc:"30000 if absent."`
		Encoding         Encoding `json:"encoding,omitempty" enum:"bytes" doc:"bytes shows payloads as base64."`
		Brief            bool     `json:"brief,omitempty" doc:"Leave out policy and effect_key of the tasks."`
	}
}

// ClaimAnswer is what a claim found.
type ClaimAnswer struct {
	Tasks []Task `json:"tasks" doc:"The work; empty when there is none."`
	ClaimFields
}

// ClaimFields are what an answer to a claim tells beside the work.
type ClaimFields struct {
	Drain      bool `json:"drain" doc:"Finish what there is and take nothing new."`
	ServerTime Time `json:"server_time,omitzero" doc:"The store's clock."`
}

// AppendClaimAnswer adds the JSON of a ClaimAnswer whose tasks are made one after the other.
func AppendClaimAnswer(text []byte, tasks int, task func(i int) Task, beside ClaimFields) ([]byte, error) {
	text, err := jsonx.AppendEach(append(text, `{"tasks":`...), tasks, task)
	if err != nil {
		return nil, err
	}
	return jsonx.AppendInto(text, &beside)
}

// ReadClaimAnswer reads the JSON of a ClaimAnswer. What task is given is good until it returns.
func ReadClaimAnswer(text []byte, task func(*Task)) (ClaimFields, error) {
	var answer struct {
		Tasks jsonx.Each[Task] `json:"tasks"`
		ClaimFields
	}
	answer.Tasks.Do = task
	err := DecodeAnswer(text, &answer)
	return answer.ClaimFields, err
}

// Task is an execution under a new lease (U28).
type Task struct {
	ExecutionID       string                      `json:"execution_id" doc:"Id of the execution."`
	Partition         int                         `json:"partition" minimum:"0" maximum:"255" doc:"N of the full form {fp:N}:<uuid> of its id."`
	Kind              string                      `json:"kind" doc:"Kind of work."`
	Lane              string                      `json:"lane" doc:"Queue that it came through."`
	Namespace         string                      `json:"namespace" doc:"Namespace that it belongs to."`
	Priority          int                         `json:"priority" doc:"Its priority."`
	Tags              map[string]string           `json:"tags,omitempty" doc:"Tags by key."`
	Input             api.Payload                 `json:"input,omitempty" spread:"shown" doc:"The input."`
	Inputs            []api.NamedInput            `json:"inputs,omitempty" doc:"What it got from the members that it waited for."`
	How               string                      `json:"how" enum:"fresh,resumed,reclaimed" doc:"How the worker came to it."`
	Attempt           api.Attempt                 `json:"attempt" doc:"The attempt under way."`
	Lease             Lease                       `json:"lease" doc:"The lease; send it with every call."`
	Policy            json.RawMessage             `json:"policy,omitempty" doc:"How it is run."`
	CreatedAt         Time                        `json:"created_at,omitzero" doc:"When it was submitted."`
	DeadlineAt        Time                        `json:"deadline_at,omitzero" doc:"When it expires."`
	AttemptDeadlineAt Time                        `json:"attempt_deadline_at,omitzero" doc:"When this attempt times out."`
	FlowID            string                      `json:"flow_id,omitempty" doc:"Flow that it is a member of."`
	RootFlowID        string                      `json:"root_flow_id,omitempty" doc:"The outermost flow that it is part of."`
	Name              string                      `json:"name,omitempty" doc:"Its name in the flow."`
	ParentID          string                      `json:"parent_id,omitempty" doc:"Execution that spawned it."`
	RunIndex          int                         `json:"run_index" doc:"How often it was replayed."`
	Resumed           *Resumed                    `json:"resumed,omitempty" doc:"After a wait: how it ended."`
	Remaining         map[string]map[string]int64 `json:"remaining,omitempty" doc:"What it may still use of its budgets, by id and dimension."`
	EffectKey         string                      `json:"effect_key,omitempty" doc:"The same for all attempts of a run: an idempotency key for effects outside."`
	Traceparent       string                      `json:"traceparent,omitempty" doc:"W3C trace context of the submit."`
	Tracestate        string                      `json:"tracestate,omitempty" doc:"What tracing systems added to it."`
	Baggage           string                      `json:"baggage,omitempty" doc:"W3C baggage of the submit."`
}

// MarshalJSON writes the task, for encoding/json.
func (t Task) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&t) }

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Task) UnmarshalJSON(text []byte) error { return DecodeAnswer(text, t) }

// TargetedClaimRequest takes one particular execution.
type TargetedClaimRequest struct {
	ByID
	Body struct {
		WorkerID         string   `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker."`
		WorkerInstanceID string   `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of this process."`
		Capabilities     []string `json:"capabilities,omitempty" doc:"What the worker can do."`
		Lane             string   `json:"lane,omitempty" doc:"Refuse when it is in another lane."`
		LeaseTTLMS       int64    `json:"lease_ttl_ms,omitempty" minimum:"500" maximum:"86400000" doc:"30000 if absent."`
		Encoding         Encoding `json:"encoding,omitempty" enum:"bytes" doc:"bytes shows payloads as base64."`
	}
}
