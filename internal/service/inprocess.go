package service

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// InProcess is the transport of a client in this process. It encodes no JSON.
type InProcess struct {
	on Backend
	by Caller
}

// NewInProcess returns a transport that performs all operations for one caller.
func NewInProcess(on Backend, by Caller) *InProcess { return &InProcess{on: on, by: by} }

// Backend returns what performs the operations.
func (p *InProcess) Backend() Backend { return p.on }

// Do performs an operation.
func (p *InProcess) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	c := p.by
	c.Key, c.AsWorker, c.Chosen, c.Again = how.Key, how.AsWorker, how.Namespace, how.Again
	return p.on.Do(ctx, c, op, request, answer)
}
