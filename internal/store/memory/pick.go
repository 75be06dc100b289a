package memory

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// candidate is a queue row that a Pick found.
type candidate struct {
	pick int
	store.QueueRow
}

// pick locks the heads of queues: first the queue rows that no other Pick has locked, then their executions, where those are free. Queue rows stay
// locked also if they are not among the best, or their executions are held.
func (l *load) pick(context.Context) error {
	if len(l.want.Pick) == 0 {
		return nil
	}
	if l.t == nil {
		l.readQueues()
		return nil
	}
	l.out.Looks = slices.Repeat([]store.QueueLook{{First: math.MaxInt64}}, len(l.want.Pick))
	found := l.candidates()
	if best := l.want.PickBest; best > 0 && len(found) > best {
		l.out.LeftOut = true
		ranked := slices.Clone(found)
		slices.SortStableFunc(ranked, func(a, b candidate) int { return a.Compare(b.QueueRow) })
		last := ranked[best-1]
		found = slices.DeleteFunc(found, func(c candidate) bool { return c.Compare(last.QueueRow) > 0 })
	}
	for _, c := range found {
		row := l.rows().executions[c.ID]
		if row == nil || !l.d.take(l.t.h, store.Lock{Execution: c.ID}) {
			l.out.Looks[c.pick].Held++
			continue
		}
		if err := l.keep(row, true, false); err != nil {
			return err
		}
		l.out.Picked = append(l.out.Picked, c.QueueRow)
	}
	return nil
}

// candidates locks the first free rows of every queue and returns them, each once.
func (l *load) candidates() (found []candidate) {
	seen := map[base.UUID]bool{}
	for i, p := range l.want.Pick {
		n := 0
		for at, row := range l.rows().from(p) {
			if at == 0 {
				l.out.Looks[i].First = row.Order
			}
			if n == p.Limit {
				break
			}
			if by := l.d.picked[row]; by != nil && by != l.t.h {
				continue
			}
			n++
			if l.d.picked[row] == nil {
				l.d.picked[row] = l.t.h
				l.t.h.queue = append(l.t.h.queue, row)
			}
			if !seen[row.ID] {
				seen[row.ID] = true
				found = append(found, candidate{i, row})
			}
		}
	}
	return found
}

// readQueues answers a Read.
func (l *load) readQueues() {
	for _, p := range l.want.Pick {
		rows := l.rows().from(p)
		l.out.Picked = append(l.out.Picked, rows[:min(len(rows), p.Limit)]...)
	}
}

// from returns the rows of a queue from the floor on.
func (m *image) from(p store.Pick) []store.QueueRow {
	rows := m.queues[queueKey{p.Class, p.Block}]
	at, _ := slices.BinarySearchFunc(rows, p.Floor, func(row store.QueueRow, floor int64) int {
		return cmp.Or(cmp.Compare(row.Order, floor), 1) // before the first of equal ones
	})
	return rows[at:]
}
