package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// ExplainExecution says why an execution is not running (U44).
var ExplainExecution = Call[ExplainRequest, api.Explanation]{&Operation{
	ID: "explain_execution", Rule: "U44", Method: http.MethodGet, Path: "/v1/executions/{id}/explain", Roles: Read | Submit, Only: ownToo,
	Go: "Executions.Explain", Command: "explain", Summary: "Explain why an execution is not running, or wait until the answer changes",
	Status: []int{http.StatusOK}, Waits: true,
}}

// ExplainRequest asks why an execution is not running.
type ExplainRequest struct {
	ByID
	WaitFields
}
