package flowfabric_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

func workerSamples(t testing.TB, w *flowfabric.Worker) map[string]float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	w.Metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return samplesOf(t, answer.Body.String())
}

// workerShows waits until the samples of a worker are these.
func workerShows(t testing.TB, w *flowfabric.Worker, want map[string]float64) {
	t.Helper()
	ctx := inTime(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		got, wrong := workerSamples(t, w), ""
		for _, sample := range slices.Sorted(maps.Keys(want)) {
			if got[sample] != want[sample] {
				wrong += fmt.Sprintf("\n%s is %v, want %v", sample, got[sample], want[sample])
			}
		}
		if wrong == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(wrong)
		}
	}
}

func TestU211_a_worker_measures_its_handlers(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		entered, gate := make(chan struct{}, 10), make(chan struct{})
		worker, stop := w.work(t, flowfabric.WorkerConfig{Concurrency: 8}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(ctx context.Context, task *flowfabric.Task, in int) (int, error) {
				entered <- struct{}{}
				<-gate
				switch in {
				case 1:
					return 0, flowfabric.Permanent(errors.New("no"))
				case 2:
					return 0, task.Delay(ctx, time.Now().Add(time.Hour))
				default:
					return 2 * in, nil
				}
			})
			flowfabric.Handle(worker, echo, func(_ context.Context, _ *flowfabric.Task, in flowfabric.Payload) (flowfabric.Payload, error) {
				return in, nil
			})
		})
		for in := range 5 {
			must[*flowfabric.Run[int]](t)(double.Submit(inTime(t), w.Client, in))
		}
		for range 5 {
			receive(t, entered)
		}
		workerShows(t, worker, map[string]float64{`ff_worker_tasks{kind="double"}`: 5, `ff_worker_tasks{kind="echo"}`: 0})
		close(gate)
		want := map[string]float64{
			`ff_worker_tasks{kind="double"}`:                                     0,
			`ff_worker_handler_seconds_count{kind="double",outcome="succeeded"}`: 3, `ff_worker_handler_seconds_count{kind="double",outcome="failed"}`: 1,
			`ff_worker_handler_seconds_count{kind="double",outcome="handed_back"}`: 1, `ff_worker_handler_seconds_count{kind="double",outcome="lost"}`: 0,
			`ff_worker_handler_seconds_count{kind="echo",outcome="succeeded"}`: 0, `ff_worker_transport_errors_total`: 0,
		}
		workerShows(t, worker, want)
		stop()
		workerShows(t, worker, want)
		if sum := workerSamples(t, worker)[`ff_worker_handler_seconds_sum{kind="double",outcome="succeeded"}`]; sum <= 0 {
			t.Errorf("the handlers took %v s", sum)
		}
	})
}

func TestU211_a_worker_counts_the_leases_that_it_lost_by_cause(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		entered := make(chan struct{}, 10)
		worker, _ := w.work(t, flowfabric.WorkerConfig{Concurrency: 8, DrainTimeout: time.Millisecond}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(ctx context.Context, _ *flowfabric.Task, _ int) (int, error) {
				entered <- struct{}{}
				<-ctx.Done()
				return 0, ctx.Err()
			})
		})
		cancelled := must[*flowfabric.Run[int]](t)(double.Submit(inTime(t), w.Client, 1)).ID
		receive(t, entered)
		must[*flowfabric.Execution](t)(w.Cancel(inTime(t), cancelled(), "enough"))
		workerShows(t, worker, map[string]float64{
			`ff_worker_lease_lost_total{cause="cancelled"}`: 1, `ff_worker_lease_lost_total{cause="revoked"}`: 0, `ff_worker_lease_lost_total{cause="lapsed"}`: 0,
			`ff_worker_handler_seconds_count{kind="double",outcome="lost"}`: 1,
		})
		revoked := must[*flowfabric.Run[int]](t)(double.Submit(inTime(t), w.Client, 2)).ID
		receive(t, entered)
		must[api.Revocation](t)(w.Operate().Revoke(inTime(t), revoked()))
		workerShows(t, worker, map[string]float64{
			`ff_worker_lease_lost_total{cause="cancelled"}`: 1, `ff_worker_lease_lost_total{cause="revoked"}`: 1,
		})
	})
}

func TestU211_a_worker_counts_calls_that_reach_no_server(t *testing.T) {
	t.Parallel()
	w := openWorld(t, stores["sqlite"](t), engine.Hooks{})
	o := newOutage(t, w.Client)
	remote := &world{Client: connect(t, o.URL, flowfabric.ConnectConfig{Retry: flowfabric.RetryPolicy{MaxRetries: -1}})}
	worker, _ := remote.work(t, flowfabric.WorkerConfig{Concurrency: 1}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
	})
	must[int](t)(must[*flowfabric.Run[int]](t)(double.Submit(inTime(t), w.Client, 1)).Result(inTime(t)))
	if missed := workerSamples(t, worker)["ff_worker_transport_errors_total"]; missed != 0 {
		t.Errorf("%v calls were missed before the outage", missed)
	}
	o.fall(t, 8) // the calls that were under way, and what follows them
	if missed := workerSamples(t, worker)["ff_worker_transport_errors_total"]; missed < 1 {
		t.Errorf("%v calls were missed in the outage", missed)
	}
	o.down.Store(false)
}

func TestU199_a_worker_shows_the_metrics_of_the_table_and_no_others(t *testing.T) {
	t.Parallel()
	worker := flowfabric.NewWorker(nil, flowfabric.WorkerConfig{})
	if err := metrics.Compare(metrics.Worker, flowfabric.WorkerCollector(worker)); err != nil {
		t.Error(err)
	}
}

func TestU199_the_kinds_of_a_worker_are_bounded(t *testing.T) {
	t.Parallel()
	worker := flowfabric.NewWorker(nil, flowfabric.WorkerConfig{})
	for i := range metrics.MaxValues + 5 {
		flowfabric.Handle(worker, flowfabric.Kind[int, int](fmt.Sprintf("kind-%d", i)), func(context.Context, *flowfabric.Task, int) (int, error) { return 0, nil })
	}
	kinds, samples := 0, workerSamples(t, worker)
	for sample := range samples {
		if len(sample) > 16 && sample[:16] == "ff_worker_tasks{" {
			kinds++
		}
	}
	if _, other := samples[`ff_worker_tasks{kind="_other"}`]; kinds != metrics.MaxValues+1 || !other {
		t.Errorf("%d kinds are shown; others: %v", kinds, other)
	}
}
