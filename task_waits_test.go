package flowfabric_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

const wait flowfabric.Kind[flowfabric.None, []string] = "wait"

// waits runs a worker whose handler of the kind wait this is, and submits one piece of that work.
func (w *world) waits(t *testing.T, do func(ctx context.Context, task *flowfabric.Task) ([]string, error)) *flowfabric.Run[[]string] {
	t.Helper()
	w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, wait, func(ctx context.Context, task *flowfabric.Task, _ flowfabric.None) ([]string, error) {
			return do(ctx, task)
		})
	})
	return must[*flowfabric.Run[[]string]](t)(wait.Submit(inTime(t), w.Client, flowfabric.None{}))
}

// awaits returns when the work is suspended at a waitpoint of that key, which it shows with its token.
func (w *world) awaits(t *testing.T, id flowfabric.ID, key string) *flowfabric.Waitpoint {
	t.Helper()
	ctx := inTime(t)
	seen := 0
	for event, err := range w.Events().Follow(ctx, ops.ReadOptions{EventFilter: ops.EventFilter{ExecutionID: id}, After: api.FromStart}) {
		if err != nil {
			t.Fatalf("waiting for %s: %v", key, err)
		}
		if event.Kind != "execution.suspended" {
			continue
		}
		seen++
		for found, err := range w.Waitpoints().List(ctx, ops.WaitpointQuery{ExecutionID: id, Key: key}) {
			if err != nil {
				t.Fatal(err)
			}
			if found.State == flowfabric.WaitpointActive {
				return must[*flowfabric.Waitpoint](t)(w.Waitpoints().Token(ctx, id, found.ID))
			}
		}
	}
	t.Fatalf("it was suspended %d times, and never at %s", seen, key)
	return nil
}

// signals sends a signal with a payload to a waitpoint.
func (w *world) signals(t *testing.T, at *flowfabric.Waitpoint, name string, p flowfabric.Payload) api.SignalReceipt {
	t.Helper()
	return must[api.SignalReceipt](t)(w.Signal(inTime(t), flowfabric.Signal{WaitpointID: at.ID, Token: at.Token, Name: name, Payload: p}))
}

func TestU139_W56_a_handler_runs_again_over_three_waits_and_passes_each_that_it_has_passed(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		calls, attempts := make(chan int, 10), make(chan int, 10)
		var n atomic.Int64
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			calls <- int(n.Add(1))
			attempts <- task.Attempt().Index
			var got []string
			for _, key := range []string{"one", "two", "one"} { // a key that is used again is another wait
				text, err := flowfabric.AwaitSignal[string](ctx, task, key)
				if err != nil {
					if !errors.Is(err, flowfabric.ErrParked) {
						t.Errorf("%s: %v", key, err)
					}
					return nil, err
				}
				got = append(got, text)
			}
			return got, nil
		})
		for i, key := range []string{"one", "two", "one"} {
			at := w.awaits(t, run.ID(), key)
			if x := must[*flowfabric.Execution](t)(w.Get(inTime(t), run.ID())); x.Status != flowfabric.StatusSuspended || x.Lease != nil {
				t.Errorf("while people think it is %s", x.Status)
			}
			w.signals(t, at, "go", flowfabric.Text([]string{"a", "b", "c"}[i]))
		}
		if got := must[[]string](t)(run.Result(inTime(t))); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("%q", got)
		}
		if len(calls) != 4 {
			t.Errorf("%d calls of the handler, want one more than there are waits", len(calls))
		}
		for range len(attempts) {
			if index := <-attempts; index != 0 {
				t.Errorf("attempt %d: a wait uses none up", index)
			}
		}
		history := must[[]api.SuspensionRecord](t)(all(w.Executions().Suspensions(inTime(t), run.ID())))
		if len(history) != 3 || history[0].Cause != "signal" || history[2].Cause != "signal" {
			t.Errorf("history %+v", history)
		}
	})
}

