package flowfabric_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/ops"
)

const tells flowfabric.Kind[string, string] = "tells"

// telling runs a worker whose handler writes to its stream.
func (w *world) telling(t *testing.T, do func(ctx context.Context, task *flowfabric.Task, out *flowfabric.StreamWriter) (string, error)) {
	t.Helper()
	w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, tells, func(ctx context.Context, task *flowfabric.Task, _ string) (string, error) {
			return do(ctx, task, task.Stream(ctx))
		})
	})
}

func (w *world) told(t *testing.T, o ...flowfabric.SubmitOptions) *flowfabric.Run[string] {
	t.Helper()
	return must[*flowfabric.Run[string]](t)(tells.Submit(inTime(t), w.Client, "x", o...))
}

// framesOf is all of the stream of an attempt.
func (w *world) framesOf(t *testing.T, id flowfabric.ID, attempt int) (all []flowfabric.Frame) {
	t.Helper()
	for after := "start"; ; {
		page := must[api.FramePage](t)(w.Streams().Read(inTime(t), id, attempt, ops.FramesOptions{After: after}))
		all = append(all, page.Frames...)
		if page.AtEnd {
			return all
		}
		after = page.Next
	}
}

// said is the text of frames that are none of control.
func said(frames []flowfabric.Frame) string {
	var text bytes.Buffer
	for i := range frames {
		if !frames[i].IsControl() {
			text.Write(frames[i].Payload.Data)
		}
	}
	return text.String()
}

// heard is a reader of a run who clears at every start of an attempt.
func heard(t *testing.T, run *flowfabric.Run[string]) (text string, types []string) {
	t.Helper()
	var shown bytes.Buffer
	for frame, err := range run.Frames(inTime(t)) {
		if err != nil {
			t.Error(err)
			return shown.String(), types
		}
		if frame.Type == flowfabric.AttemptStarted {
			shown.Reset()
		}
		if frame.IsControl() {
			types = append(types, frame.Type)
		}
		shown.Write(frame.Payload.Data)
	}
	return shown.String(), types
}

func TestU138_a_task_writes_text_frames_and_patches_in_one_order(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.telling(t, func(ctx context.Context, task *flowfabric.Task, out *flowfabric.StreamWriter) (string, error) {
			fmt.Fprint(out, "one ")
			err := errors.Join(
				out.Send(flowfabric.NewFrame{Type: "stderr", Payload: flowfabric.Text("two "), CorrelationID: "c-1"}),
				out.Merge(map[string]any{"done": 1, "of": 2}),
				out.Send(flowfabric.NewFrame{Mode: flowfabric.ModeBestEffort, Payload: flowfabric.Bytes([]byte{0xff, 0}, "image/png")}),
				task.Stream(ctx).Merge(map[string]any{"done": 2, "of": nil}),
			)
			fmt.Fprint(out, "three")
			return "", errors.Join(err, out.Flush())
		})
		run := w.told(t)
		must[string](t)(run.Result(inTime(t)))
		var got []string
		for i, f := range w.framesOf(t, run.ID(), 0) {
			if want := fmt.Sprintf("0-%d", i+1); f.ID != want {
				t.Errorf("frame %d has the id %s", i, f.ID)
			}
			got = append(got, fmt.Sprintf("%s %s %q %s %s %d", f.Type, f.Mode, f.Payload.Data, f.Payload.ContentType, f.CorrelationID, f.SummaryVersion))
		}
		want := []string{
			`data durable "one " text/plain; charset=utf-8  0`,
			`stderr durable "two " text/plain; charset=utf-8 c-1 0`,
			`data summary "{\"done\":1,\"of\":2}" application/json  1`,
			`data best_effort "\xff\x00" image/png  0`,
			`data summary "{\"done\":2,\"of\":null}" application/json  2`,
			`data durable "three" text/plain; charset=utf-8  0`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		summary := must[*api.StreamSummary](t)(w.Streams().Summary(inTime(t), run.ID()))
		if string(summary.Document) != `{"done":2}` || summary.Version != 2 {
			t.Errorf("the summary is %s in version %d", summary.Document, summary.Version)
		}
	})
}

