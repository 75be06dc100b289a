package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// committer gathers the commands that queue up while a transaction is under way and runs them as the next one. There is no
// timer: a lone command is committed at once, many share a commit. On a store with row locks a second transaction runs beside
// the first once the queue is deep; before that it would only cut the same commands into smaller batches, and each batch costs.
type committer struct {
	e      *Engine
	lines  int           // transactions at a time
	kick   chan struct{} // a token for each line that may have something to do
	mu     sync.Mutex
	queue  []*request
	held   []*request          // submits kept back for a moment
	taken  func(*request) bool // which submits wait until the pick under way is over; nil: there is none
	busy   int                 // lines with a transaction under way
	closed bool

	turn    *turn // of the picker, that waits; only where transactions take turns
	without int   // batches in a row without a place for claims
}

func newCommitter(e *Engine) *committer {
	lines := 1 // where transactions take turns anyway
	if e.store.Info().Shared {
		lines = commitLines
	}
	return &committer{e: e, lines: lines, kick: make(chan struct{}, lines)}
}

// depth is how many commands wait.
func (c *committer) depth() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) + len(c.held) + c.e.held.depth()
}

// enqueue adds requests, together so that they share a commit, or refuses at once those that find the queue full (S72). It tells how many
// it took.
func (c *committer) enqueue(batch ...*request) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; n < len(batch) && err == nil; n++ {
		if err = c.add(batch[n]); err != nil {
			break
		}
	}
	if c.worthwhile() {
		c.wake()
	}
	return n, err
}

// add adds a request. The lock is held.
func (c *committer) add(r *request) error {
	switch {
	case c.closed:
		return errShuttingDown()
	case len(c.queue)+len(c.held) >= c.e.cfg.QueueLimit:
		return core.Errorf(core.CodeOverloaded, "%d commands wait for a commit", c.e.cfg.QueueLimit).WithRetryAfter(100)
	case c.taken != nil && c.taken(r):
		c.held = append(c.held, r)
	default:
		c.queue = append(c.queue, r)
	}
	return nil
}

func (c *committer) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// worthwhile reports whether another transaction should begin now. The lock is held.
func (c *committer) worthwhile() bool {
	return len(c.queue) > 0 && (c.busy == 0 || c.closed || c.busy < c.lines && len(c.queue) >= deepQueue)
}

func errShuttingDown() error {
	return core.Errorf(core.CodeShuttingDown, "the engine is stopping").WithRetryAfter(1000)
}

// run commits batches until stop is closed and the queue is empty. Every line runs it.
func (c *committer) run(stop <-chan struct{}) {
	for stopped := false; !stopped; {
		select {
		case <-c.kick:
		case <-stop:
			stopped = true
		}
		c.work(stopped)
	}
}

// work commits batches for as long as that is worthwhile.
func (c *committer) work(stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stopped && !c.closed {
		c.closed, c.taken = true, nil // a pick under way may end after the last line
		c.readmit()
	}
	for c.takeTurn() || c.worthwhile() {
		if len(c.queue) == 0 {
			continue
		}
		c.letEndingsFirst()
		batch := c.take(c.e.cfg.BatchLimit)
		c.busy++
		c.without++
		c.mu.Unlock()
		c.e.answering(batch, func() { c.e.process(batch) })
		c.mu.Lock()
		c.busy--
		c.readmit()
	}
}

// take removes up to n requests from the head of the queue. The lock is held.
func (c *committer) take(n int) []*request {
	if len(c.queue) <= n {
		batch := c.queue
		c.queue = nil
		return batch
	}
	batch := c.queue[:n:n]
	c.queue = append([]*request(nil), c.queue[n:]...)
	return batch
}

// process commits a batch and answers every request in it. A command that the rules refuse fails alone; one that needs a row which another
// transaction holds is set apart (held_rows.go); one that breaks the transaction is found by splitting.
func (e *Engine) process(batch []*request) { e.processAs(batch, batchMode{}) }

