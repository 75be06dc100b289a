package flowfabrictest

import (
	"context"
	"runtime"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// process is one life of the program under test: an engine and its workers. After a crash it commits nothing; its goroutines are
// ended when its successor starts.
type process struct {
	env    *Env
	client *flowfabric.Client
	life   context.Context //nolint:containedctx // of a process that a test may kill
	die    context.CancelFunc
}

func (p *process) dead() bool { return p.life.Err() != nil }

// during returns a context that ends with its parent or with the process.
func (p *process) during(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	forget := context.AfterFunc(p.life, func() { cancel(errDead) })
	return ctx, func() {
		forget()
		cancel(nil)
	}
}

type processKey struct{}

// alive returns the running process; it starts a new one after a crash. If called by a handler of a crashed process, it ends the
// handler's goroutine, so that nothing it does afterwards is visible.
func (e *Env) alive(ctx context.Context) *process {
	if p, ok := ctx.Value(processKey{}).(*process); ok && p.dead() {
		runtime.Goexit()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running.dead() {
		e.stop()
		e.open()
		for _, w := range e.workers {
			w.start(e.running)
		}
	}
	return e.running
}

// open starts a process on the store.
func (e *Env) open() {
	p := &process{env: e}
	p.life, p.die = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx = engine.WithHooks(ctx, engine.Hooks{Clock: e.clock, Probe: p, UnsafeDurability: true})
	var err error
	e.family.Do(func() { err = p.open(ctx) })
	if err != nil {
		e.tb.Fatalf("flowfabrictest: open %s: %v", e.cfg.Store, err)
	}
	e.running = p
}

// stop ends the goroutines of the process.
func (e *Env) stop() {
	for _, w := range e.workers {
		w.stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.running.client.Close(ctx); err != nil {
		e.tb.Errorf("flowfabrictest: close: %v", err)
	}
}

// open opens the store. A child process that another goroutine is just starting can briefly inherit the lock of the previous
// process; only for the first process a locked store is an error at once.
func (p *process) open(ctx context.Context) error {
	for {
		client, err := embedded.Open(ctx, p.env.cfg.Store, embedded.Config{
			EngineConfig: flowfabric.EngineConfig{Namespace: p.env.cfg.Namespace, Logger: p.env.log.logger(), Webhooks: api.WebhookTargets{AllowLoopback: true}},
		})
		if err == nil {
			p.client = client
			return nil
		}
		if p.env.running == nil || flowfabric.CodeOf(err) != string(base.CodeStoreLocked) || ctx.Err() != nil {
			return err
		}
		runtime.Gosched()
	}
}
