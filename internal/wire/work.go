package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// workCalls are the worker protocol (section 2.3), without the batch.
var workCalls = []*Operation{
	row(RegisterWorker), row(HeartbeatWorker), row(ClaimWork), row(ClaimResumed), row(ReclaimExecution), row(RenewLease), row(ReportProgress), row(CompleteExecution),
	row(FailExecution), row(ReleaseExecution), row(DelayExecution), row(PutStep),
}

// orOverride limits operate to overrides. Admin can have a lease of its own.
var orOverride = map[Role]Condition{Operate: WithOverride}

// Operations of the worker protocol. For those with a lease, the Go call is Work.Do with its command.
var (
	RegisterWorker = Call[RegisterRequest, api.RegisterResult]{&Operation{
		ID: "register_worker", Rule: "U60", Method: http.MethodPost, Path: "/v1/workers", Roles: Work,
		Go: "Work.Register", Command: "work", Summary: "Register a worker instance", Status: []int{http.StatusOK},
	}}
	HeartbeatWorker = Call[HeartbeatRequest, api.Heartbeat]{&Operation{
		ID: "heartbeat_worker", Rule: "U61", Method: http.MethodPost, Path: "/v1/workers/{instance}/heartbeat", Roles: Work,
		Go: "Work.Heartbeat", Command: "work", Summary: "Report that an instance is alive, and renew its leases", Status: []int{http.StatusOK},
	}}
	ClaimWork = Call[ClaimRequest, api.ClaimAnswer]{&Operation{
		ID: "claim_work", Rule: "U62", Method: http.MethodPost, Path: "/v1/work/claim", Roles: Work,
		Go: "Work.Claim", Command: "work", Summary: "Claim work, waiting if there is none", Status: []int{http.StatusOK},
	}}
	ClaimResumed = Call[TargetedClaimRequest, api.Claimed]{&Operation{
		ID: "claim_resumed", Rule: "U63", Method: http.MethodPost, Path: "/v1/executions/{id}/claim-resumed", Roles: Work | Operate,
		Go: "Work.ClaimResumed", NoCommand: workerOnly, Summary: "Claim an execution that is to be resumed", Status: []int{http.StatusOK},
	}}
	ReclaimExecution = Call[TargetedClaimRequest, api.Claimed]{&Operation{
		ID: "reclaim_execution", Rule: "U63", Method: http.MethodPost, Path: "/v1/executions/{id}/reclaim", Roles: Work | Operate,
		Go: "Work.Reclaim", NoCommand: workerOnly, Summary: "Take over an execution from a lost worker", Status: []int{http.StatusOK},
	}}
	RenewLease = Call[RenewRequest, Renewed]{&Operation{
		ID: "renew_lease", Rule: "U66", Method: http.MethodPost, Path: "/v1/executions/{id}/renew", Roles: Work,
		Go: "Work.Do(renew)", Command: "work", Summary: "Renew a lease", Status: []int{http.StatusOK},
	}}
	ReportProgress = Call[ProgressRequest, Progressed]{&Operation{
		ID: "report_progress", Rule: "U67", Method: http.MethodPost, Path: "/v1/executions/{id}/progress", Roles: Work,
		Go: "Work.Do(progress)", NoCommand: workerOnly, Summary: "Report progress", Status: []int{http.StatusOK},
	}}
	CompleteExecution = Call[CompleteRequest, Completed]{&Operation{
		ID: "complete_execution", Rule: "U68", Method: http.MethodPost, Path: "/v1/executions/{id}/complete", Roles: Work | Operate, Only: orOverride,
		Audit: "complete_override", Go: "Work.Do(complete)", Command: "work", Summary: "Complete an execution", Status: []int{http.StatusOK},
	}}
	FailExecution = Call[FailRequest, Failed]{&Operation{
		ID: "fail_execution", Rule: "U69", Method: http.MethodPost, Path: "/v1/executions/{id}/fail", Roles: Work | Operate, Only: orOverride,
		Audit: "fail_override", Go: "Work.Do(fail)", Command: "work", Summary: "Report a failed attempt", Status: []int{http.StatusOK},
	}}
	ReleaseExecution = Call[ReleaseRequest, Left]{&Operation{
		ID: "release_execution", Rule: "U70", Method: http.MethodPost, Path: "/v1/executions/{id}/release", Roles: Work,
		Go: "Work.Do(release)", Command: "work", Summary: "Give the work back for another worker", Status: []int{http.StatusOK},
	}}
	DelayExecution = Call[DelayRequest, Left]{&Operation{
		ID: "delay_execution", Rule: "U70", Method: http.MethodPost, Path: "/v1/executions/{id}/delay", Roles: Work,
		Go: "Work.Do(delay)", NoCommand: workerOnly, Summary: "Give the work back until a later time", Status: []int{http.StatusOK},
	}}
	PutStep = Call[PutStepRequest, StepAnswer]{&Operation{
		ID: "put_step", Rule: "U76", Method: http.MethodPut, Path: "/v1/executions/{id}/steps/{name}", Roles: Work,
		Go: "Work.Do(step)", NoCommand: workerOnly, Summary: "Store the result of a step; the first write wins",
		Status: []int{http.StatusCreated, http.StatusOK},
	}}
)

// workerOnly is why there is no command for a call that only a running handler can make.
const workerOnly = "only running handlers use it"

// RegisterRequest registers an instance.
type RegisterRequest struct {
	Body struct{ api.Registration }
}

// HeartbeatRequest keeps an instance and its leases alive.
type HeartbeatRequest struct {
	Instance string `path:"instance" argument:"worker_instance_id" doc:"The instance."`
	Body     struct {
		Leases []HeldLease `json:"leases,omitempty" doc:"Leases to renew, as returned by the claim."`
	}
}

// ClaimRequest requests work.
type ClaimRequest struct {
	Body struct {
		api.ClaimRequest
		Encoding Encoding `json:"encoding,omitempty" enum:"bytes" doc:"bytes shows payloads as base64."`
		Brief    bool     `json:"brief,omitempty" doc:"Omit policy and effect_key of the tasks."`
	}
}

// AskForBytes requests payloads as base64, so that they arrive unchanged, as Go clients need them.
func (r *ClaimRequest) AskForBytes() { r.Body.Encoding = EncodingBytes }

// TargetedClaimRequest claims one particular execution.
type TargetedClaimRequest struct {
	ByID
	Body struct {
		api.TargetedClaim
		Encoding Encoding `json:"encoding,omitempty" enum:"bytes" doc:"bytes shows payloads as base64."`
	}
}

// AskForBytes requests payloads as base64, so that they arrive unchanged, as Go clients need them.
func (r *TargetedClaimRequest) AskForBytes() { r.Body.Encoding = EncodingBytes }
