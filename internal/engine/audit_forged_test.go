package engine_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// putHead stores the forged head alone: the rows stay as they are.
func (f *forgery) putHead() {
	f.w.t.Helper()
	f.w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: headRef(f.namespace), Body: must(json.Marshal(f.head))(f.w.t)}}})
}

// forgedEnds are what a head may be made to tell of a chain with six rows.
var forgedEnds = map[string]struct {
	first, last int64
	impossible  bool
}{
	"ends before it begins":    {100, 5, true},
	"begins before the first":  {-3, 6, true},
	"begins at none":           {0, 6, true},
	"ends below none":          {1, -1, true},
	"at the end of numbers":    {math.MaxInt64 - 10, math.MaxInt64 - 10, true},
	"over all numbers":         {math.MinInt64, math.MaxInt64, true},
	"over all positive ones":   {1, math.MaxInt64, true},
	"over very many":           {1, 1 << 60, false},
	"begins and ends far away": {1 << 60, 1 << 60, false},
	"empty and far away":       {1<<60 + 1, 1 << 60, false},
}

// onForged runs a test on a chain of six rows whose head tells of others: with a key, and without one.
func onForged(t *testing.T, cfg engine.Config, f func(t *testing.T, w *world, impossible bool)) {
	t.Helper()
	for name, ends := range forgedEnds {
		for kind, master := range map[string]keyring.MasterKey{"sealed": masterKey(1), "unkeyed": {}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				cfg := cfg
				cfg.MasterKey = master
				onStoresWith(t, cfg, func(t *testing.T, w *world) {
					for range 6 {
						w.hold(w.submit(core.Submission{Namespace: "a"}))
					}
					forged := w.forge("a")
					forged.head.First, forged.head.Last, forged.head.Anchor = ends.first, ends.last, []byte("another")
					forged.putHead()
					f(t, w, ends.impossible)
				})
			})
		}
	}
}

func TestU131_verify_answers_whatever_rows_a_forged_head_tells_of(t *testing.T) {
	t.Parallel()
	onForged(t, engine.Config{}, func(t *testing.T, w *world, impossible bool) {
		problem := "row"
		if impossible {
			problem = "tells of rows that cannot be"
		}
		w.finds("a", problem)
	})
}

func TestU110_rows_are_listed_whatever_rows_a_forged_head_tells_of(t *testing.T) {
	t.Parallel()
	onForged(t, engine.Config{}, func(t *testing.T, w *world, impossible bool) {
		rows := w.told(admin, core.AuditFilter{Namespace: "a"})
		if impossible {
			same(t, "all rows that are there", len(rows), 6)
		}
	})
}

func TestU131_retention_drops_nothing_whatever_rows_a_forged_head_tells_of(t *testing.T) {
	t.Parallel()
	onForged(t, engine.Config{AuditRetention: time.Hour}, func(t *testing.T, w *world, _ bool) {
		look := func() base.Time {
			var head core.AuditChain
			doc := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{headRef("a")}}))(t).Docs[headRef("a")]
			ok(t, json.Unmarshal(doc.Body, &head))
			return head.LookAt
		}
		before := look()
		w.turn(2 * base.Hour)
		eventually(t, "the chain was looked at", func() bool { return look() != before })
		for n := int64(1); n <= 6; n++ {
			if docs := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{rowRef("a", n)}}))(t).Docs; len(docs) != 1 {
				t.Errorf("row %d is gone", n)
			}
		}
	})
}

// goesOn lets operators work on in the namespace a, whose chain was altered. The rows that were there stay as they are, and verification
// finds that it was altered, also once the engine was started anew.
func goesOn(t *testing.T, w *world, kept ...int64) {
	t.Helper()
	stored := func() (bodies []string) {
		for _, n := range kept {
			bodies = append(bodies, string(must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{rowRef("a", n)}}))(t).Docs[rowRef("a", n)].Body))
		}
		return bodies
	}
	before := stored()
	for range 2 {
		id := w.submit(core.Submission{Namespace: "a"})
		for range 3 {
			w.hold(id)
			must(w.e.ReleaseHold(w.ctx(), admin, id, engine.Operator{}))(t)
		}
		w.finds("a", " ")
		w.restart()
	}
	same(t, "rows that were there", stored(), before)
	w.hold(w.submit(core.Submission{Namespace: "b"}))
	w.verified("b", 1)
}

func TestU131_operators_work_on_whatever_rows_a_forged_head_tells_of(t *testing.T) {
	t.Parallel()
	onForged(t, engine.Config{}, func(t *testing.T, w *world, _ bool) { goesOn(t, w, 1, 2, 3, 4, 5, 6) })
}

func TestU131_operators_work_on_when_a_head_was_set_back_or_removed_and_its_rows_were_left(t *testing.T) {
	t.Parallel()
	setBack := func(f *forgery, older core.AuditChain) {
		f.head.Last, f.head.Hash, f.head.At = older.Last, older.Hash, older.At
		f.putHead()
	}
	for name, attack := range map[string]func(f *forgery, older core.AuditChain){
		"set back": setBack,
		"set back to one that was there, with its seal": func(f *forgery, older core.AuditChain) {
			f.head = older
			f.putHead()
		},
		"set back, and a row between removed": func(f *forgery, older core.AuditChain) {
			setBack(f, older)
			f.w.tamper(store.Changes{DropDocs: []store.DocRef{rowRef("a", 5)}})
		},
		"set back, and a row at the end of numbers": func(f *forgery, older core.AuditChain) {
			setBack(f, older)
			f.w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: rowRef("a", math.MaxInt64), Body: []byte("{}")}}})
		},
		"removed": func(f *forgery, _ core.AuditChain) {
			f.w.tamper(store.Changes{DropDocs: []store.DocRef{headRef("a")}})
		},
	} {
		for kind, master := range map[string]keyring.MasterKey{"sealed": masterKey(1), "unkeyed": {}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				onStoresWith(t, engine.Config{MasterKey: master}, func(t *testing.T, w *world) {
					for range 3 {
						w.hold(w.submit(core.Submission{Namespace: "a"}))
					}
					older := w.forge("a").head
					for range 3 {
						w.hold(w.submit(core.Submission{Namespace: "a"}))
					}
					attack(w.forge("a"), older)
					w.finds("a", " ")
					goesOn(t, w, 1, 2, 3, 4, 6)
				})
			})
		}
	}
}