func TestU134_who_follows_hears_what_is_written_while_the_handler_runs(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		goOn := make(chan struct{})
		w.telling(t, func(_ context.Context, _ *flowfabric.Task, out *flowfabric.StreamWriter) (string, error) {
			for n := range 5 {
				fmt.Fprintf(out, "word %d", n) // not flushed: it is sent without delay
				<-goOn
			}
			return "", nil
		})
		run := w.told(t)
		var words, controls []string
		for frame, err := range run.Frames(inTime(t)) {
			must[any](t)(nil, err)
			if frame.IsControl() {
				controls = append(controls, frame.Type)
				continue
			}
			words = append(words, string(frame.Payload.Data))
			goOn <- struct{}{}
		}
		if !slices.Equal(words, []string{"word 0", "word 1", "word 2", "word 3", "word 4"}) {
			t.Errorf("heard %q", words)
		}
		if !slices.Equal(controls, []string{flowfabric.AttemptStarted, flowfabric.AttemptClosed, flowfabric.StreamClosed}) {
			t.Errorf("control frames %q", controls)
		}
	})
}

func TestE17_a_follower_of_the_latest_attempt_waits_until_one_begins(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		latest := ops.LatestAttempt
		run, heard := w.told(t), make(chan []string, 1)
		go func() {
			var got []string
			for frame, err := range w.Streams().Follow(inTime(t), run.ID(), ops.FollowOptions{Attempt: &latest}) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, frame.Type+" "+string(frame.Payload.Data))
			}
			heard <- got
		}()
		never := w.told(t, flowfabric.SubmitOptions{Delay: time.Hour})
		must[*flowfabric.Execution](t)(w.Cancel(inTime(t), never.ID(), "no more"))
		for _, err := range w.Streams().Follow(inTime(t), never.ID(), ops.FollowOptions{Attempt: &latest}) {
			if flowfabric.CodeOf(err) != "attempt_not_found" {
				t.Errorf("without an attempt: %v", err)
			}
		}
		w.telling(t, func(_ context.Context, _ *flowfabric.Task, out *flowfabric.StreamWriter) (string, error) {
			fmt.Fprint(out, "hi")
			return "", nil
		})
		if got := <-heard; !slices.Equal(got, []string{"data hi", "attempt_closed "}) {
			t.Errorf("heard %q", got)
		}
	})
}

func TestU152_a_reader_who_clears_at_each_attempt_sees_no_text_twice(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) { flowfabric.Handle(worker, tells, talk) })
		run := w.told(t, flowfabric.SubmitOptions{Policy: once(), Delay: 50 * time.Millisecond})
		text, controls := heard(t, run)
		if text != "The answer is 42.\n" {
			t.Errorf("heard %q", text)
		}
		if n := len(controls); n < 3 || controls[n-1] != flowfabric.StreamClosed || controls[n-2] != flowfabric.AttemptClosed {
			t.Errorf("control frames %q", controls)
		}
		if first, second := said(w.framesOf(t, run.ID(), 0)), said(w.framesOf(t, run.ID(), 1)); first != "The answer is " || second != text {
			t.Errorf("the attempts said %q and %q", first, second)
		}
	})
}

func TestE1_long_text_is_split_between_characters_and_waits_for_room(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x€", 1<<20) // 4 MiB, more than is held
	onEveryStore(t, func(t *testing.T, w *world) {
		w.telling(t, func(_ context.Context, _ *flowfabric.Task, out *flowfabric.StreamWriter) (string, error) {
			n, err := out.Write([]byte(text))
			if n != len(text) {
				t.Errorf("wrote %d of %d bytes", n, len(text))
			}
			return "", err
		})
		run := w.told(t)
		must[string](t)(run.Result(inTime(t)))
		frames := w.framesOf(t, run.ID(), 0)
		for i := range frames {
			if data := frames[i].Payload.Data; !utf8.Valid(data) || len(data) > 64<<10 {
				t.Fatalf("frame %s has %d bytes and is not text", frames[i].ID, len(data))
			}
		}
		if got := said(frames); got != text {
			t.Errorf("%d bytes are stored, %d were written", len(got), len(text))
		}
	})
}

