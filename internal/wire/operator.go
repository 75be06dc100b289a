package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// operatorCalls are operators' actions on one execution (section 2.1).
var operatorCalls = []*Operation{
	row(CancelExecution), row(ReplayExecution), row(SetPriority), row(HoldExecution), row(ReleaseHold), row(RevokeLease), row(ClaimExecution), row(PatchTags), row(RetainExecution),
	row(Unretain), row(DeleteExecution),
}

// Operations that steer executions.
var (
	CancelExecution = Call[CancelRequest, api.Execution]{&Operation{
		ID: "cancel_execution", Rule: "U45", Method: http.MethodPost, Path: "/v1/executions/{id}/cancel", Roles: Operate | Submit | Work,
		Only:  map[Role]Condition{Submit: OwnWork, Work: WithLease},
		Audit: "cancel", Go: "Client.Cancel", Command: "cancel", Summary: "Cancel an execution", Status: []int{http.StatusOK},
	}}
	ReplayExecution = Call[ReplayRequest, api.Execution]{&Operation{
		ID: "replay_execution", Rule: "U46", Method: http.MethodPost, Path: "/v1/executions/{id}/replay", Roles: Operate | Submit, Only: ownToo,
		Audit: "replay", Go: "Operate.Replay", Command: "replay", Summary: "Run a finished execution again", Status: []int{http.StatusOK},
	}}
	SetPriority = Call[SetPriorityRequest, api.Execution]{&Operation{
		ID: "set_priority", Rule: "U47", Method: http.MethodPut, Path: "/v1/executions/{id}/priority", Roles: Operate,
		Go: "Operate.SetPriority", Command: "priority", Summary: "Change the priority of an execution", Status: []int{http.StatusOK},
	}}
	HoldExecution = Call[ActionRequest, api.Execution]{&Operation{
		ID: "hold_execution", Rule: "U48", Method: http.MethodPost, Path: "/v1/executions/{id}/hold", Roles: Operate,
		Audit: "hold", Go: "Operate.Hold", Command: "hold", Summary: "Keep an execution from starting", Status: []int{http.StatusOK},
	}}
	ReleaseHold = Call[ActionRequest, api.Execution]{&Operation{
		ID: "release_hold", Rule: "U48", Method: http.MethodDelete, Path: "/v1/executions/{id}/hold", Roles: Operate,
		Go: "Operate.ReleaseHold", Command: "release-hold", Summary: "End a hold", Status: []int{http.StatusOK},
	}}
	RevokeLease = Call[RevokeRequest, api.RevealedRevocation]{&Operation{
		ID: "revoke_lease", Rule: "U50", Method: http.MethodPost, Path: "/v1/executions/{id}/revoke", Roles: Operate,
		Audit: "revoke", Go: "Operate.Revoke", Command: "revoke", Summary: "Revoke the lease of a worker", Status: []int{http.StatusOK}, Secret: true,
	}}
	ClaimExecution = Call[OperatorClaimRequest, api.Claimed]{&Operation{
		ID: "claim_execution", Rule: "U51", Method: http.MethodPost, Path: "/v1/executions/{id}/claim", Roles: Operate,
		Audit: "operator_claim", Go: "Operate.Claim", Command: "claim", Summary: "Lease an execution to an operator", Status: []int{http.StatusOK},
	}}
	PatchTags = Call[PatchTagsRequest, Tags]{&Operation{
		ID: "patch_tags", Rule: "U53", Method: http.MethodPatch, Path: "/v1/executions/{id}/tags", Roles: Operate | Submit, Only: ownToo,
		Audit: "set_tags", Go: "Executions.SetTags", Command: "tag", Summary: "Change tags by JSON merge patch", Status: []int{http.StatusOK},
	}}
	RetainExecution = Call[RetainRequest, api.Execution]{&Operation{
		ID: "retain_execution", Rule: "U54", Method: http.MethodPut, Path: "/v1/executions/{id}/retain", Roles: Admin,
		Audit: "retain", Go: "Operate.Retain", Command: "retain", Summary: "Exclude an execution from retention and deletion", Status: []int{http.StatusOK},
	}}
	Unretain = Call[ActionRequest, api.Execution]{&Operation{
		ID: "end_retain", Rule: "U54", Method: http.MethodDelete, Path: "/v1/executions/{id}/retain", Roles: Admin,
		Go: "Operate.Unretain", Command: "retain --end", Summary: "End the retention of an execution", Status: []int{http.StatusOK},
	}}
	DeleteExecution = Call[ActionRequest, None]{&Operation{
		ID: "delete_execution", Rule: "U55", Method: http.MethodDelete, Path: "/v1/executions/{id}", Roles: Admin,
		Audit: "delete", Go: "Operate.Delete", Command: "delete", Summary: "Delete a finished execution with all its data", Status: []int{http.StatusNoContent},
	}}
)

