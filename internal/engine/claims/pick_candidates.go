package claims

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// A limit per user creates a class, and so a queue, for each user, and there may be hundreds of thousands. A pick must not iterate over all of
// them. Each filter therefore keeps the queues that have work which may start in the order in which their lane serves them: the turns of its
// fairness keys by their v, and within a turn the queues by their heads (S18, S24). A pick takes as many from the top as it asks.
//
// The order is updated lazily. Changes that may move a queue to the front are announced: a queue that gets work, room or a lower head is appended
// to the picker's list of news, which each filter reads when it is used. Changes that move a queue back are noticed when it comes to the top:
// without news, the head of a queue and the v of a turn only grow. A queue may be in a filter twice; the code that takes it skips the second one.
//
// The picker's lock protects all of it. v is read under the lock of the turns (turning), which is taken after that one.

// placedQueue is a queue in the order of its turn, with the head that it had when it was placed.
type placedQueue struct {
	*classQueue
	at int64
}

func (c placedQueue) compare(other placedQueue) int {
	return cmp.Or(cmp.Compare(c.at, other.at), cmp.Compare(c.class.ID, other.class.ID), cmp.Compare(c.block, other.block))
}

// turnQueues are the candidates of one fairness key, as a heap.
type turnQueues struct {
	key      string
	v        float64 // its v when it was placed; below 0 until it has entered
	pos      int     // index in the order of its lane
	entering bool    // it is in laneQueues.entering
	sound    int     // number of candidates after the last tidy
	queues   []placedQueue
}

func (t *turnQueues) Len() int           { return len(t.queues) }
func (t *turnQueues) Less(i, j int) bool { return t.queues[i].compare(t.queues[j]) < 0 }
func (t *turnQueues) Swap(i, j int)      { t.queues[i], t.queues[j] = t.queues[j], t.queues[i] }
func (t *turnQueues) Push(x any)         { t.queues = append(t.queues, x.(placedQueue)) }

// Pop removes the last element, for container/heap.
func (t *turnQueues) Pop() any {
	last := len(t.queues) - 1
	c := t.queues[last]
	t.queues[last] = placedQueue{}
	t.queues = t.queues[:last]
	return c
}

// first returns the queue with the lowest head; ok is false if there is no queue that work can be taken from.
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

// tidy removes duplicates and queues that no work can be taken from.
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

// laneQueues are the candidates of one lane that a filter matches, as a heap of turns.
type laneQueues struct {
	name       string
	turns      map[string]*turnQueues
	order      []*turnQueues
	entering   []*turnQueues // turns that may have been idle until now (S24)
	unknown    []*classQueue // queues whose heads are not known
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

// Pop removes the last element, for container/heap.
func (l *laneQueues) Pop() any {
	last := len(l.order) - 1
	t := l.order[last]
	l.order[last] = nil
	l.order = l.order[:last]
	return t
}

// add places a queue, if work can be taken from it.
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

// drop removes a turn without candidates.
func (l *laneQueues) drop(t *turnQueues) {
	heap.Remove(l, t.pos)
	delete(l.turns, t.key)
	if len(l.turns) == 0 { // maps and slices do not shrink by themselves
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

// anyUnsurveyed reports whether there is a class for which it is not known under which block numbers it has rows.
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

// few returns all candidates if there are no more than most; ok is false if there are, or may be, more.
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

// peek removes up to most queues from the list of those whose heads are not known. A caller that learns nothing of them must put them back.
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
