package tracing

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	about "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// decoded is what a collector reads.
func decoded(t *testing.T, stubs ...tracetest.SpanStub) *otlp.TracesData {
	t.Helper()
	var data otlp.TracesData
	if err := proto.Unmarshal(encode(tracetest.SpanStubs(stubs).Snapshots()), &data); err != nil {
		t.Fatal(err)
	}
	return &data
}

func same(t *testing.T, got, want proto.Message) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func spanContext(t *testing.T, id byte, remote bool, state string) trace.SpanContext {
	t.Helper()
	parsed, err := trace.ParseTraceState(state)
	if err != nil {
		t.Fatal(err)
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 15: id}, SpanID: trace.SpanID{2, 7: id}, TraceFlags: trace.FlagsSampled, TraceState: parsed, Remote: remote,
	})
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func TestU216_a_span_arrives_with_all_that_it_has(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1700000000, 123456789)
	got := decoded(t, tracetest.SpanStub{
		Name: "ff.commit", SpanKind: trace.SpanKindServer, SpanContext: spanContext(t, 3, false, "shop=1,b=2"), Parent: spanContext(t, 4, true, ""),
		StartTime: begin, EndTime: begin.Add(time.Second), Attributes: []attribute.KeyValue{attribute.String("ff.kind", "order")},
		Events: []sdktrace.Event{
			{Name: "late", Time: begin.Add(time.Millisecond), Attributes: []attribute.KeyValue{attribute.String("why", "load")}, DroppedAttributeCount: 7},
			{Name: "before 1970", Time: time.Unix(-1, 0)},
		},
		Links: []sdktrace.Link{
			{SpanContext: spanContext(t, 5, true, "c=3"), Attributes: []attribute.KeyValue{attribute.String("of", "submit")}, DroppedAttributeCount: 8},
			{SpanContext: spanContext(t, 6, false, "")},
		},
		Status:            sdktrace.Status{Code: codes.Error, Description: "conflict"},
		DroppedAttributes: 9, DroppedEvents: 10, DroppedLinks: math.MaxInt64,
		Resource: resource.NewWithAttributes("https://schema/resource", attribute.String("service.name", "flowfabric")),
		InstrumentationScope: instrumentation.Scope{
			Name: "flowfabric", Version: "v9", SchemaURL: "https://schema/scope", Attributes: attribute.NewSet(attribute.String("a", "b")),
		},
	})
	nanos := uint64(begin.UnixNano())
	same(t, got, &otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:  &about.Resource{Attributes: []*common.KeyValue{text("service.name", "flowfabric")}},
		SchemaUrl: "https://schema/resource",
		ScopeSpans: []*otlp.ScopeSpans{{
			Scope:     &common.InstrumentationScope{Name: "flowfabric", Version: "v9", Attributes: []*common.KeyValue{text("a", "b")}},
			SchemaUrl: "https://schema/scope",
			Spans: []*otlp.Span{{
				TraceId: []byte{1, 15: 3}, SpanId: []byte{2, 7: 3}, TraceState: "shop=1,b=2", ParentSpanId: []byte{2, 7: 4}, Flags: 0x301,
				Name: "ff.commit", Kind: otlp.Span_SPAN_KIND_SERVER, StartTimeUnixNano: nanos, EndTimeUnixNano: nanos + 1e9,
				Attributes: []*common.KeyValue{text("ff.kind", "order")}, DroppedAttributesCount: 9,
				Events: []*otlp.Span_Event{
					{Name: "late", TimeUnixNano: nanos + 1e6, Attributes: []*common.KeyValue{text("why", "load")}, DroppedAttributesCount: 7},
					{Name: "before 1970"},
				},
				DroppedEventsCount: 10,
				Links: []*otlp.Span_Link{
					{TraceId: []byte{1, 15: 5}, SpanId: []byte{2, 7: 5}, TraceState: "c=3", Attributes: []*common.KeyValue{text("of", "submit")}, DroppedAttributesCount: 8, Flags: 0x301},
					{TraceId: []byte{1, 15: 6}, SpanId: []byte{2, 7: 6}, Flags: 0x101},
				},
				DroppedLinksCount: math.MaxUint32,
				Status:            &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR, Message: "conflict"},
			}},
		}},
	}}})
}

func TestU216_a_span_of_nothing_is_a_root(t *testing.T) {
	t.Parallel()
	same(t, decoded(t, tracetest.SpanStub{}), &otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		ScopeSpans: []*otlp.ScopeSpans{{Scope: &common.InstrumentationScope{}, Spans: []*otlp.Span{{
			TraceId: make([]byte, 16), SpanId: make([]byte, 8), Status: &otlp.Status{}, Flags: 0x100,
		}}}},
	}}})
}

