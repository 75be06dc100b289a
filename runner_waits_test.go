package flowfabric

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// The first answers to the suspend are lost. Meanwhile the lease is renewed: only the answer tells that it is gone.
func TestW55_the_worker_renews_until_it_is_told_that_the_work_is_suspended(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	host := clock.NewManual(begin)
	s := &scripted{clock: host}
	s.work.tasks = claimedTasks(1)
	beats := make(chan int, 10)
	s.work.beat = func(leases []api.Lease) (api.Heartbeat, error) {
		beats <- len(leases)
		return api.Heartbeat{Registered: true, Leases: make([]api.Renewal, len(leases))}, nil
	}
	sent, answer := make(chan api.WorkItem), make(chan error)
	s.work.do = func(item api.WorkItem) error {
		sent <- item
		return <-answer
	}
	parked := make(chan error, 1)
	stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
		err := task.Sleep(ctx, "nap", time.Hour)
		parked <- err
		return nil, err
	})
	first := <-sent
	s.rest(t)
	host.TurnTo(begin.Add(10 * time.Second))
	if n := <-beats; n != 1 {
		t.Errorf("%d leases renewed while the outcome is unknown", n)
	}
	answer <- calls.Refuse(base.CodeTimeout, "no answer")
	s.rest(t)
	host.TurnTo(begin.Add(10*time.Second + backoff.First + 1))
	again := <-sent
	if first.Op != api.OpSuspend || again.Op != api.OpSuspend || first.Suspension.Key != "nap" || again.Suspension.Key != "nap" || again.Lease != first.Lease {
		t.Errorf("sent %+v, then %+v", first, again)
	}
	answer <- nil
	if err := <-parked; !errors.Is(err, ErrParked) {
		t.Errorf("the handler got %v", err)
	}
	s.rest(t)
	host.TurnTo(begin.Add(20 * time.Second))
	if n := <-beats; n != 0 {
		t.Errorf("%d leases renewed of work that is suspended", n)
	}
	stop()
	if ops := s.work.ops(); len(ops) != 2 {
		t.Errorf("sent %q: a parked task sends nothing more", ops)
	}
}

// Whether the work waits is not known to anybody here: it is reported neither as failed nor as anything else.
func TestU139_a_wait_whose_outcome_stays_unknown_is_not_reported_as_failed(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	host := clock.NewManual(begin)
	s := &scripted{clock: host}
	s.work.tasks = claimedTasks(1)
	s.work.beat = func([]api.Lease) (api.Heartbeat, error) { return api.Heartbeat{}, unavailable() }
	s.work.do = func(api.WorkItem) error { return calls.Refuse(base.CodeTimeout, "no answer") }
	started, returned := make(chan struct{}), make(chan error, 1)
	stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, task *Task, _ []byte) ([]byte, error) {
		close(started)
		_, err := task.TrySuspend(ctx, Suspension{Key: "wait", Until: OperatorOnly()})
		returned <- err
		return nil, err
	})
	<-started
	for second := 1; len(returned) == 0; second++ {
		s.rest(t)
		host.TurnTo(begin.Add(time.Duration(second) * time.Second))
	}
	if err := <-returned; !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("the handler got %v", err)
	}
	stop()
	for _, op := range s.work.ops() {
		if op != api.OpSuspend {
			t.Errorf("sent %s for a lease that is lost", op)
		}
	}
}
