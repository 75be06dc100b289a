package claims

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
)

// What the picker derives from the dictionary. While classes are only added it continues where it stopped, so that a new class costs no look at the
// others.

// matchedQueues are the queues whose classes a filter matches.
type matchedQueues struct {
	filter  string
	matches func(*core.Class) bool
	dict    *txn.Dictionary
	seen    map[string]int // number of classes of each lane that were examined
	list    []*classQueue  // the queues for ready executions
	polled  int            // index in list at which the next poll continues
	lanes   map[string]*laneQueues
	news    int       // how much of the picker's news it has read; below 0: it has not read any queue
	claimed time.Time // when a call last used it

	used  bool   // by a claim since the last poll
	fresh uint64 // number of the last poll that asked about its queues, or up to which they were reset
}

// queuesOf returns the queues for ready executions that a call may take from. The lock is held.
func (p *picker) queuesOf(call *claim) []*classQueue { return p.matchedBy(call).list }

// matchedBy returns the queues that the call's filter matches, up to date. The lock is held.
func (p *picker) matchedBy(call *claim) *matchedQueues {
	dict := p.e.Dict.Now()
	p.forget(dict)
	m := p.matched[call.filter]
	if m == nil {
		probe := &claim{req: call.req} // not the call itself, whose answer would be kept alive
		m = newMatchedQueues(call.filter, probe.matches, slices.Values(call.req.Lanes))
		p.matched[call.filter] = m
	}
	m.claimed = p.e.Cfg.Clock.Now()
	p.catchUp(m, dict)
	return m
}

func newMatchedQueues(filter string, matches func(*core.Class) bool, lanes iter.Seq[string]) *matchedQueues {
	m := &matchedQueues{filter: filter, matches: matches, seen: map[string]int{}, lanes: map[string]*laneQueues{}, news: -1}
	for lane := range lanes {
		m.lanes[lane] = newLaneQueues(lane)
	}
	return m
}

// catchUp brings a filter of the current era up to date.
func (p *picker) catchUp(m *matchedQueues, dict *txn.Dictionary) {
	if m.dict != dict {
		p.match(m, dict)
	}
	p.read(m, dict)
}

// filterKept is how long a filter is kept that no call uses: its workers may be busy.
const filterKept = 10 * time.Minute

// sortAnew makes each filter read all queues again when it is next used. Filters that are no longer used are dropped. The lock is held.
func (p *picker) sortAnew() {
	for filter := range p.matched {
		p.unsort(filter)
	}
}

// unsort is sortAnew for one filter.
func (p *picker) unsort(filter string) {
	m := p.matched[filter]
	if p.unused(m) {
		delete(p.matched, filter)
		return
	}
	anew := newMatchedQueues(filter, m.matches, maps.Keys(m.lanes)) // a copy: a pick under way may use the old one
	anew.claimed = m.claimed
	p.matched[filter] = anew
}

// unused reports whether no call has used a filter for filterKept.
func (p *picker) unused(m *matchedQueues) bool {
	return p.e.Cfg.Clock.Now().Sub(m.claimed) > filterKept
}

// wanted reports whether a filter that is in use matches the class. The lock is held.
func (p *picker) wanted(class *core.Class) bool {
	for _, m := range p.matched {
		if m.lanes[class.Lane] != nil && m.matches(class) && !p.unused(m) {
			return true
		}
	}
	return false
}

// filtersHaveMore reports whether a call of a filter that is in use, even if all its workers are busy now, may find rows under the key: in the
// order of the filter, or in queues that picks under way have taken out of it. The lock is held.
func (p *picker) filtersHaveMore(turn laneTurn) bool {
	for k := range p.taking {
		for q := range k.taken {
			if q.takes() && p.turnOf(q.class) == turn {
				return true
			}
		}
	}
	dict := p.e.Dict.Now()
	p.forget(dict)
	for _, m := range p.matched {
		lane := m.lanes[turn.lane]
		if lane == nil || p.unused(m) {
			continue
		}
		p.catchUp(m, dict)
		if queues := lane.turns[turn.key]; queues != nil {
			if _, any := queues.first(); any {
				return true
			}
		}
	}
	return false
}

// pollAlone is what pollShared is where no other process files anything: a poll finds only what could not be read before.
const pollAlone = 256

// pollAtMost returns the number of classes of a filter that one poll asks for.
func (p *picker) pollAtMost() int {
	if p.e.Store.Info().Shared {
		return work.PollShared
	}
	return pollAlone
}

// pollRound returns how many polls of most queues each it takes to ask about all queues.
func (m *matchedQueues) pollRound(most int) uint64 {
	return uint64(max(1, (len(m.list)+most-1)/most))
}

