package flowfabric

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/flowfabric/flowfabric/ops"
	"github.com/flowfabric/flowfabric/workapi"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/quiet"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// runner is a running worker: claimers that feed a pool of goroutines, one of which each task keeps until its ending is
// acknowledged, and three loops that maintain the leases. The claimers fill slots; a task frees its own when its handler has
// returned, so that the next one is claimed while the ending is being sent.
type runner struct {
	client *Client
	work   workapi.Work
	cfg    WorkerConfig
	log    *slog.Logger
	clock  clock.Clock
	meter  *workerMeter
	tracer Tracer    // nil: no spans
	born   time.Time // zero of now()

	handlers map[string]*handler
	open     []string   // kinds limited only by the concurrency of the worker
	limited  []*handler // kinds with a bound of their own

	slots    []atomic.Pointer[Task]
	placing  sync.Mutex // held while slots are filled
	tasks    chan *Task
	free     atomic.Int64 // empty slots that no claimer has taken
	claimers []*claimer
	ending   atomic.Int64 // tasks whose place was passed on before their ending was acknowledged
	pool     sync.WaitGroup
	idle     atomic.Int64 // goroutines of the pool that wait for a task and have none assigned

	leftOut atomic.Pointer[context.CancelFunc] // ends a waiting claim that left out a full kind; nil: none does

	trust       int64          // nanoseconds after the start of a call during which its lease is trusted
	beat        time.Duration  // between heartbeats
	look        atomic.Int64   // when the watch checks the leases next
	looked      chan struct{}  // wakes the watch early
	apart       atomic.Bool    // leases that transactions hold are being renewed
	beats       sync.WaitGroup // the same
	drains      atomic.Bool    // an operator has drained the instance: it claims nothing new
	left        atomic.Bool    // it has left or is leaving: it does not register again
	joins       chan struct{}  // holds a token while the instance registers again
	asks        chan struct{}  // makes the next heartbeat at once, which tells who drains the instance
	drainLogged atomic.Bool    // the drain was logged

	stopping    chan struct{} // closed: claim nothing more
	stopOnce    sync.Once
	handingBack chan struct{} // closed: hand back everything at once
	backOnce    sync.Once
	done        chan struct{} // closed when run returns

	quiet   *quiet.Log // rate-limits logs of persistent trouble
	unheard sync.Once  // logs that there is no feed
}

// never is a deadline that does not exist.
const never = math.MaxInt64

func newRunner(w *Worker) *runner {
	cfg, conn := w.cfg, w.client.conn
	host := conn.Clock
	r := &runner{
		client: w.client, work: w.client.Work(), cfg: cfg, log: cfg.Logger.With("worker", cfg.Instance),
		clock: host, meter: w.meter, tracer: conn.Tracer, born: host.Now(),
		handlers: make(map[string]*handler, len(w.handlers)),
		slots:    make([]atomic.Pointer[Task], 2*cfg.Concurrency), tasks: make(chan *Task, cfg.Concurrency),
		looked:   make(chan struct{}, 1),
		joins:    make(chan struct{}, 1),
		asks:     make(chan struct{}, 1),
		beat:     min(cfg.LeaseTTL, maxLiveness) / 3,
		stopping: make(chan struct{}), handingBack: make(chan struct{}), done: make(chan struct{}),
	}
	r.quiet = quiet.New(r.log, host)
	r.trust = int64(cfg.LeaseTTL - min(leaseMargin, cfg.LeaseTTL/6))
	r.free.Store(int64(cfg.Concurrency))
	for _, h := range w.handlers {
		r.handlers[h.kind] = h
		if h.cfg.Concurrency > 0 && h.cfg.Concurrency < cfg.Concurrency {
			r.limited = append(r.limited, h)
		} else {
			r.open = append(r.open, h.kind)
		}
	}
	r.claimers = r.newClaimers(w.client.claims, conn.Brief)
	return r
}

// now returns the time since the runner began, by the host's monotonic clock, in nanoseconds.
func (r *runner) now() int64 { return int64(r.clock.Now().Sub(r.born)) }