func (e *Engine) processAs(batch []*request, began batchMode) {
	mode := began
	for try := 0; ; try++ {
		if batch = e.held.leaveOut(batch, mode.line); len(batch) == 0 {
			return
		}
		known := e.dict.now().version
		rest, err := e.attempt(batch, mode)
		if err == nil {
			return
		}
		if batch = rest; len(batch) == 0 {
			return
		}
		switch kind := store.FaultOf(err); {
		case errors.Is(err, errSetApart):
			try-- // fewer are left
		case leavesGraph(batch, mode, err):
			mode.leave = true
		case kind == store.Conflict && errors.Is(err, errHandOver) && try < 8:
			mode.queue = true
		case kind == store.Conflict && try < 8:
			mode.careful = true
			e.disbelieve(batch)
		case kind == store.Stale && try < 8:
			if dictErr := e.dict.beyond(e.background(), known); dictErr != nil {
				e.answerAll(batch, publicFault(dictErr))
				return
			}
		case kind == store.Retry && try < 8:
			e.pause(try)
		case kind == store.Busy && errors.Is(err, errHandOver) && !mode.queue:
			mode.queue = true
		case kind == store.Busy && !e.store.Info().Shared:
			batch = e.outwait(batch, &mode, err)
		case kind == store.Busy:
			batch = e.stillBusy(batch, &mode, err)
		case kind == store.Unavailable || kind == store.Unknown || len(batch) == 1:
			e.reportGuilty(batch[0], err)
			e.answerAll(batch, publicFault(err))
			return
		default:
			e.processAs(batch[:len(batch)/2], began)
			batch = batch[len(batch)/2:]
			mode, try = began, -1
		}
	}
}

var errHandOver = errors.New("work could not be handed over")

var errDoubted = errors.New("a command must not be answered from memory")

// batchMode says how carefully a batch is run.
type batchMode struct {
	careful bool // look for ids and keys before inserting them, believe nothing remembered
	patient bool // wait longer for locks
	leave   bool // leave the edges of what ends to follow-up work
	queue   bool // hand nothing over: what was believed of the claims that wait may have been wrong
	again   bool // the batch met a lock of which nobody knows what it is, and is tried once more
	unknown bool // it was set apart for that, and is split until the command that waits is alone

	line *heldLine // whose commands they are: its row counts as free
}

// attempt runs the batch in one transaction. An error means that nothing of rest was answered: the batch without the commands
// that were set apart.
func (e *Engine) attempt(batch []*request, mode batchMode) (rest []*request, err error) {
	ctx, cancel := context.WithTimeout(e.background(), storeTimeout)
	defer cancel()
	rest = batch
	since := e.incarnation()
	want := store.Want{Patient: mode.patient}
	recalled := e.believe(batch, mode, &want)
	u, err := e.beginHeeding(ctx, since, want, mode.line)
	defer func() {
		err = e.gaveUp(batch, u, recover(), err)
		if u != nil {
			u.tx.Rollback(ctx)
			u.letGo(err != nil)
		}
		if err != nil {
			rest, err = e.held.part(u, batch, err, mode.line)
		}
	}()
	if err != nil {
		return batch, err
	}
	u.careful, u.leaves = mode.careful, mode.leave
	u.assume(recalled)
	u.expect(len(batch), len(recalled))
	if err := u.loadMore(ctx, batch); err != nil {
		return batch, err
	}
	if err := u.loadBooks(ctx, batch); err != nil {
		return batch, err
	}
	if err := u.awaitClaims(ctx, batch); err != nil {
		return batch, err
	}
	if err := u.lockChains(ctx, batch); err != nil {
		return batch, err
	}
	if err := u.lockGraphs(ctx, batch); err != nil {
		return batch, err
	}
	refusals := u.decideAll(batch)
	if err := cmp.Or(u.redo, u.closedChain()); err != nil {
		return batch, err
	}
	if u.doubted {
		return batch, &store.Fault{Kind: store.Conflict, Err: errDoubted}
	}
	if err := u.follow(ctx); err != nil { // now: what it leaves to be claimed may be handed over
		return batch, err
	}
	for _, f := range u.advanced {
		f()
	}
	u.serves(batch)
	if err := u.commitAndHandOver(ctx, namesOf(batch), mode); err != nil {
		return batch, err
	}
	u.safe.then(func(err error) { u.answer(batch, refusals, err) })
	return nil, nil
}

