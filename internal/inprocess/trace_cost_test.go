package inprocess

import "testing"

func TestU216_without_a_tracer_an_engine_allocates_no_trace(t *testing.T) {
	e, ctx := &Engine{}, t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		if e.traceOf(ctx) != nil {
			panic("there is a trace context")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if tracerOf(nil) != nil {
		t.Error("the engine gets a tracer that is none")
	}
}

// BenchmarkWithoutATracer is what tracing costs a submit when there is none.
func BenchmarkWithoutATracer(b *testing.B) {
	e, ctx := &Engine{}, b.Context()
	b.ReportAllocs()
	for b.Loop() {
		e.traceOf(ctx)
	}
}
