package txn

import (
	"github.com/flowfabric/flowfabric/internal/core"
)

// The gate of new work.
//
// Work is handed over only while nothing of its class is queued and a claim waits for it (commitAndServe). A busy process would lose both at once:
// work that is committed during a pick is queued behind it and needs the next pick, and so on. Therefore commands that would have to queue new work
// wait for a moment: while a pick that looks for such work is under way, and for one commit of endings when all workers are busy, since each ending
// makes room for a claim. They never wait longer, and never while there is a backlog.

// newWork is a command that puts new work into the queue of a class.
type newWork interface {
	Command
	Submits() *core.Class
}

// HoldSubmits holds back new work of the classes that wanted selects, until ReleaseSubmits.
func (e *Engine) HoldSubmits(wanted func(*core.Class) bool) { e.Committer.holdFor(wanted) }

// ReleaseSubmits ends HoldSubmits.
func (e *Engine) ReleaseSubmits() { e.Committer.release() }

func (c *committer) holdFor(wanted func(*core.Class) bool) {
	taken := func(r *Request) bool {
		s, ok := r.Command.(newWork)
		return ok && wanted(s.Submits())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	// One step under the lock: requests that are queued already are moved, and add holds the ones that come later. None slips through between the
	// two.
	c.taken = taken
	c.holdIf(taken)
}

func (c *committer) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = nil
	c.readmit()
	if c.worthwhile() {
		c.wake()
	}
}

// holdIf moves requests from the queue to the held ones. The lock is held.
func (c *committer) holdIf(hold func(*Request) bool) {
	kept := c.queue[:0]
	for _, r := range c.queue {
		if hold(r) {
			c.held = append(c.held, r)
		} else {
			kept = append(kept, r)
		}
	}
	clear(c.queue[len(kept):])
	c.queue = kept
}

// readmit puts the held requests in front of the queue, unless a pick is under way. The lock is held.
func (c *committer) readmit() {
	if c.taken == nil && len(c.held) > 0 {
		c.queue, c.held = append(c.held, c.queue...), nil
	}
}

// prioritizeCompletions holds back new work for which no claim waits, each command for at most one commit, if there are endings to commit: the
// workers of those will claim again. The lock is held.
func (c *committer) prioritizeCompletions() {
	endings, submits := 0, 0
	for _, r := range c.queue {
		switch r.Command.(type) {
		case byWorker:
			endings++
		case newWork:
			submits++
		}
	}
	if submits == 0 || endings < submits/2 {
		return
	}
	// The picker's lock is taken inside, under mu of the committer. The picker never calls the committer with its own lock held, so the two cannot
	// wait for each other.
	excess := c.e.Dispatcher.Excess()
	c.holdIf(func(r *Request) bool {
		s, ok := r.Command.(newWork)
		if !ok || r.waited || !excess(s.Submits()) {
			return false
		}
		// At most once: a command that has let one commit of endings pass is not held again, whatever comes.
		r.waited = true
		return true
	})
}
