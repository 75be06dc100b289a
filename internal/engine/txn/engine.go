package txn

import (
	"context"
	"errors"
	"sync"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/quiet"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Engine runs commands against a store. Many engines, in many processes, may run on one shared store.
type Engine struct {
	Store store.Store
	Cfg   Config
	Dict  *dictionaryCache

	minter base.Minter

	Committer      *committer
	Held           *heldRows
	Dispatcher     Dispatcher
	vanished       func(ctx context.Context, xs []*core.Execution) (map[base.UUID]bool, error)
	knowsNamespace func(string) bool
	recordLoss     func(ctx context.Context, incarnation string, from, to int64) error
	rooms          [slots]any // the values of rooms
	phases         []Phases
	points         points
	listeners      []Listener
	forgets        []func() // drop what was remembered of another incarnation
	Rates          *rates
	rows           *rowCache
	lives          incarnations
	Waiters        *waiters
	Sweep          *sweeper
	Log            *logReader
	Follower       *follower
	Hints          *hinter
	Meter          *meter
	Gauges         *gauges
	extensions     extensions
	inboxKick      chan struct{} // see LookAtInbox
	QuietLog       *quiet.Log
	Health         health
	alone          chan struct{} // one token for each command that may run alone at a time
	Checks         chan struct{} // the same for dry runs: they are not bounded as commands are, and must not keep commands waiting

	Stop     chan struct{} // closed when Close begins: no new calls are accepted
	once     sync.Once
	wg       sync.WaitGroup // committers and what they start
	loops    sync.WaitGroup // everything else
	cancel   context.CancelFunc
	Lifetime context.Context //nolint:containedctx // of the loops, which belong to no call
}

// New makes an engine on a migrated store, which outlives it. Rooms register with it before Start.
func New(ctx context.Context, st store.Store, cfg Config) (*Engine, error) {
	e := &Engine{
		Store: st, Cfg: cfg.withDefaults(), Stop: make(chan struct{}), Dispatcher: idle{}, knowsNamespace: func(string) bool { return false },
		recordLoss: func(context.Context, string, int64, int64) error { return nil },
		vanished:   func(context.Context, []*core.Execution) (map[base.UUID]bool, error) { return nil, nil },
	}
	e.Lifetime, e.cancel = context.WithCancel(OwnWork(context.WithoutCancel(ctx)))
	e.Dict = &dictionaryCache{
		store: st, reading: NewCallLock(), registering: NewCallLock(),
		changed: func() {}, renamed: func() {}, added: func() { e.Hints.Send(store.Hint{Dictionary: true}) },
	}
	e.Dict.reborn = e.Dict.current.Store // nothing is cached yet
	if err := e.Dict.Reload(ctx); err != nil {
		e.cancel()
		return nil, PublicFault(err)
	}
	e.QuietLog = quiet.New(e.Cfg.Logger, e.Cfg.Clock)
	e.Meter = newMeter(clock.Stopwatch())
	e.Gauges = newGauges(e)
	e.lives.kick = make(chan struct{}, 1)
	e.Rates = newRates()
	e.rows = newRowCache()
	e.alone, e.Checks = make(chan struct{}, aloneAtOnce), make(chan struct{}, aloneAtOnce)
	e.Waiters, e.inboxKick = newWaiters(), make(chan struct{}, 1)
	e.Sweep = newSweeper(e)
	e.Log = newLogReader(e)
	e.Follower = newFollower(e)
	e.Hints = newHinter(e)
	e.Committer, e.Held = newCommitter(e), newHeldRows(e)
	e.OnPhases(Phases{At: AtLanes, Lock: lock((*Tx).awaitClaims)})
	e.registerOwn()
	if err := e.Log.start(ctx); err != nil {
		e.cancel()
		return nil, PublicFault(err)
	}
	e.Dict.reborn, e.Dict.renamed = e.reborn, e.Log.renamed
	return e, nil
}

// registerOwn registers what the kernel does itself.
func (e *Engine) registerOwn() {
	e.OnTimer(timerWake, TimerRule{Label: "execution", Do: e.sweepWake})
	e.OnTimer(TimerKeys, TimerRule{Label: "idempotency_key", Do: e.sweepKeys})
	e.OnTimer(timerRequests, TimerRule{Label: "request", Do: e.sweepRequests})
	e.OnTimer(timerTasks, TimerRule{Label: "followup", Do: e.sweepTasks, Long: true})
	OnTask(e, taskTrimHistory, e.dropHistory)
	e.CountRemoved(DocRequest, "request")
	e.CountRemoved(DocWorker, "worker")
}

// Start starts the engine's goroutines. If it fails, the engine is closed. Codes of the signing keys: seed_conflict, master_key_required,
// master_key_mismatch.
func (e *Engine) Start(ctx context.Context) error {
	e.start()
	for _, do := range e.extensions.starts {
		if err := do(ctx); err != nil {
			return errors.Join(err, e.Close(context.WithoutCancel(ctx)))
		}
	}
	return nil
}

func (e *Engine) start() {
	for range e.Committer.goroutines() {
		e.wg.Go(func() { e.KeepRunning(InCommand, func() { e.Committer.run(e.Stop) }) })
	}
	e.wg.Go(func() { e.KeepRunning(InClaim, func() { e.Dispatcher.Run(e.Stop) }) })
	loop := func(place string, run func(context.Context)) {
		e.loops.Go(func() { e.KeepRunning(place, func() { run(e.Lifetime) }) })
	}
	loop(inHint, e.Hints.run)
	loop(inHint, e.Hints.listen)
	loop(inHint, e.watchInbox)
	loop(inLog, e.Log.run)
	loop(inLog, e.watch)
	for _, run := range e.extensions.loops {
		loop(InCommand, run)
	}
	if !e.Cfg.NoTimers {
		loop(InSearch, e.Follower.Run)
	}
	opened := e.Cfg.Clock.Now()
	loop(inTimer, func(ctx context.Context) { e.Sweep.run(ctx, opened) })
}

// Close stops accepting commands (shutting_down), ends waiting calls at once, commits what was accepted, and ends every
// goroutine. It does not close the store.
func (e *Engine) Close(ctx context.Context) error {
	e.once.Do(func() {
		for _, do := range e.extensions.closes {
			do(ctx) // no calls are accepted afterwards
		}
		close(e.Stop)
	})
	done := make(chan struct{})
	go func() {
		e.cancel()
		e.loops.Wait()
		e.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return base.Errorf(base.CodeTimeout, "the engine did not stop in time: %w", context.Cause(ctx))
	}
}

// Bounded is the context of a transaction that no single caller owns.
func (e *Engine) Bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.Background(), e.Cfg.StoreTimeout)
}

// Background is the context of work that no single caller owns.
func (e *Engine) Background() context.Context { return context.WithoutCancel(e.Lifetime) }

// Info returns the description of the store that the engine runs on.
func (e *Engine) Info() store.Info { return e.Store.Info() }

// Stopping reports whether Close has begun.
func (e *Engine) Stopping() bool {
	select {
	case <-e.Stop:
		return true
	default:
		return false
	}
}

// NotFound returns the refusal of an execution that does not exist, or that the caller does not see. Code: execution_not_found.
func NotFound(id base.GivenID) error {
	return base.Errorf(base.CodeExecutionNotFound, "no execution %s", id.UUID)
}
