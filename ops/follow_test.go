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
	*answer.(*api.FramePage) = api.FramePage{Next: "0-0", AtEnd: true}
	s.called()
	return nil
}

func TestU18_a_follower_does_not_hurry_a_server_that_stops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hands, calls := clock.NewManual(time.Unix(0, 0)), 0
	streams := ops.On(transport.Connection{Transport: stopping{func() {
		if calls++; calls == 3 || hands.Now().Equal(time.Unix(0, 0)) && calls > 1 {
			cancel()
		}
	}}, Clock: hands}).Streams()
	go func() {
		for ctx.Err() == nil {
			if at, waits := hands.Next(); waits {
				hands.TurnTo(at)
			}
			runtime.Gosched()
		}
	}()
	for _, err := range streams.Follow(ctx, "01a1f5ad-4185-7d8f-a501-3eae1096ef13") {
		t.Error(err)
	}
	if calls != 3 {
		t.Errorf("%d calls: it did not pause after the first", calls)
	}
}
