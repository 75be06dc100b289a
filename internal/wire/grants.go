package wire

import "net/http"

// grantCalls are claims in two steps: one asks for a grant, its worker claims it.
var grantCalls = []*Operation{row(GrantWork), row(ClaimGrant), row(VerifyGrant), row(ReturnGrant)}

// brokersOnly is why there is no command for grants.
const brokersOnly = "only a program that hands work to workers has use for it"

// The calls of grants.
var (
	GrantWork = Call[GrantRequest, Grants]{&Operation{
		ID: "grant_work", Rule: "U64", Method: http.MethodPost, Path: "/v1/work/grants", Roles: Work | Operate, Secret: true,
		Go: "Work.Grant", NoCommand: brokersOnly, Summary: "Promise work to a worker, waiting while there is none", Status: []int{http.StatusOK},
	}}
	ClaimGrant = Call[ClaimGrantRequest, Task]{&Operation{
		ID: "claim_grant", Rule: "U65", Method: http.MethodPost, Path: "/v1/work/grants/claim", Roles: Work,
		Go: "Work.ClaimGrant", NoCommand: brokersOnly, Summary: "Take the work that was promised", Status: []int{http.StatusOK},
	}}
	VerifyGrant = Call[GrantKeyRequest, GrantVerified]{&Operation{
		ID: "verify_grant", Rule: "U65", Method: http.MethodPost, Path: "/v1/work/grants/verify", Roles: Work,
		Go: "Work.VerifyGrant", NoCommand: brokersOnly, Summary: "Tell whether a grant key is good", Status: []int{http.StatusOK},
	}}
	ReturnGrant = Call[GrantKeyRequest, None]{&Operation{
		ID: "return_grant", Rule: "U65", Method: http.MethodPost, Path: "/v1/work/grants/return", Roles: Work,
		Go: "Work.ReturnGrant", NoCommand: brokersOnly, Summary: "Give a grant back before its time", Status: []int{http.StatusNoContent},
	}}
)

// GrantRequest asks for grants.
type GrantRequest struct {
	Body struct {
		WorkerID         string   `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker that the work is for."`
		WorkerInstanceID string   `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of its process."`
		Lanes            []string `json:"lanes,omitempty" doc:"Lanes to take from, 1 to 64. With execution_id none, or the one that it must be in."`
		Max              int      `json:"max,omitempty" minimum:"0" maximum:"1000" doc:"Grants at most; 1 if absent."`
		WaitMS           int64    `json:"wait_ms,omitempty" minimum:"0" maximum:"60000" doc:"Wait so long while there is no work."`
		Capabilities     []string `json:"capabilities,omitempty" doc:"What the worker can do."`
		Kinds            []string `json:"kinds,omitempty" doc:"Kinds that it handles; all if absent."`
		Namespaces       []string `json:"namespaces,omitempty" doc:"Namespaces to take from; all of the key's if absent."`
		LaneOrder        string   `json:"lane_order,omitempty" enum:"rotate,listed" doc:"Whether lanes take turns; rotate if absent."`
		GrantTTLMS       int64    `json:"grant_ttl_ms,omitempty" minimum:"1" maximum:"60000" doc:"5000 if absent."`
		ExecutionID      string   `json:"execution_id,omitempty" doc:"This one only, fresh, resumed or reclaimed; the call then does not wait, and max, kinds, namespaces and lane_order have no say."`
	}
}

// Grants is the answer to a request for grants.
type Grants struct {
	Grants []Grant `json:"grants" doc:"One an execution; empty when there is no work."`
}

// Grant is an execution that is promised to a worker (U31).
type Grant struct {
	ExecutionID  string `json:"execution_id" doc:"Id of the execution."`
	PartitionKey string `json:"partition_key" doc:"{fp:N}, as in the full form of the id."`
	GrantKey     string `json:"grant_key,omitempty" doc:"What its worker claims it with. A secret: it is shown to whoever asked for it alone."`
	ExpiresAt    Time   `json:"expires_at,omitzero" doc:"When it ends unless it is claimed before."`
}

// ClaimGrantRequest claims a grant.
type ClaimGrantRequest struct {
	Body struct {
		GrantKey         string   `json:"grant_key" required:"true" doc:"The key, as it was given."`
		WorkerID         string   `json:"worker_id" required:"true" maxLength:"256" doc:"The worker that it is for."`
		WorkerInstanceID string   `json:"worker_instance_id" required:"true" maxLength:"256" doc:"The instance that it is for."`
		LeaseTTLMS       int64    `json:"lease_ttl_ms,omitempty" minimum:"500" maximum:"86400000" doc:"30000 if absent."`
		Encoding         Encoding `json:"encoding,omitempty" enum:"bytes" doc:"bytes shows payloads as base64."`
	}
}

// GrantKeyRequest names a grant.
type GrantKeyRequest struct {
	Body struct {
		GrantKey string `json:"grant_key" required:"true" doc:"The key, as it was given."`
	}
}

// GrantVerified says that a key is good.
type GrantVerified struct {
	Valid bool `json:"valid" doc:"Always true: a key that is not good is refused with its own code."`
}
