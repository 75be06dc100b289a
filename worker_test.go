package flowfabric_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
)

const double flowfabric.Kind[int, int] = "double"

// once is a policy with one quick retry.
func once() *flowfabric.Policy {
	return &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 1, Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: time.Millisecond}}}
}

func TestU138_a_task_tells_what_it_is(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		type told struct {
			id      flowfabric.ID
			kind    string
			attempt api.Attempt
			lease   api.Lease
			input   flowfabric.Payload
			tags    map[string]string
		}
		tasks := make(chan told, 1)
		w.work(t, flowfabric.WorkerConfig{ID: "w", Instance: "w-1", LeaseTTL: time.Minute}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(_ context.Context, task *flowfabric.Task, in int) (int, error) {
				tasks <- told{task.ID(), task.Kind(), task.Attempt(), task.Lease(), task.Input(), task.Tags()}
				return in, nil
			})
		})
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 7, flowfabric.SubmitOptions{Tags: map[string]string{"a": "b"}}))
		got := receive(t, tasks)
		if got.id != run.ID() || got.kind != "double" || string(got.input.Data) != "7" || got.tags["a"] != "b" {
			t.Errorf("the task is %+v", got)
		}
		if a := got.attempt; a.Index != 0 || a.Type != "initial" || a.WorkerID != "w" || a.InstanceID != "w-1" {
			t.Errorf("the attempt is %+v", a)
		}
		if l := got.lease; l.Epoch != 1 || l.TTL != time.Minute || l.AttemptID != got.attempt.ID || l.ExecutionID != run.ID() ||
			l.Fence() != fmt.Sprintf("%s.1.%s", l.ID, got.attempt.ID) {
			t.Errorf("the lease is %+v", l)
		}
	})
}

func TestU138_middleware_wraps_every_handler_the_first_outermost(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	ctx := inTime(t)
	var mu sync.Mutex
	var order []string
	note := func(name string) flowfabric.Middleware {
		return func(next flowfabric.HandlerFunc) flowfabric.HandlerFunc {
			return func(ctx context.Context, task *flowfabric.Task) (flowfabric.Payload, error) {
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				return next(ctx, task)
			}
		}
	}
	w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
		worker.Use(note("a"), note("b"))
		flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return in, nil })
		worker.Use(note("c"))
	})
	must[int](t)(must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1)).Result(ctx))
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(order, []string{"a", "b", "c"}) {
		t.Errorf("middleware ran in order %q", order)
	}
}

func TestU138_the_effect_key_is_the_same_in_every_attempt_of_a_run(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		keys := make(chan [2]string, 4)
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(_ context.Context, task *flowfabric.Task, in int) (int, error) {
				keys <- [2]string{task.EffectKey("bank"), task.EffectKey("mail")}
				if task.Attempt().Type == "initial" {
					return 0, errors.New("again")
				}
				return in, nil
			})
		})
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1, flowfabric.SubmitOptions{Policy: once()}))
		must[int](t)(run.Result(ctx))
		first, retried := receive(t, keys), receive(t, keys)
		if first != retried || len(first[0]) != 64 || first[0] == first[1] {
			t.Errorf("keys %q of the first attempt, %q of the retry", first, retried)
		}
		must[*flowfabric.Execution](t)(w.Operate().Replay(ctx, run.ID()))
		if replayed := receive(t, keys); replayed == first {
			t.Error("a replay has the keys of the run before")
		}
		must[int](t)(run.Result(ctx))
	})
}

func TestU138_progress_is_seen_and_renew_moves_the_expiry(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(ctx context.Context, task *flowfabric.Task, in int) (int, error) {
				if err := errors.Join(task.Progress(ctx, 50, "half"), task.Progress(ctx, 60, ""), task.Renew(ctx)); err != nil {
					return 0, err
				}
				if err := task.Progress(ctx, 101, ""); flowfabric.CodeOf(err) != "invalid_argument" {
					return 0, fmt.Errorf("101 percent: %w", err)
				}
				return in, nil
			})
		})
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1))
		must[int](t)(run.Result(ctx))
		x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID()))
		if p := x.Progress; p == nil || *p.Percent != 60 || *p.Message != "half" {
			t.Errorf("progress is %+v", p)
		}
	})
}

