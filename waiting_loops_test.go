package flowfabric

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/quiescence"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// hasty is a server that stops: it answers calls that wait at once, with the present state.
type hasty struct{ calls atomic.Int64 }

func (h *hasty) Do(_ context.Context, _ *wire.Operation, _, answer any, _ transport.Options) error {
	h.calls.Add(1)
	switch into := answer.(type) {
	case *api.EventPage:
		*into = api.EventPage{Next: "x", AtEnd: true}
	case *api.Execution:
		*into = api.Execution{Status: StatusRunning}
	case *api.FlowView:
		into.State = FlowOpen
	case *api.FlowCancelProgress:
		*into = api.FlowCancelProgress{Remaining: 3}
	}
	return nil
}

func TestU18_who_waits_for_an_end_does_not_hurry_a_server_that_stops(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(ctx context.Context, c *Client) error{
		"executions": func(ctx context.Context, c *Client) error { _, err := c.Wait(ctx, someID); return err },
		"flows":      func(ctx context.Context, c *Client) error { _, err := c.Flows().Wait(ctx, someID); return err },
		"cancels": func(ctx context.Context, c *Client) error {
			_, err := c.Flows().Cancel(ctx, someID, FlowCancel{Wait: time.Minute, Progress: func(api.FlowCancelProgress) {}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, server := clock.NewManual(time.Unix(1_000_000, 0)), &hasty{}
			ctx, cancel := context.WithCancel(t.Context())
			family, done := quiescence.New(), make(chan struct{})
			family.Go(func() {
				defer close(done)
				_ = wait(ctx, NewClient(transport.Connection{Transport: server, Clock: host}))
			})
			limit, end := context.WithTimeout(t.Context(), 5*time.Minute)
			defer end()
			for pauses := int64(1); pauses < 4; pauses++ {
				if err := family.Await(limit); err != nil {
					t.Fatalf("it does not pause: %v", err)
				}
				if calls := server.calls.Load(); calls != pauses {
					t.Fatalf("%d calls before pause %d", calls, pauses)
				}
				at, _ := host.Next()
				host.TurnTo(at)
			}
			cancel()
			<-done
		})
	}
}

func TestU18_claims_and_feeds_of_a_worker_do_not_hurry_a_server_that_stops(t *testing.T) {
	t.Parallel()
	events := &hasty{}
	s := &scripted{clock: clock.NewManual(time.Unix(1_000_000, 0)), events: events, claims: 2}
	s.work.stops = true
	s.start(t, WorkerConfig{Concurrency: 4}, func(context.Context, *Task, []byte) ([]byte, error) { return nil, nil })
	s.rest(t) // all of them pause
	s.work.mu.Lock()
	claims := len(s.work.claims)
	s.work.mu.Unlock()
	if claims == 0 || claims > 2 {
		t.Errorf("%d claims", claims)
	}
	if reads := events.calls.Load(); reads != 4 { // the end of the log, and each of three feeds
		t.Errorf("%d reads of the log", reads)
	}
}
