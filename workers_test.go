package flowfabric_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestU103_the_drain_of_a_worker_is_taken_back_from_all_its_instances(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		for _, r := range []api.Registration{{WorkerID: "w", InstanceID: "w-1"}, {WorkerID: "w", InstanceID: "w-2"}, {WorkerID: "other", InstanceID: "o-1"}} {
			must[api.RegisterResult](t)(w.Work().Register(ctx, r))
		}
		want := func(states ...string) {
			t.Helper()
			var got []string
			for worker, err := range w.Workers().List(ctx, ops.WorkerFilter{State: "all", Limit: 1}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, worker.InstanceID+" "+worker.State)
			}
			if !slices.Equal(got, states) {
				t.Errorf("the workers are %v, want %v", got, states)
			}
		}
		must[any](t)(nil, w.Workers().Drain(ctx, ops.WorkerTarget{WorkerID: "w"}))
		must[any](t)(nil, w.Workers().Drain(ctx, ops.WorkerTarget{InstanceID: "o-1"}))
		want("o-1 draining", "w-1 draining", "w-2 draining")
		must[any](t)(nil, w.Workers().Undrain(ctx, ops.WorkerTarget{WorkerID: "w"}))
		want("o-1 draining", "w-1 live", "w-2 live")
		for _, act := range []func(context.Context, ops.WorkerTarget) error{w.Workers().Drain, w.Workers().Undrain} {
			err := act(ctx, ops.WorkerTarget{WorkerID: "missing"})
			if flowfabric.CodeOf(err) != "worker_not_registered" || !strings.HasSuffix(err.Error(), `no instance of worker "missing"`) {
				t.Errorf("a worker without instances: %v", err)
			}
		}
	})
}

// A namespace has a number of worker instances (U101): a worker beyond it waits until there is room, and does not end.
func TestU101_a_worker_waits_until_its_namespace_has_room(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, book := inTime(t), &logBook{}
		_, stopFirst := w.work(t, flowfabric.WorkerConfig{Instance: "i-1"}, func(worker *flowfabric.Worker) { flowfabric.Handle(worker, flaky, firstFails) })
		must[string](t)(must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "first")).Result(ctx))
		must[*api.Namespace](t)(w.Admin().Namespaces().Put(ctx, "default", api.NamespaceSettings{MaxWorkers: 1}, ops.AdminAction{}))
		_, stopSecond := w.work(t, flowfabric.WorkerConfig{Instance: "i-2", Logger: book.logger(slog.LevelWarn)}, func(worker *flowfabric.Worker) { flowfabric.Handle(worker, flaky, firstFails) })
		if why := book.await(t, "flowfabric: request failed, retrying")[0]["error"]; !strings.Contains(fmt.Sprint(why), "1 worker instances, and may have 1") {
			t.Error(why)
		}
		stopFirst()
		must[string](t)(must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "second")).Result(ctx))
		stopSecond()
	})
}
