package httptransport

import "testing"

func TestU216_without_a_tracer_commands_allocate_no_trace(t *testing.T) {
	via, ctx := &Transport{}, t.Context()
	if n := testing.AllocsPerRun(1000, func() { via.traceOf(ctx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
