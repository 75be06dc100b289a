package flowfabric

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/store"
)

// traceAt is the trace context that calls in ctx belong to: the span that it carries, else what came with the request or the task.
// Without a tracer that is all that is known, and it is passed on unchanged.
func traceAt(ctx context.Context, tracer Tracer) TraceContext {
	if tracer != nil {
		if current := tracer.Current(ctx); current != (TraceContext{}) {
			return current
		}
	}
	t, _ := principal.TraceFrom(ctx)
	return TraceContext{Traceparent: t.Parent, Tracestate: t.State, Baggage: t.Baggage}
}

// traceOf is the trace context that is stored with what is submitted in ctx (U215); nil: none.
func (e *embedded) traceOf(ctx context.Context) *base.Trace {
	at := traceAt(ctx, e.tracer)
	return base.ParseTrace(at.Traceparent, at.Tracestate, at.Baggage)
}

// traceContextOf is the trace context of a stored submit.
// spanCode is the code with which a span ends.
func spanCode(err error) string {
	if err == nil || errors.Is(err, ErrParked) {
		return ""
	}
	if code := CodeOf(publicError(err)); code != "" {
		return code
	}
	return string(base.CodeTimeout) // the caller's context ended
}

// activity is a span under way, or none.
type activity struct{ span Span }

func (a activity) set(attributes ...slog.Attr) {
	if a.span != nil {
		a.span.Set(attributes...)
	}
}

func (a activity) end(code string) {
	if a.span != nil {
		a.span.End(code)
	}
}

// soon is how long after its submit an attempt still belongs to the submit's trace (U215).
const soon = time.Minute

// startHandler begins the span of one call of a handler: under the submit's context if the lease was acquired soon after it, else in
// a trace of its own; always with a link to it. Without a tracer the submit's context is passed on.
func (r *runner) startHandler(ctx context.Context, t *Task) (context.Context, activity) {
	c := t.claimed
	if r.tracer == nil {
		if c.TraceContext != (TraceContext{}) {
			t.knowTrace(c.TraceContext)
			ctx = principal.WithTrace(ctx, principal.Trace{Parent: c.Traceparent, State: c.Tracestate, Baggage: c.Baggage})
		}
		return ctx, activity{}
	}
	late := c.Lease.AcquiredAt.Sub(c.CreatedAt) > soon
	ctx, span := r.tracer.Start(r.tracer.Remote(ctx, c.TraceContext), SpanStart{
		Name: spanHandler, Kind: SpanConsumer, Links: []TraceContext{c.TraceContext}, Root: late || c.Traceparent == "",
		Attributes: []slog.Attr{
			slog.String(attrExecution, string(c.ID)), slog.String(attrKind, c.Kind), slog.String(attrLane, c.Lane),
			slog.String(attrNamespace, c.Namespace), slog.Int(attrAttempt, c.Attempt.Index),
		},
	})
	t.knowTrace(r.tracer.Current(ctx))
	return ctx, activity{span}
}

// knowTrace lets the task's logger tell the trace.
func (t *Task) knowTrace(c TraceContext) {
	if id := base.TraceIDOf(c.Traceparent); id != "" {
		t.traceID.Store(&id)
	}
}

// endHandler ends the span of a handler with what became of the work.
func endHandler(span activity, item WorkItem, answer WorkAnswer) {
	if span.span == nil {
		return
	}
	status := string(answer.Status)
	if status == "" {
		status = answer.Outcome
	}
	if status != "" {
		span.set(slog.String(attrStatus, status))
	}
	switch {
	case answer.Err != nil:
		span.end(spanCode(answer.Err))
	case item.Op == OpFail:
		span.end(item.Category)
	default:
		span.end("")
	}
}

// lostCode is the code with which the span of a handler ends that lost its lease; "" when it was parked.
func lostCode(cause error) string {
	switch {
	case errors.Is(cause, ErrParked):
		return ""
	case errors.Is(cause, ErrLeaseRevoked):
		return string(base.CodeLeaseRevoked)
	case errors.Is(cause, ErrLeaseLost):
		return string(base.CodeLeaseExpired)
	default: // it was cancelled, or is past a deadline
		return string(base.CodeExecutionNotActive)
	}
}

// startStep begins the span of a step.
func (t *Task) startStep(ctx context.Context, name string) (context.Context, activity) {
	if t.runner.tracer == nil {
		return ctx, activity{}
	}
	c := t.claimed
	ctx, span := t.runner.tracer.Start(ctx, SpanStart{Name: spanStep, Attributes: []slog.Attr{
		slog.String(attrStep, name), slog.String(attrExecution, string(c.ID)), slog.String(attrKind, c.Kind), slog.String(attrLane, c.Lane),
		slog.String(attrNamespace, c.Namespace), slog.Int(attrAttempt, c.Attempt.Index),
	}})
	return ctx, activity{span}
}

// stepCode is the code with which the span of a step ends.
func stepCode(err error) string {
	if CodeOf(err) == "" && err != nil && !errors.Is(err, ErrParked) {
		return failureOf(err).Category
	}
	return spanCode(err)
}

// engineTracer lets an engine make spans.
type engineTracer struct{ tracer Tracer }

// tracerOf is the tracer as the engine takes it.
func tracerOf(t Tracer) engine.Tracer {
	if t == nil {
		return nil
	}
	return engineTracer{t}
}

// Command begins the span of a command. Renewals that belong to no trace have none: workers send them for ever.
func (e engineTracer) Command(ctx context.Context, name string) engine.Span {
	if name == string(OpRenew) && e.tracer.Current(ctx).Traceparent == "" {
		return nil
	}
	ctx, span := e.tracer.Start(ctx, SpanStart{Name: spanCommand, Attributes: []slog.Attr{slog.String(attrOperation, name)}})
	return &engineSpan{at: e.tracer.Current(ctx), span: span}
}

// Commit begins the span of a transaction, under its first command, with links to all of them.
func (e engineTracer) Commit(commands []engine.Span, size int) engine.Span {
	links := make([]TraceContext, 0, len(commands))
	for _, c := range commands {
		links = append(links, c.(*engineSpan).at)
	}
	_, span := e.tracer.Start(e.tracer.Remote(context.Background(), links[0]), SpanStart{
		Name: spanCommit, Links: links, Attributes: []slog.Attr{slog.Int(attrBatch, size)},
	})
	return &engineSpan{span: span}
}

// engineSpan is a span of the engine.
type engineSpan struct {
	at   TraceContext
	span Span
}

// Tell says which execution it is about.
func (s *engineSpan) Tell(f engine.Facts) {
	attributes := []slog.Attr{
		slog.String(attrExecution, f.ID.String()), slog.String(attrKind, f.Class.Kind), slog.String(attrLane, f.Class.Lane),
		slog.String(attrNamespace, f.Class.Namespace), slog.String(attrStatus, f.Status.String()),
	}
	if f.Attempt >= 0 {
		attributes = append(attributes, slog.Int(attrAttempt, f.Attempt))
	}
	s.span.Set(attributes...)
}

// End ends the span. A transaction that must be tried again ends with what the store said.
func (s *engineSpan) End(err error) {
	var fault *store.Fault
	if errors.As(err, &fault) {
		s.span.End(fault.Kind.String())
		return
	}
	s.span.End(spanCode(err))
}