func TestU138_writers_of_one_task_share_its_order(t *testing.T) {
	t.Parallel()
	const writers, lines = 4, 500 // more than a call takes
	onEveryStore(t, func(t *testing.T, w *world) {
		w.telling(t, func(ctx context.Context, task *flowfabric.Task, _ *flowfabric.StreamWriter) (string, error) {
			var all sync.WaitGroup
			for who := range writers {
				all.Go(func() {
					out := task.Stream(ctx)
					for n := range lines {
						if err := out.Send(flowfabric.NewFrame{Type: fmt.Sprint("w", who), Payload: flowfabric.Text(fmt.Sprint(n))}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			return "", nil
		})
		run := w.told(t)
		must[string](t)(run.Result(inTime(t)))
		next := map[string]int{}
		for _, f := range w.framesOf(t, run.ID(), 0) {
			if want := fmt.Sprint(next[f.Type]); string(f.Payload.Data) != want {
				t.Fatalf("%s says %s after %s", f.Type, f.Payload.Data, want)
			}
			next[f.Type]++
		}
		for who := range writers {
			if n := next[fmt.Sprint("w", who)]; n != lines {
				t.Errorf("writer %d: %d of %d frames are stored", who, n, lines)
			}
		}
	})
}

func TestU144_what_was_written_is_stored_before_the_end_and_before_a_park(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		do   func(ctx context.Context, task *flowfabric.Task) error
		want flowfabric.Status
	}{
		"complete": {func(context.Context, *flowfabric.Task) error { return nil }, flowfabric.StatusSucceeded},
		"fail":     {func(context.Context, *flowfabric.Task) error { return flowfabric.Permanent(errors.New("no")) }, flowfabric.StatusFailed},
		"suspend": {func(ctx context.Context, task *flowfabric.Task) error {
			return task.Suspend(ctx, flowfabric.Suspension{Key: "k", Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint("w")}})
		}, flowfabric.StatusSuspended},
		"delay": {func(ctx context.Context, task *flowfabric.Task) error {
			return task.Delay(ctx, time.Now().Add(time.Hour))
		}, flowfabric.StatusDelayed},
	}
	onEveryStore(t, func(t *testing.T, w *world) {
		var after sync.Map
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, tells, func(ctx context.Context, task *flowfabric.Task, how string) (string, error) {
				out := task.Stream(ctx)
				for n := range 300 {
					fmt.Fprintf(out, "%d\n", n)
				}
				err := ends[how].do(ctx, task)
				if errors.Is(err, flowfabric.ErrParked) {
					_, late := out.Write([]byte("late"))
					after.Store(how, late)
				}
				return "", err
			})
		})
		var text strings.Builder
		for n := range 300 {
			fmt.Fprintf(&text, "%d\n", n)
		}
		for how, end := range ends {
			run := must[*flowfabric.Run[string]](t)(tells.Submit(inTime(t), w.Client, how))
			awaitStatus(t, w, run.ID(), end.want)
			if got := said(w.framesOf(t, run.ID(), 0)); got != text.String() {
				t.Errorf("%s: stored are %d bytes, want %d", how, len(got), text.Len())
			}
		}
		after.Range(func(how, late any) bool {
			if !errors.Is(late.(error), flowfabric.ErrParked) {
				t.Errorf("after %s a write = %v", how, late)
			}
			return true
		})
	})
}

