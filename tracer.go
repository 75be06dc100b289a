package flowfabric

import "github.com/flowfabric/flowfabric/api"

// Tracer makes spans for a client and its workers. Package flowfabricotel makes one from OpenTelemetry.
type Tracer = api.Tracer

// TraceContext identifies a span across processes, in the headers of W3C Trace Context and W3C Baggage. The zero value means
// none.
type TraceContext = api.TraceContext

// The names of spans and attributes (U216).
const (
	spanHandler = "ff.handler"
	spanStep    = "ff.step"

	attrExecution = "ff.execution_id"
	attrKind      = "ff.kind"
	attrLane      = "ff.lane"
	attrNamespace = "ff.namespace"
	attrAttempt   = "ff.attempt"
	attrStatus    = "ff.status"
	attrStep      = "ff.step" // the name of a step
)
