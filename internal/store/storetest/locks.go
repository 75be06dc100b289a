package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func lockTests() []test {
	return []test{
		{"S73: a wait for an execution that another transaction holds ends as busy", heldExecutionIsBusy, anyStore},
		{"S73: a patient transaction waits longer for a lock than others, and not for ever", patience, anyStore},
		{"a row that was waited for is seen as the first transaction left it", waitedRowIsFresh, anyStore},
		{"I3: concurrent changes of one execution are never lost", noLostUpdate, anyStore},
		{"I3: changes through two handles on one database are never lost", noLostUpdateOfTwoProcesses, shared},
		{"executions that others hold are skipped on demand and named", heldExecutionsAreNamed, shared},
		{"S73: executions are locked in one order whatever order they are named in", oneLockOrder, anyStore},
		{"S73: rows of an earlier kind are loaded later only if they are free", laterRowsOnlyIfFree, shared},
		{"S73: Load locks what it loads", loadLocks, anyStore},
		{"S73: transactions that wait for each other end", deadlockEnds, shared},
	}
}

func heldExecutionIsBusy(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	want := store.Want{Executions: w.insert(ctx, x)}
	tx, _ := w.begin(ctx, want)
	w.busy(ctx, want)
	w.equal("read without waiting", light(x), w.read(ctx, want).Executions[x.ID.UUID])
	y := claimed(x, w.now)
	w.commit(ctx, tx, &store.Changes{Update: []*core.Execution{y}})
	tx, got := w.begin(ctx, want)
	tx.Rollback(ctx)
	w.equal("after the commit", light(y), got.Executions[x.ID.UUID])
}

func patience(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := w.insert(ctx, w.execution())
	tx, _ := w.begin(ctx, store.Want{Executions: ids})
	defer tx.Rollback(ctx)
	wait := func(patient bool) base.Millis {
		begun := w.clock(ctx)
		w.busy(ctx, store.Want{Executions: ids, Patient: patient})
		return w.clock(ctx).Sub(begun)
	}
	hasty, patient := wait(false), wait(true)
	if patient < 500 || hasty >= patient {
		t.Fatalf("a transaction waited %d ms for a lock, a patient one %d ms", hasty, patient)
	}
}

func waitedRowIsFresh(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	want := store.Want{Executions: w.insert(ctx, x)}
	for round := range 20 {
		tx, got := w.begin(ctx, want)
		seen := make(chan int, 1)
		begun := make(chan struct{})
		go func() {
			close(begun)
			priority := -1
			_ = insist(ctx, w.s, want, func(got *store.Loaded) *store.Changes {
				priority = got.Executions[x.ID.UUID].Priority
				return nil
			})
			seen <- priority
		}()
		<-begun
		y := got.Executions[x.ID.UUID]
		y.Priority = round + 1
		w.commit(ctx, tx, &store.Changes{Update: []*core.Execution{y}})
		if priority := <-seen; priority != round+1 {
			t.Fatalf("round %d: the waiting transaction saw priority %d", round, priority)
		}
	}
}

