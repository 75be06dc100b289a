package flowfabric

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// instant is a client that always has work and accepts every ending at once: what is left is the worker's own cost.
type instant struct {
	left atomic.Int64
}

func (i *instant) client() *Client {
	c := NewClient(transport.Connection{Transport: i, Clock: clock.System()})
	c.claims = 0
	return c
}

// Do does what workers ask for.
func (i *instant) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	switch r := request.(type) {
	case *wire.EventsRequest:
		return instantEvents{}.Do(ctx, op, request, answer, how)
	case *wire.DrainWorkerRequest, *wire.MarkDeadRequest:
		return instantWorkers{}.Do(ctx, op, request, answer, how)
	case *wire.HeartbeatRequest:
		*answer.(*api.Heartbeat) = api.Heartbeat{Registered: true, Leases: make([]api.Renewal, len(r.Body.Leases))}
	case *wire.ClaimRequest:
		*answer.(*api.ClaimAnswer) = i.claim(ctx, r.Body.Max)
	case *wire.WorkBatch:
		*answer.(*[]api.WorkAnswer) = make([]api.WorkAnswer, len(r.Items))
	}
	return nil
}

func (i *instant) claim(ctx context.Context, most int) (answer api.ClaimAnswer) {
	for range most {
		if i.left.Add(-1) < 0 {
			if len(answer.Tasks) == 0 {
				<-ctx.Done()
			}
			return answer
		}
		answer.Tasks = append(answer.Tasks, &api.Claimed{ID: someID, Kind: "noop", Lease: api.Lease{ExecutionID: someID, ID: "l", Epoch: 1, AttemptID: "a"}})
	}
	return answer
}

// instantEvents is the way to an event log in which nothing happens.
type instantEvents struct{}

func (instantEvents) Do(ctx context.Context, _ *wire.Operation, _, _ any, how transport.Options) error {
	if how.Wait > 0 {
		<-ctx.Done()
	}
	return nil
}

type instantWorkers struct{}

// Do refuses a drain, so that claims that wait are given up, and does nothing else.
func (instantWorkers) Do(_ context.Context, op *wire.Operation, _, _ any, _ transport.Options) error {
	if op == wire.DrainWorker.Operation {
		return calls.Refuse(base.CodeWorkerNotRegistered, "missing")
	}
	return nil
}

// BenchmarkWorker is the worker's own cost of one task: slot, context, handler, ending.
func BenchmarkWorker(b *testing.B) {
	client := &instant{}
	client.left.Store(int64(b.N))
	var calls atomic.Int64
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	w := NewWorker(client.client(), WorkerConfig{Concurrency: 512})
	Handle(w, Kind[[]byte, None]("noop"), func(context.Context, *Task, []byte) (None, error) {
		if calls.Add(1) == int64(b.N) {
			cancel()
		}
		return None{}, nil
	})
	b.ReportAllocs()
	b.ResetTimer()
	if err := w.Run(ctx); err != nil {
		b.Fatal(err)
	}
}
