package flowfabric

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// instant is a client that always has work and accepts every ending at once: what is left is the worker's own cost.
type instant struct {
	Client
	left atomic.Int64
}

func (i *instant) seam() seam       { return seam{clock: clock.System()} }
func (i *instant) Work() Work       { return Work{instantWork{i}} }
func (i *instant) Events() Events   { return Events{via: instantEvents{}} }
func (i *instant) Workers() Workers { return Workers{via: instantWorkers{}} }

type instantWork struct{ *instant }

func (w instantWork) Do(ctx context.Context, _ *wire.Operation, request, answer any, _ transport.Options) error {
	switch r := request.(type) {
	case *wire.HeartbeatRequest:
		*answer.(*Heartbeat) = Heartbeat{Registered: true, Leases: make([]Renewal, len(r.Body.Leases))}
	case *wire.ClaimRequest:
		*answer.(*ClaimAnswer) = w.claim(ctx, r.Body.Max)
	case *wire.WorkBatch:
		*answer.(*[]WorkAnswer) = make([]WorkAnswer, len(r.Items))
	}
	return nil
}

func (w instantWork) claim(ctx context.Context, most int) (answer ClaimAnswer) {
	for range most {
		if w.left.Add(-1) < 0 {
			if len(answer.Tasks) == 0 {
				<-ctx.Done()
			}
			return answer
		}
		answer.Tasks = append(answer.Tasks, &Claimed{ID: someID, Kind: "noop", Lease: Lease{ExecutionID: someID, ID: "l", Epoch: 1, AttemptID: "a"}})
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
		return newError(base.CodeWorkerNotRegistered, "nobody")
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
	w := NewWorker(client, WorkerConfig{Concurrency: 512})
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
