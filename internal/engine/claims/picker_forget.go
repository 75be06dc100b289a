package claims

import (
	"math"

	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What makes the picker look again at queues and instances: commits, hints, the log, changes of lanes, another incarnation of the database.

// Filed applies news and wakes the picker if a claim may be served now.
func (p *picker) Filed(news txn.News) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.file(news.Filed)
	if news.Lanes {
		p.doubtAll()
	}
	room := p.room(news.Keys)
	if len(p.waiting) == 0 {
		return
	}
	if len(news.Filed) > 0 {
		p.e.Meter.Woken(txn.WokenHere)
	}
	if news.Lanes || news.Places || room || len(news.Filed) > 0 {
		p.wake()
	}
}

// file records rows in queues. The lock is held.
func (p *picker) file(rows []txn.Filing) {
	for _, row := range rows {
		q := p.queueOf(row.Class, row.Block)
		// filings voids what a look under way learns of this queue (learn). The row is announced only if it changes the place of the queue in its
		// lane.
		q.filings++
		if !q.maybe || row.Order < q.head {
			p.announce(q)
		}
		q.maybe = true
		q.floor = min(q.floor, row.Order)
		q.head = min(q.head, row.Order)
		q.sawInput(row.Size)
	}
}

// Hinted applies the hint of another process, in one step, as Filed does with a commit.
func (p *picker) Hinted(hint store.Hint) {
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

// doubtLanes makes picks ask the queues of lanes again in which other processes may have filed something. The lock is held.
func (p *picker) doubtLanes(lanes []string) {
	dict := p.e.Dict.Now()
	for _, lane := range lanes {
		for _, class := range dict.OfLane[lane] {
			p.doubtClass(class.ID)
		}
	}
}

// doubtClasses makes picks ask the queues of classes again in which other processes have filed or blocked something, or in whose lanes a place came
// free. Its cost does not depend on the number of other classes. The lock is held.
func (p *picker) doubtClasses(classes []int32, blocked bool) {
	if blocked {
		p.surveys++ // a survey under way may have missed it
	}
	for _, class := range classes {
		first := p.doubtClass(class)
		if first != nil && blocked && first.surveyed {
			first.surveyed = false
			p.announce(first)
		}
	}
}

// doubtClass makes picks ask all queues of a class again. It returns the one for ready executions, or nil if nothing is cached of the class. The
// lock is held.
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

// Rescan forgets everything known of the queues: a lane has opened, a limit has changed, or a class is new.
func (p *picker) Rescan() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubtAll()
	p.wake()
}

// doubtAll is Rescan for a caller that holds the lock and wakes the picker.
func (p *picker) doubtAll() {
	p.resetQueues()
	p.roomy("*")
}

// RescanWorkers makes claims read the records of instances again, both those that wait (S53) and those that come.
func (p *picker) RescanWorkers(instances ...string) {
	p.e.Drains.Forget(instances...)
	changed := make(map[string]bool, len(instances))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range instances {
		changed[id] = true
		delete(p.looks, id)
	}
	for _, call := range p.waiting {
		if changed[call.req.InstanceID] {
			call.check = true
			call.before.Store(true)
		}
	}
	p.wake()
}

// forgetAll forgets all queues and instances: a class number may belong to another class now (R3). Claims keep waiting.
func (p *picker) forgetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues, p.full, p.looks = map[queueID]*classQueue{}, map[string]map[*classQueue]bool{}, map[string]*workerLiveness{}
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

// recheckAll is RescanWorkers for every instance.
func (p *picker) recheckAll() {
	p.e.Drains.ForgetAll()
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.looks)
	for _, call := range p.waiting {
		call.check = true
	}
	p.wake()
}

// answeredElsewhere makes claims look again whose requests another process may have answered: it has given work to their instances.
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
		p.announce(q)
	}
	q.filings++
	q.maybe = true
	q.floor, q.head = math.MinInt64, math.MinInt64
}
