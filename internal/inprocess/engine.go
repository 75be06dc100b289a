// Package inprocess runs an engine in this process, behind a client. It holds what the packages sqlite, postgres and embedded
// share.
package inprocess

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// Engine is the engine of a client, with its store.
type Engine struct {
	*service.InProcess // for the caller that the client was opened for
	engine             *engine.Engine
	store              store.Store
	cfg                flowfabric.EngineConfig

	closing  sync.Once
	closed   atomic.Bool // Close has begun
	closeErr error
}

// newEngine adds a service to a running engine.
func newEngine(e *engine.Engine, st store.Store, cfg flowfabric.EngineConfig, settings []api.Setting, checks func() []api.Check) *Engine {
	here := &Engine{engine: e, store: st, cfg: cfg}
	_, canCopy := st.(store.Backuper)
	_, canJoin := st.(store.TxSubmitter)
	done := service.New(e, e.Config().Clock, service.Config{
		KeyGrace: keyGrace(cfg), Settings: settings, Features: map[string]bool{"backup": canCopy, "transactional_submit": canJoin}, Checks: checks,
		Closed: here.closed.Load, PublicURL: cfg.PublicURL, Trace: here.traceOf,
	})
	here.InProcess = done.InProcess(service.Owner(cfg.Principal, cfg.Namespace))
	return here
}

// Here returns the engine itself, see Of.
func (e *Engine) Here() *Engine { return e }

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
		if err := e.store.Close(); err != nil {
			e.closeErr = errors.Join(e.closeErr, api.AsError(err))
		}
	})
	return e.closeErr
}

// Collector returns the metrics of the engine.
func (e *Engine) Collector() metrics.Collector { return e.engine.Collector() }

// NamespaceCollector returns the metrics for callers that are restricted to these namespaces.
func (e *Engine) NamespaceCollector(namespaces []string) metrics.Collector {
	return e.engine.NamespaceCollector(namespaces)
}

// TakeRate takes from an allowance of perSecond shared by all processes on the store; got may be more than want, for later use.
// If got is 0, there is none for the returned time.
func (e *Engine) TakeRate(ctx context.Context, name string, perSecond, want int) (got int, wait time.Duration, err error) {
	got, wait, err = e.engine.TakeRate(ctx, name, perSecond, want)
	return got, wait, api.AsError(err)
}

// HoldPlaces sets how many of most places this process wants to hold from now on, and returns how many it holds. It must be
// called again within 15 s.
func (e *Engine) HoldPlaces(ctx context.Context, name string, most, want int) (int, error) {
	got, err := e.engine.HoldPlaces(ctx, name, most, want)
	return got, api.AsError(err)
}

// NamespaceRates returns how many submits and requests per second the namespace permits; 0: not set.
func (e *Engine) NamespaceRates(ctx context.Context, namespace string) (submits, requests int, err error) {
	submits, requests, err = e.engine.NamespaceRates(ctx, namespace)
	return submits, requests, api.AsError(err)
}

// StoreTime returns the store's clock as last read, advanced by the host's clock.
func (e *Engine) StoreTime() time.Time { return e.engine.StoreTime().Std() }
