package claims

import (
	"container/heap"
	"time"

	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// lapses holds when admission keys have room again by themselves: a rate at its next free time (S40), a budget at its reset. first finds the
// earliest without a look at the others. The zero value is empty. The picker's lock protects it.
type lapses struct {
	at    map[string]time.Time // by key, the earliest time
	order lapseHeap            // may have entries that at has replaced
}

type keyLapse struct {
	key string
	at  time.Time
}

type lapseHeap []keyLapse

func (h lapseHeap) Len() int           { return len(h) }
func (h lapseHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h lapseHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lapseHeap) Push(x any)        { *h = append(*h, x.(keyLapse)) }

// Pop removes the last element, for container/heap.
func (h *lapseHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = keyLapse{}
	*h = (*h)[:last]
	return l
}

// add records that the key has room at a time. An earlier time stays.
func (l *lapses) add(key string, at time.Time) {
	if known, ok := l.at[key]; ok && !at.Before(known) {
		return
	}
	txn.SetIn(&l.at, key, at)
	heap.Push(&l.order, keyLapse{key, at})
	if len(l.order) > 2*len(l.at)+64 { // most entries are replaced
		l.order = l.order[:0]
		for key, at := range l.at {
			l.order = append(l.order, keyLapse{key, at})
		}
		heap.Init(&l.order)
	}
}

// forget drops the time of a key.
func (l *lapses) forget(key string) {
	if delete(l.at, key); len(l.at) == 0 {
		*l = lapses{}
	}
}

// first returns the key that has room first, or "" if there is none.
func (l *lapses) first() (key string, at time.Time) {
	for len(l.order) > 0 {
		next := l.order[0]
		if known, ok := l.at[next.key]; ok && known.Equal(next.at) {
			return next.key, next.at
		}
		heap.Pop(&l.order)
	}
	return "", time.Time{}
}
