package txn

// On a store where transactions take turns, the transactions of the dispatcher and those of the committer share one line of the committer: waiting
// calls are served in the transaction of the next commit where they can be, and else between two commits.

// BetweenCommits runs take between two commits, on a store where transactions take turns. It reports whether another turn may help.
func (e *Engine) BetweenCommits(take func() (again bool)) (again bool) {
	return e.Committer.between(take)
}

// Offered records that waiting calls could be served by a batch: no turn of their own is due soon.
func (e *Engine) Offered() { e.Committer.offered() }

// mostWithout is how many batches in a row may serve no claims before the claims get a transaction of their own.
const mostWithout = 2

// turn is a turn of the dispatcher, which a line of the committer runs.
type turn struct {
	take func() (again bool)
	done chan bool
}

// between runs take between two commits, on a store where transactions take turns. While it runs, commands collect for the next commit, which may
// serve further claims. It reports whether another turn may help.
func (c *committer) between(take func() bool) (again bool) {
	t := &turn{take, make(chan bool, 1)}
	if !c.giveTurn(t) {
		return false
	}
	c.wake()
	return <-t.done
}

// giveTurn hands a turn to the committer. It returns false if the committer has closed.
func (c *committer) giveTurn(t *turn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.turn = t
	}
	return !c.closed
}

// takeTurn runs the dispatcher's turn if there is one and the next commits cannot serve its claims. It reports whether it did. The lock is held.
func (c *committer) takeTurn() bool {
	t := c.turn
	// On such a store there is one line, so busy means that a batch is under way: its transaction serves the calls if it can (offered). If commands
	// wait, up to mostWithout batches go first, because each of them may serve the calls without a transaction of their own. Then the turn is taken
	// even if the queue never gets empty, so that commits cannot starve claims, nor claims commits.
	waits := len(c.queue)+len(c.yields.queue) > 0
	if t == nil || c.busy > 0 || waits && c.without < mostWithout && !c.closed {
		return false
	}
	// Taken under the lock, so that each turn is run once and its channel gets one value. There is one dispatcher, and it waits for that value: no
	// second turn can be waiting.
	c.turn, c.without = nil, 0
	if c.closed {
		t.done <- false
		return true
	}
	c.busy++
	c.mu.Unlock()
	again := false
	_ = c.e.Guard(InClaim, func() { again = t.take() }) // a panic must not keep the lock from being taken again, nor the dispatcher from its answer
	t.done <- again
	c.mu.Lock()
	c.busy--
	return true
}

// offered records that the claims could be served by a batch.
func (c *committer) offered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.without = 0
}
