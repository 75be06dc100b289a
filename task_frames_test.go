package flowfabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/calls"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// heldFrames is a script whose calls with frames are answered when the test says how.
type heldFrames struct {
	scripted
	came   chan api.WorkItem
	answer chan error
}

func holdFrames(c clock.Clock) *heldFrames {
	s := &heldFrames{scripted: scripted{clock: c}, came: make(chan api.WorkItem), answer: make(chan error)}
	s.work.tasks = claimedTasks(1)
	s.work.do = func(item api.WorkItem) error {
		if item.Op != api.OpFrames {
			return nil
		}
		s.came <- item
		return <-s.answer
	}
	return s
}

// textOf is what the frames of a call say.
func textOf(item api.WorkItem) string {
	var text bytes.Buffer
	for i := range item.Frames {
		text.Write(item.Frames[i].Payload.Data)
	}
	return text.String()
}

func TestU145_a_frame_is_sent_at_once_and_what_is_written_meanwhile_travels_together(t *testing.T) {
	t.Parallel()
	s := holdFrames(clock.NewManual(time.Unix(1_000_000, 0))) // no timer is what sends them
	written, goOn := make(chan struct{}), make(chan struct{})
	stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
		out := task.Stream(ctx)
		fmt.Fprint(out, "first")
		<-goOn
		buffer := []byte("joined ")
		for range 3 {
			if _, err := out.Write(buffer); err != nil {
				t.Error(err)
			}
		}
		copy(buffer, "changed")
		if err := out.Send(NewFrame{Type: "log", Payload: Text("alone")}); err != nil {
			t.Error(err)
		}
		fmt.Fprint(out, "last")
		written <- struct{}{}
		return nil, nil
	})
	first := <-s.came
	goOn <- struct{}{}
	<-written // nothing of it waits for the call under way
	s.answer <- nil
	second := <-s.came
	if first.Op != api.OpFrames || len(first.Frames) != 1 || textOf(first) != "first" || *first.ClientSeq != 1 {
		t.Errorf("the first call: %+v", first)
	}
	var texts []string
	for i := range second.Frames {
		texts = append(texts, string(second.Frames[i].Payload.Data))
	}
	if want := []string{"joined joined joined ", "alone", "last"}; !slices.Equal(texts, want) || *second.ClientSeq != 2 {
		t.Errorf("the second call has the number %d and the frames %q", *second.ClientSeq, texts)
	}
	s.rest(t)
	if ops := s.work.ops(); !slices.Equal(ops, []api.Op{api.OpFrames, api.OpFrames}) {
		t.Errorf("sent %q before the frames are stored", ops)
	}
	s.answer <- nil
	stop()
	if ops := s.work.ops(); !slices.Equal(ops, []api.Op{api.OpFrames, api.OpFrames, api.OpComplete}) {
		t.Errorf("sent %q", ops)
	}
}

func TestE3_a_call_of_unknown_outcome_is_repeated_under_its_number(t *testing.T) {
	t.Parallel()
	s := holdFrames(clock.System())
	flushed := make(chan error, 1)
	stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
		out := task.Stream(ctx)
		fmt.Fprint(out, "a")
		err := out.Flush()
		fmt.Fprint(out, "b")
		flushed <- errors.Join(err, out.Flush())
		return nil, nil
	})
	for i, want := range []string{"a 1", "a 1", "a 1", "b 2"} {
		item := <-s.came
		if got := fmt.Sprint(textOf(item), " ", *item.ClientSeq); got != want {
			t.Errorf("call %d is %s, want %s", i, got, want)
		}
		if i < 2 {
			s.answer <- calls.Refuse(base.CodeTimeout, "no answer")
		} else {
			s.answer <- nil
		}
	}
	if err := <-flushed; err != nil {
		t.Errorf("Flush = %v", err)
	}
	stop()
}

