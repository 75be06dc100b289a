package flowfabric

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// The attributes of HTTP spans, by the names that OpenTelemetry gives them.
const (
	attrMethod  = "http.request.method"
	attrRoute   = "http.route"
	attrResends = "http.request.resend_count"
	attrHTTP    = "http.response.status_code"
)

// startCall begins the span of a call and writes the headers that tell the server of it (U215). All tries of a call are one span.
func (r *remote) startCall(ctx context.Context, o *wire.Operation, head http.Header, links []TraceContext) (context.Context, activity) {
	if r.cfg.Tracer == nil {
		putTrace(head, traceAt(ctx, nil))
		return ctx, activity{}
	}
	ctx, span := r.cfg.Tracer.Start(ctx, SpanStart{
		Name: o.Method + " " + o.Path, Kind: SpanClient, Links: links,
		Attributes: []slog.Attr{slog.String(attrMethod, o.Method), slog.String(attrRoute, o.Path)},
	})
	putTrace(head, r.cfg.Tracer.Current(ctx))
	return ctx, activity{span}
}

// endCall ends the span of a call.
func (a activity) endCall(answer sent, err error) {
	if a.span == nil {
		return
	}
	if answer.status != 0 {
		a.span.Set(slog.Int(attrHTTP, answer.status), slog.Int(attrResends, answer.tries-1))
	}
	a.span.End(spanCode(err))
}

func putTrace(head http.Header, c TraceContext) {
	if c.Traceparent != "" {
		head.Set(wire.HeaderTraceparent, c.Traceparent)
	}
	if c.Tracestate != "" {
		head.Set(wire.HeaderTracestate, c.Tracestate)
	}
	if c.Baggage != "" {
		head.Set(wire.HeaderBaggage, c.Baggage)
	}
}

// batchContext is the context in which a batch of commands is sent, under the first of them, with links to all (U216).
func (r *remote) batchContext(batch []*command[WorkAnswer]) (context.Context, []TraceContext) {
	ctx := context.Background() // it belongs to no single caller
	if r.cfg.Tracer == nil {
		return ctx, nil
	}
	links := make([]TraceContext, 0, len(batch))
	for _, c := range batch {
		if c.trace.Traceparent != "" {
			links = append(links, c.trace)
		}
	}
	if len(links) == 0 {
		return ctx, nil
	}
	return r.cfg.Tracer.Remote(ctx, links[0]), links
}

// traceOf is the span of whoever sends a command.
func (r *remote) traceOf(ctx context.Context) TraceContext {
	if r.cfg.Tracer == nil {
		return TraceContext{}
	}
	return r.cfg.Tracer.Current(ctx)
}
