package flowfabric

import (
	"context"
	"testing"

	"github.com/flowfabric/flowfabric/api"
)

// untraced is everything that tracing does in a worker for one task when there is no tracer and no trace context.
func untraced(ctx context.Context, t *Task) {
	handling, span := t.runner.startHandler(ctx, t)
	_, step := t.startStep(handling, "s")
	step.end("")
	endHandler(span, api.WorkItem{Op: api.OpComplete}, api.WorkAnswer{Status: StatusSucceeded})
}

func untracedTask() *Task {
	return &Task{runner: &runner{}, claimed: &api.Claimed{ID: "x", Kind: "k"}}
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
	ctx, task := deep(t), untracedTask()
	if n := testing.AllocsPerRun(1000, func() { untraced(ctx, task) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkWithoutATracer is what tracing costs a task when there is none.
func BenchmarkWithoutATracer(b *testing.B) {
	ctx, task := deep(b), untracedTask()
	b.ReportAllocs()
	for b.Loop() {
		untraced(ctx, task)
	}
}
