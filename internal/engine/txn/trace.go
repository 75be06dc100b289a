package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Tracer makes spans of what the engine does for its callers (U216). What it does by itself, such as turning timers, has none.
type Tracer interface {
	// Command begins the span of a command, under the span of ctx. nil: there is none.
	Command(ctx context.Context, name string) Span
	// Commit begins the span of a transaction that writes what these commands did. size counts the commands without a span too.
	Commit(commands []Span, size int) Span
}

// Span is a span under way. Its methods are called by one goroutine at a time.
type Span interface {
	// Attach sets the execution that the span is about.
	Attach(Facts)
	// End ends it; nil: it went well.
	End(err error)
}

// Facts are the attributes of a span about an execution.
type Facts struct {
	ID      base.ID
	Class   *core.Class
	Status  core.Status
	Attempt int // index; -1 before the first
}

// FactsOf returns the attributes of a span about the execution.
func FactsOf(x *core.Execution) Facts {
	f := Facts{ID: x.ID, Class: x.Class, Status: x.Status, Attempt: -1}
	if x.Attempt != nil {
		f.Attempt = x.Attempt.Index
	}
	return f
}

type ownWorkKey struct{}

// OwnWork marks a context as the engine's own, so that nothing done in it has spans.
func OwnWork(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownWorkKey{}, true)
}

// StartSpan begins the span of a command; nil without a tracer.
func (e *Engine) StartSpan(ctx context.Context, name string) Span {
	if e.Cfg.Tracer == nil || ctx.Value(ownWorkKey{}) != nil {
		return nil
	}
	return e.Cfg.Tracer.Command(ctx, name)
}

// EndSpan ends a span that may be none.
func EndSpan(s Span, err error) {
	if s != nil {
		s.End(err)
	}
}

// attachSpans says in the spans of the commands which executions they were about.
func (u *Tx) attachSpans(batch []*Request) {
	for _, r := range batch {
		if r.span == nil {
			continue
		}
		if ent := u.Entries[subjectOf(r.Command)]; ent != nil {
			r.span.Attach(FactsOf(ent.Exec))
		}
	}
}

// subjectOf is the execution that a command is about; the zero UUID when it is about none or about many.
func subjectOf(cmd Command) base.UUID {
	switch c := cmd.(type) {
	case interface{ Subject() base.UUID }:
		return c.Subject()
	case byWorker:
		return c.Target()
	default:
		return base.UUID{}
	}
}

// commitSpan begins the span of the transaction's transaction; nil when none of its commands has one.
func (u *Tx) commitSpan(size int) Span {
	if len(u.spans) == 0 {
		return nil
	}
	return u.Engine.Cfg.Tracer.Commit(u.spans, size)
}

// serves takes note of the spans of the commands that the transaction serves.
func (u *Tx) serves(batch []*Request) {
	if u.Engine.Cfg.Tracer == nil {
		return
	}
	for _, r := range batch {
		if r.span != nil {
			u.spans = append(u.spans, r.span)
		}
	}
}

// AttachSpans takes note of the spans of the calls that the transaction serves.
func (u *Tx) AttachSpans(spans []Span) {
	if u.Engine.Cfg.Tracer == nil {
		return
	}
	for _, span := range spans {
		if span != nil {
			u.spans = append(u.spans, span)
		}
	}
}
