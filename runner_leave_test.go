package flowfabric

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// tally counts operations.
type tally struct {
	mu sync.Mutex
	of map[*wire.Operation]int
}

func (c *tally) add(op *wire.Operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[op]++
}

func (c *tally) count(op *wire.Operation) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[op]
}

// A registration ends the drain with which an instance leaves (S53). A worker whose instance had lapsed registered again while it
// waited for its handlers, and was given new work.
func TestS53_a_worker_that_stops_does_not_register_again(t *testing.T) {
	t.Parallel()
	host := clock.NewManual(time.Unix(1_000_000, 0))
	sent := &tally{of: map[*wire.Operation]int{}}
	s := &scripted{clock: host, sent: sent.add}
	s.work.tasks = claimedTasks(1)
	s.work.beat = func(leases []api.Lease) (api.Heartbeat, error) {
		return api.Heartbeat{Leases: make([]api.Renewal, len(leases))}, nil
	} // not registered
	goOn := make(chan struct{})
	stop := s.start(t, WorkerConfig{Concurrency: 1, DrainTimeout: time.Hour}, func(context.Context, *Task, []byte) ([]byte, error) {
		<-goOn
		return nil, nil
	})
	beat := func() {
		for begin := sent.count(wire.HeartbeatWorker.Operation); sent.count(wire.HeartbeatWorker.Operation) == begin; s.rest(t) {
			at, _ := host.Next()
			host.TurnTo(at)
		}
	}
	s.rest(t)
	beat()
	if n := sent.count(wire.RegisterWorker.Operation); n != 2 {
		t.Errorf("an instance that has lapsed is registered %d times, want 2", n)
	}
	var stopping sync.WaitGroup
	stopping.Go(stop)
	for sent.count(wire.DrainWorker.Operation) == 0 {
		s.rest(t)
	}
	beat()
	beat()
	if n := sent.count(wire.RegisterWorker.Operation); n != 2 {
		t.Errorf("registered %d times after it had left", n-2)
	}
	close(goOn)
	stopping.Wait()
}
