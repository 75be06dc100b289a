package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

func heldTests() []test {
	return []test{
		{"S73: a transaction that is busy names the rows that others hold, and no others", heldRowsAreNamed, shared},
		{"S73: a write that is busy names the rows that others hold, and no others", heldWritesAreNamed, shared},
		{"L82: a write that is busy names the keys and ids that open transactions of users have taken", takenKeysAreNamed, sharedTx},
		{"S73: what another transaction holds is waited for, and nothing is held meanwhile", awaits, shared},
		{"L82: what an open transaction of a user has taken is waited for", awaitsTaken, sharedTx},
	}
}

// rowsOfEach is the number of rows of each kind in these tests.
const rowsOfEach = 7

// lockable makes rows of every kind that can be named in a want.
func (w *world) lockable(t *testing.T) map[string][]store.Lock {
	ctx := t.Context()
	all := map[string][]store.Lock{}
	var docs []store.Doc
	var lanes []core.Lane
	list := w.executions(rowsOfEach)
	ids := w.insert(ctx, list...)
	for i := range rowsOfEach {
		name := fmt.Sprintf("held-%d", i)
		docs = append(docs, doc(1, "", name, `1`))
		lanes = append(lanes, w.newLane(name))
		key := w.key(name, list[i])
		w.add(ctx, &store.Changes{NewKeys: []store.KeyRow{key}})
		all["keys"] = append(all["keys"], store.Lock{Key: key.Key})
		all["docs"] = append(all["docs"], store.Lock{Doc: docs[i].DocRef})
		all["executions"] = append(all["executions"], store.Lock{Execution: ids[i]})
		all["counters"] = append(all["counters"], store.Lock{Counter: name})
	}
	w.add(ctx, &store.Changes{NewDocs: docs, Counters: map[string]int64{"held-0": 1, "held-3": 2}})
	registered, _ := w.register(ctx, lanes, nil)
	for _, lane := range registered {
		all["lanes"] = append(all["lanes"], store.Lock{Lane: lane.ID})
		all["lanes to share"] = append(all["lanes to share"], store.Lock{Lane: lane.ID, Shared: true})
	}
	return all
}

// holding returns the strongest want for the rows: lanes are locked to be changed, which excludes their readers too.
func holding(locks []store.Lock) store.Want {
	locks = slices.Clone(locks)
	for i := range locks {
		locks[i].Shared = false
	}
	return store.WantOf(locks)
}