func TestU139_a_retry_passes_the_waits_of_the_attempt_before_and_a_replay_starts_anew(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		var failed atomic.Bool
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, wait, func(ctx context.Context, task *flowfabric.Task, _ flowfabric.None) ([]string, error) {
				text, err := flowfabric.AwaitSignal[string](ctx, task, "one")
				if err == nil && failed.CompareAndSwap(false, true) {
					return nil, errors.New("not this time")
				}
				return []string{text}, err
			})
		})
		run := must[*flowfabric.Run[[]string]](t)(wait.Submit(ctx, w.Client, flowfabric.None{}, flowfabric.SubmitOptions{Policy: once()}))
		w.signals(t, w.awaits(t, run.ID(), "one"), "go", flowfabric.Text("a"))
		if got := must[[]string](t)(run.Result(ctx)); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%q", got)
		}
		if x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID())); x.TotalAttempts != 2 {
			t.Errorf("%d attempts", x.TotalAttempts)
		}
		must[*flowfabric.Execution](t)(w.Operate().Replay(ctx, run.ID()))
		w.signals(t, w.awaits(t, run.ID(), "one"), "go", flowfabric.Text("b"))
		if got := must[[]string](t)(run.Result(ctx)); !slices.Equal(got, []string{"b"}) {
			t.Errorf("after a replay %q", got)
		}
	})
}

func TestU138_W55_suspend_is_strict_and_try_suspend_passes_when_a_signal_came_first(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			early := func(key string) flowfabric.Suspension {
				at, err := task.NewWaitpoint(ctx, key)
				if err != nil {
					t.Error(err)
					return flowfabric.Suspension{}
				}
				if receipt := w.signals(t, at, "go", flowfabric.Text(key)); receipt.Effect != "buffered_for_pending_waitpoint" {
					t.Errorf("%+v", receipt)
				}
				return flowfabric.Suspension{Key: "at " + key, Waitpoints: []flowfabric.Binding{flowfabric.ExistingWaitpoint(at)}, Continuation: flowfabric.Text("go on")}
			}
			if err := task.Suspend(ctx, early("one")); !errors.Is(err, flowfabric.ErrAlreadySatisfied) || flowfabric.CodeOf(err) != "already_satisfied" {
				t.Errorf("strict: %v", err)
			}
			resume, err := task.TrySuspend(ctx, early("two"))
			if err != nil || resume.Cause != "early_signals" || len(resume.Signals) != 1 || string(resume.Continuation.Data) != "go on" {
				t.Errorf("%+v, %v", resume, err)
				return nil, err
			}
			if err := task.Renew(ctx); err != nil { // the lease stays what it was
				t.Errorf("after a wait that was passed: %v", err)
			}
			if _, ok := task.Resumed(); ok {
				t.Error("it goes on after a wait")
			}
			for what, err := range map[string]error{
				"no key": task.Suspend(ctx, flowfabric.Suspension{Until: flowfabric.OperatorOnly()}), "no name": task.Sleep(ctx, "", time.Hour),
			} {
				if flowfabric.CodeOf(err) != "invalid_argument" {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := task.Suspend(ctx, flowfabric.Suspension{Key: "nothing"}); flowfabric.CodeOf(err) != "invalid_suspend" {
				t.Errorf("without a waitpoint: %v", err)
			}
			return []string{string(resume.Signals[0].Payload.Data)}, nil // what was refused has not ended the task
		})
		if got := must[[]string](t)(run.Result(inTime(t))); !slices.Equal(got, []string{"two"}) {
			t.Errorf("%q", got)
		}
	})
}

func TestU138_a_handler_that_runs_again_gets_the_waitpoint_it_has(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		made := make(chan []string, 2)
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			var ids []string
			for _, o := range [][]flowfabric.WaitpointOptions{nil, nil, {{IdempotencyKey: "named"}}, {{Another: true}}} {
				at, err := task.NewWaitpoint(ctx, "at", o...)
				if err != nil {
					t.Error(err)
					return nil, err
				}
				if at.Token.IsZero() || !strings.HasSuffix(at.CallbackURL, "/v1/callbacks/"+at.ID+"/"+at.Token.Reveal()) || at.Key != "at" || at.State != "pending" {
					t.Errorf("%+v", at)
				}
				ids = append(ids, at.ID)
			}
			made <- ids
			if _, err := task.NewWaitpoint(ctx, "at", flowfabric.WaitpointOptions{Another: true, IdempotencyKey: "k"}); flowfabric.CodeOf(err) != "invalid_argument" {
				t.Errorf("both: %v", err)
			}
			return nil, task.Sleep(ctx, "nap", time.Millisecond)
		})
		must[[]string](t)(run.Result(inTime(t)))
		first, second := receive(t, made), receive(t, made)
		if !slices.Equal(first[:3], second[:3]) || first[3] == second[3] {
			t.Errorf("%v, then %v", first, second)
		}
		if slices.Sort(first); len(slices.Compact(first)) != 4 {
			t.Errorf("one is there twice: %v", first)
		}
	})
}