func TestU144_a_panic_is_told_in_the_stream(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.telling(t, func(_ context.Context, task *flowfabric.Task, out *flowfabric.StreamWriter) (string, error) {
			fmt.Fprint(out, "before")
			panic(strings.Repeat("bad luck ", 4000))
		})
		run := w.told(t, flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Retry: flowfabric.NoRetry()}})
		x := must[*flowfabric.Execution](t)(run.Wait(inTime(t)))
		if x.Failure == nil || x.Failure.Category != "panic" {
			t.Errorf("it ended as %s with %+v", x.Status, x.Failure)
		}
		frames := w.framesOf(t, run.ID(), 0)
		if len(frames) != 2 || string(frames[0].Payload.Data) != "before" || frames[1].Type != "panic" {
			t.Fatalf("frames %+v", frames)
		}
		text := string(frames[1].Payload.Data)
		if !strings.HasPrefix(text, "panic: bad luck") || !strings.Contains(text, "task_stream_test.go") || len(text) > 64<<10 {
			t.Errorf("the frame of the panic has %d bytes: %s", len(text), text)
		}
	})
}

func TestE6_a_stream_that_is_full_refuses_and_the_attempt_fails_all_the_same(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		errs := make(chan error, 3)
		w.telling(t, func(_ context.Context, _ *flowfabric.Task, out *flowfabric.StreamWriter) (string, error) {
			for n := range 3 {
				if err := out.Send(flowfabric.NewFrame{Payload: flowfabric.Text(fmt.Sprint(n))}); err != nil {
					errs <- err
					break
				}
			}
			errs <- out.Flush()
			_, err := fmt.Fprint(out, "more")
			errs <- err
			panic("full") // its frame finds no room either
		})
		run := w.told(t, flowfabric.SubmitOptions{Policy: &flowfabric.Policy{
			Retry: flowfabric.NoRetry(), Stream: api.StreamPolicy{MaxFrames: 2, OnFull: api.StreamRefuses},
		}})
		x := must[*flowfabric.Execution](t)(run.Wait(inTime(t)))
		if x.Failure == nil || x.Failure.Category != "panic" {
			t.Errorf("it ended as %s with %+v", x.Status, x.Failure)
		}
		for range len(errs) {
			if err := <-errs; flowfabric.CodeOf(err) != "stream_full" {
				t.Errorf("the error is %v, want stream_full", err)
			}
		}
	})
}

func TestE1_a_frame_that_is_refused_on_its_own_takes_no_other_with_it(t *testing.T) {
	t.Parallel()
	w := openWorld(t, stores["sqlite"](t), engine.Hooks{})
	refused := map[string]flowfabric.NewFrame{
		"invalid_frame":    {Type: "Not a type"},
		"reserved_name":    {Type: flowfabric.AttemptStarted},
		"frame_too_large":  {Payload: flowfabric.Bytes(make([]byte, 64<<10+1), "")},
		"invalid_patch":    {Mode: flowfabric.ModeSummary, Payload: flowfabric.JSON([]int{1})},
		"patch_too_deep":   {Mode: flowfabric.ModeSummary, Payload: flowfabric.Text(strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20))},
		"invalid_argument": {Payload: flowfabric.JSON(func() {})},
	}
	w.telling(t, func(_ context.Context, _ *flowfabric.Task, out *flowfabric.StreamWriter) (string, error) {
		for code, frame := range refused {
			if err := out.Send(frame); flowfabric.CodeOf(err) != code {
				t.Errorf("%v, want %s", err, code)
			}
		}
		var mode *flowfabric.Error
		if err := out.Send(flowfabric.NewFrame{Mode: "sometimes"}); !errors.As(err, &mode) || mode.Code != "invalid_frame" || mode.Field != "mode" {
			t.Errorf("a mode that there is none of: %v", err)
		}
		fmt.Fprint(out, "fine")
		return "", out.Flush()
	})
	run := w.told(t)
	must[string](t)(run.Result(inTime(t)))
	if got := said(w.framesOf(t, run.ID(), 0)); got != "fine" {
		t.Errorf("stored is %q", got)
	}
}

