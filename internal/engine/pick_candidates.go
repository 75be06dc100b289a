package engine

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// A limit per user makes a class, and so a queue, for each user, of which there may be hundreds of thousands. A pick must not go through
// all of them. Each filter therefore keeps the queues that have work which may start in the order in which their lane serves them: the
// turns of its fairness keys by their v, and in a turn the queues by their heads (S18, S24). A pick takes as many from the top as it asks.
//
// The order is brought up to date late. What may come in front is told: a queue that gets work, room or a lower head is put into the
// picker's list of news, which each filter reads when it is used. What moves back is found when it comes to the top: the head of a queue
// and the v of a turn only grow, unless there is news of them. A queue may stand in a filter twice; who takes it leaves the second out.
//
// All of it is protected by the picker's lock. v is read under the lock of the turns, which is taken after that one.

// placedQueue is a queue in the order of its turn, with the head that it had when it got its place.
type placedQueue struct {
	*classQueue
	at int64
}

func (c placedQueue) compare(other placedQueue) int {
	return cmp.Or(cmp.Compare(c.at, other.at), cmp.Compare(c.class.ID, other.class.ID), cmp.Compare(c.block, other.block))
}

// turnQueues are the candidates of one fairness key, a heap.
type turnQueues struct {
	key      string
	v        float64 // that it had when it got its place; below 0 while it has not entered
	pos      int     // in the order of its lane
	entering bool    // it is among those that are to enter
	sound    int     // how many candidates there were when the worthless ones were last left out
	queues   []placedQueue
}

func (t *turnQueues) Len() int           { return len(t.queues) }
func (t *turnQueues) Less(i, j int) bool { return t.queues[i].compare(t.queues[j]) < 0 }
func (t *turnQueues) Swap(i, j int)      { t.queues[i], t.queues[j] = t.queues[j], t.queues[i] }
func (t *turnQueues) Push(x any)         { t.queues = append(t.queues, x.(placedQueue)) }

// Pop takes the last one off.
func (t *turnQueues) Pop() any {
	last := len(t.queues) - 1
	c := t.queues[last]
	t.queues[last] = placedQueue{}
	t.queues = t.queues[:last]
	return c
}

// first is the queue with the lowest head; ok is false when there is none that work can be taken from.
func (t *turnQueues) first() (c placedQueue, ok bool) {
	for len(t.queues) > 0 {
		c := &t.queues[0]
		switch {
		case !c.takes():
			heap.Pop(t)
		case c.at != c.head:
			c.at = c.head
			heap.Fix(t, 0)
		default:
			return *c, true
		}
	}
	return placedQueue{}, false
}

// tidy leaves out what work cannot be taken from and what is there twice.
func (t *turnQueues) tidy() {
	seen := make(map[*classQueue]bool, len(t.queues))
	t.queues = slices.DeleteFunc(t.queues, func(c placedQueue) bool {
		worthless := !c.takes() || seen[c.classQueue]
		seen[c.classQueue] = true
		return worthless
	})
	for i := range t.queues {
		t.queues[i].at = t.queues[i].head
	}
	heap.Init(t)
	t.sound = len(t.queues)
}

// laneQueues are the candidates of one lane that a filter matches: a heap of turns.
type laneQueues struct {
	name       string
	turns      map[string]*turnQueues
	order      []*turnQueues
	entering   []*turnQueues // turns that may have been idle until now (S24)
	unknown    []*classQueue // queues whose heads nobody knows
	unsurveyed []*classQueue
}

func newLaneQueues(name string) *laneQueues {
	return &laneQueues{name: name, turns: map[string]*turnQueues{}}
}

func (l *laneQueues) Len() int { return len(l.order) }

func (l *laneQueues) Less(i, j int) bool {
	a, b := l.order[i], l.order[j]
	return cmp.Or(cmp.Compare(a.v, b.v), cmp.Compare(a.key, b.key)) < 0
}

func (l *laneQueues) Swap(i, j int) {
	l.order[i], l.order[j] = l.order[j], l.order[i]
	l.order[i].pos, l.order[j].pos = i, j
}

// Push appends a turn.
func (l *laneQueues) Push(x any) {
	t := x.(*turnQueues)
	t.pos = len(l.order)
	l.order = append(l.order, t)
}

// Pop takes the last one off.
func (l *laneQueues) Pop() any {
	last := len(l.order) - 1
	t := l.order[last]
	l.order[last] = nil
	l.order = l.order[:last]
	return t
}

// add gives a queue its place, if work can be taken from it.
func (l *laneQueues) add(q *classQueue, key string) {
	if q.block == 0 && !q.surveyed {
		l.unsurveyed = append(l.unsurveyed, q)
	}
	if !q.takes() {
		return
	}
	if q.head == math.MinInt64 {
		l.unknown = append(l.unknown, q)
	}
	t := l.turns[key]
	if t == nil {
		t = &turnQueues{key: key, v: -1}
		l.turns[key] = t
		heap.Push(l, t)
	}
	heap.Push(t, placedQueue{q, q.head})
	if len(t.queues) > 2*t.sound+askAll {
		t.tidy()
	}
	if !t.entering && key != "" {
		t.entering = true
		l.entering = append(l.entering, t)
	}
}

// drop forgets a turn without candidates.
func (l *laneQueues) drop(t *turnQueues) {
	heap.Remove(l, t.pos)
	delete(l.turns, t.key)
	if len(l.turns) == 0 { // maps and lists do not shrink by themselves
		l.turns, l.order, l.entering = map[string]*turnQueues{}, nil, nil
	}
}

// any reports whether there is a candidate.
func (l *laneQueues) any() bool {
	for len(l.order) > 0 {
		if _, ok := l.order[0].first(); ok {
			return true
		}
		l.drop(l.order[0])
	}
	return false
}

// anyUnsurveyed reports whether there is a class of which nobody knows under which numbers it has rows.
func (l *laneQueues) anyUnsurveyed() bool {
	for n := len(l.unsurveyed); n > 0; n = len(l.unsurveyed) {
		if !l.unsurveyed[n-1].surveyed {
			return true
		}
		l.unsurveyed = l.unsurveyed[:n-1]
	}
	l.unsurveyed = nil
	return false
}

// few lists all candidates if there are no more than most; ok is false if there are, or may be.
func (l *laneQueues) few(most int) (all []*classQueue, ok bool) {
	if len(l.order) > most {
		return nil, false
	}
	for _, t := range slices.Clone(l.order) {
		if len(t.queues) > 2*most {
			return nil, false
		}
		if _, any := t.first(); !any {
			l.drop(t)
			continue
		}
		for _, c := range t.queues {
			if c.takes() {
				all = append(all, c.classQueue)
			}
		}
		if len(all) > 2*most {
			return nil, false
		}
	}
	return all, true
}

// peek takes up to most queues whose heads nobody knows out of the list of those. Who looks at them and learns nothing puts them back.
func (l *laneQueues) peek(most int) (unknown []*classQueue) {
	for n := len(l.unknown); n > 0 && len(unknown) < most; n = len(l.unknown) {
		if q := l.unknown[n-1]; q.takes() && q.head == math.MinInt64 {
			unknown = append(unknown, q)
		}
		l.unknown = l.unknown[:n-1]
	}
	if len(l.unknown) == 0 {
		l.unknown = nil
	}
	return unknown
}
