package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// traced returns the context of a request as part of the trace that its headers name (U215). With a tracer the request has a span
// of its own there; without one the headers are passed on unchanged, to be stored with what is submitted.
func (s *Server) traced(x *exchange) context.Context {
	ctx, at := x.r.Context(), x.trace
	if s.cfg.Tracer == nil || !strings.HasPrefix(x.route.Path, "/v1/") {
		if at != (api.TraceContext{}) {
			ctx = transport.WithTrace(ctx, at)
		}
		return ctx
	}
	ctx, x.span = s.cfg.Tracer.Start(s.cfg.Tracer.Remote(ctx, at), api.SpanStart{
		Name: x.route.Method + " " + x.route.Path, Kind: api.SpanServer,
		Attributes: []slog.Attr{slog.String("http.request.method", x.r.Method), slog.String("http.route", x.route.Path)},
	})
	x.trace = s.cfg.Tracer.Current(ctx)
	return ctx
}

// endTrace ends the span of a request. A refusal is the caller's failure, not the server's.
func (x *exchange) endTrace() {
	if x.span == nil {
		return
	}
	x.span.Set(slog.Int("http.response.status_code", x.w.status))
	if x.caller.Namespace != "" {
		x.span.Set(slog.String("ff.namespace", x.caller.Namespace))
	}
	if x.w.status >= http.StatusInternalServerError {
		x.span.End(x.code)
		return
	}
	if x.code != "" {
		x.span.Set(slog.String("ff.code", x.code))
	}
	x.span.End("")
}

// traceOf reads the headers of W3C Trace Context and Baggage. Two traceparents are as good as none; the others are lists.
func traceOf(head http.Header) api.TraceContext {
	at := api.TraceContext{Baggage: strings.Join(head.Values(wire.HeaderBaggage), ",")}
	if parents := head.Values(wire.HeaderTraceparent); len(parents) == 1 {
		at.Traceparent = parents[0]
		at.Tracestate = strings.Join(head.Values(wire.HeaderTracestate), ",")
	}
	return at
}