// count raises the priority of one execution n times from each of a crowd of goroutines.
func count(ctx context.Context, id base.UUID, n int, handles ...store.Store) error {
	return together(crowd, func(i int) error {
		for range n {
			err := insist(ctx, handles[i%len(handles)], store.Want{Executions: []base.UUID{id}}, func(got *store.Loaded) *store.Changes {
				x := got.Executions[id]
				x.Priority++
				return &store.Changes{Update: []*core.Execution{x}}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func noLostUpdate(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.insert(ctx, x)
	if err := count(ctx, x.ID.UUID, 10, w.s); err != nil {
		t.Fatal(err)
	}
	x.Priority = 10 * crowd
	w.equal("execution", x, w.load(ctx, x.ID.UUID))
}

func noLostUpdateOfTwoProcesses(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.insert(ctx, x)
	if err := count(ctx, x.ID.UUID, 10, w.s, f.OpenAgain(t, w.s)); err != nil {
		t.Fatal(err)
	}
	x.Priority = 10 * crowd
	w.equal("execution", x, w.load(ctx, x.ID.UUID))
}

func sortIDs(ids []base.UUID) []base.UUID {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b base.UUID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

func heldExecutionsAreNamed(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := sortIDs(w.insert(ctx, w.executions(4)...))
	tx, got := w.begin(ctx, store.Want{Executions: ids, SkipLocked: true})
	if len(got.Executions) != 4 || len(got.Held) != 0 {
		t.Fatalf("of four free executions %d were loaded and %v held", len(got.Executions), got.Held)
	}
	tx.Rollback(ctx)
	holder, _ := w.begin(ctx, store.Want{Executions: []base.UUID{ids[1], ids[3]}})
	absent := newUUID(w.now)
	tx, got = w.begin(ctx, store.Want{Executions: append(slices.Clone(ids), absent), SkipLocked: true})
	w.equal("held", []base.UUID{ids[1], ids[3]}, sortIDs(got.Held))
	if len(got.Executions) != 2 || got.Executions[ids[0]] == nil || got.Executions[ids[2]] == nil {
		t.Fatalf("loaded %v", got.Executions)
	}
	tx.Rollback(ctx)
	holder.Rollback(ctx)
}

func oneLockOrder(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := w.insert(ctx, w.executions(6)...)
	backwards := slices.Clone(ids)
	slices.Reverse(backwards)
	err := together(4, func(i int) error {
		named := [][]base.UUID{ids, backwards}[i%2]
		for range 25 {
			for {
				err := apply(ctx, w.s, store.Want{Executions: named}, func(*store.Loaded) *store.Changes { return &store.Changes{} })
				if err == nil {
					break
				}
				if store.FaultOf(err) != store.Busy {
					return fmt.Errorf("two transactions that lock the same rows: %w", err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func laterRowsOnlyIfFree(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.executions(2)
	ids := w.insert(ctx, list...)
	holder, _ := w.begin(ctx, store.Want{Executions: ids[:1]})
	tx, _ := w.begin(ctx, store.Want{ShareLanes: []int32{w.lane.ID}, Counters: []string{"c"}})
	got, err := tx.Load(ctx, store.Want{Executions: ids})
	if err != nil {
		t.Fatalf("Load of an execution after a lane: %v", err)
	}
	w.equal("held", ids[:1], got.Held)
	w.equal("loaded", map[base.UUID]*core.Execution{ids[1]: light(list[1])}, got.Executions)
	changed := claimed(list[1], w.now)
	w.commit(ctx, tx, &store.Changes{Update: []*core.Execution{changed}})
	holder.Rollback(ctx)
	w.equal("execution", changed, w.load(ctx, ids[1]))
}

func loadLocks(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	ids := w.insert(ctx, x)
	tx, _ := w.begin(ctx, store.Want{Keys: []store.Key{w.key("k", x).Key}})
	got, err := tx.Load(ctx, store.Want{Executions: ids, Inputs: true})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	w.equal("loaded", x, got.Executions[ids[0]])
	if got.Now == 0 {
		t.Fatal("Load did not read the clock")
	}
	w.busy(ctx, store.Want{Executions: ids})
	changed := claimed(x, w.now)
	w.commit(ctx, tx, &store.Changes{Update: []*core.Execution{changed}})
	w.equal("execution", changed, w.load(ctx, ids[0]))
}

func deadlockEnds(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := sortIDs(w.insert(ctx, w.executions(2)...))
	first, _ := w.begin(ctx, store.Want{Executions: ids[:1]})
	second, _ := w.begin(ctx, store.Want{Executions: ids[1:]})
	bounded, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	var unended error
	_ = together(2, func(i int) error {
		tx := []store.Tx{first, second}[i]
		_, err := tx.Load(bounded, store.Want{Executions: ids[1-i : 2-i]})
		tx.Rollback(ctx)
		if err != nil && !passing(err) {
			unended = err
		}
		return nil
	})
	if bounded.Err() != nil || unended != nil {
		t.Fatalf("two transactions that wait for each other: %v, %v", unended, bounded.Err())
	}
	w.put(ctx, store.Want{Executions: ids}, &store.Changes{})
}
