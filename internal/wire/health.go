package wire

import "net/http"

// healthCalls are for monitors and readers (section 2.7).
var healthCalls = []*Operation{row(GetHealth), row(GetReadiness), row(GetMetrics), row(GetOpenAPI), row(GetDocs), row(GetProblem)}

// Why there is neither a Go call nor a command.
const (
	forMonitors = "it is for monitors"
	forReaders  = "it is for readers"
)

// The calls of monitors and readers.
var (
	GetHealth = Call[None, Health]{&Operation{
		ID: "get_health", Rule: "U114", Method: http.MethodGet, Path: "/healthz", Roles: Open, NoGo: forMonitors, NoCommand: forMonitors,
		Summary: "Report that the process is alive", Status: []int{http.StatusOK},
	}}
	GetReadiness = Call[None, Readiness]{&Operation{
		ID: "get_readiness", Rule: "U114", Method: http.MethodGet, Path: "/readyz", Roles: Open, NoGo: forMonitors, NoCommand: forMonitors,
		Summary: "Report whether the server can serve requests", Status: []int{http.StatusOK},
	}}
	GetMetrics = Call[None, Raw]{&Operation{
		ID: "get_metrics", Rule: "U115", Method: http.MethodGet, Path: "/metrics", Roles: Read, NoGo: forMonitors, NoCommand: forMonitors,
		Summary: "Return metrics in Prometheus text format", Status: []int{http.StatusOK}, Raw: true,
	}}
	GetOpenAPI = Call[None, Raw]{&Operation{
		ID: "get_openapi", Rule: "U116", Method: http.MethodGet, Path: "/openapi.json", Roles: Open, NoGo: forReaders, Command: "openapi",
		Summary: "Return the OpenAPI document", Status: []int{http.StatusOK}, Raw: true,
	}}
	GetDocs = Call[None, Raw]{&Operation{
		ID: "get_docs", Rule: "U116", Method: http.MethodGet, Path: "/docs", Roles: Open, NoGo: forReaders, NoCommand: forReaders,
		Summary: "Show this API as a page", Status: []int{http.StatusOK}, Raw: true,
	}}
	GetProblem = Call[GetProblemRequest, Raw]{&Operation{
		ID: "get_problem", Rule: "U116", Method: http.MethodGet, Path: "/problems/{code}", Roles: Open, NoGo: forReaders, NoCommand: forReaders,
		Summary: "Show the page of an error code", Status: []int{http.StatusOK}, Raw: true,
	}}
)

// Health reports that the process is alive.
type Health struct {
	Status string `json:"status" doc:"ok."`
}

// Readiness reports whether the server can serve requests.
type Readiness struct {
	Status string                    `json:"status" enum:"ok,unavailable" doc:"ok if all checks are."`
	Checks map[string]ReadinessCheck `json:"checks" doc:"By name: store, schema, clock, queue, signing_key, stopping; open if every caller may do everything."`
}

// ReadinessCheck is one check.
type ReadinessCheck struct {
	OK     bool    `json:"ok" doc:"Whether it passed."`
	MS     float64 `json:"ms" doc:"How long it took."`
	Detail string  `json:"detail,omitempty" doc:"Details, for callers that may read."`
}

// GetProblemRequest shows the page of a code.
type GetProblemRequest struct {
	Code string `path:"code" doc:"The code."`
}
