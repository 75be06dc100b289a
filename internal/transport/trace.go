package transport

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
)

// The codes that a transport itself produces.
const (
	codeInternal        = "internal"
	codeInvalidArgument = "invalid_argument"
	codeTimeout         = "timeout" // of a span whose call ended with the caller's context
)

type traceKey struct{}

// WithTrace returns a context whose calls belong to t, which came with a request or a task, for use without a tracer.
func WithTrace(ctx context.Context, t api.TraceContext) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceAt returns the trace context of calls in ctx: the span that it carries, else the one that came with the request or the
// task. Without a tracer it is passed on unchanged.
func TraceAt(ctx context.Context, tracer api.Tracer) api.TraceContext {
	if tracer != nil {
		if current := tracer.Current(ctx); current != (api.TraceContext{}) {
			return current
		}
	}
	t, _ := ctx.Value(traceKey{}).(api.TraceContext)
	return t
}

// SpanCode returns the code with which a span ends.
func SpanCode(err error) string {
	if err == nil {
		return ""
	}
	if code := api.CodeOf(api.AsError(err)); code != "" {
		return code
	}
	return codeTimeout
}