// answer tells the callers of a batch how it went, once that is certain.
func (u *unit) answer(batch []*request, refusals []error, err error) {
	if err != nil {
		u.e.answerAll(batch, publicFault(u.e.failed(err)))
		return
	}
	_ = u.e.contain(inCommit, func() {
		u.tellSpans(batch)
		u.e.meter.answered(batch, refusals...)
		u.e.tellSlow(batch, refusals...)
	})
	for i, r := range batch {
		r.finish(refusals[i])
	}
}

// commitAndHandOver commits the unit. A batch that meets no difficulty also gives the work that it creates or resumes to claims that
// wait.
func (u *unit) commitAndHandOver(ctx context.Context, commands []string, mode batchMode) error {
	var handed *pick
	if mode == (batchMode{}) {
		handed = u.handOver(ctx)
	}
	switch {
	case handed == nil && mode == (batchMode{}):
		return u.commitWithRiders(ctx, commands)
	case handed == nil:
		return u.commit(ctx, commands)
	}
	u.servesClaims(handed.calls)
	err := u.commit(ctx, append(commands, "claim"))
	if err != nil {
		u.takeBack(err)
		return fmt.Errorf("%w: %w", errHandOver, err)
	}
	u.tellClaims(handed, u.e.picker.handed)
	return nil
}

// loadMore gives every command that needs it a second look at the store, in one further round trip for all.
func (u *unit) loadMore(ctx context.Context, batch []*request) error {
	var want store.Want
	for _, r := range batch {
		if n, ok := r.command.(needier); ok {
			n.more(u, &want)
		}
	}
	return u.load(ctx, want)
}

func namesOf(batch []*request) []string {
	names := make([]string, len(batch))
	for i, r := range batch {
		names[i] = r.name()
	}
	return names
}

func (e *Engine) answerAll(batch []*request, err error) {
	_ = e.contain(inCommit, func() {
		e.meter.answered(batch, err)
		e.tellSlow(batch, err)
	})
	for _, r := range batch {
		r.finish(err)
	}
}

// pause waits a little, longer with each try, before a deadlock or serialization failure is tried again.
func (e *Engine) pause(try int) {
	timer := e.cfg.Clock.NewTimer(time.Duration(rand.IntN(2<<min(try, 6))+1) * time.Millisecond) //nolint:gosec // G404: it spreads retries
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.stop:
	}
}

// publicFault turns a failure of the database into what a caller may see (L143, U15).
func publicFault(err error) error {
	var refusal *core.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return core.Errorf(core.CodeTimeout, "gave up before the answer came: %w", err).WithHint("the same call again is safe")
	}
	switch store.FaultOf(err) {
	case store.Unknown:
		return core.Errorf(core.CodeTimeout, "the connection was lost while committing: %w", err).
			WithHint("the outcome is unknown; the same call again is safe")
	case store.Unavailable, store.Busy, store.Retry, store.Stale, store.Conflict:
		return core.Errorf(core.CodeStoreUnavailable, "the store does not answer: %w", err).WithRetryAfter(1000)
	default:
		return core.Errorf(core.CodeInternal, "the store refused the change: %w", err)
	}
}

// waitsOnce tells of commands that wait for a lock for a second and no longer: whoever holds it may do so for as long as it likes (L82).
func waitsOnce(cmd command) bool {
	switch cmd.(type) {
	case *submit, *submitAll:
		return true
	}
	return false
}

// busyFault is the answer to a command that waited for a lock in vain.
func busyFault(cmd command, err error) error {
	if waitsOnce(cmd) {
		return heldByOpenTransaction()
	}
	return publicFault(err)
}

func heldByOpenTransaction() error {
	return core.Errorf(core.CodeIdempotencyInProgress, "the key or id is held by a transaction that is still open").WithRetryAfter(1000)
}
