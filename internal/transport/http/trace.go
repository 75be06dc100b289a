package httptransport

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The attributes of HTTP spans, by the names that OpenTelemetry gives them.
const (
	attrMethod  = "http.request.method"
	attrRoute   = "http.route"
	attrResends = "http.request.resend_count"
	attrHTTP    = "http.response.status_code"
)

// activity is the span of a call in progress, or none.
type activity struct{ span api.Span }

// startCall begins the span of a call and writes the headers that carry it to the server (U215). All tries of a call are one
// span.
func (t *Transport) startCall(ctx context.Context, o *wire.Operation, head http.Header, links []api.TraceContext) (context.Context, activity) {
	if t.cfg.Tracer == nil {
		putTrace(head, transport.TraceAt(ctx, nil))
		return ctx, activity{}
	}
	ctx, span := t.cfg.Tracer.Start(ctx, api.SpanStart{
		Name: o.Method + " " + o.Path, Kind: api.SpanClient, Links: links,
		Attributes: []slog.Attr{slog.String(attrMethod, o.Method), slog.String(attrRoute, o.Path)},
	})
	putTrace(head, t.cfg.Tracer.Current(ctx))
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
	a.span.End(transport.SpanCode(err))
}

func putTrace(head http.Header, c api.TraceContext) {
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
func (t *Transport) batchContext(batch []*command[api.WorkAnswer]) (context.Context, []api.TraceContext) {
	ctx := context.Background() // it belongs to no single caller
	if t.cfg.Tracer == nil {
		return ctx, nil
	}
	links := make([]api.TraceContext, 0, len(batch))
	for _, c := range batch {
		if c.trace.Traceparent != "" {
			links = append(links, c.trace)
		}
	}
	if len(links) == 0 {
		return ctx, nil
	}
	return t.cfg.Tracer.Remote(ctx, links[0]), links
}

// traceOf returns the span of the sender of a command.
func (t *Transport) traceOf(ctx context.Context) api.TraceContext {
	if t.cfg.Tracer == nil {
		return api.TraceContext{}
	}
	return t.cfg.Tracer.Current(ctx)
}
