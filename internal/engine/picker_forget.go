package engine

import "math"

// What makes the picker look again at queues and instances: hints, the log, changes of lanes, another incarnation of the database.

// hinted tells that other processes may have filed something in these lanes.
func (p *picker) hinted(lanes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.queues {
		if contains(lanes, q.class.Lane) {
			p.reset(q)
			p.doubtReady(q)
		}
	}
	p.wake()
}

// hintedOf tells that other processes have filed or blocked something of these classes, or that a place in one of their lanes came free.
// What that costs does not depend on how many other classes are known.
func (p *picker) hintedOf(classes []int32, blocked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if blocked {
		p.surveys++ // one that is under way may not have seen it
	}
	for _, class := range classes {
		first := p.queues[queueID{class: class}]
		if first == nil {
			continue // nothing is believed of it
		}
		p.reset(first)
		for _, q := range first.behind {
			p.reset(q)
		}
		if blocked && first.surveyed {
			first.surveyed = false
			p.tell(first)
		}
		p.doubtReady(first)
	}
	p.wake()
}

// lookAgain forgets everything known of the queues: a lane opened, a limit changed, a class is new.
func (p *picker) lookAgain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resetQueues()
	p.roomy("*")
	p.wake()
}

// recheck looks at the records of instances again on behalf of their claims, those that wait (S53) and those that come.
func (p *picker) recheck(instances ...string) {
	p.e.drains.forget(instances...)
	changed := make(map[string]bool, len(instances))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range instances {
		changed[id] = true
		delete(p.looks, id)
	}
	for _, call := range p.waiting {
		call.check = call.check || changed[call.req.InstanceID]
	}
	p.wake()
}

// forgetAll forgets all queues and instances: numbers of classes may be those of others now (R3). Claims wait on.
func (p *picker) forgetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues, p.full, p.looks = map[queueID]*classQueue{}, map[string]map[*classQueue]bool{}, map[string]*instanceLook{}
	p.sortAnew()
	clear(p.keyed)
	clear(p.skipped)
	p.news = queueNews{base: p.news.end()}
	p.armed.Clear()
	p.surveys++
	p.roomy("*")
	for _, call := range p.waiting {
		call.check = true
	}
	p.wake()
}

// recheckAll is recheck of every instance.
func (p *picker) recheckAll() {
	p.e.drains.forgetAll()
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.looks)
	for _, call := range p.waiting {
		call.check = true
	}
	p.wake()
}

// answeredElsewhere looks again on behalf of claims whose requests another process may have answered: it has given something to their
// instances.
func (p *picker) answeredElsewhere(instances map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, call := range p.waiting {
		if call.req.RequestKey != "" && instances[call.req.InstanceID] {
			call.check = true
			p.wake()
		}
	}
}

// reset forgets what is known of a queue. The lock is held.
func (p *picker) reset(q *classQueue) {
	if !q.maybe || q.head != math.MinInt64 {
		p.tell(q)
	}
	q.filings++
	q.maybe = true
	q.floor, q.head = math.MinInt64, math.MinInt64
}
