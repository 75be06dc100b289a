package flowfabrictest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/flowfabrictest"
)

const trip flowfabric.Kind[string, []string] = "trip"

// outside is a service in the world, which knows orders by their keys.
type outside struct {
	mu     sync.Mutex
	orders map[string][]string // keys of the requests, by what was asked for
}

func newOutside() *outside { return &outside{orders: map[string][]string{}} }

// order answers every request with another number, so that the answer shows which request it belongs to.
func (o *outside) order(what, key string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.orders[what] = append(o.orders[what], key)
	return fmt.Sprintf("%s %d", what, len(o.orders[what]))
}

// keys lists the different keys under which something was asked for.
func (o *outside) keys(what string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(o.orders[what])))
}

func (o *outside) requests(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.orders[what])
}

// travel books a flight and a hotel, one step each.
func travel(o *outside) func(w *flowfabric.Worker) {
	return func(w *flowfabric.Worker) {
		flowfabric.Handle(w, trip, func(ctx context.Context, t *flowfabric.Task, _ string) ([]string, error) {
			var all []string
			for _, what := range []string{"flight", "hotel"} {
				booked, err := flowfabric.Step(ctx, t, what, func(context.Context) (string, error) {
					return o.order(what, t.EffectKey(what)), nil
				})
				if err != nil {
					return nil, err
				}
				all = append(all, booked)
			}
			return all, nil
		})
	}
}

func submitTrip(t *testing.T, env *flowfabrictest.Env) *flowfabric.Run[[]string] {
	t.Helper()
	return must[*flowfabric.Run[[]string]](t)(trip.Submit(t.Context(), env.Client, "Rome", flowfabric.SubmitOptions{IdempotencyKey: "rome"}))
}

func TestU153_work_of_a_killed_worker_is_taken_over_when_its_lease_is_over(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	start := env.Now()
	var calls diary
	handle := func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(ctx context.Context, task *flowfabric.Task, name string) (string, error) {
			calls.note(env.Now().Sub(start))
			if task.Attempt().Index == 0 {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			return "hello " + name, nil
		})
	}
	first := env.Worker(flowfabric.WorkerConfig{Instance: "first"}, handle)
	run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you"))
	env.Settle()
	env.Worker(flowfabric.WorkerConfig{Instance: "second"}, handle)
	first.Kill()
	first.Kill() // once is enough

	env.Advance(30*time.Second - time.Millisecond)
	if got := statusOf(t, env, run.ID()); got != flowfabric.StatusRunning {
		t.Errorf("before the lease is over it is %s", got)
	}
	env.Advance(time.Second)

	x := must[*flowfabric.Execution](t)(env.Get(t.Context(), run.ID()))
	if x.Status != flowfabric.StatusSucceeded || x.ReclaimCount != 1 || x.Attempt.InstanceID != "second" {
		t.Errorf("%s after %d reclaims by %s", x.Status, x.ReclaimCount, x.Attempt.InstanceID)
	}
	if got := calls.all(); !slices.Equal(got, []time.Duration{0, 30 * time.Second}) {
		t.Errorf("called at %v, want at the start and after 30 s", got)
	}
}

func TestU153_a_restart_keeps_everything_that_was_acknowledged(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	o := newOutside()
	later := must[*flowfabric.Run[[]string]](t)(trip.Submit(t.Context(), env.Client, "Oslo", flowfabric.SubmitOptions{Delay: time.Hour}))
	run := submitTrip(t, env)
	env.Restart()
	env.Worker(flowfabric.WorkerConfig{}, travel(o))
	env.Settle()
	env.Restart()

	if got := must[[]string](t)(run.Result(t.Context())); !slices.Equal(got, []string{"flight 1", "hotel 1"}) {
		t.Errorf("result %v", got)
	}
	if again := submitTrip(t, env); !again.Duplicate() || again.ID() != run.ID() {
		t.Errorf("the key is forgotten: %s after %s", again.ID(), run.ID())
	}
	env.Advance(time.Hour)
	if got := statusOf(t, env, later.ID()); got != flowfabric.StatusSucceeded {
		t.Errorf("what was due after the restart is %s: the worker did not come back", got)
	}
}

