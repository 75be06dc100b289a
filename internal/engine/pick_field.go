package engine

import (
	"container/heap"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
)

// laneField is what a call may take of one lane that is open (S3): its queues, the one with the best row first. There may be hundreds, and
// each row that is taken asks for the best again.
type laneField struct {
	k      *pick
	lane   *core.Lane
	queues []*askedQueue // a heap
}

// fieldsOf sorts the queues that the call may take from, by lane. It is good for as long as only this call is served.
func (k *pick) fieldsOf(u *unit, call *claim) map[string]*laneField {
	fields := map[string]*laneField{}
	for _, a := range k.asked {
		if !a.users[call] || !k.open(a) {
			continue
		}
		field, seen := fields[a.class.Lane]
		if !seen {
			if lane := u.laneNamed(a.class.Lane); lane != nil && lane.Settings.State.Claimable() && !lane.Counting {
				field = &laneField{k: k, lane: lane}
			}
			fields[a.class.Lane] = field
		}
		if field != nil {
			field.queues = append(field.queues, a)
		}
	}
	for _, field := range fields {
		if field != nil {
			heap.Init(field)
		}
	}
	return fields
}

// open tells whether the first row of the queue may be taken: no queue that was not asked may hold a better one.
func (k *pick) open(a *askedQueue) bool {
	if len(a.rows) == 0 || a.passed != "" {
		return false
	}
	bound, ok := k.bound[a.turn]
	return !ok || a.rows[0].Order <= bound
}

// first is the queue with the lowest order key, ties by UUID (S6); nil: there is none. A queue that has nothing more to give never has
// again.
func (f *laneField) first() *askedQueue {
	for len(f.queues) > 0 {
		if !f.k.open(f.queues[0]) {
			heap.Pop(f)
			continue
		}
		best := f.queues[0]
		if heap.Fix(f, 0); f.queues[0] == best { // its first row may have been taken since
			return best
		}
	}
	return nil
}

// firstOf is the same among the queues of a fairness key. Rows are then taken from the midst of the heap, so that it is none any more.
func (f *laneField) firstOf(key string) (best *askedQueue) {
	for _, a := range f.queues {
		if f.k.open(a) && f.keyOf(a) == key && (best == nil || a.rows[0].Compare(best.rows[0]) < 0) {
			best = a
		}
	}
	return best
}

func (f *laneField) keyOf(a *askedQueue) string {
	return core.FairnessKeyOf(f.lane.Settings.Fairness, a.class)
}

// empty tells that there is nothing to take.
func (f *laneField) empty() bool {
	if fair(f.lane) {
		return !slices.ContainsFunc(f.queues, f.k.open)
	}
	return f.first() == nil
}

// The methods of a heap.

func (f *laneField) Len() int { return len(f.queues) }

func (f *laneField) Less(i, j int) bool { return f.queues[i].rows[0].Compare(f.queues[j].rows[0]) < 0 }
func (f *laneField) Swap(i, j int)      { f.queues[i], f.queues[j] = f.queues[j], f.queues[i] }
func (f *laneField) Push(any)           {} // none is added

// Pop takes the last one off.
func (f *laneField) Pop() any {
	last := len(f.queues) - 1
	f.queues = f.queues[:last]
	return nil
}
