package inprocess

import (
	"context"
	"errors"
	"log/slog"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// The names of spans and attributes (U216).
const (
	spanCommand = "ff.command"
	spanCommit  = "ff.commit"

	attrExecution = "ff.execution_id"
	attrKind      = "ff.kind"
	attrLane      = "ff.lane"
	attrNamespace = "ff.namespace"
	attrAttempt   = "ff.attempt"
	attrStatus    = "ff.status"
	attrOperation = "ff.operation"  // of a command: submit, complete, ...
	attrBatch     = "ff.batch_size" // of a commit: its commands
)

// engineTracer makes spans for an engine.
type engineTracer struct{ tracer api.Tracer }

// tracerOf converts a tracer to the engine's interface.
func tracerOf(t api.Tracer) engine.Tracer {
	if t == nil {
		return nil
	}
	return engineTracer{t}
}

// Command begins the span of a command. Renewals outside a trace have none, because workers send them continuously.
func (e engineTracer) Command(ctx context.Context, name string) engine.Span {
	if name == string(api.OpRenew) && e.tracer.Current(ctx).Traceparent == "" {
		return nil
	}
	ctx, span := e.tracer.Start(ctx, api.SpanStart{Name: spanCommand, Attributes: []slog.Attr{slog.String(attrOperation, name)}})
	return &engineSpan{at: e.tracer.Current(ctx), span: span}
}

// Commit begins the span of a transaction, under its first command, with links to all of them.
func (e engineTracer) Commit(commands []engine.Span, size int) engine.Span {
	links := make([]api.TraceContext, 0, len(commands))
	for _, c := range commands {
		links = append(links, c.(*engineSpan).at)
	}
	_, span := e.tracer.Start(e.tracer.Remote(context.Background(), links[0]), api.SpanStart{
		Name: spanCommit, Links: links, Attributes: []slog.Attr{slog.Int(attrBatch, size)},
	})
	return &engineSpan{span: span}
}

// engineSpan is a span of the engine.
type engineSpan struct {
	at   api.TraceContext
	span api.Span
}

// Attach records which execution the span is about.
func (s *engineSpan) Attach(f engine.Facts) {
	attributes := []slog.Attr{
		slog.String(attrExecution, f.ID.String()), slog.String(attrKind, f.Class.Kind), slog.String(attrLane, f.Class.Lane),
		slog.String(attrNamespace, f.Class.Namespace), slog.String(attrStatus, f.Status.String()),
	}
	if f.Attempt >= 0 {
		attributes = append(attributes, slog.Int(attrAttempt, f.Attempt))
	}
	s.span.Set(attributes...)
}

// End ends the span. A transaction that must be tried again ends with the error of the store.
func (s *engineSpan) End(err error) {
	var fault *store.Fault
	if errors.As(err, &fault) {
		s.span.End(fault.Kind.String())
		return
	}
	s.span.End(transport.SpanCode(err))
}
