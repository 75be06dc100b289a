package storetest

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func blockTests() []test {
	return []test{
		{"S44: executions that admission has blocked are filed under the number of their key", blockedByAdmission, anyStore},
		{"S46: under which numbers classes have rows answers what a list answers", blocksAgainstAList, anyStore},
		{"S46: thousands of rows under one number are one number", manyRowsOfOneBlock, anyStore},
		{"S46: the numbers of a class are as the transaction that was waited for has left them", waitedBlocksAreFresh, anyStore},
	}
}

// blocked returns a new execution that waits for an admission key.
func (w *world) blocked(reason core.Reason, key string) *core.Execution {
	x := w.execution()
	x.Status, x.Reason, x.BlockedOn = core.Blocked, reason, key
	x.BlockingDetail = json.RawMessage(`{"key":"k"}`)
	return x
}

func blockedByAdmission(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	budget, quota, ready := w.blocked(core.WaitingForBudget, "budget:1"), w.blocked(core.WaitingForQuota, "slots:api/ü"), w.execution()
	w.file(ctx, budget, quota, ready)
	numbers := []int32{core.BlockNumber("budget:1"), core.BlockNumber("slots:api/ü")}
	slices.Sort(numbers)
	want := store.Want{Blocks: []int32{w.class.ID}}
	w.equal("numbers", map[int32][]int32{w.class.ID: numbers}, w.read(ctx, want).Blocks)
	for _, x := range []*core.Execution{budget, quota, ready} {
		pick := store.Pick{Class: w.class.ID, Block: core.BlockNumber(x.BlockedOn), Limit: 9}
		tx, got := w.begin(ctx, store.Want{Pick: []store.Pick{pick}})
		tx.Rollback(ctx)
		w.equal("picked", []store.QueueRow{queueRow(x)}, got.Picked)
		w.equal("execution", map[base.UUID]*core.Execution{x.ID.UUID: x}, got.Executions)
	}
	free := quota.Clone()
	free.Status, free.Reason, free.BlockedOn, free.BlockingDetail = core.Ready, core.WaitingForWorker, "", nil
	w.put(ctx, store.Want{Executions: idsOf([]*core.Execution{quota})}, &store.Changes{
		Update: []*core.Execution{free}, Dequeue: []store.QueueRow{queueRow(quota)}, Enqueue: []store.QueueRow{queueRow(free)},
	})
	w.equal("numbers", map[int32][]int32{w.class.ID: {core.BlockNumber("budget:1")}}, w.read(ctx, want).Blocks)
	w.put(ctx, store.Want{Executions: idsOf([]*core.Execution{budget})}, &store.Changes{
		Dequeue: []store.QueueRow{queueRow(budget)}, Remove: []base.UUID{budget.ID.UUID},
	})
	w.equal("numbers when nothing is blocked", 0, len(w.read(ctx, want).Blocks))
}

func blocksAgainstAList(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{newClass("default", "a"), newClass("default", "b"), newClass("default", "c")})
	numbers := []int32{0, 1, 2, 16, 1 << 20, 1<<31 - 1}
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		var rows []store.QueueRow
		held := map[int32]map[int32]bool{}
		for range rapid.IntRange(0, 25).Draw(rt, "rows") {
			class, block := rapid.SampledFrom(classes[:2]).Draw(rt, "class").ID, rapid.SampledFrom(numbers).Draw(rt, "block")
			rows = append(rows, store.QueueRow{Class: class, Block: block, Order: rapid.Int64().Draw(rt, "order"), ID: newUUID(w.now)})
			if held[class] == nil {
				held[class] = map[int32]bool{}
			}
			held[class][block] = true
		}
		w.add(ctx, &store.Changes{Enqueue: rows})
		asked := drawSome(rt, "classes", []int32{classes[0].ID, classes[1].ID, classes[2].ID, 1 << 30})
		asked = append(asked, classes[0].ID, classes[0].ID)
		want := map[int32][]int32{}
		for _, class := range asked {
			delete(want, class)
			for _, block := range numbers[1:] {
				if held[class][block] {
					want[class] = append(want[class], block)
				}
			}
		}
		w.equal("read", want, w.read(ctx, store.Want{Blocks: asked}).Blocks)
		tx, begun := w.begin(ctx, store.Want{Blocks: asked})
		later, err := tx.Load(ctx, store.Want{Blocks: asked, Counters: []string{"c"}})
		if err != nil {
			rt.Fatal(err)
		}
		w.equal("begun", want, begun.Blocks)
		w.equal("loaded later", want, later.Blocks)
		w.commit(ctx, tx, &store.Changes{Dequeue: rows})
		w.equal("nothing left", 0, len(w.read(ctx, store.Want{Blocks: asked}).Blocks))
	})
}

func manyRowsOfOneBlock(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	rows := make([]store.QueueRow, 10_000)
	for i := range rows {
		rows[i] = store.QueueRow{Class: w.class.ID, Block: 77, Order: int64(i), ID: newUUID(w.now)}
	}
	rows[5000].Block = 78
	w.add(ctx, &store.Changes{Enqueue: rows})
	w.equal("numbers", map[int32][]int32{w.class.ID: {77, 78}}, w.read(ctx, store.Want{Blocks: []int32{w.class.ID}}).Blocks)
}

// waitedBlocksAreFresh makes several goroutines file a row each under the next number, serialized by the lock of an execution.
func waitedBlocksAreFresh(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	id := w.insert(ctx, w.execution())[0]
	want := store.Want{Executions: []base.UUID{id}, Blocks: []int32{w.class.ID}}
	const each = 10
	err := together(crowd, func(int) error {
		for range each {
			err := insist(ctx, w.s, want, func(got *store.Loaded) *store.Changes {
				next := store.QueueRow{Class: w.class.ID, Block: int32(len(got.Blocks[w.class.ID]) + 1), ID: id}
				return &store.Changes{Update: []*core.Execution{got.Executions[id]}, Enqueue: []store.QueueRow{next}}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.read(ctx, want).Blocks[w.class.ID]); n != crowd*each {
		t.Fatalf("%d numbers, want %d", n, crowd*each)
	}
}
