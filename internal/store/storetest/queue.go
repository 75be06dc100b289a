package storetest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func queueTests() []test {
	return []test{
		{"S6: a queue is in order of the order key, ties by UUID", queueOrder, anyStore},
		{"S6: picks answer what a sorted list answers, by class, block, floor and limit", picksAgainstAList, anyStore},
		{"S18: several picks are answered in the order asked", severalPicks, anyStore},
		{"S6: of several queues the best rows of all can be asked for", bestOfSeveral, anyStore},
		{"S9: the best rows are the best that another transaction has not picked", bestPassesOverPicked, shared},
		{"S44: blocked rows lie apart under their key", blockedRows, anyStore},
		{"a pick brings its executions with their inputs under a lock", pickBringsExecutions, anyStore},
		{"Read answers the queue rows of a pick alone", readOfAPick, anyStore},
		{"a row is taken from the queue exactly as it was loaded", exactDequeue, anyStore},
		{"S8: a row moves to another order key in one transaction", movedRow, anyStore},
		{"S9: concurrent pickers never get the same row and leave none", concurrentPickers, anyStore},
		{"S9: a pick passes over rows that another transaction picked", pickPassesOverPicked, shared},
		{"S9: a pick passes over executions that another transaction holds", pickPassesOverHeld, shared},
		{"S9: a pick returns of each queue the first row, held or not, and how many were held", pickReturnsLooks, shared},
		{"S68: a poll sees rows that another transaction holds", pollSeesHeld, shared},
		{"S13: an empty pick over many classes answers nothing", emptyPick, anyStore},
	}
}

func whole(class int32, limit int) store.Pick {
	return store.Pick{Class: class, Floor: math.MinInt64, Limit: limit}
}

// anyRow returns the poll question whether a queue has rows.
func anyRow(class, block int32) store.Before {
	return store.Before{Class: class, Block: block, Order: math.MaxInt64}
}

// ordered returns executions with these order keys.
func (w *world) ordered(keys ...int64) []*core.Execution {
	list := w.executions(len(keys))
	for i, key := range keys {
		list[i].OrderKey = key
	}
	return list
}

func compareRows(a, b store.QueueRow) int {
	if a.Order != b.Order {
		if a.Order < b.Order {
			return -1
		}
		return 1
	}
	return bytes.Compare(a.ID[:], b.ID[:])
}

func sortedRows(list []*core.Execution) []store.QueueRow {
	rows := make([]store.QueueRow, len(list))
	for i, x := range list {
		rows[i] = queueRow(x)
	}
	slices.SortFunc(rows, compareRows)
	return rows
}

func queueOrder(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(5, -9_000_000_000_000_000, 5, math.MaxInt64, 0, 5, math.MinInt64, -1, 5)
	for i, first := range []byte{0xff, 0x00, 0x80, 0x7f} { // the UUIDs of the ties cross the sign bit
		list[[]int{0, 2, 5, 8}[i]].ID.UUID[0] = first
	}
	w.file(ctx, list...)
	want := sortedRows(list)
	tx, got := w.begin(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 100)}})
	tx.Rollback(ctx)
	w.equal("picked", want, got.Picked)
	w.equal("read", want, w.read(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 100)}}).Picked)
	w.equal("first four", want[:4], w.read(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 4)}}).Picked)
}