// pollNext returns the queues whose turn it is to be polled, at most most.
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

// match adds the classes that were added to the dictionary since the last call.
func (p *picker) match(m *matchedQueues, dict *txn.Dictionary) {
	m.dict = dict
	for lane := range m.lanes {
		classes := dict.OfLane[lane]
		for _, class := range classes[m.seen[lane]:] {
			if m.matches(class) {
				m.list = append(m.list, p.queue(class))
			}
		}
		m.seen[lane] = len(classes)
	}
}

// read adds the queues that are in the news. A queue is created after its class, and creating one is news, so the news includes the queues of new
// classes. A filter that reads for the first time adds all queues instead.
func (p *picker) read(m *matchedQueues, dict *txn.Dictionary) {
	if m.news < 0 {
		for _, q := range m.list {
			m.lanes[q.class.Lane].add(q, turnOf(dict, q.class).key)
			for _, other := range q.behind {
				m.lanes[q.class.Lane].add(other, turnOf(dict, q.class).key)
			}
		}
	} else {
		for _, q := range p.news.since(m.news) {
			if lane := m.lanes[q.class.Lane]; lane != nil && m.matches(q.class) {
				lane.add(q, turnOf(dict, q.class).key)
			}
		}
	}
	m.news = p.news.end()
	if len(p.news.list) > newsKept {
		p.trimNews()
	}
}

// newsKept is how much news is kept before it is checked whether all filters have read it.
const newsKept = 4096

// queueNews lists queues that work may be taken from, or that are not surveyed, in the order in which that was noticed. Entries are numbered from
// the start of the process.
type queueNews struct {
	base int // number of the first entry in list
	list []*classQueue
}

func (n *queueNews) end() int                      { return n.base + len(n.list) }
func (n *queueNews) since(place int) []*classQueue { return n.list[place-n.base:] }

// announce adds news: work may be taken from the queue, or earlier than before, or it is not surveyed any more. The lock is held.
func (p *picker) announce(q *classQueue) { p.news.list = append(p.news.list, q) }

// trimNews drops what all filters have read. A filter that is far behind reads all queues again instead, if it is used again.
func (p *picker) trimNews() {
	behind := p.news.end()
	for filter, m := range p.matched {
		switch {
		case m.news < 0:
		case p.news.end()-m.news > newsKept+2*len(p.queues):
			p.unsort(filter)
		default:
			behind = min(behind, m.news)
		}
	}
	if read := behind - p.news.base; read > 0 {
		p.news = queueNews{base: behind, list: append([]*classQueue(nil), p.news.list[read:]...)}
	}
}

// forget drops what was derived from a dictionary of another era, filters that are no longer used, and queues of classes that were removed.
func (p *picker) forget(dict *txn.Dictionary) {
	if p.era == dict.Era {
		return
	}
	p.era = dict.Era
	p.sortAnew()
	clear(p.keyed)
	p.news = queueNews{base: p.news.end()}
	for id, q := range p.queues {
		if dict.Table.Entry(id.class, dict.Version) == nil {
			delete(p.queues, id)
			p.notFull(q)
		}
	}
}

// keyedClasses are the classes of a lane by the fairness key under which it serves them. If there are many keys, most have one class each.
type keyedClasses struct {
	seen   int // number of classes of the lane that were examined
	first  map[string]*core.Class
	others map[string][]*core.Class
}

func (k *keyedClasses) add(key string, class *core.Class) {
	if k.first[key] == nil {
		txn.SetIn(&k.first, key, class)
		return
	}
	txn.SetIn(&k.others, key, append(k.others[key], class))
}

// count returns how many classes the key has.
func (k *keyedClasses) count(key string) int {
	if k.first[key] == nil {
		return 0
	}
	return 1 + len(k.others[key])
}

// of iterates over the classes of the key.
func (k *keyedClasses) of(key string) iter.Seq[*core.Class] {
	return func(yield func(*core.Class) bool) {
		if first := k.first[key]; first == nil || !yield(first) {
			return
		}
		for _, class := range k.others[key] {
			if !yield(class) {
				return
			}
		}
	}
}

// classesOf returns the classes of a lane. The lock is held.
func (p *picker) classesOf(lane string) *keyedClasses {
	dict := p.e.Dict.Now()
	p.forget(dict)
	k := p.keyed[lane]
	if k == nil {
		k = &keyedClasses{}
		p.keyed[lane] = k
	}
	classes := dict.OfLane[lane]
	for _, class := range classes[k.seen:] {
		k.add(turnOf(dict, class).key, class)
	}
	k.seen = len(classes)
	return k
}
