package claims

import (
	"maps"
	"math"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A row whose execution cannot be read stays in its queue, so that it is served as soon as it is repaired, and every pick passes over it (S63).

// unreadableLook is after which time a row that cannot be read is looked at again: the poll finds it in its queue.
const unreadableLook = base.Second

// knownBad counts the rows from the floor on that are known to be unreadable. Only the picker's own goroutine uses them.
func (a *askedQueue) knownBad() int {
	n := 0
	for _, order := range a.classQueue.bad {
		if order >= a.from {
			n++
		}
	}
	return n
}

// setAside passes over a row that cannot be read, and writes an event if it is new. A new one took the place of another row, so the pick looks
// again.
func (k *pick) setAside(u *txn.Tx, a *askedQueue, row store.QueueRow) {
	a.bad = append(a.bad, row)
	if _, known := a.classQueue.bad[row.ID]; known {
		return
	}
	k.ended = true
	u.Engine.QuietLog.Error("an execution cannot be read: claims pass over it", "execution_id", row.ID, "lane", a.class.Lane)
	u.Changes.Events = append(u.Changes.Events, txn.Quarantined(row.ID, base.CodeCorruption, 1, u.Now, u.Now.Add(unreadableLook)))
}

// learnBad records which of the rows that were seen cannot be read.
func (a *askedQueue) learnBad() {
	if len(a.bad) == 0 && len(a.classQueue.bad) == 0 {
		return
	}
	reach := a.reach
	if a.got < a.limit {
		reach = math.MaxInt64
	}
	maps.DeleteFunc(a.classQueue.bad, func(_ base.UUID, order int64) bool { return order >= a.from && order <= reach })
	for _, row := range a.bad {
		txn.SetIn(&a.classQueue.bad, row.ID, row.Order)
	}
}
