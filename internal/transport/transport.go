// Package transport connects a client to FlowFabric: to the engine in this process, or to a server. It depends on the table of
// operations but not on what they do.
package transport

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Transport performs operations of the table. It is safe for concurrent use.
type Transport interface {
	// Do performs one operation. request points to the operation's request type, answer to its answer type, which is filled in; a
	// wire.Sink says where the bytes of its answer go. A command whose outcome is unknown is repeated under one key until it is
	// known, or until ctx ends.
	Do(ctx context.Context, op *wire.Operation, request, answer any, how Options) error
}

// Connection is a transport with what a client needs besides its operations.
type Connection struct {
	Transport
	Clock clock.Clock // generates ids, times pauses, and measures the leases of workers
	// Close ends the transport: calls in progress are finished, waiting ones end at once, later ones return shutting_down.
	Close   func(ctx context.Context) error
	Tracer  api.Tracer        // of workers; nil: no spans
	Metrics metrics.Collector // of the engine; nil: it runs in another process
	Brief   bool              // all claims of a worker but the first wait only briefly, and pause while there is no work
}

// LeaveTx leaves a command of a worker in a transaction on the database of the store, or only looks for the stored step of a command.
// The answer has an outcome only if nothing was written.
type LeaveTx func(ctx context.Context, via Connection, item api.WorkItem, look bool) (api.WorkAnswer, error)

// Options are the options of one operation.
type Options struct {
	Key  string        // identifies a repeat for 24 hours; "": the transport generates one
	Wait time.Duration // how long the operation may wait before it answers
	// AsWorker means that a worker of this process acts on its own behalf, which is not an operator's action. A server derives
	// that from the caller's key.
	AsWorker bool
	// Namespace replaces the client's own; "": it does not.
	Namespace string
	// Again means that the caller has performed the operation before, under Key, with an unknown outcome.
	Again bool
}

// Call performs an operation and returns its answer.
func Call[Req, Ans any](ctx context.Context, t Transport, call wire.Call[Req, Ans], request *Req, how Options) (*Ans, error) {
	answer := new(Ans)
	if err := t.Do(ctx, call.Operation, request, answer, how); err != nil {
		return nil, err
	}
	return answer, nil
}

// Garbled returns the error for an answer that cannot be decoded, which the caller cannot correct.
func Garbled(err error) error {
	return api.Errorf(codeInternal, "the answer of the server cannot be read: %w", err)
}