// run is the life cycle of a runner: register, work until it is stopped, let handlers end, hand back the rest, sign off.
func (r *runner) run(ctx context.Context) error {
	var heeding sync.WaitGroup
	defer heeding.Wait()
	defer close(r.done)
	defer context.AfterFunc(ctx, r.drain)()
	claiming, stopClaiming := context.WithCancelCause(ctx)
	defer stopClaiming(nil)
	base := context.WithoutCancel(ctx) // what has begun is ended properly
	heeding.Go(func() {
		<-r.stopping
		r.heedSignals(func() { stopClaiming(ErrShuttingDown) })
	})
	defer r.drain()
	if err := r.register(claiming); err != nil || claiming.Err() != nil {
		return err
	}
	from, followed := r.feedStart(claiming) // before the first claim, so that nothing of its leases is missed
	loops, endLoops := context.WithCancel(base)
	var group sync.WaitGroup
	group.Go(func() { r.beatLoop(loops) })
	group.Go(func() { r.watchLoop(loops) })
	if followed {
		for _, filter := range r.feeds() {
			group.Go(func() { r.follow(loops, filter, from) })
		}
	}
	err := r.claim(claiming, group.Go)
	r.drain()
	close(r.tasks)
	r.finishTasks(ctx)
	endLoops()
	group.Wait()
	r.sayGoodbye(base)
	return err
}

// noteDrain takes note of whether an operator drains the instance, and logs when that begins and ends. by is empty if the answer does
// not say who asked: then a heartbeat does.
func (r *runner) noteDrain(on bool, by string) {
	r.drains.Store(on)
	switch {
	case r.left.Load(): // it drains because it leaves
	case on && by == "" && !r.drainLogged.Load():
		wake(r.asks)
	case on && r.drainLogged.CompareAndSwap(false, true):
		r.log.Warn("flowfabric: draining: it claims nothing more", "asked_by", by, "exits", r.cfg.ExitOnDrain)
		if r.cfg.ExitOnDrain {
			r.drain()
		}
	case !on && r.drainLogged.CompareAndSwap(true, false):
		r.log.Warn("flowfabric: the drain has ended: it claims again")
	}
}

// drain makes the runner claim nothing more.
func (r *runner) drain() { r.stopOnce.Do(func() { close(r.stopping) }) }

// handBackNow makes the runner hand back everything at once.
func (r *runner) handBackNow() { r.backOnce.Do(func() { close(r.handingBack) }) }

// Bounds of the shutdown of a runner.
const (
	handBackGrace = 5 * time.Second // for handlers to return once their context has ended
	goodbyeLimit  = 2 * time.Second // for the final calls
)

// finishTasks waits for the handlers. When the drain timeout is over, or everything is to be handed back at once, it ends their
// contexts and hands back the tasks that they do not end. A handler that ignores its context continues without a lease.
func (r *runner) finishTasks(ctx context.Context) {
	idle := make(chan struct{})
	go func() {
		r.pool.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return
	case <-r.handingBack:
	case <-ctx.Done(): // until here the context of Drain bounded the wait
		if r.awaitIdle(idle, r.cfg.DrainTimeout) {
			return
		}
	}
	r.eachTask(func(t *Task) { t.stop(ErrShuttingDown) })
	if !r.awaitIdle(idle, handBackGrace) {
		r.releaseAll(context.WithoutCancel(ctx))
	}
}

// heedSignals makes the next signal hand everything back, until the runner is done. It listens from the moment when the worker
// begins to stop: a signal before that is the one that stopped it.
func (r *runner) heedSignals(listening func()) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	listening()
	select {
	case <-again:
		r.handBackNow()
		<-r.done
	case <-r.done:
	}
}

// awaitIdle waits for d, or less if everything is to be handed back at once, and reports whether all handlers ended.
func (r *runner) awaitIdle(idle <-chan struct{}, d time.Duration) bool {
	timer := r.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
	case <-r.handingBack:
	}
	return false
}

