package core

import "container/heap"

// The values of a lane's fairness setting (S2).
const (
	// FairnessAuto makes namespaces take turns, so that no namespace delays another by its priorities or its amount of work. With work of only one
	// namespace it is the same as off. It is the default.
	FairnessAuto      = "auto"
	FairnessOff       = "off"
	FairnessNamespace = "namespace"
	FairnessByKey     = "key"
)

// FairnessKeyOf returns the key under which a lane with that setting serves work of the class (S24); "" when fairness is off, so that all work of
// the lane is under one key (S26). An absent setting is auto.
func FairnessKeyOf(setting string, class *Class) string {
	switch {
	case setting == FairnessByKey && class.FairnessKey != "":
		return class.FairnessKey
	case setting == FairnessOff:
		return ""
	default:
		return class.Namespace
	}
}

// Turns is a process's state of the fairness turns in each lane (S24): for every key the virtual time v = picks / weight. The zero value is ready
// for use. It is not safe for concurrent use.
type Turns struct {
	lanes map[string]*laneTurns
}

type laneTurns struct {
	keys    map[string]*turn
	busy    int     // keys that are not idle
	served  float64 // the largest v at which a key was served: idle keys at or below it need not be remembered
	reached float64 // the largest v that a key has reached: keys in a lane that was empty start there
	pruneAt int     // number of keys at which to prune next
}

// turn is the state of one key. v is stored as a start plus picks / weight, so that equal shares give equal numbers.
type turn struct {
	key    string
	start  float64
	picks  int64
	weight int64
	idle   bool
}

func (t *turn) v() float64 { return t.start + float64(t.picks)/float64(t.weight) }

// restart continues at v with a new weight or after a pause.
func (t *turn) restart(v float64, weight int64) { t.start, t.picks, t.weight = v, 0, weight }

// Round is a series of picks in one lane for one caller, or for several with the same candidates.
type Round struct {
	lane  *laneTurns
	queue turnQueue
}

// Round opens a round among the keys that have candidates for the caller, each named once. weight returns the lane's weight of a key; values below
// 1 count as 1. A key that was idle enters with the larger of its own v and the smallest v among the others, so that it has not accumulated turns.
func (t *Turns) Round(lane string, keys []string, weight func(key string) int) *Round {
	if t.lanes == nil {
		t.lanes = map[string]*laneTurns{}
	}
	l := t.lanes[lane]
	if l == nil {
		l = &laneTurns{keys: map[string]*turn{}, pruneAt: 1024}
		t.lanes[lane] = l
	}
	return l.round(keys, weight)
}

func (l *laneTurns) round(keys []string, weight func(key string) int) *Round {
	l.prune() // before the round refers to turns that still count as idle
	r := &Round{lane: l, queue: make(turnQueue, 0, len(keys))}
	floor, found := l.served, false
	for _, key := range keys {
		turn := l.turn(key, int64(max(weight(key), 1)))
		r.queue = append(r.queue, turn)
		if !turn.idle && (!found || turn.v() < floor) {
			floor, found = turn.v(), true
		}
	}
	for _, turn := range r.queue {
		if turn.idle {
			turn.restart(max(turn.v(), floor), turn.weight)
			turn.idle = false
			l.busy++
		}
	}
	heap.Init(&r.queue)
	return r
}

// turn returns the state of a key, adding an idle one if there is none, and sets its present weight.
func (l *laneTurns) turn(key string, weight int64) *turn {
	t := l.keys[key]
	switch {
	case t == nil:
		t = &turn{key: key, weight: weight, idle: true}
		l.keys[key] = t
	case t.weight != weight:
		t.restart(t.v(), weight)
	}
	return t
}

// Next returns the key whose turn it is: the smallest v, ties by key text. ok is false when no key is left.
func (r *Round) Next() (key string, ok bool) {
	if len(r.queue) == 0 {
		return "", false
	}
	return r.queue[0].key, true
}

// Took counts a pick of the key that Next returns.
func (r *Round) Took() {
	first := r.queue[0]
	r.lane.served = max(r.lane.served, first.v())
	first.picks++
	r.lane.reached = max(r.lane.reached, first.v())
	heap.Fix(&r.queue, 0)
}

// Drop removes the key that Next returns from the rest of the round: it has no more candidates for this caller.
func (r *Round) Drop() { heap.Pop(&r.queue) }

// Standing returns the v of a key in the lane. ok is false for a key that is idle or unknown and enters with its next Round.
func (t *Turns) Standing(lane, key string) (v float64, ok bool) {
	l := t.lanes[lane]
	if l == nil || l.keys[key] == nil || l.keys[key].idle {
		return 0, false
	}
	return l.keys[key].v(), true
}

// Idle records that the key has no candidates in the lane for any caller. It accumulates no turns until it enters a round again.
func (t *Turns) Idle(lane, key string) {
	l := t.lanes[lane]
	if l == nil || l.keys[key] == nil || l.keys[key].idle {
		return
	}
	turn := l.keys[key]
	turn.idle = true
	l.busy--
	switch {
	case l.busy == 0: // the next key starts without history
		l.served = l.reached
		clear(l.keys)
	case l.forgettable(turn):
		delete(l.keys, key)
	}
}

// forgettable reports whether the state of a key can be dropped: an idle key that is not ahead of the lane would enter again like a new one.
func (l *laneTurns) forgettable(t *turn) bool { return t.idle && t.v() <= l.served }

// prune drops forgettable keys whenever the number of keys has doubled.
func (l *laneTurns) prune() {
	if len(l.keys) < l.pruneAt {
		return
	}
	for key, turn := range l.keys {
		if l.forgettable(turn) {
			delete(l.keys, key)
		}
	}
	l.pruneAt = max(1024, 2*len(l.keys))
}

// turnQueue is a heap by v, ties by key text.
type turnQueue []*turn

func (q turnQueue) Len() int { return len(q) }

func (q turnQueue) Less(i, j int) bool {
	if a, b := q[i].v(), q[j].v(); a != b {
		return a < b
	}
	return q[i].key < q[j].key
}

func (q turnQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *turnQueue) Push(x any) { *q = append(*q, x.(*turn)) }

func (q *turnQueue) Pop() any {
	last := len(*q) - 1
	turn := (*q)[last]
	*q = (*q)[:last]
	return turn
}
