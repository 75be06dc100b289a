package flowfabric

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
)

func TestU145_the_next_task_is_claimed_while_the_ending_of_the_one_before_is_under_way(t *testing.T) {
	t.Parallel()
	const slots, n = 3, 20
	s := &scripted{clock: clock.System()}
	s.work.tasks = claimedTasks(n)
	acknowledge := make(chan struct{})
	s.work.do = func(api.WorkItem) error {
		<-acknowledge
		return nil
	}
	handled := make(chan struct{}, n)
	stop := s.start(t, WorkerConfig{Concurrency: slots}, func(context.Context, *Task, []byte) ([]byte, error) {
		handled <- struct{}{}
		return nil, nil
	})
	for range 2 * slots { // as many again as there are places, and no more
		<-handled
	}
	s.work.mu.Lock()
	left := len(s.work.tasks)
	s.work.mu.Unlock()
	if left != n-2*slots {
		t.Errorf("%d tasks were claimed while no ending was acknowledged, want %d", n-left, 2*slots)
	}
	close(acknowledge)
	for range n - 2*slots {
		<-handled
	}
	stop()
	if sent := len(s.work.sent); sent != n {
		t.Errorf("%d endings were sent, want %d", sent, n)
	}
}

func TestU145_a_lease_is_renewed_until_its_ending_is_acknowledged_though_its_place_is_taken(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	host := clock.NewManual(begin)
	s := &scripted{clock: host}
	s.work.tasks = claimedTasks(2)
	acknowledge, renewed := make(chan struct{}), make(chan int, 1)
	s.work.do = func(api.WorkItem) error {
		<-acknowledge
		return nil
	}
	s.work.beat = func(leases []api.Lease) (api.Heartbeat, error) {
		renewed <- len(leases)
		return api.Heartbeat{Registered: true, Leases: make([]api.Renewal, len(leases))}, nil
	}
	var both sync.WaitGroup
	both.Add(2)
	s.start(t, WorkerConfig{Concurrency: 1}, func(context.Context, *Task, []byte) ([]byte, error) {
		both.Done()
		return nil, nil
	})
	both.Wait()
	at := begin.Add(10 * time.Second)
	s.rest(t)
	host.TurnTo(at)
	if leases := <-renewed; leases != 2 {
		t.Errorf("%d leases are renewed, want 2", leases)
	}
	close(acknowledge)
}

func TestU145_a_claim_beside_the_long_poll_waits_briefly_and_only_while_work_flows(t *testing.T) {
	t.Parallel()
	const n = 40
	s := &scripted{clock: clock.System(), claims: 2, brief: true}
	s.work.lost = map[string][]*api.Claimed{}
	s.work.lose = func(r api.ClaimRequest) bool { return r.Wait == briefWait && len(s.work.lost) == 0 } // its slots are not forgotten
	seen := make(chan struct{})
	briefly := sync.OnceFunc(func() { close(seen) })
	late := time.AfterFunc(time.Minute, briefly) // the test fails then, and does not hang
	defer late.Stop()
	s.work.hold = func(ctx context.Context, nth int, r api.ClaimRequest) {
		switch {
		case r.Wait == briefWait:
			briefly()
		case nth > 1: // a long poll that is answered at once would leave no time for another claim
			select {
			case <-seen:
			case <-ctx.Done():
			}
		}
	}
	begin := make(chan struct{})
	s.work.tasks = claimedTasks(n)
	var all sync.WaitGroup
	all.Add(n)
	stop := s.start(t, WorkerConfig{Concurrency: 4}, func(context.Context, *Task, []byte) ([]byte, error) {
		<-begin
		all.Done()
		return nil, nil
	})
	close(begin)
	all.Wait()
	stop()
	brief := 0
	for i, claim := range s.work.claims {
		switch {
		case claim.Wait == briefWait && i > 0:
			brief++
		case claim.Wait != 10*time.Second:
			t.Errorf("claim %d waits %s", i, claim.Wait)
		}
	}
	if brief == 0 {
		t.Error("no claim was brief while work flowed")
	}
}

func TestU145_without_work_there_is_one_long_poll(t *testing.T) {
	t.Parallel()
	s := &scripted{clock: clock.System(), claims: 2, brief: true}
	stop := s.start(t, WorkerConfig{Concurrency: 4}, func(context.Context, *Task, []byte) ([]byte, error) { return nil, nil })
	for claimed := 0; claimed == 0; runtime.Gosched() {
		s.work.mu.Lock()
		claimed = len(s.work.claims)
		s.work.mu.Unlock()
	}
	stop()
	if len(s.work.claims) != 1 || s.work.claims[0].Wait != 10*time.Second {
		t.Errorf("claims: %+v", s.work.claims)
	}
}
