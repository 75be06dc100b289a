package flowfabric

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// instant is a client that always has work and accepts every ending at once: what is left is the worker's own cost.
type instant struct {
	Client
	left atomic.Int64
}

func (i *instant) seam() seam       { return seam{clock: clock.System()} }
func (i *instant) Work() Work       { return instantWork{i} }
func (i *instant) Events() Events   { return Events{via: instantEvents{}} }
func (i *instant) Workers() Workers { return Workers{via: instantWorkers{}} }

type instantWork struct{ *instant }

func (instantWork) sealed() {}

func (instantWork) Register(context.Context, Registration) (Registered, error) {
	return Registered{}, nil
}

func (instantWork) Heartbeat(_ context.Context, _ string, leases []Lease) (Heartbeat, error) {
	return Heartbeat{Registered: true, Leases: make([]Renewal, len(leases))}, nil
}

func (w instantWork) Claim(ctx context.Context, r ClaimRequest) (ClaimAnswer, error) {
	answer := ClaimAnswer{}
	for range r.Max {
		if w.left.Add(-1) < 0 {
			if len(answer.Tasks) == 0 {
				<-ctx.Done()
			}
			return answer, nil
		}
		answer.Tasks = append(answer.Tasks, &Claimed{ID: "x", Kind: "noop", Lease: Lease{ID: "l", Epoch: 1, AttemptID: "a"}})
	}
	return answer, nil
}

func (instantWork) ClaimResumed(context.Context, ID, TargetedClaim) (*Claimed, error) {
	return nil, nil
}
func (instantWork) Reclaim(context.Context, ID, TargetedClaim) (*Claimed, error) { return nil, nil }

func (instantWork) Grant(context.Context, GrantRequest) ([]Grant, error) { return nil, nil }
func (instantWork) ClaimGrant(context.Context, GrantKey, GrantClaim) (*Claimed, error) {
	return nil, nil
}
func (instantWork) VerifyGrant(context.Context, GrantKey) error { return nil }
func (instantWork) ReturnGrant(context.Context, GrantKey) error { return nil }

func (instantWork) Do(_ context.Context, items ...WorkItem) ([]WorkAnswer, error) {
	return make([]WorkAnswer, len(items)), nil
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
		return newError(core.CodeWorkerNotRegistered, "nobody")
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
