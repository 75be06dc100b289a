package flowfabrictest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/flowfabrictest"
	"github.com/flowfabric/flowfabric/ops"
)

// words are what the handlers of these tests say, one call each.
var words = []string{"one ", "two ", "three "}

// speak streams the words. The first attempt waits after the second one, if it is told to.
func speak(pause chan struct{}) func(w *flowfabric.Worker) {
	return func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(ctx context.Context, task *flowfabric.Task, _ string) (string, error) {
			out := task.Stream(ctx)
			for n, word := range words {
				if n == 2 && task.Attempt().Index == 0 && pause != nil {
					select {
					case <-pause:
					case <-ctx.Done():
					}
				}
				fmt.Fprint(out, word)
				if err := out.Flush(); err != nil {
					return "", err
				}
			}
			return "said", nil
		})
	}
}

// saidBy is the text of an attempt.
func saidBy(t testing.TB, env *flowfabrictest.Env, id flowfabric.ID, attempt int) string {
	t.Helper()
	var text strings.Builder
	for _, frame := range must[api.FramePage](t)(env.Streams().Read(t.Context(), id, attempt)).Frames {
		text.Write(frame.Payload.Data)
	}
	return text.String()
}

func TestU153_settle_returns_when_what_was_written_is_stored(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(ctx context.Context, task *flowfabric.Task, _ string) (string, error) {
			fmt.Fprint(task.Stream(ctx), "before ")
			if err := task.Sleep(ctx, "an hour", time.Hour); err != nil {
				return "", err
			}
			fmt.Fprint(task.Stream(ctx), "after")
			return "", nil
		})
	})
	run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "x"))
	env.Settle()
	if got := saidBy(t, env, run.ID(), 0); got != "before " {
		t.Errorf("it said %q before the wait", got)
	}
	env.Advance(time.Hour)
	if got := saidBy(t, env, run.ID(), 0); got != "before before after" { // the handler is called from its start, in the same attempt
		t.Errorf("it said %q", got)
	}
}

func TestU153_E18_a_worker_that_is_killed_while_it_streams_is_followed_by_a_new_attempt(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	pause := make(chan struct{})
	first := env.Worker(flowfabric.WorkerConfig{Instance: "first"}, speak(pause))
	run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "x"))
	env.Settle()
	if got := saidBy(t, env, run.ID(), 0); got != "one two " {
		t.Errorf("before it is killed it said %q", got)
	}
	heard := make(chan []string, 1)
	go func() {
		var all []string
		for frame, err := range run.Frames(context.Background()) {
			if err != nil {
				t.Error(err)
				break
			}
			if frame.IsControl() {
				all = append(all, fmt.Sprintf("[%s %d %s]", frame.Type, frame.Attempt, frame.AttemptType+frame.Reason+frame.Outcome))
			} else {
				all = append(all, string(frame.Payload.Data))
			}
		}
		heard <- all
	}()
	env.Worker(flowfabric.WorkerConfig{Instance: "second"}, speak(pause))
	first.Kill()
	close(pause)
	env.Advance(time.Minute)

	got := strings.Join(<-heard, "")
	newest := "[attempt_started 1 reclaim]one two three [attempt_closed 1 attempt_success][closed 1 success]"
	if !strings.HasSuffix(got, newest) {
		t.Errorf("heard %q, want %q at the end", got, newest)
	}
	if got := saidBy(t, env, run.ID(), 0); got != "one two " {
		t.Errorf("after it was killed it said %q", got)
	}
	page := must[api.FramePage](t)(env.Streams().Read(t.Context(), run.ID(), 0, ops.FramesOptions{After: "0-2"}))
	if page.Closed == nil || page.Closed.Reason != "reclaimed" {
		t.Errorf("the stream of the first attempt was closed with %+v", page.Closed)
	}
}

func TestU153_E3_a_crash_on_either_side_of_an_append_doubles_nothing(t *testing.T) {
	t.Parallel()
	for point, want := range map[flowfabrictest.CrashPoint]string{
		flowfabrictest.BeforeCommit("append_frames"): "", flowfabrictest.AfterCommit("append_frames"): "one ",
	} {
		t.Run(point.String(), func(t *testing.T) {
			t.Parallel()
			env := flowfabrictest.New(t)
			crash := env.CrashAt(point)
			env.Worker(flowfabric.WorkerConfig{}, speak(nil))
			run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "x"))
			env.Advance(time.Minute)
			x := must[*flowfabric.Execution](t)(env.Get(t.Context(), run.ID()))
			if !crash.Hit() || x.Status != flowfabric.StatusSucceeded || x.ReclaimCount != 1 {
				t.Errorf("hit: %t, and it is %s after %d reclaims", crash.Hit(), x.Status, x.ReclaimCount)
			}
			if first, second := saidBy(t, env, run.ID(), 0), saidBy(t, env, run.ID(), 1); first != want || second != strings.Join(words, "") {
				t.Errorf("the attempts said %q and %q", first, second)
			}
		})
	}
}

func TestU153_no_code_runs_after_the_flush_at_which_the_process_dies(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	var returns diary
	crash := env.CrashAt(flowfabrictest.AfterCommit("append_frames"))
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(ctx context.Context, task *flowfabric.Task, name string) (string, error) {
			out := task.Stream(ctx)
			fmt.Fprint(out, name)
			err := out.Flush()
			returns.note(0)
			return name, err
		})
	})
	run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you"))
	env.Advance(time.Minute)
	if got := must[string](t)(run.Result(t.Context())); got != "you" || !crash.Hit() || len(returns.all()) != 1 {
		t.Errorf("%q, hit: %v, the flush returned %d times", got, crash.Hit(), len(returns.all()))
	}
}

func TestU153_explore_finds_the_text_of_the_last_attempt_whole_wherever_the_process_dies(t *testing.T) {
	t.Parallel()
	appended := false
	flowfabrictest.Explore(t, func(t *testing.T, env *flowfabrictest.Env) {
		env.Worker(flowfabric.WorkerConfig{}, speak(nil))
		run := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "x", flowfabric.SubmitOptions{IdempotencyKey: "once"}))
		env.Advance(2 * time.Minute)
		x := must[*flowfabric.Execution](t)(env.Get(t.Context(), run.ID()))
		if got := saidBy(t, env, run.ID(), x.Attempt.Index); x.Status != flowfabric.StatusSucceeded || got != strings.Join(words, "") {
			t.Errorf("it is %s, and its last attempt said %q", x.Status, got)
		}
		if first := saidBy(t, env, run.ID(), 0); !strings.HasPrefix(strings.Join(words, ""), first) {
			t.Errorf("the first attempt said %q", first)
		}
		appended = appended || strings.Contains(t.Name(), "append_frames")
	})
	if !appended {
		t.Error("no append is a crash point")
	}
}
