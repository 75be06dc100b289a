package flowfabric_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// blocked is a handler that tells when it starts and why its context ended.
type blocked struct {
	started chan *flowfabric.Task
	causes  chan error
}

func newBlocked() *blocked {
	return &blocked{started: make(chan *flowfabric.Task, 16), causes: make(chan error, 16)}
}

func (b *blocked) handle(ctx context.Context, task *flowfabric.Task, _ int) (int, error) {
	b.started <- task
	<-ctx.Done()
	b.causes <- context.Cause(ctx)
	return 0, ctx.Err()
}

func TestU143_a_context_ends_with_its_cause(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		cases := []struct {
			name    string
			options flowfabric.SubmitOptions
			do      func(ctx context.Context, id flowfabric.ID) error
			cause   error
			status  flowfabric.Status
		}{
			{name: "cancelled", cause: flowfabric.ErrCancelled, status: flowfabric.StatusCancelled, do: func(ctx context.Context, id flowfabric.ID) error {
				_, err := w.Cancel(ctx, id, "stop")
				return err
			}},
			{name: "revoked", cause: flowfabric.ErrLeaseRevoked, status: flowfabric.StatusBlocked, do: func(ctx context.Context, id flowfabric.ID) error {
				_, err := w.Operate().Revoke(ctx, id, ops.RevokeOptions{Hold: true})
				return err
			}},
			{name: "deadline", cause: flowfabric.ErrDeadline, status: flowfabric.StatusExpired, options: flowfabric.SubmitOptions{
				Policy: &flowfabric.Policy{Deadline: 5 * time.Second},
			}},
			{name: "attempt timeout", cause: flowfabric.ErrAttemptTimeout, status: flowfabric.StatusFailed, options: flowfabric.SubmitOptions{
				Policy: &flowfabric.Policy{AttemptTimeout: time.Second, Retry: flowfabric.NoRetry()},
			}},
			{name: "lost", cause: flowfabric.ErrLeaseLost, status: flowfabric.StatusReady, do: w.declareDead},
			{name: "lost at the cap", cause: flowfabric.ErrLeaseLost, status: flowfabric.StatusFailed, do: w.declareDead, options: flowfabric.SubmitOptions{
				Policy: &flowfabric.Policy{MaxReclaims: -1},
			}},
		}
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				ctx := inTime(t)
				handler := newBlocked()
				lane := strings.ReplaceAll(c.name, " ", "_")
				// With this TTL the first renewal is more than a minute away: what the handler learns, it learns by the feed.
				w.work(t, flowfabric.WorkerConfig{Lanes: []string{lane}, LeaseTTL: 5 * time.Minute}, func(worker *flowfabric.Worker) {
					flowfabric.Handle(worker, double, handler.handle)
				})
				c.options.Lane = lane
				run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1, c.options))
				task := receive(t, handler.started)
				if c.do != nil {
					if err := c.do(ctx, run.ID()); err != nil {
						t.Fatal(err)
					}
				}
				if cause := receive(t, handler.causes); !errors.Is(cause, c.cause) {
					t.Errorf("the context ended with %v, want %v", cause, c.cause)
				}
				if err := task.Progress(ctx, 1, ""); !errors.Is(err, c.cause) && !errors.Is(err, flowfabric.ErrParked) {
					t.Errorf("Progress after the end = %v", err)
				}
				awaitStatus(t, w, run.ID(), c.status)
			})
		}
	})
}

// declareDead takes the leases of the worker that runs an execution, and keeps it from taking the work again.
func (w *world) declareDead(ctx context.Context, id flowfabric.ID) error {
	x, err := w.Get(ctx, id)
	if err != nil {
		return err
	}
	if _, err := w.Lanes().Pause(ctx, x.Lane); err != nil {
		return err
	}
	return w.Workers().MarkDead(ctx, x.Lease.InstanceID, ops.DeadOptions{Reason: "gone"})
}

// awaitStatus follows the events of an execution until it has a status.
func awaitStatus(t *testing.T, w *world, id flowfabric.ID, status flowfabric.Status) *flowfabric.Execution {
	t.Helper()
	ctx := inTime(t)
	page := must[api.EventPage](t)(w.Events().Read(ctx, ops.ReadOptions{}))
	for {
		x := must[*flowfabric.Execution](t)(w.Get(ctx, id))
		if x.Status == status {
			return x
		}
		page = must[api.EventPage](t)(w.Events().Read(ctx, ops.ReadOptions{
			After: page.Next, Wait: 5 * time.Second, EventFilter: ops.EventFilter{ExecutionID: id},
		}))
		if ctx.Err() != nil {
			t.Fatalf("%s is %s, want %s", id, x.Status, status)
		}
	}
}

func TestU143_after_the_drain_timeout_the_work_is_released_and_no_retry_is_used_up(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		handler := newBlocked()
		_, stop := w.work(t, flowfabric.WorkerConfig{Instance: "first", DrainTimeout: time.Millisecond}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, handler.handle)
		})
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 21))
		receive(t, handler.started)
		stop()
		if cause := receive(t, handler.causes); !errors.Is(cause, flowfabric.ErrShuttingDown) {
			t.Errorf("the context ended with %v", cause)
		}
		x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID()))
		if x.Status != flowfabric.StatusReady || x.PublicState != "resumable" || x.RetryCount != 0 || x.ReclaimCount != 0 {
			t.Errorf("after the worker stopped: %s %s, %d retries, %d reclaims", x.Status, x.PublicState, x.RetryCount, x.ReclaimCount)
		}
		if first := must[*api.Worker](t)(w.Workers().Get(ctx, "first")); first.State != "dead" {
			t.Errorf("the stopped worker is %s, want dead", first.State)
		}
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(_ context.Context, task *flowfabric.Task, in int) (int, error) {
				if task.Attempt().Index != 0 || task.Attempt().Interruption == nil || task.Attempt().Interruption.Kind != "released" {
					return 0, fmt.Errorf("attempt %+v", task.Attempt())
				}
				return 2 * in, nil
			})
		})
		if got, err := run.Result(ctx); err != nil || got != 42 {
			t.Errorf("Result = %d, %v", got, err)
		}
	})
}
