package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/quiet"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Engine runs commands against a store. Many engines, in many processes, may run on one shared store.
type Engine struct {
	store store.Store
	cfg   Config
	dict  *dictionaryCache

	minter  core.Minter
	derives idSecrets

	committer  *committer
	held       *heldRows
	picker     *picker
	slots      slotsKnown
	drains     *drains
	rates      *rates
	recall     *recollection
	lives      incarnations
	keys       *keyCache
	refusals   *refusals
	signing    *keyRings
	auditing   auditKeys
	waitpoints knownWaitpoints
	spaces     *namespaceCache
	ready      readyBounds
	allowances *allowances
	waits      *waiters
	sweep      *sweeper
	log        *logReader
	follower   *follower
	hints      *hinter
	meter      *meter
	gauges     *gauges
	notes      *quiet.Log
	health     health
	adopting   sync.Mutex    // held while submissions are adopted
	alone      chan struct{} // one token for each command that may run alone at a time
	checks     chan struct{} // the same for dry runs: they are not bounded as commands are, and must not keep commands waiting

	stop     chan struct{} // closed when Close begins: no new calls are accepted
	once     sync.Once
	wg       sync.WaitGroup // committers and what they start
	loops    sync.WaitGroup // everything else
	cancel   context.CancelFunc
	lifetime context.Context //nolint:containedctx // of the loops, which belong to no call
}

// Open starts an engine on a migrated store. The store outlives it. Codes of the signing keys: seed_conflict, master_key_required,
// master_key_mismatch.
func Open(ctx context.Context, st store.Store, cfg Config) (*Engine, error) {
	e := &Engine{store: st, cfg: cfg.withDefaults(), stop: make(chan struct{})}
	e.lifetime, e.cancel = context.WithCancel(ownWork(context.WithoutCancel(ctx)))
	e.dict = &dictionaryCache{store: st, changed: func() {}, renamed: func() {}, added: func() { e.hints.send(store.Hint{Dictionary: true}) }}
	e.dict.reborn = e.dict.current.Store // nothing is cached yet
	if err := e.dict.reload(ctx); err != nil {
		e.cancel()
		return nil, publicFault(err)
	}
	e.notes = quiet.New(e.cfg.Logger, e.cfg.Clock)
	e.meter = newMeter(clock.Stopwatch())
	e.gauges = newGauges(e)
	e.picker = newPicker(e)
	e.dict.changed = e.picker.lookAgain
	e.lives.kick = make(chan struct{}, 1)
	e.drains, e.rates = newDrains(), newRates()
	e.refusals = newRefusals()
	e.recall = newRecollection()
	e.alone, e.checks = make(chan struct{}, aloneAtOnce), make(chan struct{}, aloneAtOnce)
	e.keys, e.spaces = newKeyCache(), newNamespaceCache(st)
	e.ready.e = e
	e.signing = newKeyRings(e.cfg.MasterKey)
	e.allowances = newAllowances(e)
	e.waits = newWaiters()
	e.sweep = newSweeper(e)
	e.log = newLogReader(e)
	e.follower = newFollower(e)
	e.hints = newHinter(e)
	e.committer, e.held = newCommitter(e), newHeldRows(e)
	if _, err := e.spaces.of(ctx, "", e.cfg.Clock.Now()); err != nil {
		e.cancel()
		return nil, err
	}
	if err := e.log.start(ctx); err != nil {
		e.cancel()
		return nil, publicFault(err)
	}
	e.dict.reborn, e.dict.renamed = e.reborn, e.log.renamed
	e.start()
	if err := cmp.Or(e.startKeys(ctx), e.startRetention(ctx)); err != nil {
		return nil, errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	return e, nil
}

func (e *Engine) start() {
	for range e.committer.lines {
		e.wg.Go(func() { e.keepRunning(inCommand, func() { e.committer.run(e.stop) }) })
	}
	e.wg.Go(func() { e.keepRunning(inClaim, func() { e.picker.run(e.stop) }) })
	loop := func(place string, run func(context.Context)) {
		e.loops.Go(func() { e.keepRunning(place, func() { run(e.lifetime) }) })
	}
	loop(inHint, e.hints.run)
	loop(inHint, e.hints.listen)
	loop(inLog, e.log.run)
	loop(inLog, e.watch)
	loop(inCommand, e.tellRefusals)
	if !e.cfg.NoTimers {
		loop(inSearch, e.follower.run)
	}
	opened := e.cfg.Clock.Now()
	loop(inTimer, func(ctx context.Context) { e.sweep.run(ctx, opened) })
}

// Close stops accepting commands (shutting_down), ends waiting calls at once, commits what was accepted, and ends every
// goroutine. It does not close the store.
func (e *Engine) Close(ctx context.Context) error {
	e.once.Do(func() {
		e.tellCounted(ctx, true) // no calls are accepted afterwards
		close(e.stop)
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
		return core.Errorf(core.CodeTimeout, "the engine did not stop in time: %w", context.Cause(ctx))
	}
}

// bounded is the context of a transaction that no single caller owns.
func (e *Engine) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.background(), storeTimeout)
}

// background is the context of work that no single caller owns.
func (e *Engine) background() context.Context { return context.WithoutCancel(e.lifetime) }

// Info returns the description of the store that the engine runs on.
func (e *Engine) Info() store.Info { return e.store.Info() }

// stopping reports whether Close has begun.
func (e *Engine) stopping() bool {
	select {
	case <-e.stop:
		return true
	default:
		return false
	}
}

// sees reports whether the caller may see something of that namespace (W5).
func (c Caller) sees(namespace string) bool {
	return c.Namespaces == nil || contains(c.Namespaces, namespace)
}

// worksIn refuses a worker whose key is bound to lanes, of which that of the execution is none (U122): role_required, whatever lease it shows.
func (c Caller) worksIn(lane string) error {
	if c.WorkLanes == nil || contains(c.WorkLanes, lane) {
		return nil
	}
	return core.Errorf(core.CodeRoleRequired, "the caller may not work on this lane").With("lanes", c.WorkLanes).
		WithHint("use a key that may work on all lanes, or on that of the execution")
}

func notFound(id core.GivenID) error {
	return core.Errorf(core.CodeExecutionNotFound, "no execution %s", id.UUID)
}
