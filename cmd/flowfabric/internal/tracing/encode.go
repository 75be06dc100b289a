package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// The bits of flags above those of the W3C trace context: it is known whether the other span is of another process, and it is.
const (
	knowsRemote = 0x100
	isRemote    = 0x200
)

// encode writes spans as an ExportTraceServiceRequest of OTLP. The numbers of the fields are those of opentelemetry-proto 1.x, here
// and below.
func encode(spans []sdktrace.ReadOnlySpan) []byte {
	var m message
	for _, r := range grouped(spans) {
		m.nested(1, func() {
			if r.resource != nil {
				m.nested(1, func() { m.set(1, r.resource.Set()) })
			}
			for _, s := range r.scopes {
				m.nested(2, func() { m.scope(s) })
			}
			m.some(3, r.resource.SchemaURL())
		})
	}
	return m
}

// ofResource are the spans of one resource.
type ofResource struct {
	resource *resource.Resource // nil: unknown
	scopes   []*ofScope
}

// ofScope are those of them that one instrumentation made.
type ofScope struct {
	scope instrumentation.Scope
	spans []sdktrace.ReadOnlySpan
}

// grouped puts together what is of one resource and scope, in the order of the first of each.
func grouped(spans []sdktrace.ReadOnlySpan) []*ofResource {
	type about struct {
		attributes attribute.Distinct
		schema     string
	}
	type within struct {
		about about
		scope instrumentation.Scope
	}
	var all []*ofResource
	resources, scopes := map[about]*ofResource{}, map[within]*ofScope{}
	for _, span := range spans {
		at := within{about{span.Resource().Equivalent(), span.Resource().SchemaURL()}, span.InstrumentationScope()}
		r := resources[at.about]
		if r == nil {
			r = &ofResource{resource: span.Resource()}
			resources[at.about] = r
			all = append(all, r)
		}
		s := scopes[at]
		if s == nil {
			s = &ofScope{scope: at.scope}
			scopes[at] = s
			r.scopes = append(r.scopes, s)
		}
		s.spans = append(s.spans, span)
	}
	return all
}

func (m *message) scope(s *ofScope) {
	m.nested(1, func() {
		m.some(1, s.scope.Name)
		m.some(2, s.scope.Version)
		m.set(3, &s.scope.Attributes)
	})
	for _, span := range s.spans {
		m.nested(2, func() { m.span(span) })
	}
	m.some(3, s.scope.SchemaURL)
}

func (m *message) span(s sdktrace.ReadOnlySpan) {
	m.context(s.SpanContext())
	if above := s.Parent().SpanID(); above.IsValid() {
		m.bytes(4, above[:])
	}
	m.some(5, s.Name())
	m.number(6, kindOf(s.SpanKind()))
	m.instant(7, s.StartTime())
	m.instant(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.count(10, s.DroppedAttributes())
	for _, e := range s.Events() {
		m.nested(11, func() { m.event(e) })
	}
	m.count(12, s.DroppedEvents())
	for _, l := range s.Links() {
		m.nested(13, func() { m.link(l) })
	}
	m.count(14, s.DroppedLinks())
	m.nested(15, func() { m.status(s.Status()) })
	m.flags(16, s.SpanContext(), s.Parent())
}

// context writes which span it is; the fields are the same in spans and links.
func (m *message) context(c trace.SpanContext) {
	traceID, spanID := c.TraceID(), c.SpanID()
	m.bytes(1, traceID[:])
	m.bytes(2, spanID[:])
	m.some(3, c.TraceState().String())
}

func (m *message) flags(field protowire.Number, of, other trace.SpanContext) {
	flags := uint32(of.TraceFlags()) | knowsRemote
	if other.IsRemote() {
		flags |= isRemote
	}
	m.bits(field, flags)
}

func (m *message) event(e sdktrace.Event) {
	m.instant(1, e.Time)
	m.some(2, e.Name)
	m.attributes(3, e.Attributes)
	m.count(4, e.DroppedAttributeCount)
}

func (m *message) link(l sdktrace.Link) {
	m.context(l.SpanContext)
	m.attributes(4, l.Attributes)
	m.count(5, l.DroppedAttributeCount)
	m.flags(6, l.SpanContext, l.SpanContext)
}

// status writes how a span ended. OTLP counts the codes in another order than the SDK.
func (m *message) status(s sdktrace.Status) {
	m.some(2, s.Description)
	switch s.Code {
	case codes.Ok:
		m.number(3, 1)
	case codes.Error:
		m.number(3, 2)
	}
}

// kindOf is the number of a kind; 0 for those that OTLP does not know.
func kindOf(kind trace.SpanKind) uint64 {
	switch kind {
	case trace.SpanKindInternal:
		return 1
	case trace.SpanKindServer:
		return 2
	case trace.SpanKindClient:
		return 3
	case trace.SpanKindProducer:
		return 4
	case trace.SpanKindConsumer:
		return 5
	default:
		return 0
	}
}
