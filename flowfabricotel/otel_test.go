package flowfabricotel_test

import (
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/flowfabricotel"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func newTracer(t *testing.T) (flowfabric.Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	seen := tracetest.NewSpanRecorder()
	return flowfabricotel.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen)), flowfabricotel.Config{Version: "v1"}), seen
}

func TestU216_a_span_has_what_it_was_started_and_ended_with(t *testing.T) {
	t.Parallel()
	tracer, seen := newTracer(t)
	_, span := tracer.Start(t.Context(), api.SpanStart{
		Name: "ff.handler", Kind: api.SpanConsumer, Links: []flowfabric.TraceContext{{}, {Traceparent: parent}},
		Attributes: []slog.Attr{slog.String("ff.kind", "charge"), slog.Int("ff.attempt", 2)},
	})
	span.Set(slog.String("ff.status", "failed"))
	span.End("handler_error")
	got := seen.Ended()[0]
	want := attribute.NewSet(
		attribute.String("ff.kind", "charge"), attribute.Int("ff.attempt", 2), attribute.String("ff.status", "failed"), attribute.String("ff.code", "handler_error"),
	)
	if set := attribute.NewSet(got.Attributes()...); !set.Equals(&want) {
		t.Errorf("attributes %v", got.Attributes())
	}
	if got.Name() != "ff.handler" || got.SpanKind() != trace.SpanKindConsumer || got.Status().Code != codes.Error || got.Status().Description != "handler_error" {
		t.Errorf("%s %s %v", got.Name(), got.SpanKind(), got.Status())
	}
	if links := got.Links(); len(links) != 1 || links[0].SpanContext.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("links %v", links)
	}
	if got.InstrumentationScope().Version != "v1" {
		t.Errorf("scope %+v", got.InstrumentationScope())
	}
}

func TestU216_kinds_are_those_of_OpenTelemetry(t *testing.T) {
	t.Parallel()
	for kind, want := range map[api.SpanKind]trace.SpanKind{
		api.SpanInternal: trace.SpanKindInternal, api.SpanServer: trace.SpanKindServer,
		api.SpanClient: trace.SpanKindClient, api.SpanConsumer: trace.SpanKindConsumer,
	} {
		tracer, seen := newTracer(t)
		_, span := tracer.Start(t.Context(), api.SpanStart{Name: "x", Kind: kind})
		span.End("")
		if got := seen.Ended()[0]; got.SpanKind() != want || got.Status().Code != codes.Unset {
			t.Errorf("kind %d is %s, and ends with %v", kind, got.SpanKind(), got.Status())
		}
	}
}

func TestU215_a_trace_context_goes_out_as_it_came_in(t *testing.T) {
	t.Parallel()
	for name, tracer := range map[string]flowfabric.Tracer{"with a provider": first(newTracer(t)), "without": flowfabricotel.New(nil)} {
		at := flowfabric.TraceContext{Traceparent: parent, Tracestate: "rojo=1", Baggage: "user=7"}
		ctx := tracer.Remote(t.Context(), at)
		if got := tracer.Current(ctx); got != at {
			t.Errorf("%s: %+v", name, got)
		}
		if got := baggage.FromContext(ctx).Member("user").Value(); got != "7" {
			t.Errorf("%s: baggage %q", name, got)
		}
		if got := tracer.Current(t.Context()); got != (flowfabric.TraceContext{}) {
			t.Errorf("%s: a context without a trace gives %+v", name, got)
		}
		if got := tracer.Current(tracer.Remote(t.Context(), flowfabric.TraceContext{Traceparent: "rubbish"})); got != (flowfabric.TraceContext{}) {
			t.Errorf("%s: a malformed one gives %+v", name, got)
		}
	}
}

func first(t flowfabric.Tracer, _ *tracetest.SpanRecorder) flowfabric.Tracer { return t }

func TestU215_a_root_begins_a_trace_of_its_own_and_keeps_the_baggage(t *testing.T) {
	t.Parallel()
	tracer, seen := newTracer(t)
	above := tracer.Remote(t.Context(), flowfabric.TraceContext{Traceparent: parent, Baggage: "user=7"})
	ctx, span := tracer.Start(above, api.SpanStart{Name: "own", Root: true})
	_, child := tracer.Start(above, api.SpanStart{Name: "child"})
	child.End("")
	span.End("")
	spans := seen.Ended()
	if got := spans[1]; got.Parent().IsValid() || got.SpanContext().TraceID().String() == "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the root is below %v", got.Parent())
	}
	if got := spans[0].Parent().SpanID().String(); got != "b7ad6b7169203331" {
		t.Errorf("the child is below %s", got)
	}
	if got := tracer.Current(ctx).Baggage; got != "user=7" {
		t.Errorf("baggage %q", got)
	}
}
