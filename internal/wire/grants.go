package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

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
	ClaimGrant = Call[ClaimGrantRequest, api.Claimed]{&Operation{
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
	Body struct{ api.GrantRequest }
}

// Grants is the answer to a request for grants.
type Grants struct {
	Grants []api.RevealedGrant `json:"grants" doc:"One an execution; empty when there is no work."`
}

// ClaimGrantRequest claims a grant.
type ClaimGrantRequest struct {
	Body struct {
		GrantKey string `json:"grant_key" required:"true" doc:"The key, as it was given."`
		api.GrantClaim
		Encoding Encoding `json:"encoding,omitempty" enum:"bytes" doc:"bytes shows payloads as base64."`
	}
}

// AskForBytes asks for payloads that arrive bit for bit, as Go clients want them.
func (r *ClaimGrantRequest) AskForBytes() { r.Body.Encoding = EncodingBytes }

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