func TestU139_delay_and_hand_back_park_the_work_in_the_same_attempt(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		var calls atomic.Int64
		epochs := make(chan int64, 3)
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(ctx context.Context, task *flowfabric.Task, in int) (int, error) {
				epochs <- task.Lease().Epoch
				switch calls.Add(1) {
				case 1:
					err := task.Delay(ctx, time.Now().Add(20*time.Millisecond))
					if !errors.Is(task.Progress(ctx, 1, ""), flowfabric.ErrParked) {
						err = errors.New("a parked task still sends")
					}
					return 0, fmt.Errorf("later: %w", err)
				case 2:
					return 0, task.HandBack(ctx)
				default:
					return 2 * in, nil
				}
			})
		})
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 21))
		if got := must[int](t)(run.Result(ctx)); got != 42 {
			t.Errorf("Result = %d", got)
		}
		x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID()))
		if x.TotalAttempts != 1 || x.Attempt.LastEpoch != 3 || x.RetryCount != 0 || x.ReclaimCount != 0 {
			t.Errorf("%d attempts, last epoch %d", x.TotalAttempts, x.Attempt.LastEpoch)
		}
		var ends []string
		for record, err := range w.Executions().Leases(ctx, run.ID()) {
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, record.End)
		}
		if !slices.Equal(ends, []string{"delay", "release", "complete"}) {
			t.Errorf("leases ended by %q", ends)
		}
	})
}

func TestU140_a_step_runs_once_and_a_repeated_name_is_numbered(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		var first, second, failing atomic.Int64
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(ctx context.Context, task *flowfabric.Task, in int) (int, error) {
				a, errA := flowfabric.Step(ctx, task, "add", func(context.Context) (int64, error) { return first.Add(1), nil })
				b, errB := flowfabric.Step(ctx, task, "add", func(context.Context) (int64, error) { return 10 * second.Add(1), nil })
				_, errC := flowfabric.Step(ctx, task, "flaky", func(context.Context) (flowfabric.None, error) {
					if failing.Add(1) == 1 {
						return flowfabric.None{}, errors.New("not yet")
					}
					return flowfabric.None{}, nil
				})
				return int(a + b), errors.Join(errA, errB, errC)
			})
		})
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1, flowfabric.SubmitOptions{Policy: once()}))
		if got := must[int](t)(run.Result(ctx)); got != 11 || first.Load() != 1 || second.Load() != 1 || failing.Load() != 2 {
			t.Errorf("Result = %d after %d, %d and %d calls", got, first.Load(), second.Load(), failing.Load())
		}
		var names []string
		for _, step := range must[[]api.StepRecord](t)(w.Executions().Steps(ctx, run.ID())) {
			names = append(names, step.Name)
		}
		if !slices.Equal(names, []string{"add", "add#2", "flaky"}) {
			t.Errorf("steps %q", names)
		}
		must[*flowfabric.Execution](t)(w.Operate().Replay(ctx, run.ID(), ops.ReplayOptions{KeepSteps: true}))
		must[int](t)(run.Result(ctx))
		must[*flowfabric.Execution](t)(w.Operate().Replay(ctx, run.ID()))
		must[int](t)(run.Result(ctx))
		if first.Load() != 2 {
			t.Errorf("the step ran %d times, want once more in the replay without keep_steps", first.Load())
		}
	})
}