func picksAgainstAList(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{newClass("default", "a"), newClass("default", "b")})
	var rows []store.QueueRow
	list := w.ordered(make([]int64, 60)...)
	for i, x := range list {
		x.Class, x.OrderKey = classes[i%2], int64(i%7)-3
		row := queueRow(x)
		row.Block = int32(i % 3)
		rows = append(rows, row)
	}
	w.add(ctx, &store.Changes{Insert: list, Enqueue: rows})
	slices.SortFunc(rows, compareRows)
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		pick := store.Pick{
			Class: rapid.SampledFrom(classes).Draw(rt, "class").ID, Block: rapid.Int32Range(0, 3).Draw(rt, "block"),
			Floor: rapid.Int64Range(-5, 5).Draw(rt, "floor"), Limit: rapid.IntRange(1, 20).Draw(rt, "limit"),
		}
		var want []store.QueueRow
		for _, row := range rows {
			if row.Class == pick.Class && row.Block == pick.Block && row.Order >= pick.Floor && len(want) < pick.Limit {
				want = append(want, row)
			}
		}
		w.equal("read", want, w.read(ctx, store.Want{Pick: []store.Pick{pick}}).Picked)
		tx, got := w.begin(ctx, store.Want{Pick: []store.Pick{pick}})
		tx.Rollback(ctx)
		w.equal("picked", want, got.Picked)
		before := slices.ContainsFunc(rows, func(row store.QueueRow) bool {
			return row.Class == pick.Class && row.Block == pick.Block && row.Order < pick.Floor
		})
		if there := w.poll(ctx, store.Before{Class: pick.Class, Block: pick.Block, Order: pick.Floor}).Queues; len(there) != 1 || there[0] != before {
			rt.Fatalf("Poll says %v of rows before %d, want %v", there, pick.Floor, before)
		}
	})
}

func severalPicks(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{newClass("default", "a"), newClass("default", "b"), newClass("default", "c")})
	list := w.ordered(3, 1, 2, 30, 10, 20)
	for i, x := range list {
		x.Class = classes[i/3]
	}
	w.file(ctx, list...)
	a, b := sortedRows(list[:3]), sortedRows(list[3:])
	want := store.Want{Pick: []store.Pick{whole(classes[1].ID, 2), whole(classes[2].ID, 5), whole(classes[0].ID, 100)}}
	tx, got := w.begin(ctx, want)
	tx.Rollback(ctx)
	w.equal("picked", append(slices.Clone(b[:2]), a...), got.Picked)
	if len(got.Executions) != 5 {
		t.Fatalf("%d executions came with 5 picked rows", len(got.Executions))
	}
}

func bestOfSeveral(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{newClass("default", "a"), newClass("default", "b"), newClass("default", "c")})
	list := w.ordered(3, 1, 2, 3, 10, 2)
	for i, x := range list {
		x.Class = classes[i/3]
	}
	w.file(ctx, list...)
	picks := []store.Pick{whole(classes[1].ID, 9), whole(classes[2].ID, 5), whole(classes[0].ID, 9)}
	all := sortedRows(list)
	for n := 1; n <= 7; n++ {
		best := all[:min(n, len(all))]
		var want []store.QueueRow
		for _, pick := range picks {
			for _, row := range best {
				if row.Class == pick.Class {
					want = append(want, row)
				}
			}
		}
		tx, got := w.begin(ctx, store.Want{Pick: picks, PickBest: n})
		tx.Rollback(ctx)
		w.equal(fmt.Sprintf("the best %d", n), want, got.Picked)
		if len(got.Executions) != len(best) || got.LeftOut != (n < len(all)) {
			t.Fatalf("the best %d: %d executions, left out: %v", n, len(got.Executions), got.LeftOut)
		}
	}
}

func bestPassesOverPicked(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{newClass("default", "a"), newClass("default", "b")})
	list := w.ordered(1, 3, 2, 4)
	for i, x := range list {
		x.Class = classes[i/2]
	}
	w.file(ctx, list...)
	all := sortedRows(list)
	want := store.Want{Pick: []store.Pick{whole(classes[0].ID, 1), whole(classes[1].ID, 1)}, PickBest: 2}
	first, got := w.begin(ctx, want)
	defer first.Rollback(ctx)
	w.equal("the first", all[:2], got.Picked)
	second, got := w.begin(ctx, want)
	w.equal("the second", all[2:], got.Picked)
	second.Rollback(ctx)
	held, _ := w.begin(ctx, store.Want{Executions: []base.UUID{all[2].ID}})
	defer held.Rollback(ctx)
	third, got := w.begin(ctx, store.Want{Pick: []store.Pick{whole(classes[0].ID, 9), whole(classes[1].ID, 9)}, PickBest: 1})
	third.Rollback(ctx)
	if len(got.Picked) != 0 || !got.LeftOut {
		t.Fatalf("picked %v beside an execution that is held, left out: %v", got.Picked, got.LeftOut)
	}
}

