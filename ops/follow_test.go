package ops_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
	"github.com/flowfabric/flowfabric/ops"
)

// stopping is a server that stops: it answers a call that waits at once, with the present state.
type stopping struct{ called func() }

func (s stopping) Do(_ context.Context, _ *wire.Operation, _, answer any, _ transport.Options) error {
	switch into := answer.(type) {
	case *api.FramePage:
		*into = api.FramePage{Next: "0-0", AtEnd: true}
	case *api.EventPage:
		*into = api.EventPage{Next: "x", AtEnd: true}
	case *api.BulkJob:
		*into = api.BulkJob{State: "running"}
	}
	s.called()
	return nil
}

const anID = "01a1f5ad-4185-7d8f-a501-3eae1096ef13"

func TestU18_loops_of_calls_that_wait_do_not_hurry_a_server_that_stops(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]func(ctx context.Context, g ops.Groups) error{
		"streams": func(ctx context.Context, g ops.Groups) error {
			for _, err := range g.Streams().Follow(ctx, anID) {
				return err
			}
			return nil
		},
		"events": func(ctx context.Context, g ops.Groups) error {
			for _, err := range g.Events().Follow(ctx) {
				return err
			}
			return nil
		},
		"bulk jobs": func(ctx context.Context, g ops.Groups) error {
			if _, err := g.Operate().WaitBulk(ctx, anID); ctx.Err() == nil {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			hands, calls := clock.NewManual(time.Unix(0, 0)), 0
			groups := ops.On(transport.Connection{Transport: stopping{func() {
				if calls++; calls == 3 || hands.Now().Equal(time.Unix(0, 0)) && calls > 1 {
					cancel()
				}
			}}, Clock: hands})
			go func() {
				for ctx.Err() == nil {
					if at, waits := hands.Next(); waits {
						hands.TurnTo(at)
					}
					runtime.Gosched()
				}
			}()
			if err := loop(ctx, groups); err != nil {
				t.Error(err)
			}
			if calls != 3 {
				t.Errorf("%d calls: it did not pause after the first", calls)
			}
		})
	}
}
