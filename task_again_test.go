package flowfabric_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// A replay may keep the steps of the run before. Its waitpoints are new, and so the sender of the signal must learn of them.
func TestU141_L150_a_replay_that_keeps_the_steps_asks_anew(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		links, addresses := make(chan flowfabric.ApprovalLink, 2), make(chan flowfabric.Waitpoint, 2)
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			text, err := flowfabric.AwaitSignal[string](ctx, task, "text", flowfabric.WaitOptions{Notify: func(_ context.Context, at flowfabric.Waitpoint) error {
				addresses <- at
				return nil
			}})
			if err != nil {
				return nil, err
			}
			d, err := task.Ask(ctx, flowfabric.Approval{Key: "go", Approvers: []string{"ann"}, Notify: func(_ context.Context, made []flowfabric.ApprovalLink) error {
				links <- made[0]
				return nil
			}})
			return append(d.By, text), err
		})
		for i, text := range []string{"a", "b"} {
			if i > 0 {
				must[*flowfabric.Execution](t)(w.Operate().Replay(ctx, run.ID(), ops.ReplayOptions{KeepSteps: true}))
			}
			at := receive(t, addresses)
			w.awaits(t, run.ID(), "text")
			w.signals(t, &at, "go", flowfabric.Text(text))
			link := receive(t, links)
			w.awaits(t, run.ID(), "go")
			must[api.LinkOutcome](t)(w.Waitpoints().Decide(ctx, link.ID, tokenOf(link.URL), api.LinkDecision{Decision: "approve"}))
			if got := must[[]string](t)(run.Result(ctx)); !slices.Equal(got, []string{"ann", text}) {
				t.Errorf("run %d: %q", i, got)
			}
		}
	})
}

// It is answered: nothing will change until somebody seeds a key.
func TestW22_a_handler_is_told_that_nothing_can_be_signed(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		kid := must[api.SigningKeyList](t)(w.Admin().SigningKeys().List(ctx)).CurrentKid
		must[api.RevokedKey](t)(w.Admin().SigningKeys().Revoke(ctx, kid, ops.RevokeKeyOptions{Force: true}))
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			var codes []string
			_, err := task.NewWaitpoint(ctx, "at")
			codes = append(codes, flowfabric.CodeOf(err))
			_, err = task.Ask(ctx, flowfabric.Approval{Key: "go", Approvers: []string{"ann"}})
			codes = append(codes, flowfabric.CodeOf(err))
			_, err = flowfabric.AwaitSignal[string](ctx, task, "text")
			return append(codes, flowfabric.CodeOf(err)), nil
		})
		if got := must[[]string](t)(run.Result(ctx)); len(slices.Compact(got)) != 1 || got[0] != "signing_key_missing" {
			t.Errorf("%q", got)
		}
	})
}

func TestW36_W83_a_waitpoint_that_is_asked_for_again_is_shown_as_it_stands(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		h := hand{w, t}
		h.submits()
		first := h.claims(time.Minute)
		created := func(task *api.Claimed) flowfabric.Waitpoint {
			t.Helper()
			answer := h.does(api.WorkItem{Op: api.OpWaitpoint, ID: task.ID, Lease: task.Lease, Waitpoint: &api.NewWaitpoint{Key: "at", IdempotencyKey: "k"}})
			if answer.Err != nil {
				t.Fatal(answer.Err)
			}
			return answer.Waitpoints[0]
		}
		at := created(first)
		suspend := func() flowfabric.Waitpoint {
			t.Helper()
			answer := h.does(api.WorkItem{Op: api.OpSuspend, ID: first.ID, Lease: first.Lease, Suspension: &flowfabric.Suspension{
				Key: "wait", Waitpoints: []flowfabric.Binding{flowfabric.ExistingWaitpoint(&at)},
			}})
			if answer.Err != nil || answer.Outcome != "suspended" {
				t.Fatalf("%+v", answer)
			}
			return answer.Waitpoints[0]
		}
		open := suspend()
		w.signals(t, &at, "go", flowfabric.Payload{})
		second := h.claims(time.Minute)
		again := created(second)
		states := [][2]string{{at.State, at.CloseReason}, {again.State, again.CloseReason}}
		want := [][2]string{{"pending"}, {"closed", "resumed"}}
		if w.who == "local" { // over HTTP a suspend shows no states (W51)
			repeat := suspend()
			states = append(states, [2]string{open.State, open.CloseReason}, [2]string{repeat.State, repeat.CloseReason})
			want = append(want, [2]string{"active"}, [2]string{"closed", "resumed"})
		}
		if !slices.Equal(states, want) {
			t.Errorf("%q, want %q", states, want)
		}
	})
}

func TestU139_a_sleep_that_is_over_is_passed_whatever_is_left_of_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		left := time.Hour
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			left -= time.Minute
			if err := task.Sleep(ctx, "nap", left); err != nil {
				return nil, err
			}
			if err := task.Sleep(ctx, "other", time.Millisecond); err != nil {
				return nil, err
			}
			return []string{"awake"}, nil
		})
		w.suspended(t, run.ID())
		must[*flowfabric.Execution](t)(w.Operate().Resume(ctx, run.ID()))
		if got := must[[]string](t)(run.Result(ctx)); !slices.Equal(got, []string{"awake"}) {
			t.Errorf("%q", got)
		}
	})
}

// suspended returns when the work has been suspended.
func (w *world) suspended(t *testing.T, id flowfabric.ID) {
	t.Helper()
	filter := ops.EventFilter{ExecutionID: id, Kinds: []string{"execution.suspended"}}
	for _, err := range w.Events().Follow(inTime(t), ops.ReadOptions{EventFilter: filter, After: api.FromStart}) {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

func TestU139_a_sleep_is_not_passed_by_a_wait_of_another_kind(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		calls := 0
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			if calls++; calls == 1 {
				return nil, task.Suspend(ctx, flowfabric.Suspension{Key: "nap", Until: flowfabric.OperatorOnly()})
			}
			return []string{flowfabric.CodeOf(task.Sleep(ctx, "nap", time.Hour))}, nil
		})
		w.suspended(t, run.ID())
		must[*flowfabric.Execution](t)(w.Operate().Resume(ctx, run.ID()))
		if got := must[[]string](t)(run.Result(ctx)); !slices.Equal(got, []string{"idempotency_conflict"}) {
			t.Errorf("%q", got)
		}
	})
}

func TestU140_a_name_that_looks_counted_is_not_another_s_second_use(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			var got []string
			for i, name := range []string{"x#2", "x", "x", "x#2", "x#1"} {
				text, err := flowfabric.Step(ctx, task, name, func(context.Context) (string, error) { return string(rune('a' + i)), nil })
				if err != nil {
					return nil, err
				}
				if err := task.Sleep(ctx, name, time.Millisecond); err != nil {
					if !errors.Is(err, flowfabric.ErrParked) {
						t.Errorf("%s: %v", name, err)
					}
					return nil, err
				}
				got = append(got, text)
			}
			return got, nil
		})
		if got := must[[]string](t)(run.Result(inTime(t))); strings.Join(got, "") != "abcde" {
			t.Errorf("%q", got)
		}
		if history := must[[]api.SuspensionRecord](t)(all(w.Executions().Suspensions(inTime(t), run.ID()))); len(history) != 5 {
			t.Errorf("%d naps", len(history))
		}
	})
}