func blockedRows(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(1, 2, 3)
	rows := sortedRows(list)
	rows[1].Block, rows[2].Block = 7, 8
	w.add(ctx, &store.Changes{Insert: list, Enqueue: rows})
	for i, block := range []int32{0, 7, 8} {
		got := w.read(ctx, store.Want{Pick: []store.Pick{{Class: w.class.ID, Block: block, Floor: math.MinInt64, Limit: 9}}})
		w.equal(fmt.Sprintf("block %d", block), rows[i:i+1], got.Picked)
	}
	w.put(ctx, store.Want{Executions: idsOf(list)}, &store.Changes{
		Dequeue: rows[1:2], Enqueue: []store.QueueRow{{Class: w.class.ID, Order: 2, ID: rows[1].ID}},
	})
	rows[1].Block = 0
	w.equal("ready again", rows[:2], w.read(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 9)}}).Picked)
}

func pickBringsExecutions(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x, behind := w.ordered(1)[0], w.ordered(2)[0]
	x.Input = payload("application/octet-stream", everyByte())
	w.file(ctx, x, behind)
	tx, got := w.begin(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 1)}})
	w.equal("executions", map[base.UUID]*core.Execution{x.ID.UUID: x}, got.Executions)
	w.busy(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}})
	tx.Rollback(ctx)
}

func readOfAPick(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.file(ctx, x)
	got := w.read(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 1)}})
	w.equal("queue", []store.QueueRow{queueRow(x)}, got.Picked)
	if len(got.Executions) != 0 {
		t.Fatalf("Read loaded %d executions of a pick", len(got.Executions))
	}
}

func exactDequeue(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(1, 1, 2)
	w.file(ctx, list...)
	rows := sortedRows(list)
	w.put(ctx, store.Want{Executions: idsOf(list)}, &store.Changes{Dequeue: []store.QueueRow{
		rows[1],
		{Class: rows[0].Class, Order: rows[0].Order + 7, ID: rows[0].ID},
		{Class: rows[0].Class, Block: 3, Order: rows[0].Order, ID: rows[0].ID},
	}})
	w.equal("queue", []store.QueueRow{rows[0], rows[2]}, w.read(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 9)}}).Picked)
}

func movedRow(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(1, 2, 3)
	w.file(ctx, list...)
	rows := sortedRows(list)
	moved := rows[0]
	moved.Order = 10
	w.put(ctx, store.Want{Executions: idsOf(list)}, &store.Changes{Dequeue: rows[:1], Enqueue: []store.QueueRow{moved}})
	w.equal("queue", []store.QueueRow{rows[1], rows[2], moved}, w.read(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 9)}}).Picked)
}

// claimSome takes up to n rows of a queue and returns their ids.
func claimSome(ctx context.Context, s store.Store, pick store.Pick, now base.Time) (taken []base.UUID, err error) {
	err = insist(ctx, s, store.Want{Pick: []store.Pick{pick}}, func(got *store.Loaded) *store.Changes {
		taken = nil
		ch := &store.Changes{Dequeue: got.Picked}
		for _, row := range got.Picked {
			taken = append(taken, row.ID)
			ch.Update = append(ch.Update, claimed(got.Executions[row.ID], now))
		}
		return ch
	})
	return taken, err
}

