package txn

// Commands that yield are many and small, such as frames of a thousand attempts that talk ten times a second. Rows must be loaded and locked for each of
// them, while most other commands are decided on rows in the cache. In one batch with others they make these wait for all of their rows.
//
// On a store with row locks they have transactions of their own, one at a time, beside the lines of the committer. Where transactions take turns that would
// only make more of them: there each batch has some.

// yieldingAtMost is how many commands that yield are in one batch: others wait for it, or rows are locked for its time.
const yieldingAtMost = 128

// yieldingQueue are the commands of a committer that yield. It is protected by the committer's lock.
type yieldingQueue struct {
	queue []*Request
	apart bool // they have transactions of their own
	busy  bool // one of those is under way
}

// wait reports whether a transaction should begin for them. busy is how many transactions of the committer's lines are under way.
func (y *yieldingQueue) wait(busy int) bool {
	if y.apart {
		return len(y.queue) > 0 && !y.busy
	}
	return len(y.queue) > 0 && busy == 0
}

// take removes the first of them.
func (y *yieldingQueue) take() []*Request {
	n := min(len(y.queue), yieldingAtMost)
	batch := y.queue[:n:n]
	y.queue = append([]*Request(nil), y.queue[n:]...)
	return batch
}

// next removes the next batch: up to n commands, and some that yield unless they have transactions of their own. The lock is held.
func (c *committer) next(n int) []*Request {
	batch := c.take(n)
	if !c.yields.apart && len(c.yields.queue) > 0 {
		batch = append(batch, c.yields.take()...)
	}
	return batch
}

// runYielding commits commands that yield in a transaction of their own, beside those of the lines. The lock is held, but not meanwhile.
func (c *committer) runYielding() {
	c.yields.busy = true
	batch := c.yields.take()
	c.wakeOther()
	c.mu.Unlock()
	c.e.answering(batch, func() { c.e.Process(batch) })
	c.mu.Lock()
	c.yields.busy = false
}
