package txn

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// committer collects the commands that arrive while a transaction is under way and runs them as the next one. There is no timer: a single command is
// committed at once, and many share a commit. On a store with row locks a second transaction runs beside the first once the queue is deep; before
// that it would only cut the same commands into smaller batches, and each batch has a fixed cost.
//
// The path of a batch:
//
//   - A line (a goroutine in run) takes up to BatchLimit requests from the queue. mu protects the queue and is not held during a transaction.
//   - attempt opens a transaction. Rows of running executions are used from the cache where possible (row_cache.go). All other rows that the commands
//     name are locked and loaded in one trip and absorbed into the transaction. The Lock phases then lock what is known only after that, in the lock
//     order that Tx explains. Steps that need nothing make no trip.
//   - decideAll runs the commands one after the other on the rows in memory. A command sees what the commands before it have done. One that the rules
//     refuse leaves its rows as they were, and only its own caller gets the error.
//   - follow does what follows from the changes, in the phases Settle of the rooms. Work that has become ready may be leased to waiting claims in the
//     same transaction (dispatch.go).
//   - commit turns changed rows into store.Changes and writes them in one trip. The store checks there everything that the transaction took from a
//     cache, and writes nothing if one check fails.
//   - publish updates the caches of this process, wakes waiting calls, and sends a hint to other processes.
//   - Callers are answered when the commit is durable (safety.go). Until then the next batches may build on it.
//
// Two lines may decide at the same time. They cannot both change an execution: a loaded row is locked until the end of the transaction, and a cached
// row is written only if its version is still the one in the cache.
type committer struct {
	e      *Engine
	Lines  int           // transactions at a time
	kick   chan struct{} // one token for each line that may have something to do
	mu     sync.Mutex
	queue  []*Request
	yields yieldingQueue       // commands that go after the others (yielding.go)
	held   []*Request          // new work that waits for a pick or for one commit (submit_gate.go)
	taken  func(*Request) bool // selects the new work that waits until release; nil: none
	busy   int                 // lines with a transaction under way
	closed bool

	turn    *turn // of the dispatcher, if it waits for one; only on stores where transactions take turns
	without int   // number of batches in a row that could not serve claims
}

func newCommitter(e *Engine) *committer {
	c := &committer{e: e, Lines: 1} // on such a store transactions take turns
	if e.Store.Info().Shared {
		c.Lines, c.yields.apart = commitLines, true
	}
	c.kick = make(chan struct{}, c.goroutines())
	return c
}

// goroutines is how many goroutines run the committer: one for each line, and one for commands that yield where they have transactions of their own.
func (c *committer) goroutines() int {
	if c.yields.apart {
		return c.Lines + 1
	}
	return c.Lines
}

// depth returns how many commands wait.
func (c *committer) depth() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) + len(c.yields.queue) + len(c.held) + c.e.Held.Depth()
}

// enqueue adds requests, together so that they share a commit. Requests that find the queue full are refused at once (S72). It returns how many
// were accepted.
func (c *committer) enqueue(batch ...*Request) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; n < len(batch) && err == nil; n++ {
		if err = c.add(batch[n]); err != nil {
			break
		}
	}
	// A line checks worthwhile under mu before it waits for kick again, so a request that is added here is either seen by a line that is running,
	// or there is a token in kick for it. A token that finds nothing to do costs one look.
	if c.worthwhile() {
		c.wake()
	}
	return n, err
}

