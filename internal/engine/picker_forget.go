package engine

import (
	"math"

	"github.com/flowfabric/flowfabric/internal/store"
)

// What makes the picker look again at queues and instances: hints, the log, changes of lanes, another incarnation of the database.

// pickNews is what a commit of this process means for claims.
//
// A pick plans by what the picker knows. All that one commit did must become known at once: a pick between two pieces of news would serve
// what the first made possible, also where the second makes something possible that goes before it.
type pickNews struct {
	filed  []filing // rows that were put into queues
	lanes  bool     // the rules of lanes have changed: nothing that is known of queues holds
	places bool     // a place in a lane came free; what is known of its queues holds
	keys   []string // admission keys that got room; "*": all may have
}

// committed takes news in.
func (p *picker) committed(news pickNews) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.file(news.filed)
	if news.lanes {
		p.doubtAll()
	}
	room := p.room(news.keys)
	if len(p.waiting) == 0 {
		return
	}
	if len(news.filed) > 0 {
		p.e.meter.woken(wokenHere)
	}
	if news.lanes || news.places || room || len(news.filed) > 0 {
		p.wake()
	}
}

// file notes rows in queues. The lock is held.
func (p *picker) file(rows []filing) {
	for _, row := range rows {
		q := p.queueOf(row.class, row.block)
		q.filings++
		if !q.maybe || row.order < q.head {
			p.tell(q)
		}
		q.maybe = true
		q.floor = min(q.floor, row.order)
		q.head = min(q.head, row.order)
		q.sawInput(row.size)
	}
}

// hinted takes in what another process hints at, at once as committed does.
func (p *picker) hinted(hint store.Hint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := true
	switch {
	case hint.AllLanes:
		p.doubtAll()
	case hint.Named:
		p.doubtClasses(hint.Classes, hint.Blocked)
	case len(hint.Lanes) > 0:
		p.doubtLanes(hint.Lanes)
	default:
		again = false
	}
	again = p.room(hint.Keys) || again
	if hint.Blocked && !hint.Named {
		p.doubtSurveys()
		again = true
	}
	if again {
		p.wake()
	}
}

// doubtLanes lets the queues of lanes be asked in which other processes may have filed something. The lock is held.
func (p *picker) doubtLanes(lanes []string) {
	dict := p.e.dict.now()
	for _, lane := range lanes {
		for _, class := range dict.ofLane[lane] {
			p.doubtClass(class.ID)
		}
	}
}

// doubtClasses lets the queues of classes be asked of which other processes have filed or blocked something, or in whose lanes a place came
// free. What that costs does not depend on how many other classes are known. The lock is held.
func (p *picker) doubtClasses(classes []int32, blocked bool) {
	if blocked {
		p.surveys++ // one that is under way may not have seen it
	}
	for _, class := range classes {
		first := p.doubtClass(class)
		if first != nil && blocked && first.surveyed {
			first.surveyed = false
			p.tell(first)
		}
	}
}

// doubtClass lets all queues of a class be asked. It returns the one for what is ready; nil: nothing is believed of the class. The lock is
// held.
func (p *picker) doubtClass(class int32) *classQueue {
	first := p.queues[queueID{class: class}]
	if first == nil {
		return nil
	}
	p.reset(first)
	for _, q := range first.behind {
		p.reset(q)
	}
	p.doubtReady(first)
	return first
}

// lookAgain forgets everything known of the queues: a lane opened, a limit changed, a class is new.
func (p *picker) lookAgain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubtAll()
	p.wake()
}

// doubtAll is lookAgain for a caller that holds the lock and wakes the picker.
func (p *picker) doubtAll() {
	p.resetQueues()
	p.roomy("*")
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