func TestU153_a_crash_before_the_commit_means_that_the_command_never_happened(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	o := newOutside()
	crash := env.CrashAt(flowfabrictest.BeforeCommit("complete"))
	env.Worker(flowfabric.WorkerConfig{}, travel(o))
	run := submitTrip(t, env)
	env.Settle()

	if got := statusOf(t, env, run.ID()); !crash.Hit() || got != flowfabric.StatusRunning {
		t.Errorf("hit: %v, and it is %s", crash.Hit(), got)
	}
	env.Advance(time.Minute)
	x := must[*flowfabric.Execution](t)(env.Get(t.Context(), run.ID()))
	if x.Status != flowfabric.StatusSucceeded || x.ReclaimCount != 1 {
		t.Errorf("%s after %d reclaims", x.Status, x.ReclaimCount)
	}
	if o.requests("flight") != 1 || o.requests("hotel") != 1 {
		t.Errorf("steps that were stored ran again: %d, %d", o.requests("flight"), o.requests("hotel"))
	}
}

func TestU153_a_crash_after_the_commit_means_that_it_happened_without_an_answer(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	o := newOutside()
	crash := env.CrashAt(flowfabrictest.AfterCommit("complete"))
	env.Worker(flowfabric.WorkerConfig{}, travel(o))
	run := submitTrip(t, env)
	env.Settle()

	x := must[*flowfabric.Execution](t)(env.Get(t.Context(), run.ID()))
	if !crash.Hit() || x.Status != flowfabric.StatusSucceeded || x.ReclaimCount != 0 {
		t.Errorf("hit: %v, and it is %s after %d reclaims", crash.Hit(), x.Status, x.ReclaimCount)
	}
}

func TestU153_a_submit_survives_a_crash_on_either_side_of_its_commit(t *testing.T) {
	t.Parallel()
	for _, point := range []flowfabrictest.CrashPoint{flowfabrictest.BeforeCommit("submit"), flowfabrictest.AfterCommit("submit")} {
		t.Run(point.String(), func(t *testing.T) {
			t.Parallel()
			env := flowfabrictest.New(t)
			crash := env.CrashAt(point)
			run := submitTrip(t, env)
			if !crash.Hit() || run.Duplicate() {
				t.Errorf("hit: %v, duplicate: %v", crash.Hit(), run.Duplicate())
			}
			if got := must[api.Count](t)(env.Executions().Count(t.Context(), ops.Filter{})); got.Total != 1 {
				t.Errorf("%d executions", got.Total)
			}
		})
	}
}

func TestU153_a_step_whose_result_was_not_stored_runs_again_under_the_same_key(t *testing.T) {
	t.Parallel()
	for point, requests := range map[flowfabrictest.CrashPoint]int{flowfabrictest.BeforeStep("hotel"): 2, flowfabrictest.AfterStep("hotel"): 1} {
		t.Run(point.String(), func(t *testing.T) {
			t.Parallel()
			env := flowfabrictest.New(t)
			o := newOutside()
			crash := env.CrashAt(point)
			env.Worker(flowfabric.WorkerConfig{}, travel(o))
			run := submitTrip(t, env)
			env.Advance(time.Minute)
			if got := statusOf(t, env, run.ID()); !crash.Hit() || got != flowfabric.StatusSucceeded {
				t.Errorf("hit: %v, and it is %s", crash.Hit(), got)
			}
			if o.requests("flight") != 1 || o.requests("hotel") != requests || len(o.keys("hotel")) != 1 {
				t.Errorf("%d flights, %d hotels under the keys %v", o.requests("flight"), o.requests("hotel"), o.keys("hotel"))
			}
			stored := []string{"flight 1", fmt.Sprintf("hotel %d", requests)} // the answer that was stored, not the one that was lost
			if got := must[[]string](t)(run.Result(t.Context())); !slices.Equal(got, stored) {
				t.Errorf("result %v, want %v", got, stored)
			}
		})
	}
}

func TestU153_an_operators_command_survives_the_death_of_the_process(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	run := submitTrip(t, env)
	crash := env.CrashAt(flowfabrictest.AfterCommit("hold"))
	x := must[*flowfabric.Execution](t)(env.Operate().Hold(t.Context(), run.ID(), ops.Action{Reason: "wait"}))
	if !crash.Hit() || x.Held == nil {
		t.Errorf("hit: %v, held: %v", crash.Hit(), x.Held)
	}
}

