package txn

// Work is handed over only while nothing of its class is queued and a claim waits for it (handover.go). A busy process would lose both at once:
// work that is committed during a pick is queued behind it and needs the next pick, and so on. Therefore submits that would have to be queued wait
// for a moment: while a pick that looks for such work is under way, and for one commit of endings when all workers are busy, since each ending
// makes room for a claim. They never wait longer, and never while there is a backlog.

// longestHold bounds how many picks in a row a submit waits for.
const longestHold = 3

// holdFor holds back submits that calls of a pick may take, until letGo.
func (c *committer) holdFor(calls []*claim) {
	taken := func(r *request) bool {
		s, ok := r.command.(*submit)
		return ok && wantedBy(calls, s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.taken = taken
	c.holdIf(taken)
}

func wantedBy(calls []*claim, s *submit) bool {
	for _, call := range calls {
		if contains(call.req.Lanes, s.class.Lane) && call.matches(s.class) {
			return true
		}
	}
	return false
}

// letGo ends holdFor.
func (c *committer) letGo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = nil
	c.readmit()
	if c.worthwhile() {
		c.wake()
	}
}

// holdIf moves requests from the queue to the held ones. The lock is held.
func (c *committer) holdIf(hold func(*request) bool) {
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

// letEndingsFirst holds back submits for which no claim waits, each for at most one commit, if there are endings to commit: the workers of those
// will claim again. The lock is held.
func (c *committer) letEndingsFirst() {
	endings, submits := 0, 0
	for _, r := range c.queue {
		switch r.command.(type) {
		case byWorker:
			endings++
		case *submit:
			submits++
		}
	}
	if submits == 0 || endings < submits/2 {
		return
	}
	excess := c.e.picker.excess()
	c.holdIf(func(r *request) bool {
		s, ok := r.command.(*submit)
		if !ok || r.waited || !excess(s) {
			return false
		}
		r.waited = true
		return true
	})
}

// excess returns a function that counts submits against the waiting claims. For each submit it reports whether no claim is left for it although
// nothing of its class is queued.
func (p *picker) excess() func(*submit) bool {
	given := map[*claim]int{}
	known := map[int32]takers{}
	return func(s *submit) bool {
		t, ok := known[s.class.ID]
		if !ok {
			t = p.takersOf(s)
			known[s.class.ID] = t
		}
		for _, call := range t.calls {
			if given[call] < call.req.Max {
				given[call]++
				return false
			}
		}
		return !t.queued
	}
}

// takers are the claims that would take submits of a class.
type takers struct {
	calls  []*claim
	queued bool // such submits are queued in any case
}

func (p *picker) takersOf(s *submit) (t takers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[queueID{class: s.class.ID}]; q == nil || q.maybe {
		return takers{queued: true}
	}
	for _, call := range p.waiting {
		if !call.serving && wantedBy([]*claim{call}, s) {
			t.calls = append(t.calls, call)
		}
	}
	return t
}
