package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func lateLockTests() []test {
	return []test{
		{"S73: docs that are locked after executions are waited for, and seen as the first transaction left them", lateDocsAreFresh, anyStore},
		{"S73: within one Load docs are locked before counters, and both before lanes", orderWithinALoad, shared},
		{"S73: docs, counters and lanes that many lock late, named in any order, never wait in a circle", lateLocksEnd, anyStore},
	}
}

// lateDocsAreFresh makes several goroutines count in a doc that each locks in a second trip.
func lateDocsAreFresh(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := w.insert(ctx, w.executions(crowd)...)
	counted := doc(1, "", "count", "")
	w.add(ctx, &store.Changes{NewDocs: []store.Doc{counted}})
	late := store.Want{Docs: []store.DocRef{counted.DocRef}, LockDocs: true}
	const each = 10
	err := together(crowd, func(i int) error {
		for range each {
			for {
				err := inTwoTrips(ctx, w.s, store.Want{Executions: ids[i : i+1], Patient: true}, late, func(got *store.Loaded) *store.Changes {
					next := counted
					next.Body = append(slices.Clone(got.Docs[counted.DocRef].Body), 'x')
					return &store.Changes{PutDocs: []store.Doc{next}}
				})
				if err == nil {
					break
				}
				if !passing(err) || ctx.Err() != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.read(ctx, late).Docs[counted.DocRef].Body); n != crowd*each {
		t.Fatalf("counted %d, want %d", n, crowd*each)
	}
}

// inTwoTrips runs a transaction that loads more after it has begun.
func inTwoTrips(ctx context.Context, s store.Store, first, second store.Want, do change) error {
	tx, _, err := s.Begin(ctx, first)
	if err != nil {
		return err
	}
	loaded, err := tx.Load(ctx, second)
	if err != nil {
		tx.Rollback(ctx)
		return err
	}
	return tx.Commit(ctx, do(loaded))
}

// orderWithinALoad holds the rows that come later in the order, and checks whether a transaction that wants both already holds those that come
// earlier.
func orderWithinALoad(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := w.insert(ctx, w.execution())
	d := doc(1, "", "d", `1`)
	w.add(ctx, &store.Changes{NewDocs: []store.Doc{d}})
	docs, counters := store.Want{Docs: []store.DocRef{d.DocRef}, LockDocs: true}, store.Want{Counters: []string{"c"}}
	lanes := store.Want{LockLanes: []int32{w.lane.ID}}
	all := store.Want{Docs: docs.Docs, LockDocs: true, Counters: counters.Counters, ShareLanes: lanes.LockLanes}
	for _, one := range []struct {
		what           string
		earlier, later store.Want
	}{{"docs before counters", docs, counters}, {"docs before lanes", docs, lanes}, {"counters before lanes", counters, lanes}} {
		holder, _ := w.begin(ctx, one.later)
		waiting, _ := w.begin(ctx, store.Want{Executions: ids, Patient: true})
		ended := make(chan error, 1)
		go func() {
			_, err := waiting.Load(ctx, all)
			waiting.Rollback(ctx)
			ended <- err
		}()
		if err := w.heldMeanwhile(ctx, one.earlier, ended); err != nil {
			t.Errorf("%s: %v", one.what, err)
		}
		holder.Rollback(ctx)
		if err := <-ended; err != nil && !passing(err) {
			t.Fatal(err)
		}
	}
}

// heldMeanwhile waits until another transaction holds the rows, unless that transaction has ended before. The error in ended is left in the
// channel.
func (w *world) heldMeanwhile(ctx context.Context, rows store.Want, ended chan error) error {
	for {
		tx, _, err := w.s.Begin(ctx, rows)
		switch {
		case err == nil:
			tx.Rollback(ctx)
		case store.FaultOf(err) == store.Busy:
			return nil
		default:
			return err
		}
		select {
		case err := <-ended:
			ended <- err
			return fmt.Errorf("the rows were free all the time: %w", err)
		default:
		}
	}
}

func lateLocksEnd(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := w.insert(ctx, w.executions(4)...)
	var docs []store.Doc
	for _, key := range []string{"a", "b", "c"} {
		docs = append(docs, doc(1, "", key, `1`), doc(2, "", key, `2`))
	}
	w.add(ctx, &store.Changes{NewDocs: docs})
	err := together(4, func(i int) error {
		late := store.Want{Docs: refsOf(docs), LockDocs: true, Counters: []string{"x", "y"}, ShareLanes: []int32{w.lane.ID}}
		if i%2 == 1 {
			slices.Reverse(late.Docs)
			slices.Reverse(late.Counters)
		}
		for range 25 {
			for {
				err := inTwoTrips(ctx, w.s, store.Want{Executions: []base.UUID{ids[i]}, Patient: true}, late, func(*store.Loaded) *store.Changes {
					return &store.Changes{Counters: map[string]int64{"x": 1, "y": 1}}
				})
				if err == nil {
					break
				}
				if store.FaultOf(err) != store.Busy {
					return fmt.Errorf("transactions that lock the same rows late: %w", err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
