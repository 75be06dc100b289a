package txn

import "time"

// Commands that yield are many and small, such as frames of a thousand attempts that talk ten times a second. Rows must be loaded and locked for each of
// them, while most other commands are decided on rows in the cache. In one batch with others they would make these wait for all of their rows.
//
// On a store with row locks they have transactions of their own, one at a time, beside the lines of the committer. Where transactions take turns they fill
// the gaps between other batches; if there is no gap for a while they go with the next batch, as many at a time as keep it short. Without other work they
// begin at once in either case.

const (
	// yieldingAtMost is how many commands that yield are in one batch: others wait for it, and rows are locked for its time.
	yieldingAtMost = 128
	// yieldingWait is how long commands that yield let others go first.
	yieldingWait = 10 * time.Millisecond
)

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

// due reports whether they have let others go first for long enough.
func (y *yieldingQueue) due(now time.Duration) bool {
	return !y.apart && len(y.queue) > 0 && (len(y.queue) >= yieldingAtMost || now-y.queue[0].began >= yieldingWait)
}

// take removes the first of them.
func (y *yieldingQueue) take() []*Request {
	n := min(len(y.queue), yieldingAtMost)
	batch := y.queue[:n:n]
	y.queue = append([]*Request(nil), y.queue[n:]...)
	return batch
}

// next removes the next batch of up to n commands, and of some that yield if no others wait or they are due. The lock is held.
func (c *committer) next(n int, now time.Duration) []*Request {
	batch := c.take(n)
	if len(batch) == 0 && !c.yields.apart || c.yields.due(now) {
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