func TestU138_a_writer_waits_while_too_much_is_not_stored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(out *StreamWriter) error
		fits  int64
	}{
		"bytes":  {func(out *StreamWriter) error { _, err := out.Write(make([]byte, 64<<10)); return err }, 17},
		"frames": {func(out *StreamWriter) error { return out.Send(NewFrame{}) }, 257},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := holdFrames(clock.NewManual(time.Unix(1_000_000, 0)))
			var written atomic.Int64
			gaveUp := make(chan error, 1)
			began, goOn := make(chan struct{}), make(chan struct{})
			stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
				out := task.Stream(ctx)
				_ = c.write(out)
				written.Add(1)
				began <- struct{}{}
				<-goOn
				for range c.fits - 1 {
					_ = c.write(out)
					written.Add(1)
				}
				short, cancel := context.WithCancelCause(ctx)
				context.AfterFunc(ctx, func() { cancel(nil) })
				go func() {
					began <- struct{}{}
					<-goOn
					cancel(errors.New("enough"))
				}()
				gaveUp <- c.write(task.Stream(short))
				_ = c.write(out)
				written.Add(1)
				return nil, nil
			})
			<-s.came
			<-began
			goOn <- struct{}{} // from here on everything is for the second call
			<-began
			s.rest(t)
			if n := written.Load(); n != c.fits {
				t.Errorf("%d writes returned while one call is under way, want %d", n, c.fits)
			}
			goOn <- struct{}{}
			if err := <-gaveUp; err == nil || err.Error() != "enough" {
				t.Errorf("a writer whose context ends while it waits = %v", err)
			}
			s.rest(t)
			if n := written.Load(); n != c.fits {
				t.Errorf("%d writes returned", n)
			}
			s.answer <- nil
			second := <-s.came // there is room again
			if n := len(second.Frames); n > 256 || len(textOf(second)) > 1<<20 {
				t.Errorf("a call has %d frames of %d bytes", n, len(textOf(second)))
			}
			s.answer <- nil
			<-s.came
			s.answer <- nil
			stop()
			if n := written.Load(); n != c.fits+1 {
				t.Errorf("%d writes returned, want %d", n, c.fits+1)
			}
		})
	}
}

func TestU143_frames_that_the_fence_refuses_end_the_handlers_context(t *testing.T) {
	t.Parallel()
	s := holdFrames(clock.System())
	type outcome struct{ cause, write, flush, other error }
	got := make(chan outcome, 1)
	stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
		fmt.Fprint(task.Stream(ctx), "x")
		<-ctx.Done()
		out := task.Stream(context.WithoutCancel(ctx))
		_, err := fmt.Fprint(out, "y")
		got <- outcome{context.Cause(ctx), err, out.Flush(), task.Progress(context.WithoutCancel(ctx), 1, "")}
		return nil, nil
	})
	<-s.came
	s.answer <- calls.Refuse(base.CodeLeaseRevoked, "revoked")
	o := <-got
	for _, err := range []error{o.cause, o.write, o.flush, o.other} {
		if !errors.Is(err, ErrLeaseRevoked) {
			t.Errorf("%v, want ErrLeaseRevoked", err)
		}
	}
	stop()
	if ops := s.work.ops(); !slices.Equal(ops, []api.Op{api.OpFrames}) {
		t.Errorf("sent %q for a lease that is lost", ops)
	}
}

func TestU143_a_writer_that_waits_is_woken_by_the_loss_of_the_lease(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	host := clock.NewManual(begin)
	s := holdFrames(host)
	s.work.beat = func([]api.Lease) (api.Heartbeat, error) { return api.Heartbeat{}, unavailable() }
	ended := make(chan error, 1)
	stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
		out := task.Stream(ctx)
		fmt.Fprint(out, "x")
		ended <- out.Flush()
		return nil, nil
	})
	<-s.came
	host.TurnTo(begin.Add(25 * time.Second))
	if err := <-ended; !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Flush = %v, want ErrLeaseLost", err)
	}
	s.answer <- calls.Refuse(base.CodeTimeout, "no answer") // it is not repeated
	stop()
	if ops := s.work.ops(); !slices.Equal(ops, []api.Op{api.OpFrames}) {
		t.Errorf("sent %q", ops)
	}
}

