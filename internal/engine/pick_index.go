package engine

import "github.com/flowfabric/flowfabric/internal/core"

// What the picker has sorted out of the dictionary. It goes on where it stopped while classes are only added, so that a class
// among many costs no look at the others.

// matchedQueues are the queues whose classes a filter matches.
type matchedQueues struct {
	dict *dictionary
	seen map[string]int // how many classes of each lane were looked at
	list []*classQueue
}

// queuesOf lists the queues that a call may take from. The lock is held.
func (p *picker) queuesOf(call *claim) []*classQueue {
	dict := p.e.dict.now()
	m := p.matched[call.filter]
	switch {
	case m == nil || m.dict.era != dict.era:
		p.forget(dict)
		m = &matchedQueues{seen: map[string]int{}}
		p.matched[call.filter] = m
	case m.dict == dict:
		return m.list
	}
	m.dict = dict
	for _, lane := range call.req.Lanes {
		classes := dict.ofLane[lane]
		for _, class := range classes[m.seen[lane]:] {
			if call.matches(class) {
				m.list = append(m.list, p.queue(class))
			}
		}
		m.seen[lane] = len(classes)
	}
	return m.list
}

// forget drops what was sorted out of dictionaries of another era: filters that nobody uses any more are among it.
func (p *picker) forget(dict *dictionary) {
	if p.era != dict.era {
		p.era = dict.era
		clear(p.matched)
		clear(p.keyed)
	}
}

// keyedClasses are the classes of a lane by the fairness key under which it serves them.
type keyedClasses struct {
	seen int // how many classes of the lane were looked at
	of   map[string][]*core.Class
}

// classesOf lists the classes that a turn is for. The lock is held.
func (p *picker) classesOf(turn laneTurn) []*core.Class {
	dict := p.e.dict.now()
	p.forget(dict)
	k := p.keyed[turn.lane]
	if k == nil {
		k = &keyedClasses{of: map[string][]*core.Class{}}
		p.keyed[turn.lane] = k
	}
	classes := dict.ofLane[turn.lane]
	for _, class := range classes[k.seen:] {
		key := dict.turnOf(class).key
		k.of[key] = append(k.of[key], class)
	}
	k.seen = len(classes)
	return k.of[turn.key]
}
