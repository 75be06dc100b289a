package api

import (
	"context"
	"log/slog"
)

// Tracer makes spans of what clients, their workers, engines and servers do (U216). Package flowfabricotel makes one from
// OpenTelemetry; the interface itself knows no library. Its methods are called from many goroutines. No span ever gets a payload or the
// text of an error.
type Tracer interface {
	// Start begins a span under the one that ctx carries and returns a context that carries the new one.
	Start(ctx context.Context, s SpanStart) (context.Context, Span)
	// Current is the span that ctx carries, as another process would have to know it; zero when there is none.
	Current(ctx context.Context) TraceContext
	// Remote returns a context that carries a span of another process, so that the next one is started under it. The zero
	// TraceContext leaves ctx as it is.
	Remote(ctx context.Context, c TraceContext) context.Context
}

// SpanStart is how a span begins.
type SpanStart struct {
	Name       string
	Kind       SpanKind
	Attributes []slog.Attr    // texts and whole numbers
	Links      []TraceContext // other spans that it has to do with; zero ones do not count
	Root       bool           // begin a trace of its own, whatever ctx carries
}

// SpanKind says on which side of a call a span is.
type SpanKind uint8

// The kinds of spans.
const (
	SpanInternal SpanKind = iota
	SpanServer
	SpanClient
	SpanConsumer // works off what was handed in before
)

// Span is a span under way. Its methods are called by one goroutine at a time.
type Span interface {
	// Set adds attributes, or changes them.
	Set(attributes ...slog.Attr)
	// End ends the span. code says why it failed, "" that it did not. Nothing is called after End.
	End(code string)
}
