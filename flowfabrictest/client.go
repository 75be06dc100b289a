package flowfabrictest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// newClient makes the client of the environment.
func (e *Env) newClient() *flowfabric.Client {
	namespace := e.namespace()
	on := surviving{e}
	return flowfabric.NewClient(transport.Connection{
		Transport: &lasting{service.NewInProcess(on, service.Owner(principal, namespace)), e}, Clock: e.clock, Close: e.Close,
	})
}

// principal is the name that the client of an environment acts under.
const principal = "local"

// namespace is the namespace of the environment.
func (e *Env) namespace() string {
	if e.cfg.Namespace == "" {
		return "default"
	}
	return e.cfg.Namespace
}

// lasting is the transport of an environment.
type lasting struct {
	*service.InProcess
	env *Env
}

// Here is the engine of the process that lives.
func (l *lasting) Here() *inprocess.Engine {
	here, _ := inprocess.Of(l.env.alive(context.Background()).client)
	return here
}

// surviving performs operations in the process that lives.
type surviving struct{ env *Env }

// now returns the service of the process that lives.
func (s surviving) now(ctx context.Context) service.Backend { return s.of(s.env.alive(ctx)) }

func (surviving) of(p *process) service.Backend {
	on, _ := inprocess.BackendOf(p.client)
	return on
}

// Do performs an operation. A command survives the death of the process: it is repeated in the next one, under the same key.
func (s surviving) Do(ctx context.Context, by service.Caller, op *wire.Operation, request, answer any) error {
	if by.Key == "" && op.Method != http.MethodGet {
		by.Key = mint.Key(s.env.clock)
	}
	switch op {
	case wire.DeleteQuota.Operation, wire.DeleteBudget.Operation, wire.ListExecutions.Operation, wire.CountExecutions.Operation, wire.StartBulk.Operation:
		s.env.Settle() // what is attached to a quota or names a budget, lists, counts and bulk jobs follow the log
	}
	if _, streams := answer.(*wire.Sink); streams { // it has what came before the process died
		return s.now(ctx).Do(ctx, by, op, request, answer)
	}
	ctx, done := s.env.unlessStuck(ctx, op.ID)
	defer done()
	for {
		p := s.env.alive(ctx)
		during, cancel := p.during(ctx)
		err := s.of(p).Do(during, by, op, request, answer)
		cancel()
		if errors.Is(context.Cause(ctx), errStuck) {
			return errStuck
		}
		if err == nil || !p.dead() || ctx.Err() != nil {
			return err
		}
		by.Again = true
	}
}

// Authenticate finds the API key of a secret.
func (s surviving) Authenticate(ctx context.Context, secret string) (*api.APIKey, error) {
	return s.now(ctx).Authenticate(ctx, secret)
}

// HasAdminKey reports whether callers of a server need keys.
func (s surviving) HasAdminKey(ctx context.Context) (bool, error) { return s.now(ctx).HasAdminKey(ctx) }

// OnlyNamespace reports whether no other namespace exists.
func (s surviving) OnlyNamespace(ctx context.Context, name string) (bool, error) {
	return s.now(ctx).OnlyNamespace(ctx, name)
}

// RecordRefusal records a refusal in the audit log.
func (s surviving) RecordRefusal(ctx context.Context, by service.Caller, r service.Refusal) error {
	return s.now(ctx).RecordRefusal(ctx, by, r)
}

// TakeRate takes from an allowance per second.
func (s surviving) TakeRate(ctx context.Context, name string, perSecond, want int) (int, time.Duration, error) {
	return s.now(ctx).TakeRate(ctx, name, perSecond, want)
}

// AcquireSlots sets how many places a server wants to hold.
func (s surviving) AcquireSlots(ctx context.Context, name string, most, want int) (int, error) {
	return s.now(ctx).AcquireSlots(ctx, name, most, want)
}

// NamespaceBounds returns what servers enforce for a namespace.
func (s surviving) NamespaceBounds(ctx context.Context, namespace string) (service.NamespaceBounds, error) {
	return s.now(ctx).NamespaceBounds(ctx, namespace)
}

// StoreTime returns the store's clock.
func (s surviving) StoreTime() time.Time { return s.now(context.Background()).StoreTime() }

// Installation names the installation of the store.
func (s surviving) Installation() string { return s.now(context.Background()).Installation() }

// Collector returns the metrics of the engine that lives when it is called.
func (s surviving) Collector() metrics.Collector { return s.now(context.Background()).Collector() }

// NamespaceCollector returns those of some namespaces.
func (s surviving) NamespaceCollector(namespaces []string) metrics.Collector {
	return s.now(context.Background()).NamespaceCollector(namespaces)
}
