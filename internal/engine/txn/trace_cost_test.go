package txn

import (
	"context"
	"testing"
)

// untraced is everything that tracing does for a command and its commit when there is no tracer.
func untraced(ctx context.Context, e *Engine, u *Tx, batch []*Request) {
	span := e.StartSpan(ctx, "submit")
	u.serves(batch)
	EndSpan(u.commitSpan(len(batch)), nil)
	u.attachSpans(batch)
	EndSpan(span, nil)
}

func untracedUnit() (*Engine, *Tx, []*Request) {
	e := &Engine{}
	return e, &Tx{Engine: e}, []*Request{{}}
}

func TestU216_without_a_tracer_a_command_allocates_nothing(t *testing.T) {
	e, u, batch := untracedUnit()
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { untraced(ctx, e, u, batch) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkSpansWithoutATracer is what tracing costs a command that is alone in its commit when there is no tracer.
func BenchmarkSpansWithoutATracer(b *testing.B) {
	e, u, batch := untracedUnit()
	b.ReportAllocs()
	for b.Loop() {
		untraced(b.Context(), e, u, batch)
	}
}