// sortedLocks sorts locks for comparison.
func sortedLocks(locks []store.Lock) []store.Lock {
	locks = slices.Clone(locks)
	slices.SortFunc(locks, func(a, b store.Lock) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return locks
}

func heldRowsAreNamed(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	for name, rows := range w.lockable(t) {
		for _, held := range [][]store.Lock{rows[:1], rows[2:3], {rows[1], rows[5]}, rows} {
			holder, _ := w.begin(ctx, holding(held))
			tx, _, err := w.s.Begin(ctx, store.WantOf(rows))
			if err == nil {
				tx.Rollback(ctx)
			}
			holder.Rollback(ctx)
			w.expectFault(err, store.Busy)
			w.equal(name, sortedLocks(held), sortedLocks(store.Held(err)))
		}
		w.put(ctx, store.WantOf(rows), &store.Changes{}) // the search holds no locks any more
	}
}

func heldWritesAreNamed(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	var runs []*core.Execution
	for range rowsOfEach {
		runs = append(runs, w.runs(ctx))
	}
	docs := []store.Doc{doc(1, "", "a", `1`), doc(1, "", "b", `1`), doc(1, "", "c", `1`)}
	w.add(ctx, &store.Changes{NewDocs: docs[:2]})
	refs := []store.DocRef{docs[0].DocRef, docs[1].DocRef}
	lanes, _ := w.register(ctx, []core.Lane{w.newLane("a"), w.newLane("b")}, nil)
	for name, one := range map[string]struct {
		ch   *store.Changes
		held store.Lock
	}{
		"remembered": {&store.Changes{Assume: runs}, store.Lock{Execution: runs[4].ID.UUID}},
		"updated":    {&store.Changes{Update: runs}, store.Lock{Execution: runs[2].ID.UUID}},
		"counted":    {&store.Changes{Counters: map[string]int64{"a": 1, "b": 2, "c": 3}}, store.Lock{Counter: "b"}},
		"put":        {&store.Changes{PutDocs: docs}, store.Lock{Doc: docs[1].DocRef}},
		"dropped":    {&store.Changes{DropDocs: refs}, store.Lock{Doc: docs[0].DocRef}},
		"lanes": {
			&store.Changes{Dictionary: w.version(ctx), AssumeLanes: []int32{lanes[0].ID, lanes[1].ID}, Counters: map[string]int64{"d": 1}},
			store.Lock{Lane: lanes[1].ID, Shared: true},
		},
	} {
		holder, _ := w.begin(ctx, holding([]store.Lock{one.held}))
		tx, _ := w.begin(ctx, store.Want{})
		err := tx.Commit(ctx, one.ch)
		holder.Rollback(ctx)
		w.expectFault(err, store.Busy)
		w.equal(name, []store.Lock{one.held}, store.Held(err))
	}
}

func takenKeysAreNamed(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	list := g.executions(rowsOfEach)
	var keys []store.KeyRow
	for i, x := range list {
		keys = append(keys, g.key(fmt.Sprintf("taken-%d", i), x))
	}
	tx, _, rollback := f.OwnTx(t, g.s)
	row := g.row("of an open transaction")
	if _, err := g.to.SubmitTx(ctx, tx, &keys[3], row); err != nil {
		t.Fatal(err)
	}
	mine, _ := g.begin(ctx, store.Want{})
	err := mine.Commit(ctx, &store.Changes{NewKeys: keys, Insert: list})
	g.expectFault(err, store.Busy)
	g.equal("key", []store.Lock{{Key: keys[3].Key}}, store.Held(err))
	list[5].ID = row.ID
	mine, _ = g.begin(ctx, store.Want{})
	err = mine.Commit(ctx, &store.Changes{Insert: list})
	g.expectFault(err, store.Busy)
	g.equal("id", []store.Lock{{Execution: row.ID.UUID}}, store.Held(err))
	if err := rollback(); err != nil {
		t.Fatal(err)
	}
	g.add(ctx, &store.Changes{NewKeys: keys, Insert: list})
}

func awaits(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	for name, rows := range w.lockable(t) {
		if err := w.s.Await(ctx, rows[0], waitBound); err != nil {
			t.Fatalf("%s: a row that is free: %v", name, err)
		}
		holder, _ := w.begin(ctx, holding(rows[:1]))
		w.expectFault(w.s.Await(ctx, rows[0], time.Millisecond), store.Busy)
		ended := make(chan error, 1)
		go func() { ended <- w.s.Await(ctx, rows[0], waitBound) }()
		w.put(ctx, store.WantOf(rows[1:]), &store.Changes{})
		holder.Rollback(ctx)
		if err := <-ended; err != nil {
			t.Fatalf("%s: after its holder has ended: %v", name, err)
		}
		w.put(ctx, store.WantOf(rows), &store.Changes{})
	}
	unchanged := w.version(ctx)
	if err := w.s.Await(ctx, store.Lock{Dictionary: true}, waitBound); err != nil {
		t.Fatal(err)
	}
	w.equal("version of the dictionary", unchanged, w.version(ctx))
}

func awaitsTaken(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	row := g.row("of an open transaction")
	key := g.key("taken", &core.Execution{ID: row.ID})
	for _, lock := range []store.Lock{{Key: key.Key}, {Execution: row.ID.UUID}} {
		tx, _, rollback := f.OwnTx(t, g.s)
		if _, err := g.to.SubmitTx(ctx, tx, &key, row); err != nil {
			t.Fatal(err)
		}
		g.expectFault(g.s.Await(ctx, lock, time.Millisecond), store.Busy)
		if err := rollback(); err != nil {
			t.Fatal(err)
		}
		if err := g.s.Await(ctx, lock, waitBound); err != nil {
			t.Fatalf("after its transaction has ended: %v", err)
		}
	}
	g.gone(ctx, row.ID.UUID)
	g.submit(ctx, t, &key, row, true)
	for _, lock := range []store.Lock{{Key: key.Key}, {Execution: row.ID.UUID}} {
		if err := g.s.Await(ctx, lock, waitBound); err != nil {
			t.Fatalf("what is there and free: %v", err)
		}
	}
}