func concurrentPickers(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := w.file(ctx, w.executions(120)...)
	var lock sync.Mutex
	times := map[base.UUID]int{}
	left := len(ids)
	err := together(crowd, func(i int) error {
		for {
			taken, err := claimSome(ctx, w.s, whole(w.class.ID, 1+i), w.now)
			if err != nil {
				return err
			}
			lock.Lock()
			for _, id := range taken {
				times[id]++
			}
			left -= len(taken)
			done := left <= 0
			lock.Unlock()
			if done {
				return nil
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if times[id] != 1 {
			t.Fatalf("execution %v was taken %d times", id, times[id])
		}
		if x := w.load(ctx, id); x.LeaseEpoch != 1 || x.Status != core.Running {
			t.Fatalf("execution %v is %v in epoch %d", id, x.Status, x.LeaseEpoch)
		}
	}
	if got := w.read(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 9)}}).Picked; len(got) != 0 {
		t.Fatalf("rows left in the queue: %v", got)
	}
}

func pickPassesOverPicked(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(1, 2, 3, 4, 5)
	w.file(ctx, list...)
	rows := sortedRows(list)
	first, a := w.begin(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 2)}})
	second, b := w.begin(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 2)}})
	third, c := w.begin(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 9)}})
	w.equal("first", rows[:2], a.Picked)
	w.equal("second", rows[2:4], b.Picked)
	w.equal("third", rows[4:], c.Picked)
	for _, tx := range []store.Tx{first, second, third} {
		tx.Rollback(ctx)
	}
}

func pickPassesOverHeld(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(1, 2, 3)
	ids := w.file(ctx, list...)
	holder, _ := w.begin(ctx, store.Want{Executions: ids[:1]})
	picker, got := w.begin(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 9)}})
	w.equal("picked", sortedRows(list[1:]), got.Picked)
	w.equal("executions", map[base.UUID]*core.Execution{ids[1]: list[1], ids[2]: list[2]}, got.Executions)
	picker.Rollback(ctx)
	holder.Rollback(ctx)
}

// pickReturnsLooks holds rows by picks and by their executions, and picks with and without PickBest.
func pickReturnsLooks(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{newClass("default", "a"), newClass("default", "b"), newClass("default", "c")})
	list := w.ordered(1, 2, 3, 4, 50, 60)
	for i, x := range list {
		x.Class = classes[i/4]
	}
	ids := w.file(ctx, list...)
	picked, _ := w.begin(ctx, store.Want{Pick: []store.Pick{whole(classes[0].ID, 1)}})
	defer picked.Rollback(ctx)
	held, _ := w.begin(ctx, store.Want{Executions: ids[4:]})
	defer held.Rollback(ctx)
	picks := []store.Pick{whole(classes[2].ID, 9), whole(classes[1].ID, 9), whole(classes[0].ID, 2), {Class: classes[0].ID, Floor: 3, Limit: 1}, {Class: classes[0].ID, Floor: 5, Limit: 1}}
	for _, best := range []int{0, 1, 9} {
		tx, got := w.begin(ctx, store.Want{Pick: picks, PickBest: best})
		tx.Rollback(ctx)
		held := 2
		if best == 1 { // the rows of that queue are not among the best
			held = 0
		}
		want := []store.QueueLook{{First: math.MaxInt64}, {First: 50, Held: held}, {First: 1}, {First: 3}, {First: math.MaxInt64}}
		w.equal(fmt.Sprintf("best %d", best), want, got.Looks)
		if len(got.Picked) == 0 || got.Picked[0].Order != 2 {
			t.Fatalf("picked %v", got.Picked)
		}
	}
}

func pollSeesHeld(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.file(ctx, w.ordered(1, 2)...)
	tx, _ := w.begin(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 1)}})
	defer tx.Rollback(ctx)
	got := w.poll(ctx, store.Before{Class: w.class.ID, Order: 2}, store.Before{Class: w.class.ID, Order: 1})
	w.equal("queues", []bool{true, false}, got.Queues)
}

func emptyPick(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	want := store.Want{}
	for class := range int32(1000) {
		want.Pick = append(want.Pick, whole(class+1000, 8))
	}
	tx, got := w.begin(ctx, want)
	tx.Rollback(ctx)
	if len(got.Picked) != 0 || len(got.Executions) != 0 {
		t.Fatalf("an empty queue answered %v", got.Picked)
	}
}
