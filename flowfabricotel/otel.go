// Package flowfabricotel creates OpenTelemetry spans for FlowFabric. It depends only on the OpenTelemetry API; the program
// chooses SDK and exporter.
//
//	client, err := sqlite.Open(ctx, "app.db", sqlite.Config{Tracer: flowfabricotel.New(otel.GetTracerProvider())})
package flowfabricotel

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/flowfabric/flowfabric"

// Config configures a tracer. The zero value is useful.
type Config struct {
	Version string // of the program, part of the instrumentation scope; "": none
}

// New returns a Tracer that sends its spans to the provider. A nil provider creates no spans, but still propagates trace
// contexts. Only the first configuration is used.
func New(provider trace.TracerProvider, cfg ...Config) flowfabric.Tracer {
	t := tracer{w3c: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})}
	var options []trace.TracerOption
	if len(cfg) > 0 && cfg[0].Version != "" {
		options = append(options, trace.WithInstrumentationVersion(cfg[0].Version))
	}
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	t.spans = provider.Tracer(scope, options...)
	return t
}

// tracer is a flowfabric.Tracer on an OpenTelemetry tracer.
type tracer struct {
	spans trace.Tracer
	w3c   propagation.TextMapPropagator
}

// Start starts a span.
func (t tracer) Start(ctx context.Context, s api.SpanStart) (context.Context, api.Span) {
	options := []trace.SpanStartOption{trace.WithSpanKind(kindOf(s.Kind)), trace.WithAttributes(attributesOf(s.Attributes)...)}
	if s.Root {
		options = append(options, trace.WithNewRoot())
	}
	for _, to := range s.Links {
		if at := trace.SpanContextFromContext(t.Remote(context.Background(), to)); at.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: at}))
		}
	}
	ctx, started := t.spans.Start(ctx, s.Name, options...)
	return ctx, span{started}
}

// Current returns the span in ctx.
func (t tracer) Current(ctx context.Context) flowfabric.TraceContext {
	var at flowfabric.TraceContext
	t.w3c.Inject(ctx, headers{&at})
	return at
}

// Remote returns a context with a span of another process.
func (t tracer) Remote(ctx context.Context, at flowfabric.TraceContext) context.Context {
	return t.w3c.Extract(ctx, headers{&at})
}

// span is an api.Span.
type span struct{ span trace.Span }

// Set adds attributes.
func (s span) Set(attributes ...slog.Attr) { s.span.SetAttributes(attributesOf(attributes)...) }

// codeKey is the attribute with the code of a failure.
const codeKey = attribute.Key("ff.code")

// End ends the span; a code marks it as failed.
func (s span) End(code string) {
	if code != "" {
		s.span.SetAttributes(codeKey.String(code))
		s.span.SetStatus(codes.Error, code)
	}
	s.span.End()
}

func kindOf(k api.SpanKind) trace.SpanKind {
	switch k {
	case api.SpanServer:
		return trace.SpanKindServer
	case api.SpanClient:
		return trace.SpanKindClient
	case api.SpanConsumer:
		return trace.SpanKindConsumer
	case api.SpanInternal:
	}
	return trace.SpanKindInternal
}

func attributesOf(all []slog.Attr) []attribute.KeyValue {
	converted := make([]attribute.KeyValue, len(all))
	for i, a := range all {
		if a.Value.Kind() == slog.KindInt64 {
			converted[i] = attribute.Int64(a.Key, a.Value.Int64())
		} else {
			converted[i] = attribute.String(a.Key, a.Value.String())
		}
	}
	return converted
}

// headers is a propagation carrier for a TraceContext.
type headers struct{ at *flowfabric.TraceContext }

// field returns the field of a header; nil for all others.
func (h headers) field(name string) *string {
	switch name {
	case "traceparent":
		return &h.at.Traceparent
	case "tracestate":
		return &h.at.Tracestate
	case "baggage":
		return &h.at.Baggage
	default:
		return nil
	}
}

// Get reads a header.
func (h headers) Get(name string) string {
	if f := h.field(name); f != nil {
		return *f
	}
	return ""
}

// Set writes a header.
func (h headers) Set(name, value string) {
	if f := h.field(name); f != nil {
		*f = value
	}
}

// Keys returns the header names.
func (headers) Keys() []string { return []string{"traceparent", "tracestate", "baggage"} }