func TestU216_attributes_of_every_kind_arrive(t *testing.T) {
	t.Parallel()
	kinds := []attribute.KeyValue{
		attribute.String("string", "é"), attribute.String("empty", ""), attribute.String("not UTF-8", "a\xffb"),
		attribute.Bool("true", true), attribute.Bool("false", false), attribute.Int64("int", -7), attribute.Int64("zero", 0),
		attribute.Float64("float", -2.5), attribute.Float64("infinite", math.Inf(1)),
		attribute.StringSlice("strings", []string{"a", ""}), attribute.BoolSlice("bools", []bool{true, false}),
		attribute.Int64Slice("ints", []int64{1, math.MinInt64}), attribute.Float64Slice("floats", []float64{0.5, 0}), attribute.StringSlice("none", nil),
		{Key: "bytes", Value: attribute.ByteSliceValue([]byte{0, 255})},
		{Key: "mixed", Value: attribute.SliceValue(attribute.IntValue(1), attribute.StringValue("x"))},
		{Key: "map", Value: attribute.MapValue(attribute.String("k", "v"))},
		{Key: "nothing"},
	}
	got := map[string]any{}
	for _, a := range decoded(t, tracetest.SpanStub{Attributes: kinds}).GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetAttributes() {
		got[a.GetKey()] = plain(a.GetValue())
	}
	want := map[string]any{
		"string": "é", "empty": "", "not UTF-8": "a\uFFFDb", "true": true, "false": false, "int": int64(-7), "zero": int64(0),
		"float": -2.5, "infinite": math.Inf(1), "strings": []any{"a", ""}, "bools": []any{true, false}, "ints": []any{int64(1), int64(math.MinInt64)},
		"floats": []any{0.5, 0.0}, "none": []any{}, "bytes": []byte{0, 255}, "mixed": []any{int64(1), "x"}, "map": map[string]any{"k": "v"}, "nothing": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// plain is a value as Go has it.
func plain(v *common.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_BoolValue:
		return v.BoolValue
	case *common.AnyValue_IntValue:
		return v.IntValue
	case *common.AnyValue_DoubleValue:
		return v.DoubleValue
	case *common.AnyValue_BytesValue:
		return v.BytesValue
	case *common.AnyValue_ArrayValue:
		all := []any{}
		for _, one := range v.ArrayValue.GetValues() {
			all = append(all, plain(one))
		}
		return all
	case *common.AnyValue_KvlistValue:
		all := map[string]any{}
		for _, one := range v.KvlistValue.GetValues() {
			all[one.GetKey()] = plain(one.GetValue())
		}
		return all
	}
	return nil
}

func TestU216_kinds_and_statuses_have_the_numbers_of_OTLP(t *testing.T) {
	t.Parallel()
	kinds := map[trace.SpanKind]otlp.Span_SpanKind{
		trace.SpanKindUnspecified: otlp.Span_SPAN_KIND_UNSPECIFIED, trace.SpanKindInternal: otlp.Span_SPAN_KIND_INTERNAL, trace.SpanKindServer: otlp.Span_SPAN_KIND_SERVER,
		trace.SpanKindClient: otlp.Span_SPAN_KIND_CLIENT, trace.SpanKindProducer: otlp.Span_SPAN_KIND_PRODUCER, trace.SpanKindConsumer: otlp.Span_SPAN_KIND_CONSUMER,
		trace.SpanKind(77): otlp.Span_SPAN_KIND_UNSPECIFIED,
	}
	for kind, want := range kinds {
		if got := decoded(t, tracetest.SpanStub{SpanKind: kind}).GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetKind(); got != want {
			t.Errorf("%v is %v", kind, got)
		}
	}
	statuses := map[codes.Code]otlp.Status_StatusCode{
		codes.Unset: otlp.Status_STATUS_CODE_UNSET, codes.Ok: otlp.Status_STATUS_CODE_OK, codes.Error: otlp.Status_STATUS_CODE_ERROR,
	}
	for code, want := range statuses {
		stub := tracetest.SpanStub{Status: sdktrace.Status{Code: code}}
		if got := decoded(t, stub).GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetStatus().GetCode(); got != want {
			t.Errorf("%v is %v", code, got)
		}
	}
}

func TestU216_spans_stand_by_resource_and_scope(t *testing.T) {
	t.Parallel()
	stub := func(name, service, schema, scope string) tracetest.SpanStub {
		return tracetest.SpanStub{
			Name: name, Resource: resource.NewWithAttributes(schema, attribute.String("service.name", service)),
			InstrumentationScope: instrumentation.Scope{Name: scope},
		}
	}
	got := decoded(t, stub("1", "a", "", "x"), stub("2", "b", "", "x"), stub("3", "a", "", "y"), stub("4", "a", "", "x"), stub("5", "a", "new", "x"))
	var order [][][]string
	for _, r := range got.GetResourceSpans() {
		var scopes [][]string
		for _, s := range r.GetScopeSpans() {
			names := []string{s.GetScope().GetName()}
			for _, span := range s.GetSpans() {
				names = append(names, span.GetName())
			}
			scopes = append(scopes, names)
		}
		order = append(order, scopes)
	}
	if diff := cmp.Diff([][][]string{{{"x", "1", "4"}, {"y", "3"}}, {{"x", "2"}}, {{"x", "5"}}}, order); diff != "" {
		t.Error(diff)
	}
}

// Lengths of one, two and three bytes stand before a message.
func TestU216_messages_of_any_length_arrive(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 100, 127, 128, 129, 16_000, 16_383, 16_384, 70_000} {
		long := string(make([]byte, size))
		span := decoded(t, tracetest.SpanStub{Attributes: []attribute.KeyValue{attribute.String("a", long)}, Name: "after"}).GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0]
		if got := span.GetAttributes()[0].GetValue().GetStringValue(); got != long || span.GetName() != "after" {
			t.Errorf("of %d bytes %d arrive", size, len(got))
		}
	}
}
