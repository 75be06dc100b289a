package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// grantCalls are claims in two steps: a broker requests a grant, and its worker claims it.
var grantCalls = []*Operation{row(GrantWork), row(ClaimGrant), row(VerifyGrant), row(ReturnGrant)}

// brokersOnly is why there is no command for grants.
const brokersOnly = "only programs that assign work to workers use it"

// The calls of grants.
var (
	GrantWork = Call[GrantRequest, Grants]{&Operation{
		ID: "grant_work", Rule: "U64", Method: http.MethodPost, Path: "/v1/work/grants", Roles: Work | Operate, Secret: true,
		Go: "Work.Grant", NoCommand: brokersOnly, Summary: "Reserve work for a worker, waiting if there is none", Status: []int{http.StatusOK},
	}}
	ClaimGrant = Call[ClaimGrantRequest, api.Claimed]{&Operation{
		ID: "claim_grant", Rule: "U65", Method: http.MethodPost, Path: "/v1/work/grants/claim", Roles: Work,
		Go: "Work.ClaimGrant", NoCommand: brokersOnly, Summary: "Claim reserved work", Status: []int{http.StatusOK},
	}}
	VerifyGrant = Call[GrantKeyRequest, GrantVerified]{&Operation{
		ID: "verify_grant", Rule: "U65", Method: http.MethodPost, Path: "/v1/work/grants/verify", Roles: Work,
		Go: "Work.VerifyGrant", NoCommand: brokersOnly, Summary: "Check a grant key", Status: []int{http.StatusOK},
	}}
	ReturnGrant = Call[GrantKeyRequest, None]{&Operation{
		ID: "return_grant", Rule: "U65", Method: http.MethodPost, Path: "/v1/work/grants/return", Roles: Work,
		Go: "Work.ReturnGrant", NoCommand: brokersOnly, Summary: "Return a grant before it expires", Status: []int{http.StatusNoContent},
	}}
)

// GrantRequest requests grants.
type GrantRequest struct {
	Body struct{ api.GrantRequest }
}

// Grants is the answer to a request for grants.
type Grants struct {
	Grants []api.RevealedGrant `json:"grants" doc:"One per execution; empty if there is no work."`
}

// ClaimGrantRequest claims a grant.
type ClaimGrantRequest struct {
	Body struct {
		GrantKey string `json:"grant_key" required:"true" doc:"The grant key."`
		api.GrantClaim
		Encoding Encoding `json:"encoding,omitempty" enum:"bytes" doc:"bytes shows payloads as base64."`
	}
}

// AskForBytes requests payloads as base64, so that they arrive unchanged, as Go clients need them.
func (r *ClaimGrantRequest) AskForBytes() { r.Body.Encoding = EncodingBytes }

// GrantKeyRequest identifies a grant by its key.
type GrantKeyRequest struct {
	Body struct {
		GrantKey string `json:"grant_key" required:"true" doc:"The grant key."`
	}
}

// GrantVerified says that a key is valid.
type GrantVerified struct {
	Valid bool `json:"valid" doc:"Always true: an invalid key is refused with its own code."`
}
