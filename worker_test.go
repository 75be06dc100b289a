package flowfabric_test

import (
	"context"
	"testing"

	"github.com/flowfabric/flowfabric"
)

const double flowfabric.Kind[int, int] = "double"

func TestU148_submit_and_wait(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
		})
		run, err := double.Submit(ctx, w, 21)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(ctx); err != nil || got != 42 {
			t.Fatalf("Result = %d, %v; want 42", got, err)
		}
	})
}
