package flowfabric

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// spanCode returns the code with which a span ends.
func spanCode(err error) string {
	if errors.Is(err, ErrParked) {
		return ""
	}
	return transport.SpanCode(err)
}

// activity is a span in progress, or none.
type activity struct{ span api.Span }

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

// startHandler begins the span of a call of a handler: under the submit's context if the lease was acquired soon after it, else
// in a trace of its own; in both cases with a link to it. Without a tracer the submit's context is passed on.
func (r *runner) startHandler(ctx context.Context, t *Task) (context.Context, activity) {
	c := t.claimed
	if r.tracer == nil {
		if c.TraceContext != (TraceContext{}) {
			t.knowTrace(c.TraceContext)
			ctx = transport.WithTrace(ctx, c.TraceContext)
		}
		return ctx, activity{}
	}
	late := c.Lease.AcquiredAt.Sub(c.CreatedAt) > soon
	ctx, span := r.tracer.Start(r.tracer.Remote(ctx, c.TraceContext), api.SpanStart{
		Name: spanHandler, Kind: api.SpanConsumer, Links: []TraceContext{c.TraceContext}, Root: late || c.Traceparent == "",
		Attributes: []slog.Attr{
			slog.String(attrExecution, string(c.ID)), slog.String(attrKind, c.Kind), slog.String(attrLane, c.Lane),
			slog.String(attrNamespace, c.Namespace), slog.Int(attrAttempt, c.Attempt.Index),
		},
	})
	t.knowTrace(r.tracer.Current(ctx))
	return ctx, activity{span}
}

// knowTrace adds the trace to the task's logger.
func (t *Task) knowTrace(c TraceContext) {
	if id := base.TraceIDOf(c.Traceparent); id != "" {
		t.traceID.Store(&id)
	}
}

// endHandler ends the span of a handler with the outcome of the task.
func endHandler(span activity, item api.WorkItem, answer api.WorkAnswer) {
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
	case item.Op == api.OpFail:
		span.end(item.Category)
	default:
		span.end("")
	}
}

// lostCode returns the code with which the span of a handler that lost its lease ends; "" if it was parked.
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
	ctx, span := t.runner.tracer.Start(ctx, api.SpanStart{Name: spanStep, Attributes: []slog.Attr{
		slog.String(attrStep, name), slog.String(attrExecution, string(c.ID)), slog.String(attrKind, c.Kind), slog.String(attrLane, c.Lane),
		slog.String(attrNamespace, c.Namespace), slog.Int(attrAttempt, c.Attempt.Index),
	}})
	return ctx, activity{span}
}

// stepCode returns the code with which the span of a step ends.
func stepCode(err error) string {
	if CodeOf(err) == "" && err != nil && !errors.Is(err, ErrParked) {
		return failureOf(err).Category
	}
	return spanCode(err)
}
