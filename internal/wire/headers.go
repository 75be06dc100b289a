package wire

// Headers that requests and answers of any operation can have (U12, U13, U18, U121).
const (
	HeaderNamespace         = "FlowFabric-Namespace"
	HeaderRequestID         = "X-Request-Id"
	HeaderIdempotencyKey    = "Idempotency-Key"
	HeaderRepeat            = "Idempotency-Repeat" // true if the request was sent before
	HeaderReplayed          = "Idempotency-Replayed"
	HeaderPreferenceApplied = "Preference-Applied"
	HeaderTraceparent       = "Traceparent" // W3C Trace Context and Baggage (U215)
	HeaderTracestate        = "Tracestate"
	HeaderBaggage           = "Baggage"
)