func TestU144_how_a_handler_ends(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		cases := []struct {
			name, class, category, reason string
			do                            func() (flowfabric.Payload, error)
		}{
			{"error", "transient", "handler_error", "retries_exhausted", func() (flowfabric.Payload, error) { return flowfabric.Payload{}, errors.New("x") }},
			{"permanent", "permanent", "handler_error", "permanent", func() (flowfabric.Payload, error) {
				return flowfabric.Payload{}, fmt.Errorf("wrapped: %w", flowfabric.Permanent(errors.New("x")))
			}},
			{"category", "permanent", "bad.luck", "permanent", func() (flowfabric.Payload, error) {
				return flowfabric.Payload{}, flowfabric.Category("bad.luck", flowfabric.Permanent(errors.New("x")))
			}},
			{"odd category", "transient", "bad_luck_", "retries_exhausted", func() (flowfabric.Payload, error) {
				return flowfabric.Payload{}, flowfabric.Category("Bad Luck!", errors.New("x"))
			}},
			{"panic", "transient", "panic", "retries_exhausted", func() (flowfabric.Payload, error) { panic("x") }},
			{"goexit", "transient", "handler_error", "retries_exhausted", func() (flowfabric.Payload, error) {
				runtime.Goexit()
				return flowfabric.Payload{}, nil
			}},
			{"too large", "permanent", "payload_too_large", "permanent", func() (flowfabric.Payload, error) {
				return flowfabric.Bytes(make([]byte, 5<<20), ""), nil
			}},
			{"encode", "permanent", "encode", "permanent", func() (flowfabric.Payload, error) { return flowfabric.JSON(func() {}), nil }},
		}
		w.work(t, flowfabric.WorkerConfig{Concurrency: 1}, func(worker *flowfabric.Worker) {
			for _, c := range cases {
				kind := flowfabric.Kind[int, flowfabric.Payload](strings.ReplaceAll(c.name, " ", "_"))
				flowfabric.Handle(worker, kind, func(context.Context, *flowfabric.Task, int) (flowfabric.Payload, error) { return c.do() })
			}
			flowfabric.Handle(worker, flowfabric.Kind[int, int]("decode"), func(context.Context, *flowfabric.Task, int) (int, error) {
				t.Error("a handler was called with an input that does not decode")
				return 0, nil
			})
		})
		ctx := inTime(t)
		check := func(name, class, category, reason string, id flowfabric.ID) {
			x := must[*flowfabric.Execution](t)(w.Wait(ctx, id))
			if x.Status != flowfabric.StatusFailed || x.Failure.Class != class || x.Failure.Category != category || x.Reason != reason {
				t.Errorf("%s: %s %s %+v, want %s/%s %s", name, x.Status, x.Reason, x.Failure, class, category, reason)
			}
		}
		for _, c := range cases {
			run := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{
				Kind: strings.ReplaceAll(c.name, " ", "_"), Input: flowfabric.JSON(1), SubmitOptions: flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Retry: flowfabric.NoRetry()}},
			}))
			check(c.name, c.class, c.category, c.reason, run.ID)
		}
		odd := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "decode", Input: flowfabric.Text("x")}))
		check("decode", "permanent", "decode", "permanent", odd.ID)
	})
}

func TestU144_retry_after_replaces_the_backoff(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	ctx := inTime(t)
	w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, double, func(context.Context, *flowfabric.Task, int) (int, error) {
			return 0, flowfabric.RetryAfter(time.Hour, errors.New("busy"))
		})
	})
	run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1, flowfabric.SubmitOptions{Policy: once()}))
	x := awaitStatus(t, w, run.ID(), flowfabric.StatusDelayed)
	if wait := x.DelayUntil.Sub(x.LastMutationAt); wait != time.Hour || x.RetryCount != 1 {
		t.Errorf("the retry waits %s, want an hour", wait)
	}
}

func TestU144_a_handler_past_its_own_timeout_fails_with_class_timeout(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	ctx := inTime(t)
	handler := newBlocked()
	w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, double, handler.handle, flowfabric.HandlerConfig{Timeout: 20 * time.Millisecond})
	})
	run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1, flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Retry: flowfabric.NoRetry()}}))
	x := must[*flowfabric.Execution](t)(run.Wait(ctx))
	if cause := receive(t, handler.causes); !errors.Is(cause, context.DeadlineExceeded) || x.Failure == nil || x.Failure.Class != "timeout" {
		t.Errorf("the context ended with %v, the failure is %+v", cause, x.Failure)
	}
}

func TestU145_a_kind_that_is_full_is_left_out_and_others_go_on(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		slow := flowfabric.Kind[int, int]("slow")
		var running, most atomic.Int64
		gate := make(chan struct{})
		entered := make(chan struct{}, 10)
		w.work(t, flowfabric.WorkerConfig{Concurrency: 8}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, slow, func(context.Context, *flowfabric.Task, int) (int, error) {
				now := running.Add(1)
				defer running.Add(-1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				entered <- struct{}{}
				<-gate
				return 0, nil
			}, flowfabric.HandlerConfig{Concurrency: 2})
			flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
		})
		var slows []*flowfabric.Run[int]
		for range 6 {
			slows = append(slows, must[*flowfabric.Run[int]](t)(slow.Submit(ctx, w.Client, 1)))
		}
		receive(t, entered)
		receive(t, entered)
		for i := range 10 {
			if got := must[int](t)(must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, i)).Result(ctx)); got != 2*i {
				t.Errorf("double %d = %d", i, got)
			}
		}
		close(gate)
		for _, run := range slows {
			must[int](t)(run.Result(ctx))
		}
		if most.Load() != 2 {
			t.Errorf("%d of the bounded kind ran at once, want 2", most.Load())
		}
	})
}

