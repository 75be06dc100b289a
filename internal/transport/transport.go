// Package transport is how a client reaches FlowFabric: the engine in this process, or a server. It knows the table of operations and
// nothing of what they do.
package transport

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Transport does operations of the table. It may be used from many goroutines at once.
type Transport interface {
	// Do does one operation. request points to the operation's request type, answer to its answer type, which is filled in; a wire.Sink says
	// where the bytes of its answer go. A command whose outcome is unknown is repeated under one key until it is known, or until ctx ends.
	Do(ctx context.Context, op *wire.Operation, request, answer any, how Options) error
}

// Connection is a transport with what a client takes from it besides its operations.
type Connection struct {
	Transport
	Clock clock.Clock // by which ids are minted, pauses are made and workers measure their leases
	// Close ends the transport: calls under way are finished, waiting ones end at once, later ones answer shutting_down.
	Close   func(ctx context.Context) error
	Tracer  api.Tracer        // of workers; nil: no spans
	Metrics metrics.Collector // of the engine; nil: it runs in another process
	Brief   bool              // all claims of a worker but the first wait for a moment only, and rest while there is no work
}

// Options say how one operation is done.
type Options struct {
	Key  string        // by which a repeat is recognised for 24 hours; "": the transport mints one
	Wait time.Duration // how long the operation may wait before it answers
	// AsWorker says that a worker of this process acts for itself, which is no operator's act. A server knows by the caller's key.
	AsWorker bool
	// Namespace stands in the place of the client's own; "": it does not.
	Namespace string
	// Again says that the caller has done the operation before, under Key, and does not know its outcome.
	Again bool
}

// Call does an operation and returns its answer.
func Call[Req, Ans any](ctx context.Context, t Transport, call wire.Call[Req, Ans], request *Req, how Options) (*Ans, error) {
	answer := new(Ans)
	if err := t.Do(ctx, call.Operation, request, answer, how); err != nil {
		return nil, err
	}
	return answer, nil
}

// Garbled is the error of an answer that cannot be read: nothing that the caller could mend.
func Garbled(err error) error {
	return api.Errorf(codeInternal, "the answer of the server cannot be read: %w", err)
}
