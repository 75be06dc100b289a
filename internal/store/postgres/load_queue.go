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
	name, besides := "pick", 0
	if l.want.PickBest > 0 {
		name, besides = "pick_best", 1
		values = append(values, integer(int32(l.want.PickBest)))
	}
	t.add(name, func(r row) error {
		if besides > 0 {
			l.out.LeftOut = r.bigint(4) > int64(l.want.PickBest)
			if r.null(4 + besides) {
				return nil // somebody else holds it
			}
		}
		execution := r[4+besides:]
		queued := store.QueueRow{Class: execution.int(2), Block: r.int(1), Order: r.bigint(2), ID: execution.uuid(1)}
		l.picked = append(l.picked, pickedRow{r.bigint(0), queued})
		l.places.queue = append(l.places.queue, queuePlace{queued, r.place(3)})
		return l.execution(execution)
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

// addBlocks adds under which numbers classes have rows. It comes after the statements that lock, so that it sees what whoever held a lock
// before has filed.
func (l *load) addBlocks(t *trip) {
	classes := slices.Clone(l.want.Blocks)
	if len(classes) == 0 {
		return
	}
	slices.Sort(classes)
	l.out.Blocks = map[int32][]int32{}
	t.add("blocks", func(r row) error {
		class := r.int(0)
		l.out.Blocks[class] = append(l.out.Blocks[class], r.int(1))
		return nil
	}, intColumn(slices.Compact(classes)))
}

// finishPick puts the queue rows into the order asked for, each once.
func (l *load) finishPick() {
	order := func(a, b pickedRow) int {
		return cmp.Or(cmp.Compare(a.pick, b.pick), cmp.Compare(a.Order, b.Order), compareUUIDs(a.ID, b.ID))
	}
	if !slices.IsSortedFunc(l.picked, order) {
		slices.SortFunc(l.picked, order)
	}
	var seen map[core.UUID]bool
	if len(l.want.Pick) > 1 { // one Pick finds no row twice
		seen = make(map[core.UUID]bool, len(l.picked))
	}
	for _, p := range l.picked {
		if seen[p.ID] {
			continue
		}
		if seen != nil {
			seen[p.ID] = true
		}
		l.out.Picked = append(l.out.Picked, p.QueueRow)
	}
}
