package engine_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// classes are the numbers of the classes that the store has, and of those that are retired.
func (w *world) classes() (all, retired []int32) {
	w.t.Helper()
	dict := must(w.store.Dictionary(w.ctx()))(w.t)
	for _, class := range dict.Classes {
		all = append(all, class.ID)
	}
	for _, class := range dict.Retired {
		retired = append(retired, class.ID)
	}
	return all, retired
}

// classOf is the number of an execution's class.
func (w *world) classOf(id base.GivenID) int32 {
	w.t.Helper()
	return w.get(id).Class.ID
}

const (
	aMinute = base.Minute + base.Second // after it the store has been maintained
	aRound  = 6*base.Hour + aMinute     // after it classes have been looked at
)

func TestL141_a_class_without_executions_is_retired_and_then_dropped(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		stays := w.classOf(w.submit(core.Submission{Kind: "stays"}))
		once := core.Submission{Kind: "once", Lane: "other", PolicyJSON: []byte(`{"fairness_key":"user 1","retention_ms":1000}`)}
		run := func() int32 {
			id := w.submit(once)
			class := w.classOf(id)
			r := ask()
			r.Lanes = []string{"other"}
			w.complete(w.claimAs(r))
			ok(t, w.e.Delete(w.ctx(), operator, id, engine.Operator{}))
			return class
		}
		goes := run()
		w.pass(aMinute)
		eventually(t, "it is retired", func() bool { _, retired := w.classes(); return slices.Equal(retired, []int32{goes}) })
		same(t, "the class of a new one", run(), goes)
		if all, retired := w.classes(); len(retired) > 0 {
			t.Fatalf("of %v %v are retired, one of which was used again", all, retired)
		}
		w.pass(aRound)
		eventually(t, "it is retired again", func() bool { _, retired := w.classes(); return len(retired) == 1 })
		w.pass(aRound)
		eventually(t, "it is gone", func() bool { all, _ := w.classes(); return slices.Equal(all, []int32{stays}) })
		if again := run(); again == goes {
			t.Fatalf("class %d was dropped and is used", goes)
		}
	})
}

func TestL80_a_submit_brings_back_a_class_that_was_retired_behind_its_back(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) { // what is left in a transaction of its own is filed when somebody asks for it
		class := w.classOf(w.submit(core.Submission{}))
		w.complete(w.claim())
		retire := func() {
			tx, _, err := w.store.Begin(w.ctx(), store.Want{})
			ok(t, err)
			ok(t, tx.Commit(w.ctx(), &store.Changes{RetireClasses: []store.RetiredClass{{ID: class, Since: w.now()}}}))
		}
		retire()
		same(t, "class", w.classOf(w.submit(core.Submission{})), class)
		w.complete(w.claim())
		retire()
		items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "k"}, {Kind: "k"}}, true))(t)
		same(t, "class", w.classOf(items[1].ID.Given()), class)
		w.complete(w.claim())
		w.complete(w.claim())
		own := w.beginOwn()
		answer := must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k"}))(t)
		ok(t, own.commit())
		retire()
		same(t, "class", w.classOf(answer.ID.Given()), class)
		w.complete(w.claim())
		if _, retired := w.classes(); len(retired) > 0 {
			t.Fatalf("%v are retired and used", retired)
		}
	})
}

func TestS13_callers_who_bring_a_new_class_each_are_all_served_at_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		const callers, each = 256, 4
		var wg sync.WaitGroup
		for n := range callers {
			wg.Go(func() {
				for i := range each {
					if _, err := w.e.Submit(w.ctx(), client, core.Submission{Lane: "l", Kind: fmt.Sprintf("kind-%d-%d", n, i)}); err != nil {
						t.Errorf("submit: %v", err)
					}
				}
			})
		}
		wg.Wait()
	})
}