func TestU153_a_call_that_waits_goes_on_waiting_in_the_next_process(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	env.Worker(flowfabric.WorkerConfig{}, travel(newOutside()))
	crash := env.CrashAt(flowfabrictest.AfterCommit("complete"))
	got := must[[]string](t)(submitTrip(t, env).Result(t.Context())) // no time has to pass
	if !slices.Equal(got, []string{"flight 1", "hotel 1"}) || !crash.Hit() {
		t.Errorf("result %v, hit: %v", got, crash.Hit())
	}
}

func TestU153_a_handler_of_a_dead_process_does_nothing_more(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	var after diary
	goOn := make(chan struct{})
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(ctx context.Context, task *flowfabric.Task, name string) (string, error) {
			if task.Attempt().Index > 0 {
				return "hello " + name, nil
			}
			<-goOn
			_, err := env.Submit(ctx, flowfabric.Submission{Kind: "stray"})
			after.note(0)
			return "", err
		})
	})
	run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you"))
	env.Settle()
	env.Restart()
	close(goOn)
	env.Advance(time.Minute)

	stray := must[api.Count](t)(env.Executions().Count(t.Context(), ops.Filter{Kind: []string{"stray"}}))
	if stray.Total != 0 || len(after.all()) != 0 {
		t.Errorf("%d submits and %d lines of code after death", stray.Total, len(after.all()))
	}
	if got := statusOf(t, env, run.ID()); got != flowfabric.StatusSucceeded {
		t.Errorf("it is %s", got)
	}
}

func TestU153_no_code_runs_after_the_step_at_which_the_process_dies(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	var returns diary
	crash := env.CrashAt(flowfabrictest.AfterStep("once"))
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(ctx context.Context, task *flowfabric.Task, name string) (string, error) {
			text, err := flowfabric.Step(ctx, task, "once", func(context.Context) (string, error) { return "hello " + name, nil })
			returns.note(0)
			return text, err
		})
	})
	run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you"))
	env.Advance(time.Minute)
	if got := must[string](t)(run.Result(t.Context())); got != "hello you" || !crash.Hit() || len(returns.all()) != 1 {
		t.Errorf("%q, hit: %v, the step returned %d times", got, crash.Hit(), len(returns.all()))
	}
}

func TestU153_explore_finds_each_effect_under_one_key_wherever_the_process_dies(t *testing.T) {
	t.Parallel()
	runs, taken, repeated := 0, 0, 0
	flowfabrictest.Explore(t, func(t *testing.T, env *flowfabrictest.Env) {
		runs++
		o := newOutside()
		env.Worker(flowfabric.WorkerConfig{}, travel(o))
		run := submitTrip(t, env)
		env.Advance(2 * time.Minute)

		x := must[*flowfabric.Execution](t)(env.Get(t.Context(), run.ID()))
		if x.Status != flowfabric.StatusSucceeded {
			t.Fatalf("it is %s", x.Status)
		}
		taken += x.ReclaimCount
		repeated += o.requests("flight") + o.requests("hotel") - 2
		result := must[[]string](t)(run.Result(t.Context()))
		steps := must[[]api.StepRecord](t)(env.Executions().Steps(t.Context(), run.ID()))
		for i, what := range []string{"flight", "hotel"} {
			if len(o.keys(what)) != 1 {
				t.Errorf("%s was asked for under the keys %v", what, o.keys(what))
			}
			var stored string
			if err := steps[i].Result.Decode(&stored); err != nil || steps[i].Name != what || stored != result[i] {
				t.Errorf("step %s holds %q (%v), the result %q", steps[i].Name, stored, err, result[i])
			}
		}
	})
	if runs < 15 { // none, submit, register, claim, step, complete and the two steps by name, each from both sides
		t.Errorf("%d runs: crash points are missing", runs)
	}
	if taken < 5 || repeated < 3 {
		t.Errorf("%d takeovers, %d effects repeated: the process did not die where it was to", taken, repeated)
	}
}