func TestU141_sleep_resumes_by_itself_and_tells_the_handler(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			for range 2 {
				if err := task.Sleep(ctx, "nap", time.Millisecond); err != nil {
					return nil, err
				}
			}
			if err := task.Sleep(ctx, "no time", 0); err != nil {
				t.Errorf("no time: %v", err)
			}
			resume, ok := task.Resumed()
			if !ok || resume.Cause != "timeout" || len(resume.Signals) != 1 || resume.Signals[0].Name != flowfabric.TimeoutSignal {
				t.Errorf("%+v %t", resume, ok)
			}
			return []string{"awake"}, nil
		})
		must[[]string](t)(run.Result(inTime(t)))
		if history := must[[]api.SuspensionRecord](t)(all(w.Executions().Suspensions(inTime(t), run.ID()))); len(history) != 2 {
			t.Errorf("%d naps", len(history))
		}
	})
}

func TestU138_await_signal_decodes_what_came_and_says_when_nothing_did(t *testing.T) {
	t.Parallel()
	type answer struct{ Price int }
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		addresses := make(chan flowfabric.Waitpoint, 1)
		var notified atomic.Int64
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			told, err := flowfabric.AwaitSignal[answer](ctx, task, "quote", flowfabric.WaitOptions{
				Name: "priced", ReasonCode: flowfabric.WaitingForCallback,
				Notify: func(_ context.Context, at flowfabric.Waitpoint) error {
					notified.Add(1)
					addresses <- at
					return nil
				},
			})
			if err != nil {
				return nil, err
			}
			if told.Price != 7 {
				t.Errorf("%+v", told)
			}
			at, err := task.NewWaitpoint(ctx, "never")
			if err != nil {
				return nil, err
			}
			_, err = flowfabric.AwaitSignal[string](ctx, task, "late", flowfabric.WaitOptions{
				Waitpoint: at, Timeout: time.Millisecond, OnTimeout: flowfabric.ResumeOnTimeout,
			})
			if errors.Is(err, flowfabric.ErrParked) {
				return nil, err
			}
			if !errors.Is(err, flowfabric.ErrNoSignal) || !strings.Contains(err.Error(), "timeout") {
				t.Errorf("after a timeout: %v", err)
			}
			_, err = flowfabric.AwaitSignal[string](ctx, task, "operator")
			if errors.Is(err, flowfabric.ErrNoSignal) && strings.Contains(err.Error(), "operator") {
				return []string{"done"}, nil
			}
			return nil, err
		})
		at := receive(t, addresses)
		w.awaits(t, run.ID(), "quote")
		if x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID())); x.Reason != "waiting_for_callback" {
			t.Errorf("it is %s because of %s", x.Status, x.Reason)
		}
		if receipt := w.signals(t, &at, "other", flowfabric.JSON(answer{1})); receipt.Effect != "signal_ignored_matcher_failed" {
			t.Errorf("%+v", receipt)
		}
		w.signals(t, &at, "priced", flowfabric.JSON(answer{7}))
		w.awaits(t, run.ID(), "operator")
		must[*flowfabric.Execution](t)(w.Operate().Resume(ctx, run.ID()))
		if got := must[[]string](t)(run.Result(ctx)); !slices.Equal(got, []string{"done"}) || notified.Load() != 1 {
			t.Errorf("%q after %d notes", got, notified.Load())
		}
	})
}

func TestU139_waits_side_by_side_in_one_handler_do_not_disturb_each_other(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const n = 4
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			errs := make(chan error, 2*n)
			for i := range n {
				key := string(rune('a' + i))
				at, err := task.NewWaitpoint(ctx, key)
				if err != nil {
					return nil, err
				}
				w.signals(t, at, "go", flowfabric.Text(key))
				go func() {
					got, err := flowfabric.AwaitSignal[string](ctx, task, key, flowfabric.WaitOptions{Waitpoint: at})
					if err == nil && got != key {
						err = errors.New(got + " came to " + key)
					}
					errs <- err
				}()
				go func() { errs <- task.Progress(ctx, 10*i, "") }()
			}
			var all error
			for range 2 * n {
				all = errors.Join(all, <-errs)
			}
			return nil, all
		})
		must[[]string](t)(run.Result(inTime(t)))
	})
}
