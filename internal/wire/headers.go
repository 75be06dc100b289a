package wire

// The headers that any request or answer may have, whatever the operation (U12, U13, U18, U121).
const (
	HeaderNamespace         = "FlowFabric-Namespace"
	HeaderRequestID         = "X-Request-Id"
	HeaderIdempotencyKey    = "Idempotency-Key"
	HeaderRepeat            = "Idempotency-Repeat" // of a request that was sent before: true
	HeaderReplayed          = "Idempotency-Replayed"
	HeaderPreferenceApplied = "Preference-Applied"
	HeaderTraceparent       = "Traceparent" // W3C Trace Context and Baggage (U215)
	HeaderTracestate        = "Tracestate"
	HeaderBaggage           = "Baggage"
)
