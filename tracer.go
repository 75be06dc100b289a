package flowfabric

import "github.com/flowfabric/flowfabric/api"

// Tracer makes spans of what a client and its workers do (U216). Package flowfabricotel makes one from OpenTelemetry.
type Tracer = api.Tracer

// TraceContext names a span across processes, in the headers of W3C Trace Context and W3C Baggage. The zero value names none.
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
