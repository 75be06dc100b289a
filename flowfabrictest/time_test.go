package flowfabrictest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/flowfabrictest"
)

const greet flowfabric.Kind[string, string] = "greet"

// diary notes what happened when.
type diary struct {
	mu    sync.Mutex
	times []time.Duration
}

func (d *diary) note(at time.Duration) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times = append(d.times, at)
	return len(d.times)
}

func (d *diary) all() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.times)
}

// must takes the value of a call that may not fail.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func statusOf(t testing.TB, env *flowfabrictest.Env, id flowfabric.ID) flowfabric.Status {
	t.Helper()
	return must[*flowfabric.Execution](t)(env.Get(t.Context(), id)).Status
}

func TestU153_a_handler_is_retried_over_hours_exactly_when_its_policy_says(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	start := env.Now()
	var calls diary
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(_ context.Context, _ *flowfabric.Task, name string) (string, error) {
			if calls.note(env.Now().Sub(start)) < 5 {
				return "", errors.New("not yet")
			}
			return "hello " + name, nil
		})
	})
	policy := &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{
		MaxRetries: 10, Backoff: flowfabric.Backoff{Initial: time.Hour, Max: 4 * time.Hour, Multiplier: 2},
	}}
	run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you", flowfabric.SubmitOptions{Policy: policy}))

	env.Advance(11*time.Hour - time.Second)
	if got := len(calls.all()); got != 4 {
		t.Fatalf("%d calls before the last wait is over, want 4", got)
	}
	env.Advance(time.Second)

	if got := must[string](t)(run.Result(t.Context())); got != "hello you" {
		t.Errorf("result %q", got)
	}
	want := []time.Duration{0, time.Hour, 3 * time.Hour, 7 * time.Hour, 11 * time.Hour}
	if got := calls.all(); !slices.Equal(got, want) {
		t.Errorf("called at %v, want %v", got, want)
	}
}

func TestU153_three_days_pass_without_waiting_for_them(t *testing.T) {
	t.Parallel()
	start := time.Date(2031, time.March, 4, 12, 0, 0, 0, time.UTC)
	env := flowfabrictest.New(t, flowfabrictest.Config{Start: start, Namespace: "letters", Seed: 7})
	var calls diary
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(_ context.Context, _ *flowfabric.Task, name string) (string, error) {
			calls.note(env.Now().Sub(start))
			return "hello " + name, nil
		})
	})
	run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you", flowfabric.SubmitOptions{Delay: 72 * time.Hour}))

	env.Advance(72*time.Hour - time.Millisecond)
	if got := statusOf(t, env, run.ID()); got != flowfabric.StatusDelayed {
		t.Errorf("a millisecond before its time it is %s", got)
	}
	env.Advance(time.Millisecond)

	if got := calls.all(); !slices.Equal(got, []time.Duration{72 * time.Hour}) {
		t.Errorf("called at %v, want once after 72 h", got)
	}
	x := must[*flowfabric.Execution](t)(run.Wait(t.Context()))
	if x.Namespace != "letters" || x.Status != flowfabric.StatusSucceeded {
		t.Errorf("%s in namespace %s", x.Status, x.Namespace)
	}
	if got := env.Now().Sub(start); got != 72*time.Hour {
		t.Errorf("the clock has gone %s", got)
	}
}

func TestU153_a_running_handler_keeps_its_lease_while_time_passes(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	finish := make(chan struct{})
	var calls diary
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(ctx context.Context, _ *flowfabric.Task, name string) (string, error) {
			calls.note(0)
			select {
			case <-finish:
				return "hello " + name, nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		})
	})
	run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you"))
	env.Advance(70 * time.Second)
	if got := statusOf(t, env, run.ID()); got != flowfabric.StatusRunning {
		t.Errorf("after two leases' time it is %s", got)
	}
	close(finish)
	env.Settle()
	if got := statusOf(t, env, run.ID()); got != flowfabric.StatusSucceeded || len(calls.all()) != 1 {
		t.Errorf("%s after %d calls", got, len(calls.all()))
	}
}

func TestU153_a_deadline_without_a_worker_and_the_lease_of_a_silent_one_end_in_time(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	start := env.Now()
	late := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you", flowfabric.SubmitOptions{Lane: "empty", Deadline: start.Add(48 * time.Hour)}))
	left := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "me"))
	claim := api.ClaimRequest{WorkerID: "me", InstanceID: "me", Lanes: []string{"default"}, LeaseTTL: 12 * time.Hour}
	if answer := must[api.ClaimAnswer](t)(env.Work().Claim(t.Context(), claim)); len(answer.Tasks) != 1 {
		t.Fatalf("%d tasks", len(answer.Tasks))
	}

	env.Advance(50 * time.Hour)

	x := must[*flowfabric.Execution](t)(late.Wait(t.Context()))
	if x.Status != flowfabric.StatusExpired || x.CompletedAt.Sub(start) != 48*time.Hour {
		t.Errorf("%s after %s", x.Status, x.CompletedAt.Sub(start))
	}
	x = must[*flowfabric.Execution](t)(env.Get(t.Context(), left.ID()))
	if x.Status != flowfabric.StatusReady || x.StatusSince.Sub(start) != 12*time.Hour {
		t.Errorf("%s since %s", x.Status, x.StatusSince.Sub(start))
	}
}

func TestU153_lists_and_bulk_jobs_see_what_was_done_before_them(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	for range 3 {
		must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you"))
	}
	if got := must[flowfabric.Page[*flowfabric.Execution]](t)(env.Executions().Page(t.Context())); len(got.Items) != 3 {
		t.Errorf("%d executions in the list", len(got.Items))
	}
	must[*api.Lane](t)(env.Lanes().Pause(t.Context(), "default"))
	job := must[*api.BulkJob](t)(env.Operate().Bulk(t.Context(), ops.BulkRequest{Action: api.BulkCancel, All: true}))
	env.Advance(time.Second)
	if got := must[*api.BulkJob](t)(env.Operate().BulkStatus(t.Context(), job.ID)); got.State != "done" || got.Done != 3 {
		t.Errorf("%s, %d done", got.State, got.Done)
	}
}
