package flowfabric_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric"
)

func TestU140_a_step_finds_a_large_result_whole(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		var calls, ran atomic.Int64
		const kind flowfabric.Kind[flowfabric.None, int] = "large-step"
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, kind, func(ctx context.Context, task *flowfabric.Task, _ flowfabric.None) (int, error) {
				sum := 0
				for _, size := range []int{1, 64<<10 + 1, 1 << 20} {
					text, err := flowfabric.Step(ctx, task, "fetch", func(context.Context) (string, error) {
						ran.Add(1)
						return strings.Repeat("x", size), nil
					})
					if err != nil {
						return 0, err
					}
					sum += len(text)
				}
				if calls.Add(1) == 1 {
					return 0, errors.New("not yet")
				}
				return sum, nil
			})
		})
		run := must[*flowfabric.Run[int]](t)(kind.Submit(ctx, w.Client, flowfabric.None{}, flowfabric.SubmitOptions{Policy: once()}))
		if got := must[int](t)(run.Result(ctx)); got != 1+(64<<10+1)+(1<<20) || ran.Load() != 3 {
			t.Errorf("%d bytes after %d calls", got, ran.Load())
		}
	})
}
