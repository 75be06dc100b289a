package engine

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
)

// What the picker has sorted out of the dictionary. It goes on where it stopped while classes are only added, so that a class
// among many costs no look at the others.

// matchedQueues are the queues whose classes a filter matches.
type matchedQueues struct {
	filter  string
	matches func(*core.Class) bool
	dict    *dictionary
	seen    map[string]int // how many classes of each lane were looked at
	list    []*classQueue  // for what is ready
	polled  int            // where in the list the next poll goes on
	lanes   map[string]*laneQueues
	news    int // how much of the picker's news it has read

	used  bool   // by a claim since the last poll
	fresh uint64 // number of the last poll whose turn was asked about or doubted
}

// queuesOf lists the queues for what is ready that a call may take from. The lock is held.
func (p *picker) queuesOf(call *claim) []*classQueue { return p.matchedBy(call).list }

// matchedBy is what the call's filter matches, up to date. The lock is held.
func (p *picker) matchedBy(call *claim) *matchedQueues {
	dict := p.e.dict.now()
	m := p.matched[call.filter]
	if m == nil || m.dict.era != dict.era || m.news < p.news.base {
		p.forget(dict)
		probe := &claim{req: call.req} // the call itself has an answer that need not be kept
		m = &matchedQueues{filter: call.filter, matches: probe.matches, seen: map[string]int{}, lanes: map[string]*laneQueues{}, news: -1}
		for _, lane := range call.req.Lanes {
			m.lanes[lane] = newLaneQueues(lane)
		}
		p.matched[call.filter] = m
	}
	if m.dict != dict {
		p.match(m, dict)
	}
	p.read(m, dict)
	return m
}

// How many classes of a filter one poll asks for. More of them take turns, so that what no hint has told of is found later than within a
// second (S68). Where no other process files anything a poll finds only what could not be read before.
const (
	pollShared = 4096
	pollAlone  = 256
)

// pollAtMost is how many classes of a filter one poll asks for.
func (p *picker) pollAtMost() int {
	if p.e.store.Info().Shared {
		return pollShared
	}
	return pollAlone
}

// pollRound is how many polls of so many queues it takes until all had their turn.
func (m *matchedQueues) pollRound(most int) uint64 {
	return uint64(max(1, (len(m.list)+most-1)/most))
}

// pollNext are the queues whose turn it is to be polled, at most so many.
func (m *matchedQueues) pollNext(most int) []*classQueue {
	if len(m.list) <= most {
		return m.list
	}
	from, to := m.polled, m.polled+most
	if to < len(m.list) {
		m.polled = to
		return m.list[from:to]
	}
	m.polled = to - len(m.list)
	return slices.Concat(m.list[from:], m.list[:m.polled])
}

// match adds the classes that came since.
func (p *picker) match(m *matchedQueues, dict *dictionary) {
	m.dict = dict
	for lane := range m.lanes {
		classes := dict.ofLane[lane]
		for _, class := range classes[m.seen[lane]:] {
			if m.matches(class) {
				m.list = append(m.list, p.queue(class))
			}
		}
		m.seen[lane] = len(classes)
	}
}

// read adds the queues that there is news of. A queue is made after its class, and to make one is news: of queues of classes that came
// since the last time there is always some. What reads for the first time looks at all queues instead.
func (p *picker) read(m *matchedQueues, dict *dictionary) {
	if m.news < 0 {
		for _, q := range m.list {
			m.lanes[q.class.Lane].add(q, dict.turnOf(q.class).key)
			for _, other := range q.behind {
				m.lanes[q.class.Lane].add(other, dict.turnOf(q.class).key)
			}
		}
	} else {
		for _, q := range p.news.since(m.news) {
			if lane := m.lanes[q.class.Lane]; lane != nil && m.matches(q.class) {
				lane.add(q, dict.turnOf(q.class).key)
			}
		}
	}
	m.news = p.news.end()
	if len(p.news.list) > newsKept {
		p.trimNews()
	}
}

// newsKept is how much news is kept until it is looked whether all have read it.
const newsKept = 4096

// queueNews lists queues that work may be taken from, or that nobody has surveyed, since a moment. Places are numbered for ever.
type queueNews struct {
	base int // number of the first that is kept
	list []*classQueue
}

func (n *queueNews) end() int                      { return n.base + len(n.list) }
func (n *queueNews) since(place int) []*classQueue { return n.list[place-n.base:] }

// tell notes that work may be taken from the queue, or sooner than before, or that it is not surveyed any more. The lock is held.
func (p *picker) tell(q *classQueue) { p.news.list = append(p.news.list, q) }

// trimNews drops what all filters have read. Those that are not used any more are dropped with it, when there is much that they have not
// read: they would have to look at all queues again.
func (p *picker) trimNews() {
	behind := p.news.end()
	for filter, m := range p.matched {
		if p.news.end()-m.news > newsKept+2*len(p.queues) {
			delete(p.matched, filter)
			continue
		}
		behind = min(behind, m.news)
	}
	if read := behind - p.news.base; read > 0 {
		p.news = queueNews{base: behind, list: append([]*classQueue(nil), p.news.list[read:]...)}
	}
}

// forget drops what was sorted out of dictionaries of another era: filters that nobody uses any more are among it, and queues of
// classes that are gone.
func (p *picker) forget(dict *dictionary) {
	if p.era == dict.era {
		return
	}
	p.era = dict.era
	clear(p.matched)
	clear(p.keyed)
	p.news = queueNews{base: p.news.end()}
	for id, q := range p.queues {
		if dict.table.entry(id.class, dict.version) == nil {
			delete(p.queues, id)
			p.notFull(q)
		}
	}
}

// keyedClasses are the classes of a lane by the fairness key under which it serves them. Most keys of many have one class each.
type keyedClasses struct {
	seen   int // how many classes of the lane were looked at
	first  map[string]*core.Class
	others map[string][]*core.Class
}

func (k *keyedClasses) add(key string, class *core.Class) {
	if k.first[key] == nil {
		setIn(&k.first, key, class)
		return
	}
	setIn(&k.others, key, append(k.others[key], class))
}

func (k *keyedClasses) of(key string) []*core.Class {
	if k.first[key] == nil {
		return nil
	}
	return append([]*core.Class{k.first[key]}, k.others[key]...)
}

// classesOf lists the classes that a turn is for. The lock is held.
func (p *picker) classesOf(turn laneTurn) []*core.Class {
	dict := p.e.dict.now()
	p.forget(dict)
	k := p.keyed[turn.lane]
	if k == nil {
		k = &keyedClasses{}
		p.keyed[turn.lane] = k
	}
	classes := dict.ofLane[turn.lane]
	for _, class := range classes[k.seen:] {
		k.add(dict.turnOf(class).key, class)
	}
	k.seen = len(classes)
	return k.of(turn.key)
}