func TestU145_a_kind_that_is_full_no_more_is_claimed_at_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		slow := flowfabric.Kind[int, int]("slow")
		gate := make(chan struct{})
		began := make(chan int, 10)
		w.work(t, flowfabric.WorkerConfig{Concurrency: 8, LeaseTTL: time.Hour}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, slow, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) {
				began <- in
				<-gate
				return in, nil
			}, flowfabric.HandlerConfig{Concurrency: 1})
			flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
		})
		for i := range 3 { // the claim that waits while one runs asks for a third of an hour
			must[*flowfabric.Run[int]](t)(slow.Submit(ctx, w.Client, i))
		}
		for i := range 3 {
			receive(t, began)
			if got := must[int](t)(must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, i)).Result(ctx)); got != 2*i {
				t.Errorf("double %d = %d", i, got)
			}
			gate <- struct{}{}
		}
	})
}

func TestU145_the_worker_is_in_the_fleet_and_obeys_drain(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.work(t, flowfabric.WorkerConfig{ID: "w", Instance: "w-1", Version: "1.2", Concurrency: 3, LeaseTTL: 5 * time.Second}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
		})
		must[int](t)(must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1)).Result(ctx))
		info := must[*api.Worker](t)(w.Workers().Get(ctx, "w-1"))
		if info.WorkerID != "w" || info.Version != "1.2" || info.MaxConcurrent != 3 || info.State != "live" || !slices.Equal(info.Kinds, []string{"double"}) {
			t.Errorf("the fleet shows %+v", info)
		}
		if err := w.Workers().Drain(ctx, ops.WorkerTarget{InstanceID: "w-1"}); err != nil {
			t.Fatal(err)
		}
		if info := must[*api.Worker](t)(w.Workers().Get(ctx, "w-1")); info.State != "draining" {
			t.Errorf("the worker is %s, want draining", info.State)
		}
		_, stop := w.work(t, flowfabric.WorkerConfig{ID: "w", Instance: "w-2"}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
		})
		for i := range 20 { // the one that drains has free slots, and takes none of them
			run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, i))
			must[int](t)(run.Result(ctx))
			if x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID())); x.Attempt.InstanceID != "w-2" {
				t.Errorf("%s did the work", x.Attempt.InstanceID)
			}
		}
		stop()
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 2))
		if err := w.Workers().Undrain(ctx, ops.WorkerTarget{InstanceID: "w-1"}); err != nil {
			t.Fatal(err)
		}
		must[int](t)(run.Result(ctx))
	})
}

// awaitClaims waits until so many claims wait for work.
func awaitClaims(t *testing.T, w *world, n float64) {
	t.Helper()
	ctx := inTime(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for scrape(t, w.Client)["ff_claim_waiters"] != n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never are %v claims waiting", n)
		}
	}
}

func TestU145_drain_lets_handlers_end_and_an_ended_context_hands_back_at_once(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	ctx := inTime(t)
	gate := make(chan struct{})
	started := make(chan struct{}, 1)
	worker, _ := w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) {
			started <- struct{}{}
			<-gate
			return 2 * in, nil
		})
	})
	run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 21))
	receive(t, started)
	awaitClaims(t, w, 2) // beside the engine a worker has two in flight
	drained := make(chan error, 1)
	go func() { drained <- worker.Drain(ctx) }()
	awaitClaims(t, w, 0) // it asks for nothing more
	later := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 4))
	select {
	case err := <-drained:
		t.Fatalf("Drain = %v while a handler runs", err)
	default:
	}
	close(gate)
	if err := receive(t, drained); err != nil {
		t.Errorf("Drain = %v", err)
	}
	if got := must[int](t)(run.Result(ctx)); got != 42 {
		t.Errorf("Result = %d", got)
	}
	if x := must[*flowfabric.Execution](t)(w.Cancel(ctx, later.ID(), "")); x.TotalAttempts != 0 {
		t.Errorf("a worker that drains took work")
	}

	stubborn := make(chan struct{})
	defer close(stubborn)
	worker, _ = w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, double, func(context.Context, *flowfabric.Task, int) (int, error) {
			started <- struct{}{}
			<-stubborn
			return 0, nil
		})
	})
	run = must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1))
	receive(t, started)
	ended, end := context.WithCancel(ctx)
	end()
	if err := worker.Drain(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain with an ended context = %v", err)
	}
	if x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID())); x.PublicState != "resumable" {
		t.Errorf("what a stubborn handler had is %s, want resumable", x.PublicState)
	}
}

