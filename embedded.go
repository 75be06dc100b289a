package flowfabric

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/store"
)

// embedded is the Client whose engine runs in this process.
type embedded struct {
	methods
	engine  *engine.Engine
	service *service.Service
	store   store.Store
	tracer  Tracer // nil: no spans
	file    string // of the store; "": it has none
	cfg     OpenConfig

	// For whom calls are made whose context names no principal.
	principal  string
	namespace  string
	namespaces []string

	closing  sync.Once
	closed   atomic.Bool // Close has begun
	closeErr error
}

func newEmbedded(e *engine.Engine, st store.Store, host clock.Clock, cfg OpenConfig) *embedded {
	client := &embedded{
		engine: e, store: st, tracer: cfg.Tracer, cfg: cfg, principal: cfg.Principal, namespace: cfg.Namespace, namespaces: []string{cfg.Namespace},
	}
	client.methods = methods{client, host}
	_, canCopy := st.(store.Backuper)
	_, canJoin := st.(store.TxSubmitter)
	client.service = service.New(e, host, service.Config{
		KeyGrace: cfg.keyGrace(), Settings: settingsOf(cfg, e), Features: map[string]bool{"backup": canCopy, "transactional_submit": canJoin}, Checks: client.checkFiles, Closed: client.closed.Load,
		PublicURL: cfg.PublicURL, Trace: client.traceOf,
	})
	return client
}

func (e *embedded) seam() seam {
	return seam{clock: e.clock, tracer: e.tracer, claims: flowingClaims, submitTx: e.submitTx}
}

// Close stops the engine, then the store. Later calls answer as the first did.
func (e *embedded) Close(ctx context.Context) error {
	e.closing.Do(func() {
		e.closed.Store(true)
		if err := e.engine.Close(ctx); err != nil {
			e.closeErr = publicError(err)
		}
		if err := e.store.Close(); err != nil {
			e.closeErr = errors.Join(e.closeErr, publicError(err))
		}
	})
	return e.closeErr
}

// mintKey makes a request key.
func (e *embedded) mintKey() string { return mintUUID(e.clock).String() }

func mintUUID(c clock.Clock) base.UUID {
	var random [10]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return new(base.Minter).Mint(c.Now(), random)
}
