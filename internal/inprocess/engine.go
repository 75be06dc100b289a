// Package inprocess runs an engine in this process, behind a client. It holds what the packages sqlite, postgres and embedded
// share.
package inprocess

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/webhooksend"
)

// Engine is the engine of a client, with its store.
type Engine struct {
	*service.InProcess // for the owner
	service            *service.Service
	owner              service.Caller // that the client was opened for
	engine             *engine.Engine
	store              store.Store
	cfg                flowfabric.EngineConfig
	sender             *webhooksend.Sender

	closing  sync.Once
	closed   atomic.Bool // Close has begun
	closeErr error
}

// newEngine adds a service to a running engine.
func newEngine(e *engine.Engine, st store.Store, cfg flowfabric.EngineConfig, settings []api.Setting, checks func() []api.Check) *Engine {
	here := &Engine{engine: e, store: st, cfg: cfg, owner: service.Owner(cfg.Principal, cfg.Namespace)}
	_, canCopy := st.(store.Backuper)
	_, canJoin := st.(store.TxSubmitter)
	here.service = service.New(e, e.Config().Clock, service.Config{
		KeyGrace: keyGrace(cfg), Settings: settings, Features: map[string]bool{"backup": canCopy, "transactional_submit": canJoin}, Checks: checks,
		Closed: here.closed.Load, PublicURL: cfg.PublicURL, Trace: here.traceOf,
	})
	here.InProcess = service.NewInProcess(here.service, here.owner)
	return here
}

// Here returns the engine itself, see Of.
func (e *Engine) Here() *Engine { return e }

// BackendOf returns what a server of a client needs. A client of Connect has none.
func BackendOf(c *flowfabric.Client) (on service.Backend, ok bool) {
	here, ok := c.Connection().Transport.(interface{ Backend() service.Backend })
	if !ok {
		return nil, false
	}
	return here.Backend(), true
}

// As returns a client that acts for another caller on the engine of a client; it is closed with that client. A client of Connect
// has none.
func As(c *flowfabric.Client, who service.Caller) (acting *flowfabric.Client, ok bool) {
	on, ok := BackendOf(c)
	if !ok {
		return nil, false
	}
	connection := c.Connection()
	connection.Transport = service.NewInProcess(on, who)
	return flowfabric.NewClient(connection), true
}

// Of returns the engine of a client. A client of Connect has none.
func Of(c *flowfabric.Client) (here *Engine, ok bool) {
	on, ok := c.Connection().Transport.(interface{ Here() *Engine })
	if !ok {
		return nil, false
	}
	return on.Here(), true
}

// connection returns the engine with what a client needs besides it.
func (e *Engine) connection() transport.Connection {
	return transport.Connection{Transport: e, Clock: e.engine.Config().Clock, Close: e.Close, Tracer: e.cfg.Tracer, Metrics: e.engine.Collector()}
}

// traceOf returns the trace context that is stored with submissions in ctx (U215); nil: none.
func (e *Engine) traceOf(ctx context.Context) *base.Trace {
	at := transport.TraceAt(ctx, e.cfg.Tracer)
	return base.ParseTrace(at.Traceparent, at.Tracestate, at.Baggage)
}

// Close stops the engine, then the store. Later calls return the result of the first.
func (e *Engine) Close(ctx context.Context) error {
	e.closing.Do(func() {
		e.closed.Store(true)
		if err := e.engine.Close(ctx); err != nil {
			e.closeErr = api.AsError(err)
		}
		e.sender.Close()
		if err := e.store.Close(); err != nil {
			e.closeErr = errors.Join(e.closeErr, api.AsError(err))
		}
	})
	return e.closeErr
}

// SubmitTx writes a submission of the owner to the store in the caller's own transaction.
func (e *Engine) SubmitTx(ctx context.Context, tx any, s api.Submission) (*api.Execution, error) {
	if s.ID == "" {
		s.ID = mint.ID(e.engine.Config().Clock)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	x, err := e.service.SubmitTx(ctx, e.owner, tx, &s)
	return x, api.AsError(err)
}

// leaveTx leaves a worker's command of the owner in a transaction on the database of the store.
func (e *Engine) leaveTx(ctx context.Context, tx any, item *api.WorkItem, look bool) (api.WorkAnswer, error) {
	answer, err := e.service.LeaveTx(ctx, e.owner, tx, item, look)
	return answer, api.AsError(err)
}