func TestU145_run_returns_an_error_only_for_wrong_configuration(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	ctx := inTime(t)
	noop := func(context.Context, *flowfabric.Task, int) (int, error) { return 0, nil }
	bad := flowfabric.NewWorker(w.Client, flowfabric.WorkerConfig{Concurrency: -1, LeaseTTL: time.Millisecond, DrainTimeout: -1, Lanes: make([]string, 65)})
	flowfabric.Handle(bad, double, noop)
	flowfabric.Handle(bad, double, noop)
	flowfabric.Handle(bad, flowfabric.Kind[int, int]("x"), noop, flowfabric.HandlerConfig{Timeout: -1})
	err := bad.Run(ctx)
	for _, problem := range []string{"Concurrency", "LeaseTTL", "DrainTimeout", "Lanes", "two handlers", "negative"} {
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("Run = %v, want a word about %s", err, problem)
		}
	}
	if err := flowfabric.NewWorker(w.Client, flowfabric.WorkerConfig{}).Run(ctx); !errors.Is(err, flowfabric.ErrInvalid) {
		t.Errorf("Run without handlers = %v", err)
	}
	odd := flowfabric.NewWorker(w.Client, flowfabric.WorkerConfig{Lanes: []string{"no lane"}})
	flowfabric.Handle(odd, double, noop)
	if err := odd.Run(ctx); !errors.Is(err, flowfabric.ErrInvalid) {
		t.Errorf("Run on a lane that cannot be = %v", err)
	}
	if err := odd.Run(ctx); !errors.Is(err, flowfabric.ErrInvalid) {
		t.Errorf("a second Run = %v", err)
	}
}

func TestU145_many_tasks_each_run_exactly_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		const n = 500
		var calls [n]atomic.Int64
		w.work(t, flowfabric.WorkerConfig{Concurrency: 64}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) {
				calls[in].Add(1)
				return 2 * in, nil
			})
		})
		all := make([]flowfabric.Submission, n)
		for i := range all {
			all[i] = double.Submission(i)
		}
		for i, r := range must[[]flowfabric.SubmitResult](t)(w.SubmitMany(ctx, all)) {
			if got := must[int](t)(flowfabric.Attach[int](w.Client, r.ID).Result(ctx)); got != 2*i || calls[i].Load() != 1 {
				t.Errorf("task %d: result %d after %d calls", i, got, calls[i].Load())
			}
		}
	})
}

func TestU131_a_worker_that_signs_off_is_no_operator(t *testing.T) {
	t.Parallel()
	ctx := inTime(t)
	client := must[*flowfabric.Client](t)(embedded.Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "w.db")))
	defer func() { must[any](t)(nil, client.Close(ctx)) }()
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Instance: "w1"})
	flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- worker.Run(working) }()
	must[int](t)(must[*flowfabric.Run[int]](t)(double.Submit(ctx, client, 1)).Result(ctx))
	stop()
	must[any](t)(nil, receive(t, done))
	if info := must[*api.Worker](t)(client.Workers().Get(ctx, "w1")); info.State != "dead" {
		t.Errorf("the worker is %s, want dead", info.State)
	}
	for row, err := range client.Admin().Audit(ctx) {
		t.Errorf("the audit log has %s of %s: %v", row.Action, row.EntityID, err)
	}
}

func TestL1_the_effect_key_is_made_of_the_full_form_of_the_id(t *testing.T) {
	t.Parallel()
	const uuid, want = "0190f0c2-1111-7aaa-8bbb-0123456789ab", "30121f211e7dd8aeae6e95a323fe4cafdf41209d8b0222be0779024517b4f8d6"
	for _, task := range []api.Claimed{{ID: uuid, Partition: 7}, {ID: "{fp:7}:" + uuid}} {
		if got := flowfabric.EffectKey(&task, "bank"); got != want {
			t.Errorf("of %s: %s, want %s", task.ID, got, want)
		}
	}
}