func TestU143_a_writer_ends_with_the_cause_of_the_lost_lease(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		began, ended := make(chan struct{}), make(chan [2]error, 1)
		w.telling(t, func(ctx context.Context, task *flowfabric.Task, _ *flowfabric.StreamWriter) (string, error) {
			out := task.Stream(context.WithoutCancel(ctx)) // the fence ends it, not its context
			fmt.Fprint(out, "before")
			if err := out.Flush(); err != nil {
				t.Error(err)
			}
			began <- struct{}{}
			<-ctx.Done()
			_, err := fmt.Fprint(out, "after")
			ended <- [2]error{err, out.Flush()}
			return "", context.Cause(ctx)
		})
		run := w.told(t)
		receive(t, began)
		must[any](t)(nil, run.Cancel(inTime(t), "enough"))
		if got := receive(t, ended); !errors.Is(got[0], flowfabric.ErrCancelled) || got[1] != nil {
			t.Errorf("Write = %v, Flush = %v; nothing is left to flush", got[0], got[1])
		}
		if got := said(w.framesOf(t, run.ID(), 0)); got != "before" {
			t.Errorf("stored is %q", got)
		}
	})
}

func TestU137_what_was_flushed_before_a_transaction_is_stored_before_the_end_in_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		own := openBooks(t, w)
		w.telling(t, func(ctx context.Context, task *flowfabric.Task, out *flowfabric.StreamWriter) (string, error) {
			fmt.Fprint(out, "nearly done")
			if err := out.Flush(); err != nil {
				return "", err
			}
			return "", own.in(ctx, func(tx *sql.Tx) error { return embedded.CompleteSQLTx(ctx, tx, task, "done") })
		})
		run := w.told(t)
		if got := must[string](t)(run.Result(inTime(t))); got != "done" {
			t.Errorf("the result is %q", got)
		}
		if got := said(w.framesOf(t, run.ID(), 0)); got != "nearly done" {
			t.Errorf("stored is %q", got)
		}
	})
}

// A raw worker numbers its calls itself.
func TestE3_U73_a_raw_worker_sends_frames_and_repeats_a_call(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.submitted(t, flowfabric.SubmitOptions{})
		task := w.claimed(t, "hand-1")
		send := func(seq int64, text string) api.WorkAnswer {
			t.Helper()
			return must[[]api.WorkAnswer](t)(w.Work().Do(ctx, api.WorkItem{
				Op: api.OpFrames, ID: task.ID, Lease: task.Lease, ClientSeq: &seq,
				Frames: []flowfabric.NewFrame{{Payload: flowfabric.Text(text)}, {Type: "log", Payload: flowfabric.Bytes([]byte{0, 1}, "")}},
			}))[0]
		}
		first, again, second, lower := send(1, "a"), send(1, "a"), send(7, "b"), send(3, "c")
		if first.Err != nil || again.Err != nil || *first.Frames != *again.Frames || first.Frames.LastID != "0-2" {
			t.Errorf("%+v and its repeat %+v", first, again)
		}
		if second.Err != nil || second.Frames.FirstID != "0-3" || second.Frames.FrameCount != 4 {
			t.Errorf("the next call: %+v", second)
		}
		if flowfabric.CodeOf(lower.Err) != "stale_append" {
			t.Errorf("a lower number: %v", lower.Err)
		}
		end := must[[]api.WorkAnswer](t)(w.Work().Do(ctx, // frames and the end in one batch, in order
			api.WorkItem{Op: api.OpFrames, ID: task.ID, Lease: task.Lease, Frames: []flowfabric.NewFrame{{Payload: flowfabric.Text("c")}}},
			api.WorkItem{Op: api.OpComplete, ID: task.ID, Lease: task.Lease},
			api.WorkItem{Op: api.OpFrames, ID: task.ID, Lease: task.Lease, Frames: []flowfabric.NewFrame{{Payload: flowfabric.Text("d")}}},
		))
		if end[0].Err != nil || end[1].Err != nil || !errors.Is(end[2].Err, flowfabric.ErrState) && !errors.Is(end[2].Err, flowfabric.ErrFenced) {
			t.Errorf("%+v", end)
		}
		if got := said(w.framesOf(t, task.ID, 0)); got != "a\x00\x01b\x00\x01c" {
			t.Errorf("stored is %q", got)
		}
	})
}
