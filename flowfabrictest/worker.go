package flowfabrictest

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Worker is a worker of the environment. It crashes with the process and is started again with it, unless it was killed.
type Worker struct {
	env      *Env
	cfg      flowfabric.WorkerConfig
	register func(w *flowfabric.Worker)
	shift    *shift // nil once killed
}

// Worker starts a worker in the process. register is called for it, and again for its successor after each crash: it must only
// register handlers.
func (e *Env) Worker(cfg flowfabric.WorkerConfig, register func(w *flowfabric.Worker)) *Worker {
	if cfg.Logger == nil {
		cfg.Logger = e.log.logger()
	}
	w := &Worker{env: e, cfg: cfg, register: register}
	p := e.alive(context.Background())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.workers = append(e.workers, w)
	w.start(p)
	return w
}

// Kill ends the worker as kill -9 would: it sends nothing more, and its leases lapse. Running handlers get a cancelled context,
// and end at their next call of the task.
func (w *Worker) Kill() {
	w.env.mu.Lock()
	defer w.env.mu.Unlock()
	if w.shift == nil {
		return
	}
	w.env.family.Do(w.shift.die) // so that its goroutines are waited for
	w.stop()
	w.env.workers = slices.DeleteFunc(w.env.workers, func(other *Worker) bool { return other == w })
	w.shift = nil
}

// start starts the worker in a process.
func (w *Worker) start(p *process) {
	s := &shift{process: p, done: make(chan struct{})}
	s.life, s.die = context.WithCancel(p.life)
	s.inner = flowfabric.NewWorker(s.throughLink(p.client), w.cfg)
	s.inner.Use(s.around)
	w.register(s.inner)
	var ctx context.Context
	ctx, s.end = context.WithCancel(context.Background())
	w.env.family.Do(func() {
		go func() {
			defer close(s.done)
			if err := s.inner.Run(ctx); err != nil {
				w.env.tb.Errorf("flowfabrictest: a worker does not run: %v", err)
			}
		}()
	})
	w.shift = s
}

// stop ends the worker without waiting for its handlers. It gives its work back, unless it crashed.
func (w *Worker) stop() {
	s := w.shift
	s.end()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.inner.Drain(now) // it reports that there was no time to wait
	<-s.done
	s.die()
}

// shift is a worker in one process.
type shift struct {
	process *process
	inner   *flowfabric.Worker
	life    context.Context //nolint:containedctx // ends when the worker or its process dies
	die     context.CancelFunc
	end     context.CancelFunc // ends Run
	done    chan struct{}      // closed when Run has returned
	busy    atomic.Int64       // running handlers
}

// around counts running handlers, and attributes their calls to the process.
func (s *shift) around(next flowfabric.HandlerFunc) flowfabric.HandlerFunc {
	return func(ctx context.Context, t *flowfabric.Task) (flowfabric.Payload, error) {
		s.busy.Add(1)
		defer s.busy.Add(-1)
		defer s.process.env.done.Add(1)
		if s.life.Err() != nil {
			runtime.Goexit()
		}
		return next(context.WithValue(ctx, processKey{}, s.process), t)
	}
}

// link is the worker's connection to the engine. It passes nothing after a crash.
type link struct {
	transport.Transport
	shift *shift
}

// throughLink is a client whose operations go through the link of a worker.
func (s *shift) throughLink(c *flowfabric.Client) *flowfabric.Client {
	conn := c.Connection()
	conn.Transport = &link{conn.Transport, s}
	return flowfabric.NewClient(conn)
}

// Here is the engine of the process that lives, for commands inside transactions.
func (k *link) Here() *inprocess.Engine {
	here, _ := k.Transport.(interface{ Here() *inprocess.Engine })
	return here.Here()
}

// EndIfDead ends the goroutine of a handler whose worker has crashed.
func (k *link) EndIfDead() {
	k.shift.process.env.done.Add(1) // the handler may wait from here on
	if k.shift.life.Err() != nil {
		runtime.Goexit()
	}
}

// Do passes operations on unless the worker has crashed. A handler that creates a link when its worker crashes ends here.
func (k *link) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if op.Method == http.MethodGet {
		return k.Transport.Do(ctx, op, request, answer, how)
	}
	k.shift.process.env.done.Add(1) // the handler may wait from here on
	pass := func() error {
		return k.shift.through(ctx, func(ctx context.Context) error { return k.Transport.Do(ctx, op, request, answer, how) })
	}
	if commands, ok := request.(*wire.WorkBatch); ok {
		return k.shift.doWork(commands.Items, pass)
	}
	err := pass()
	if op == wire.CreateLink.Operation && k.shift.life.Err() != nil {
		runtime.Goexit()
	}
	return err
}

// through makes a call that passes unless the worker is dead, before or after.
func (s *shift) through(parent context.Context, call func(ctx context.Context) error) error {
	if s.life.Err() != nil {
		return severed(base.CodeStoreUnavailable)
	}
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	err := call(ctx)
	if s.life.Err() != nil {
		return severed(base.CodeStoreUnavailable)
	}
	return err
}

func severed(code base.Code) error {
	return &flowfabric.Error{Code: string(code), Class: code.Info().Class, Message: errDead.Error()}
}

// doWork passes on the commands of handlers and the results of their tasks. The steps among them are crash points. If the worker
// crashes, the handler's goroutine ends here, as it would in a killed process.
func (s *shift) doWork(items []api.WorkItem, pass func() error) error {
	s.reach(BeforeStep, items)
	err := pass()
	if err == nil {
		s.reach(AfterStep, items)
	}
	if s.life.Err() == nil {
		return err
	}
	if slices.ContainsFunc(items, sentByHandler) {
		runtime.Goexit()
	}
	return severed(base.CodeStaleLease) // so that it is not sent again
}

func (s *shift) reach(point func(string) CrashPoint, items []api.WorkItem) {
	for i := range items {
		if items[i].Op == api.OpStep && s.life.Err() == nil && s.process.env.points.reach(point(items[i].Step)) {
			s.process.die()
		}
	}
}

// sentByHandler distinguishes commands of a handler from those that the worker sends itself.
func sentByHandler(item api.WorkItem) bool {
	return slices.Contains([]api.Op{
		api.OpStep, api.OpProgress, api.OpRenew, api.OpDelay, api.OpSuspend, api.OpWaitpoint,
	}, item.Op)
}
