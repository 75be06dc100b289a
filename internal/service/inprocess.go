package service

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// InProcess is the transport of a client in this process. It encodes no JSON.
type InProcess struct {
	service *Service
	who     Caller
}

// InProcess returns a transport that performs all operations for one caller.
func (s *Service) InProcess(who Caller) *InProcess { return &InProcess{service: s, who: who} }

// Do performs an operation. A command without a key gets one, for its repeats; commands under leases have their own.
func (p *InProcess) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if how.Key == "" && op.Method != http.MethodGet && op != wire.DoWork.Operation {
		how.Key = mint.Key(p.service.clock)
	}
	return api.AsError(p.service.Do(ctx, p.caller(ctx, how), op, request, answer))
}

// SubmitTx writes a submission to the store in the caller's own transaction.
func (p *InProcess) SubmitTx(ctx context.Context, tx any, s api.Submission) (*api.Execution, error) {
	if s.ID == "" {
		s.ID = mint.ID(p.service.clock)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	x, err := p.service.SubmitTx(ctx, p.caller(ctx, transport.Options{}), tx, &s)
	return x, api.AsError(err)
}

// caller returns for whom an operation is performed: the principal of the context, else the caller of the transport.
func (p *InProcess) caller(ctx context.Context, how transport.Options) Caller {
	c := p.who
	if of, ok := principal.From(ctx); ok {
		c = Caller{Principal: of}
	}
	c.Key, c.AsWorker, c.Chosen, c.Again = how.Key, how.AsWorker, how.Namespace, how.Again
	return c
}