// add adds a request. mu is held.
func (c *committer) add(r *Request) error {
	_, yields := r.Command.(Yielding)
	switch {
	case c.closed:
		return ErrShuttingDown()
	case len(c.queue)+len(c.yields.queue)+len(c.held) >= c.e.Cfg.QueueLimit:
		return base.Errorf(base.CodeOverloaded, "%d commands wait for a commit", c.e.Cfg.QueueLimit).WithRetryAfter(100)
	case c.taken != nil && c.taken(r):
		c.held = append(c.held, r)
	case yields:
		c.yields.queue = append(c.yields.queue, r)
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

// wakeOther wakes another goroutine if there is something for it beside the batch that begins now. mu is held.
func (c *committer) wakeOther() {
	if c.worthwhile() {
		c.wake()
	}
}

// worthwhile reports whether another transaction should begin now. mu is held.
func (c *committer) worthwhile() bool { return c.othersWait() || c.yields.wait(c.busy) }

// othersWait reports whether another transaction should begin for commands that do not yield. mu is held.
func (c *committer) othersWait() bool {
	// The first line begins at once: waiting for more commands would delay a single one. The second begins only for a deep queue, because a batch has
	// a fixed cost. When the committer has closed, everything that was accepted is committed as fast as possible.
	return len(c.queue) > 0 && (c.busy == 0 || c.closed || c.busy < c.Lines && len(c.queue) >= deepQueue)
}

// ErrShuttingDown returns the refusal of a call while the engine stops. Code: shutting_down.
func ErrShuttingDown() error {
	return base.Errorf(base.CodeShuttingDown, "the engine is stopping").WithRetryAfter(1000)
}

// run commits batches until stop is closed and the queue is empty. Each line is one goroutine in run.
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

// work commits batches as long as worthwhile reports true, and gives the dispatcher its turns in between.
func (c *committer) work(stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stopped && !c.closed {
		c.closed, c.taken = true, nil // a pick under way may end after the last line has
		c.readmit()
	}
	for c.takeTurn() || c.worthwhile() {
		switch {
		case !c.worthwhile():
		case c.yields.apart && !c.othersWait():
			c.runYielding()
		default:
			c.prioritizeCompletions()
			c.runBatch(c.next(c.e.Cfg.BatchLimit))
		}
	}
}

// runBatch commits a batch. The lock is held, but not while the transaction is under way.
func (c *committer) runBatch(batch []*Request) {
	// From here the batch belongs to this line alone. busy and the queue change under mu, so the other line and enqueue see that a transaction
	// is under way, and mu is free during the round trips of the store.
	c.busy++
	c.without++
	c.wakeOther()
	c.mu.Unlock()
	c.e.answering(batch, func() { c.e.Process(batch) })
	c.mu.Lock()
	// What was held back for this commit goes in front of the commands that came meanwhile, unless a pick still holds it.
	c.busy--
	c.readmit()
}

// take removes up to n requests from the head of the queue. mu is held.
func (c *committer) take(n int) []*Request {
	if len(c.queue) <= n {
		batch := c.queue
		c.queue = nil
		return batch
	}
	batch := c.queue[:n:n]
	c.queue = append([]*Request(nil), c.queue[n:]...)
	return batch
}

// Process commits a batch and answers every request in it exactly once.
//
// A try that fails has written nothing, except when the outcome is unknown. What happens next depends on the fault:
//   - Commands whose rows other transactions hold are set apart (held_rows.go); the others are tried again at once.
//   - Conflict: something from a cache was stale, or a key or id exists already. The cached rows are dropped, and the batch is tried again with
//     everything loaded under locks (careful). If work was being handed to claims, it is tried again without that first.
//   - An execution carries outcomes (outcomes.go): they are applied in a transaction of their own, then the batch is tried again.
//   - Stale: the dictionary or the incarnation of the database has changed. It is tried again with the new dictionary.
//   - Retry: a deadlock or a serialization failure. It is tried again after a short pause.
//   - Busy: a lock was not free and the store cannot name its row. outwait and stillBusy handle that.
//   - Unavailable and Unknown are the answer of all commands: the caller repeats the call, which is safe.
//   - Any other fault is attributed to one command. The batch is split in halves until that command is alone and gets the error.
func (e *Engine) Process(batch []*Request) { e.processAs(batch, BatchMode{}) }

func (e *Engine) processAs(batch []*Request, began BatchMode) {
	mode := began
	for try := 0; ; try++ {
		if batch = e.Held.leaveOut(batch, mode.line); len(batch) == 0 {
			return
		}
		// Read before the try. If the try ends as Stale because the dictionary that it used is too old, a newer one than this is what helps, and it
		// may have been loaded meanwhile by another transaction.
		known := e.Dict.Now().Version
		rest, err := e.attempt(batch, mode)
		if err == nil {
			return
		}
		if batch = rest; len(batch) == 0 {
			return
		}
		switch kind := store.FaultOf(err); {
		case errors.Is(err, errSetApart):
			// Not a failure of the rest: its commands have not been decided on anything that was wrong.
			try-- // the batch is smaller now, so this ends
		case leavesGraph(batch, mode, err):
			mode.leave = true
		case kind == store.Conflict && errors.Is(err, errHandOver) && try < 8:
			// An assumption about queues, workers or lanes did not hold. The commands themselves may be right, so the cache of their rows
			// stays; if a cached row was wrong as well, the next try finds out.
			mode.queue = true
		case kind == store.Conflict && try < 8:
			mode.Careful = true
			e.invalidate(batch)
		case carriedBy(err) != nil && try < 8:
			if batch, err = e.applyFirst(batch, carriedBy(err)); err != nil {
				e.Pause(try)
			}
		case kind == store.Stale && try < 8:
			if dictErr := e.Dict.beyond(e.Background(), known); dictErr != nil {
				e.answerAll(batch, PublicFault(dictErr))
				return
			}
		case kind == store.Retry && try < 8:
			e.Pause(try)
		case kind == store.Busy && errors.Is(err, errHandOver) && !mode.queue:
			mode.queue = true
		case kind == store.Busy && !e.Store.Info().Shared:
			batch = e.outwait(batch, &mode, err)
		case kind == store.Busy:
			batch = e.stillBusy(batch, &mode, err)
		case kind == store.Unavailable || kind == store.Unknown || len(batch) == 1:
			e.reportGuilty(batch[0], err)
			e.answerAll(batch, PublicFault(err))
			return
		default:
			// Nothing has been written, so running each half again from the start is safe. Log(n) rounds later the command that causes the fault is
			// alone and all others are committed.
			e.processAs(batch[:len(batch)/2], began)
			batch = batch[len(batch)/2:]
			mode, try = began, -1
		}
	}
}

var errHandOver = errors.New("work could not be handed over")

var errDoubted = errors.New("a command must not be answered from memory")

// BatchMode says how carefully a batch is run. The zero value is the first, optimistic try.
type BatchMode struct {
	Careful bool // look up ids and keys before inserting them, and use nothing from caches
	patient bool // wait longer for locks
	leave   bool // leave the edges of members that end to follow-up work
	queue   bool // lease nothing to waiting claims: what was cached about them may have been wrong
	again   bool // the batch met a lock that the store could not name, and is tried once more
	unknown bool // it was set apart for that, and is split until the command that waits is alone

	line *heldLine // the line that the commands come from: its row counts as free
}

// attempt runs the batch in one transaction. If it returns an error, no request in rest has been answered, and the caller must answer or retry
// them. rest is the batch without the commands that were set apart.
func (e *Engine) attempt(batch []*Request, mode BatchMode) (rest []*Request, err error) {
	ctx, cancel := e.Bounded()
	defer cancel()
	rest = batch
	// The incarnation is read before the cache. If the database comes back as another one in between, the rows may be of either, but since is the
	// old one and begin refuses the transaction. Read in the other order, rows of the old incarnation could be written to the new one.
	since := e.Incarnation()
	want := store.Want{Patient: mode.patient}
	cached := e.useCached(batch, mode, &want)
	u, err := e.beginHeeding(ctx, since, want, mode.line, appliedBy(batch))
	defer func() {
		// The order matters. A panic becomes an error first, so that the rest runs in any case. The rollback (without effect after a commit) frees
		// the rows, and only then are they reported as free: a pick that looks at once must find them so. Last, the commands whose rows others hold
		// are set apart.
		err = e.gaveUp(batch, u, recover(), err)
		if u != nil {
			u.StoreTx.Rollback(ctx)
			u.release(err != nil)
		}
		if err != nil {
			rest, err = e.Held.part(u, batch, err, mode.line)
		}
	}()
	if err != nil {
		return batch, err
	}
	u.Careful, u.Leaves = mode.Careful, mode.leave
	u.addCached(cached)
	u.expect(len(batch), len(cached))
	if err := u.loadMore(ctx, batch); err != nil {
		return batch, err
	}
	// Executions are locked now. What comes behind them in the lock order is locked here, by each room in its place (S73), before the first command
	// is decided.
	for i := range e.phases {
		if lock := e.phases[i].Lock; lock != nil {
			if err := lock(ctx, u, batch); err != nil {
				return batch, err
			}
		}
	}
	refusals := u.decideAll(batch)
	if err := cmp.Or(u.Redo, u.decided()); err != nil {
		return batch, err
	}
	// A command was refused, or changed nothing, on a row from the cache. Its answer would be written nowhere, so the store could not check the row
	// that it rests on. The other commands are decided again with it, since they may have seen what it left.
	if u.Doubted {
		return batch, &store.Fault{Kind: store.Conflict, Err: errDoubted}
	}
	if err := u.follow(ctx); err != nil { // before the hand-over, so that work which becomes ready here can be handed over too
		return batch, err
	}
	for _, f := range u.Advanced {
		f()
	}
	u.serves(batch)
	if err := u.commitAndServe(ctx, namesOf(batch), mode); err != nil {
		return batch, err
	}
	// The commit is final: from here on the commands must not be run again, and nothing below returns an error. The answers wait for durability;
	// the next batch does not.
	u.Safe.Then(func(err error) { u.answer(batch, refusals, err) })
	return nil, nil
}

// answer finishes the requests of a batch, once it is certain whether the commit is durable.
func (u *Tx) answer(batch []*Request, refusals []error, err error) {
	if err != nil {
		u.Engine.answerAll(batch, PublicFault(u.Engine.Failed(err)))
		return
	}
	_ = u.Engine.Guard(inCommit, func() {
		u.attachSpans(batch)
		u.Engine.Meter.answered(batch, refusals...)
		u.Engine.logSlow(batch, refusals...)
	})
	for i, r := range batch {
		r.finish(refusals[i])
	}
}

// loadMore loads the rows that commands can name only after the first load, in one further round trip for all of them.
func (u *Tx) loadMore(ctx context.Context, batch []*Request) error {
	var want store.Want
	for _, r := range batch {
		if n, ok := r.Command.(loadsMore); ok {
			n.More(u, &want)
		}
	}
	return u.Load(ctx, want)
}

func namesOf(batch []*Request) []string {
	names := make([]string, len(batch))
	for i, r := range batch {
		names[i] = r.Name()
	}
	return names
}

func (e *Engine) answerAll(batch []*Request, err error) {
	_ = e.Guard(inCommit, func() {
		e.Meter.answered(batch, err)
		e.logSlow(batch, err)
	})
	for _, r := range batch {
		r.finish(err)
	}
}

// Pause waits for a short random time, longer with each try, before a deadlock or serialization failure is tried again.
func (e *Engine) Pause(try int) {
	most := float64(int(2) << min(try, 6))
	timer := e.Cfg.Clock.NewTimer(time.Duration(e.Cfg.Draw()*most+1) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.Stop:
	}
}

// PublicFault converts a failure of the database into the error that a caller sees (L143, U15).
func PublicFault(err error) error {
	var refusal *base.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return base.Errorf(base.CodeTimeout, "gave up before the answer came: %w", err).WithHint("repeat it: the same call again is safe")
	}
	switch store.FaultOf(err) {
	case store.Unknown:
		return base.Errorf(base.CodeTimeout, "the connection was lost while committing: %w", err).
			WithHint("the outcome is unknown; the same call again is safe")
	case store.Unavailable, store.Busy, store.Retry, store.Stale, store.Conflict:
		return base.Errorf(base.CodeStoreUnavailable, "the store does not answer: %w", err).WithRetryAfter(1000)
	default:
		return base.Errorf(base.CodeInternal, "the store refused the change: %w", err)
	}
}

// busyFault returns the answer for a command that waited for a lock in vain.
func busyFault(cmd Command, err error) error {
	if own, ok := cmd.(interface{ HeldError() error }); ok {
		return own.HeldError()
	}
	if waitsOnce(cmd) {
		return HeldByOpenTransaction()
	}
	return PublicFault(err)
}

// HeldByOpenTransaction returns the refusal of a command whose key or id another transaction holds. Code: idempotency_in_progress.
func HeldByOpenTransaction() error {
	return base.Errorf(base.CodeIdempotencyInProgress, "the key or id is held by a transaction that is still open").WithRetryAfter(1000)
}

// waitsOnce reports whether a command waits for a lock for one second at most: the transaction of a caller may hold it without a bound (L82).
func waitsOnce(cmd Command) bool {
	_, ok := cmd.(interface{ WaitsOnce() })
	return ok
}
