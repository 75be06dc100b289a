package postgres

import (
	"cmp"
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// addPick picks the heads of queues. For a plain read the result is the queue rows.
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
	l.out.Looks = slices.Repeat([]store.QueueLook{{First: math.MaxInt64}}, len(l.want.Pick))
	t.add(name, func(r row) error {
		look := &l.out.Looks[r.bigint(0)-1]
		look.First = r.bigint(2)
		if r.null(3) {
			return nil // none came
		}
		if besides > 0 {
			l.out.LeftOut = r.bigint(5) > int64(l.want.PickBest)
		}
		if r.null(5 + besides) {
			look.Held++
			return nil
		}
		execution := r[5+besides:]
		queued := store.QueueRow{Class: execution.int(2), Block: r.int(1), Order: r.bigint(3), ID: execution.uuid(1)}
		l.picked = append(l.picked, pickedRow{r.bigint(0), queued})
		l.places.queue = append(l.places.queue, queuePlace{queued, r.place(4)})
		return l.execution(execution)
	}, values...)
}

// beforeColumns encodes what a poll asks about queues.
func beforeColumns(asked []store.Before) [][]byte {
	class, block, before := ints(len(asked)), ints(len(asked)), bigints(len(asked))
	for _, q := range asked {
		class.int(q.Class)
		block.int(q.Block)
		before.bigint(q.Order)
	}
	return arguments(class, block, before)
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

// addBlocks adds the block numbers under which classes have rows. It comes after the statements that lock, so that it sees what previous holders of
// the locks have filed.
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

// finishPick sorts the queue rows into the requested order, each once.
func (l *load) finishPick() {
	order := func(a, b pickedRow) int {
		return cmp.Or(cmp.Compare(a.pick, b.pick), cmp.Compare(a.Order, b.Order), compareUUIDs(a.ID, b.ID))
	}
	if !slices.IsSortedFunc(l.picked, order) {
		slices.SortFunc(l.picked, order)
	}
	var seen map[base.UUID]bool
	if len(l.want.Pick) > 1 { // one Pick finds no row twice
		seen = make(map[base.UUID]bool, len(l.picked))
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