// The work is not reported as done while it is unknown whether its text is stored: another worker does it again.
func TestU145_a_worker_that_hands_back_does_not_complete_before_the_frames_are_stored(t *testing.T) {
	t.Parallel()
	s := &scripted{clock: clock.NewManual(time.Unix(1_000_000, 0))}
	s.work.tasks = claimedTasks(1)
	tried := make(chan struct{}, 1)
	s.work.do = func(api.WorkItem) error {
		tried <- struct{}{}
		return unavailable()
	}
	w := NewWorker(s.client(), WorkerConfig{Concurrency: 1, Logger: slog.New(slog.DiscardHandler)})
	Handle(w, Kind[[]byte, []byte]("work"), func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
		fmt.Fprint(task.Stream(ctx), "x")
		return []byte("done"), nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(context.Background()) }()
	<-tried
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Drain(now); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain = %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
	for _, op := range s.work.ops() {
		if op != api.OpFrames {
			t.Errorf("sent %s", op)
		}
	}
}

func TestU138_frames_that_are_refused_are_logged_once_and_stay_refused(t *testing.T) {
	t.Parallel()
	s := holdFrames(clock.System())
	var log bytes.Buffer
	errs := make(chan error, 3)
	stop := s.start(t, WorkerConfig{Concurrency: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
		out := task.Stream(ctx)
		fmt.Fprint(out, "x")
		errs <- out.Flush()
		_, err := fmt.Fprint(out, "y")
		errs <- err
		errs <- task.Stream(ctx).Merge(map[string]int{"a": 1})
		return nil, nil
	})
	<-s.came
	s.answer <- calls.Refuse(base.CodeStreamFull, "full")
	for range 3 {
		if err := <-errs; CodeOf(err) != string(base.CodeStreamFull) {
			t.Errorf("%v, want stream_full", err)
		}
	}
	stop()
	if ops := s.work.ops(); !slices.Equal(ops, []api.Op{api.OpFrames, api.OpComplete}) {
		t.Errorf("sent %q", ops)
	}
	if n := strings.Count(log.String(), "frames were not accepted"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &log)
	}
}

func TestU137_a_transaction_ends_a_lease_only_after_its_frames(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	for name, stored := range map[string]bool{"stored": true, "held by the transaction": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := clock.NewManual(begin)
			s := holdFrames(host)
			var left atomic.Int64
			leave := func(context.Context, transport.Connection, api.WorkItem, bool) (api.WorkAnswer, error) {
				left.Add(1)
				return api.WorkAnswer{}, nil
			}
			ended, late := make(chan error, 1), make(chan error, 1)
			stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
				out := task.Stream(ctx)
				fmt.Fprint(out, "x")
				ended <- task.CompleteIn(ctx, leave, "done")
				_, err := fmt.Fprint(out, "y")
				late <- err
				return nil, nil
			})
			<-s.came
			s.rest(t)
			if left.Load() != 0 {
				t.Error("the command was left before the frames are stored")
			}
			if stored {
				s.answer <- nil
				if err := <-ended; err != nil || left.Load() != 1 {
					t.Errorf("CompleteIn = %v, left %d times", err, left.Load())
				}
				if err := <-late; !errors.Is(err, ErrParked) {
					t.Errorf("a write after the end = %v", err)
				}
			} else {
				host.TurnTo(begin.Add(streamPatience))
				if err := <-ended; CodeOf(err) != string(base.CodeInvalidArgument) || left.Load() != 0 {
					t.Errorf("CompleteIn = %v, left %d times", err, left.Load())
				}
				s.answer <- nil
				<-late
				<-s.came
				s.answer <- nil
			}
			stop()
		})
	}
}

func TestU138_frames_are_not_flushed_from_within_a_transaction(t *testing.T) {
	t.Parallel()
	s := holdFrames(clock.System())
	stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
		fmt.Fprint(task.Stream(ctx), "x")
		inside := task.Stream(context.WithValue(ctx, inTx{}, true))
		_, err := fmt.Fprint(inside, "y")
		for _, err := range []error{err, inside.Flush()} {
			if CodeOf(err) != string(base.CodeInvalidArgument) {
				t.Errorf("%v, want invalid_argument", err)
			}
		}
		return nil, nil
	})
	<-s.came
	s.rest(t) // the handler has returned
	s.answer <- nil
	stop()
}