// releaseAll hands back every task that is not being ended.
func (r *runner) releaseAll(ctx context.Context) {
	var all sync.WaitGroup
	r.eachTask(func(t *Task) {
		if !t.state.CompareAndSwap(taskRuns, taskEnding) {
			return
		}
		all.Go(func() {
			r.log.Warn("flowfabric: handed back while its handler still runs", "execution_id", string(t.claimed.ID), "kind", t.claimed.Kind)
			r.endWith(ctx, t, api.WorkItem{Op: api.OpRelease, Reason: releaseReason})
		})
	})
	all.Wait()
}

func (r *runner) eachTask(do func(*Task)) {
	for i := range r.slots {
		if t := r.slots[i].Load(); t != nil {
			do(t)
		}
	}
}

// register registers the instance and retries for as long as that takes. It returns an error only if a retry cannot succeed.
func (r *runner) register(ctx context.Context) error {
	for try := 0; ; try++ {
		err := r.registerOnce(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case hopeless(err):
			return err
		}
		r.complain("register", err)
		backoff.Pause(ctx, r.clock, backoff.Delay(try))
	}
}

func (r *runner) registerOnce(ctx context.Context) error {
	answer, err := r.work.Register(ctx, api.Registration{
		WorkerID: r.cfg.ID, InstanceID: r.cfg.Instance, Lanes: r.cfg.Lanes, Kinds: slices.Sorted(maps.Keys(r.handlers)),
		Capabilities: r.cfg.Capabilities, MaxConcurrent: r.cfg.Concurrency,
		LivenessTTL: min(max(r.cfg.LeaseTTL, minLiveness), maxLiveness), Version: r.cfg.Version,
	})
	if err == nil {
		r.noteDrain(answer.Drain, answer.DrainedBy)
	}
	return r.meter.called(ctx, err)
}

// registerAgain registers an instance that has lapsed, unless it is leaving: it would be given work again, while it waits for its
// handlers. The leases that it still has need no registration (S55).
func (r *runner) registerAgain(ctx context.Context) error {
	select {
	case r.joins <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.joins }()
	if r.left.Load() {
		return nil
	}
	return r.registerOnce(ctx)
}

// hopeless reports whether an error persists until the configuration or the credentials change.
func hopeless(err error) bool {
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrUnauthenticated) || errors.Is(err, ErrForbidden) ||
		CodeOf(err) == string(base.CodeInstanceIDTaken)
}

// leave reports to the fleet that the instance takes nothing more (S53), so that claims in progress return at once with what they
// have taken, and none of them takes what is handed back from now on. It cancels those that do not return.
func (r *runner) leave(claims context.Context, giveUp context.CancelFunc) {
	defer giveUp()
	ctx, cancel := r.within(context.WithoutCancel(claims), goodbyeLimit)
	defer cancel()
	r.left.Store(true)
	select {
	case r.joins <- struct{}{}: // a registration in progress would end the drain if it came after it
		<-r.joins
	case <-ctx.Done():
		return
	}
	err := r.client.Workers().Drain(ctx, ops.WorkerTarget{InstanceID: r.cfg.Instance, Leaving: true})
	if r.meter.called(ctx, err) != nil {
		r.log.Debug("flowfabric: could not say that it stops", "error", err)
		return
	}
	select {
	case <-claims.Done():
	case <-ctx.Done():
	}
}

// sayGoodbye reports to the fleet that the instance is gone (S55). Leases that are left expire.
func (r *runner) sayGoodbye(ctx context.Context) {
	ctx, cancel := r.within(ctx, goodbyeLimit)
	defer cancel()
	request := &wire.MarkDeadRequest{ByInstance: wire.ByInstance{Instance: r.cfg.Instance}, Leaving: true}
	request.Body.Reason = "stopped"
	_, err := transport.Call(ctx, r.client.conn, wire.MarkWorkerDead, request, transport.Options{AsWorker: true}) // it is not an operator's action
	if r.meter.called(ctx, err) != nil {
		r.log.Debug("flowfabric: could not sign off", "error", err)
	}
}

// within returns a context that ends after d of the runner's clock.
func (r *runner) within(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		if backoff.Pause(ctx, r.clock, d) {
			cancel()
		}
	}()
	return ctx, cancel
}

// complain logs trouble, at most once a minute while it persists.
func (r *runner) complain(what string, err error) {
	r.quiet.Warn("flowfabric: request failed, retrying", "call", what, "error", err)
}
