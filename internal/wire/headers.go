package wire

import "strings"

// The headers that any request or answer may have, whatever the operation (U12, U13, U18, U121).
const (
	HeaderNamespace         = "FlowFabric-Namespace"
	HeaderRequestID         = "X-Request-Id"
	HeaderIdempotencyKey    = "Idempotency-Key"
	HeaderRepeat            = "Idempotency-Repeat" // true if the request was sent before
	HeaderReplayed          = "Idempotency-Replayed"
	HeaderInstallation      = "FlowFabric-Installation" // of /healthz: which installation the server is of; of a request: which it must be of
	HeaderPreferenceApplied = "Preference-Applied"
	HeaderTraceparent       = "Traceparent" // W3C Trace Context and Baggage (U215)
	HeaderTracestate        = "Tracestate"
	HeaderBaggage           = "Baggage"
)

// HeaderText reports whether a header can carry the text.
func HeaderText(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < 0x21 || r > 0x7e }) < 0
}
