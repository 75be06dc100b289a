package principal

import "context"

// Trace is the W3C trace context that a request or a task came with, for clients that have no tracer of their own.
type Trace struct{ Parent, State, Baggage string }

type traceKey struct{}

// WithTrace returns a context whose calls belong to t.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceFrom finds the trace context that calls belong to.
func TraceFrom(ctx context.Context) (t Trace, ok bool) {
	t, ok = ctx.Value(traceKey{}).(Trace)
	return t, ok
}
