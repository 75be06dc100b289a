package postgres

import (
	"cmp"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// addPick takes heads of queues. Of a plain read the queue rows are the answer.
func (l *load) addPick(t *trip) {
	if len(l.want.Pick) == 0 {
		return
	}
	values := pickColumns(l.want.Pick)
	if !l.locks {
		t.add("read_queue", func(r row) error {
			l.out.Picked = append(l.out.Picked, store.QueueRow{Class: r.int(1), Block: r.int(2), Order: r.bigint(3), ID: r.uuid(4)})
			return nil
		}, values...)
		return
	}
	t.add("pick", func(r row) error {
		if r.null(0) {
			return l.execution(r[1:])
		}
		l.picked = append(l.picked, placedRow{r.bigint(0), store.QueueRow{Class: r.int(2), Block: r.int(11), Order: r.bigint(9), ID: r.uuid(1)}})
		return nil
	}, values...)
}

func pickColumns(picks []store.Pick) [][]byte {
	class, block, floor, limit := ints(len(picks)), ints(len(picks)), bigints(len(picks)), ints(len(picks))
	for _, p := range picks {
		class.int(p.Class)
		block.int(p.Block)
		floor.bigint(p.Floor)
		limit.int(int32(p.Limit))
	}
	return arguments(class, block, floor, limit)
}

// finishPick keeps the queue rows whose executions were free, each once, in the order asked for.
func (l *load) finishPick() {
	slices.SortFunc(l.picked, func(a, b placedRow) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.Order, b.Order), slices.Compare(a.ID[:], b.ID[:]))
	})
	seen := make(map[core.UUID]bool, len(l.picked))
	for _, p := range l.picked {
		if l.out.Executions[p.ID] != nil && !seen[p.ID] {
			seen[p.ID] = true
			l.out.Picked = append(l.out.Picked, p.QueueRow)
		}
	}
}
