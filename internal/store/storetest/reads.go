package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func readTests() []test {
	return []test{
		{"L5: the store's clock never runs backwards", clockIsMonotone, anyStore},
		{"L5: every transaction reads the clock", transactionsReadTheClock, anyStore},
		{"Read sees one snapshot", readSeesOneSnapshot, anyStore},
		{"Read locks nothing and does not wait", readLocksNothing, anyStore},
		{"a transaction is invisible until it commits", invisibleUntilCommit, anyStore},
		{"S71: Poll answers about every queue in the order asked", pollQueues, anyStore},
	}
}

func clockIsMonotone(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	err := together(4, func(int) error {
		last := w.now
		for range 50 {
			now, err := w.s.Now(ctx)
			if err != nil {
				return err
			}
			if now < last {
				return fmt.Errorf("%v after %v", now, last)
			}
			last = now
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func transactionsReadTheClock(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := w.insert(ctx, w.execution())
	for what, want := range map[string]store.Want{"without rows": {}, "with rows": {Executions: ids}} {
		before := w.clock(ctx)
		tx, got := w.begin(ctx, want)
		tx.Rollback(ctx)
		after := w.clock(ctx)
		// A transaction that only creates may use an extrapolated reading: off by some milliseconds, never by a second (L5).
		if got.Now < before.Add(-base.Second) || got.Now > after.Add(base.Second) {
			t.Fatalf("%s: Begin says %v between %v and %v", what, got.Now, before, after)
		}
		if what == "with rows" && (got.Now < before || got.Now > after) {
			t.Fatalf("%s: Begin says %v, not between %v and %v", what, got.Now, before, after)
		}
	}
	before := w.clock(ctx)
	read, polled := w.read(ctx, store.Want{Executions: ids}).Now, w.poll(ctx).Now
	if after := w.clock(ctx); read < before || polled < read || after < polled {
		t.Fatalf("Read says %v and Poll %v between %v and %v", read, polled, before, after)
	}
}

// readSeesOneSnapshot keeps four kinds of rows at the same number and checks whether a reader ever sees them differ.
func readSeesOneSnapshot(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.executions(2)
	ids := w.insert(ctx, list...)
	want := store.Want{Executions: ids, Counters: []string{"n"}, Docs: []store.DocRef{{Kind: 1, Key: "n"}}, Pick: []store.Pick{whole(w.class.ID, 9)}}
	var done atomic.Bool
	err := together(3, func(i int) error {
		if i > 0 {
			for !done.Load() {
				if err := sameNumber(ctx, w.s, want); err != nil {
					return err
				}
			}
			return nil
		}
		defer done.Store(true)
		for n := range 60 {
			if err := insist(ctx, w.s, store.Want{Executions: ids}, func(got *store.Loaded) *store.Changes {
				return numbered(got, ids, n+1)
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sameNumber(ctx, w.s, want); err != nil {
		t.Fatal(err)
	}
}

// numbered moves everything from number n-1 to n.
func numbered(got *store.Loaded, ids []base.UUID, n int) *store.Changes {
	ch := &store.Changes{
		Counters: map[string]int64{"n": 1}, PutDocs: []store.Doc{doc(1, "", "n", fmt.Sprint(n))},
		Enqueue: []store.QueueRow{{Class: got.Executions[ids[0]].Class.ID, Order: int64(n), ID: ids[0]}},
	}
	if n > 1 {
		ch.Dequeue = []store.QueueRow{{Class: got.Executions[ids[0]].Class.ID, Order: int64(n - 1), ID: ids[0]}}
	}
	for _, id := range ids {
		x := got.Executions[id]
		x.Priority = n
		ch.Update = append(ch.Update, x)
	}
	return ch
}

func sameNumber(ctx context.Context, s store.Store, want store.Want) error {
	got, err := s.Read(ctx, want)
	if err != nil {
		return err
	}
	if got.Executions[want.Executions[0]] == nil || got.Executions[want.Executions[1]] == nil {
		return errors.New("an execution is missing")
	}
	a, b := got.Executions[want.Executions[0]].Priority, got.Executions[want.Executions[1]].Priority
	body := string(got.Docs[want.Docs[0]].Body)
	if a == 0 && b == 0 && body == "" && got.Counters["n"] == 0 && len(got.Picked) == 0 {
		return nil
	}
	if a != b || got.Counters["n"] != int64(a) || body != fmt.Sprint(a) || len(got.Picked) != 1 || got.Picked[0].Order != int64(a) {
		return fmt.Errorf("one Read saw executions at %d and %d, counter %d, doc %s, queue %v", a, b, got.Counters["n"], body, got.Picked)
	}
	return nil
}

func readLocksNothing(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	ids := w.file(ctx, x)
	row := w.key("k", x)
	d := doc(1, "", "d", `1`)
	w.add(ctx, &store.Changes{NewKeys: []store.KeyRow{row}, PutDocs: []store.Doc{d}, Counters: map[string]int64{"c": 1}})
	all := store.Want{
		Keys: []store.Key{row.Key}, Executions: ids, Pick: []store.Pick{whole(w.class.ID, 9)}, Counters: []string{"c"},
		LockLanes: []int32{w.lane.ID}, Docs: []store.DocRef{d.DocRef}, LockDocs: true,
	}
	w.read(ctx, all)
	tx, _ := w.begin(ctx, all) // a read leaves nothing locked
	got := w.read(ctx, all)    // and a transaction does not delay a read
	if len(got.Executions) != 1 || len(got.Keys) != 1 || len(got.Picked) != 1 || len(got.Docs) != 1 || len(got.Lanes) != 1 || got.Counters["c"] != 1 {
		t.Fatalf("Read beside an open transaction: %+v", got)
	}
	w.poll(ctx, anyRow(w.class.ID, 0))
	if _, err := w.s.Dictionary(ctx); err != nil {
		t.Fatalf("Dictionary beside an open transaction: %v", err)
	}
	w.find(ctx, store.Query{Limit: 1})
	tx.Rollback(ctx)
}

func invisibleUntilCommit(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	ids := w.file(ctx, x)
	tx, got := w.begin(ctx, store.Want{Executions: ids, Inputs: true})
	y := claimed(got.Executions[ids[0]], w.now)
	w.equal("before the commit", x, w.load(ctx, ids[0]))
	w.commit(ctx, tx, &store.Changes{Update: []*core.Execution{y}, Dequeue: []store.QueueRow{queueRow(x)}, Events: []core.Event{event(x, w.now, 1)}})
	w.equal("after the commit", y, w.load(ctx, ids[0]))
	w.equal("queue after the commit", 0, len(w.read(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 9)}}).Picked))
	w.equal("events after the commit", 1, len(w.events(ctx, 0)))
}

func pollQueues(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{newClass("default", "a"), newClass("default", "b")})
	x, blocked := w.ordered(10)[0], w.ordered(20)[0]
	x.Class, blocked.Class = classes[0], classes[1]
	row := queueRow(blocked)
	row.Block = 4
	w.add(ctx, &store.Changes{Insert: []*core.Execution{x, blocked}, Enqueue: []store.QueueRow{queueRow(x), row}})
	got := w.poll(ctx,
		anyRow(classes[1].ID, 0), anyRow(classes[0].ID, 0), anyRow(classes[1].ID, 4), anyRow(classes[0].ID, 4),
		store.Before{Class: classes[0].ID, Order: 10}, store.Before{Class: classes[0].ID, Order: 11}, anyRow(1<<30, 0))
	w.equal("queues", []bool{false, true, true, false, false, true, false}, got.Queues)
	w.equal("no queues", 0, len(w.poll(ctx).Queues))
}
