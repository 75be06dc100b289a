package flowfabric

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/flowfabric/flowfabric/internal/engine"
)

// untraced is everything that tracing does in the life of one execution when there is no tracer and no trace context.
func untraced(ctx context.Context, e *embedded, r *remote, t *Task) {
	if e.traceOf(ctx) != nil {
		panic("there is a trace context")
	}
	r.traceOf(ctx)
	handling, span := t.runner.startHandler(ctx, t)
	_, step := t.startStep(handling, "s")
	step.end("")
	endHandler(span, WorkItem{Op: OpComplete}, WorkAnswer{Status: StatusSucceeded})
}

func untracedTask() *Task {
	return &Task{runner: &runner{}, claimed: &Claimed{ID: "x", Kind: "k"}}
}

// deep is a context as a handler of an HTTP server has it.
func deep(tb testing.TB) context.Context {
	ctx := tb.Context()
	for range 8 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(context.WithValue(ctx, untracedKey{}, true))
		tb.Cleanup(cancel)
	}
	return ctx
}

type untracedKey struct{}

func TestU216_without_a_tracer_nothing_is_allocated(t *testing.T) {
	ctx, e, r, task := deep(t), &embedded{}, &remote{}, untracedTask()
	if n := testing.AllocsPerRun(1000, func() { untraced(ctx, e, r, task) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if tracerOf(nil) != nil {
		t.Error("the engine gets a tracer that is none")
	}
}

// BenchmarkWithoutATracer is what tracing costs an execution from submit to completion when there is none.
func BenchmarkWithoutATracer(b *testing.B) {
	ctx, e, r, task := deep(b), &embedded{}, &remote{}, untracedTask()
	b.ReportAllocs()
	for b.Loop() {
		untraced(ctx, e, r, task)
	}
}

// BenchmarkSubmitsWithoutATracer is a whole command, many callers at a time, to compare with: the cost above must be below 1 % of it.
func BenchmarkSubmitsWithoutATracer(b *testing.B) {
	ctx := engine.WithHooks(b.Context(), engine.Hooks{UnsafeDurability: true})
	client, err := Open(ctx, "sqlite:"+filepath.Join(b.TempDir(), "app.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	b.SetParallelism(128)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := client.Submit(b.Context(), Submission{Kind: "k"}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
