package wire

import "net/http"

// healthCalls are what machines and newcomers ask (section 2.7).
var healthCalls = []*Operation{row(GetHealth), row(GetReadiness), row(GetMetrics), row(GetOpenAPI), row(GetDocs), row(GetProblem)}

// Why there is neither Go nor command for what an outside program reads.
const (
	forMonitors = "it is for monitors"
	forReaders  = "it is for readers"
)

// The calls of monitors and readers.
var (
	GetHealth = Call[None, Health]{&Operation{
		ID: "get_health", Rule: "U114", Method: http.MethodGet, Path: "/healthz", Roles: Open, NoGo: forMonitors, NoCommand: forMonitors,
		Summary: "Say that the process lives", Status: []int{http.StatusOK},
	}}
	GetReadiness = Call[None, Readiness]{&Operation{
		ID: "get_readiness", Rule: "U114", Method: http.MethodGet, Path: "/readyz", Roles: Open, NoGo: forMonitors, NoCommand: forMonitors,
		Summary: "Say whether the server can serve", Status: []int{http.StatusOK},
	}}
	GetMetrics = Call[None, Raw]{&Operation{
		ID: "get_metrics", Rule: "U115", Method: http.MethodGet, Path: "/metrics", Roles: Read, NoGo: forMonitors, NoCommand: forMonitors,
		Summary: "Deliver the metrics in the text format of Prometheus", Status: []int{http.StatusOK}, Raw: true,
	}}
	GetOpenAPI = Call[None, Raw]{&Operation{
		ID: "get_openapi", Rule: "U116", Method: http.MethodGet, Path: "/openapi.json", Roles: Open, NoGo: forReaders, Command: "openapi",
		Summary: "Deliver the OpenAPI document", Status: []int{http.StatusOK}, Raw: true,
	}}
	GetDocs = Call[None, Raw]{&Operation{
		ID: "get_docs", Rule: "U116", Method: http.MethodGet, Path: "/docs", Roles: Open, NoGo: forReaders, NoCommand: forReaders,
		Summary: "Show this API as a page", Status: []int{http.StatusOK}, Raw: true,
	}}
	GetProblem = Call[GetProblemRequest, Raw]{&Operation{
		ID: "get_problem", Rule: "U116", Method: http.MethodGet, Path: "/problems/{code}", Roles: Open, NoGo: forReaders, NoCommand: forReaders,
		Summary: "Show the page of a code", Status: []int{http.StatusOK}, Raw: true,
	}}
)

// Health says that the process lives.
type Health struct {
	Status string `json:"status" doc:"ok."`
}

// Readiness says whether the server can serve.
type Readiness struct {
	Status string                    `json:"status" enum:"ok,unavailable" doc:"ok when all checks are."`
	Checks map[string]ReadinessCheck `json:"checks" doc:"By name: store, schema, clock, queue, signing_key, stopping; open when anybody may do everything."`
}

// ReadinessCheck is one check.
type ReadinessCheck struct {
	OK     bool    `json:"ok" doc:"Whether it passed."`
	MS     float64 `json:"ms" doc:"How long it took."`
	Detail string  `json:"detail,omitempty" doc:"What is wrong, or should be known; for those who may read."`
}

// GetProblemRequest shows the page of a code.
type GetProblemRequest struct {
	Code string `path:"code" doc:"The code."`
}
