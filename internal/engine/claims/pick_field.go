package claims

import (
	"container/heap"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// laneField is what a call may take from one open lane (S3): a heap of its queues, the one with the best row first. There may be hundreds, and the
// best is asked for after each row that is taken. In a lane with fairness there is one laneField for each key.
type laneField struct {
	k      *pick
	lane   *core.Lane
	queues []*askedQueue // a heap

	keys   map[string]*laneField // nil: the lane has no fairness
	open   int                   // number of keys from which a row may be taken
	served *laneField            // field of the key from which the last row came
	gone   bool                  // in the field of a key: no row may be taken any more
	round  *core.Round           // of these keys and of behind
	behind string                // the key that comes first among the queues that were not asked; "": all were asked
}

// fieldsOf sorts the queues that the call may take from, by lane. The result is reused while only calls of one filter are served, since rows are
// taken only through it.
func (k *pick) fieldsOf(u *txn.Tx, call *claim) map[string]*laneField {
	if k.fields != nil && len(k.groups) == 1 && k.fieldOf == call.filter {
		return k.fields
	}
	k.fieldOf = call.filter
	fields := map[string]*laneField{}
	for _, a := range k.asked {
		if !a.users[call.filter] || !k.open(a) {
			continue
		}
		field, seen := fields[a.class.Lane]
		if !seen {
			if lane := u.LaneNamed(a.class.Lane); lane != nil && lane.Settings.State.Claimable() && !lane.Counting {
				field = &laneField{k: k, lane: lane}
			}
			fields[a.class.Lane] = field
		}
		if field != nil {
			field.add(a)
		}
	}
	for name, field := range fields {
		if field != nil {
			field.behind = k.left[leftFor{name, call.filter}]
			field.init()
		}
	}
	return fields
}

func (f *laneField) add(a *askedQueue) {
	if !fair(f.lane) {
		f.queues = append(f.queues, a)
		return
	}
	key := core.FairnessKeyOf(f.lane.Settings.Fairness, a.class)
	of := f.keys[key]
	if of == nil {
		of = &laneField{k: f.k, lane: f.lane}
		txn.SetIn(&f.keys, key, of)
	}
	of.queues = append(of.queues, a)
}

func (f *laneField) init() {
	heap.Init(f)
	for _, of := range f.keys {
		heap.Init(of)
	}
	f.open = len(f.keys)
}

// open reports whether the first row of the queue may be taken: no queue that was not asked may have a better one.
func (k *pick) open(a *askedQueue) bool {
	if len(a.rows) == 0 || a.passed != "" {
		return false
	}
	bound, ok := k.bound[a.turn]
	return !ok || a.rows[0].Order <= bound
}

// first returns the queue with the lowest order key, ties by UUID (S6), or nil. A queue that has nothing more to give is removed: it gets no more
// rows during this pick.
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

// fairest returns the queue with the best row under the key whose turn it is (S24), or nil if it is the turn of a queue that was not asked. took
// counts the turn. Rows are taken only from the key that it returns, so only that one can be empty at the next call. turning is held while calls of
// one filter are served, so the turns do not change and the round stays valid.
func (f *laneField) fairest() (best *askedQueue, took func()) {
	if f.round == nil {
		keys := slices.Collect(maps.Keys(f.keys))
		if f.behind != "" && f.keys[f.behind] == nil {
			keys = append(keys, f.behind) // what comes after its turn is not known
		}
		f.round = f.k.p.turns.Round(f.lane.Name, keys, weightsOf(f.lane))
	}
	for key, ok := f.round.Next(); ok; key, ok = f.round.Next() {
		if of := f.keys[key]; of != nil && !of.gone {
			f.served = of
			return of.first(), f.round.Took
		}
		if key == f.behind {
			return nil, nil
		}
		f.round.Drop()
	}
	return nil, nil
}

// empty reports whether there is nothing to take.
func (f *laneField) empty() bool {
	if f.keys == nil {
		return f.first() == nil
	}
	if f.served != nil && !f.served.gone && f.served.first() == nil {
		f.served.gone = true
		f.open--
	}
	return f.open == 0
}

// The methods of a heap.

func (f *laneField) Len() int { return len(f.queues) }

func (f *laneField) Less(i, j int) bool { return f.queues[i].rows[0].Compare(f.queues[j].rows[0]) < 0 }
func (f *laneField) Swap(i, j int)      { f.queues[i], f.queues[j] = f.queues[j], f.queues[i] }
func (f *laneField) Push(any)           {} // none is added

// Pop removes the last element, for container/heap.
func (f *laneField) Pop() any {
	last := len(f.queues) - 1
	f.queues = f.queues[:last]
	return nil
}