// ActionFields are in the body of every operator's action.
type ActionFields struct {
	Reason string  `json:"reason,omitempty" maxLength:"1024" doc:"Reason, recorded in the event."`
	Expect *Expect `json:"expect,omitempty" doc:"Refuse if the execution differs from this."`
}

// Expect is the state that an operator expects of an execution (U17). Absent fields are not compared.
type Expect struct {
	Status     string `json:"status,omitempty" doc:"Its status."`
	LeaseEpoch int64  `json:"lease_epoch,omitempty" doc:"Its lease epoch."`
	LeaseID    string `json:"lease_id,omitempty" doc:"Its lease."`
}

// ActionRequest acts on an execution.
type ActionRequest struct {
	ByID
	Body ActionFields
}

// CancelRequest cancels: with a lease as the worker, else as an operator.
type CancelRequest struct {
	FencedByID
	Body struct {
		ActionFields
		Lease LeaseRef `json:"lease,omitzero" doc:"Lease of the cancelling worker."`
	}
}

// ReplayRequest runs a finished execution again.
type ReplayRequest struct {
	ByID
	Body struct {
		ActionFields
		ReplayFields
	}
}

// ReplayFields say how to replay.
type ReplayFields struct {
	DeadlineAt Time `json:"deadline_at,omitzero" doc:"New deadline."`
	KeepSteps  bool `json:"keep_steps,omitempty" doc:"The new run skips the completed steps of the last one."`

	Cascade            string `json:"cascade,omitempty" enum:"none,skipped,all" doc:"Which dependents in its flow, direct or indirect, run again with it; default none."`
	IgnoreDependencies bool   `json:"ignore_dependencies,omitempty" doc:"Run a skipped member although its dependencies ended otherwise."`
}

// SetPriorityRequest changes the priority.
type SetPriorityRequest struct {
	ByID
	Body struct {
		ActionFields
		Priority int `json:"priority" required:"true" doc:"Clamped to 0..9000."`
	}
}

// RevokeRequest revokes a lease.
type RevokeRequest struct {
	ByID
	Body struct {
		ActionFields
		Hold    bool         `json:"hold,omitempty" doc:"Also hold the execution."`
		Handoff *api.Handoff `json:"hand_to,omitempty" doc:"Also reserve the execution for this worker."`
	}
}

// OperatorClaimRequest claims for an operator.
type OperatorClaimRequest struct {
	ByID
	Body struct {
		ActionFields
		WorkerID         string   `json:"worker_id,omitempty" doc:"Default operator."`
		WorkerInstanceID string   `json:"worker_instance_id,omitempty" doc:"Default operator."`
		LeaseTTLMS       int64    `json:"lease_ttl_ms,omitempty" minimum:"500" maximum:"86400000" doc:"Default 30000."`
		Force            bool     `json:"force,omitempty" doc:"Even if the lane is paused or disabled, or budgets and quotas have no capacity."`
		Encoding         Encoding `json:"encoding,omitempty" enum:"bytes" doc:"bytes shows payloads as base64."`
	}
}

// AskForBytes requests payloads as base64, so that they arrive unchanged, as Go clients need them.
func (r *OperatorClaimRequest) AskForBytes() { r.Body.Encoding = EncodingBytes }

// PatchTagsRequest changes tags; null deletes. Reason and expectations are in the query, because the body is a merge patch.
type PatchTagsRequest struct {
	ByID
	Reason           string `query:"reason" maxLength:"1024" doc:"Reason, recorded in the event."`
	ExpectStatus     string `query:"expect_status" argument:"expect.status" doc:"Refuse if the status differs."`
	ExpectLeaseEpoch int64  `query:"expect_lease_epoch" argument:"expect.lease_epoch" doc:"Refuse if the lease epoch differs."`
	ExpectLeaseID    string `query:"expect_lease_id" argument:"expect.lease_id" doc:"Refuse if the lease differs."`
	Body             map[string]*string
}

// Tags are all tags after a change.
type Tags struct {
	Tags map[string]string `json:"tags" doc:"Tags by key."`
}

// RetainRequest excludes an execution from retention.
type RetainRequest struct {
	ByID
	Body struct {
		Reason string  `json:"reason" required:"true" maxLength:"1024" doc:"Reason, recorded in the event."`
		Expect *Expect `json:"expect,omitempty" doc:"Refuse if the execution differs from this."`
		Until  Time    `json:"until,omitzero" doc:"Until when; absent: forever."`
	}
}
