package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// sealed lets engines of a test have a master key.
var sealed = engine.Config{MasterKey: masterKey(1)}

func headRef(namespace string) store.DocRef { return store.DocRef{Kind: 10, Key: namespace} }

func rowRef(namespace string, n int64) store.DocRef {
	return store.DocRef{Kind: 11, Key: fmt.Sprintf("%s\x01%016x", namespace, n)}
}

func listRef(namespace string) store.DocRef {
	return store.DocRef{Kind: 43, Key: fmt.Sprintf("%02d", core.AuditRollOf(namespace))}
}

// forgery is a chain in the hands of somebody who can read and write the database and does not have the key.
type forgery struct {
	w         *world
	namespace string
	head      core.AuditChain
	rows      []core.AuditRow
	last      int64 // row that is stored
}

func (w *world) forge(namespace string) *forgery {
	w.t.Helper()
	f := &forgery{w: w, namespace: namespace}
	doc, found := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{headRef(namespace)}}))(w.t).Docs[headRef(namespace)]
	if !found {
		w.t.Fatalf("%s has no chain", namespace)
	}
	ok(w.t, json.Unmarshal(doc.Body, &f.head))
	f.last = f.head.Last
	for n := f.head.First; n <= f.last; n++ {
		doc := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{rowRef(namespace, n)}}))(w.t).Docs[rowRef(namespace, n)]
		var row core.AuditRow
		ok(w.t, json.Unmarshal(doc.Body, &row))
		f.rows = append(f.rows, row)
	}
	return f
}

// drop removes the stored chain with all its rows.
func (f *forgery) drop() {
	f.w.t.Helper()
	ch := store.Changes{DropDocs: []store.DocRef{headRef(f.namespace)}}
	for n := range f.last {
		ch.DropDocs = append(ch.DropDocs, rowRef(f.namespace, n+1))
	}
	f.w.tamper(ch)
}

// put stores the forged chain in place of the one that is there.
func (f *forgery) put() {
	f.w.t.Helper()
	f.drop()
	ch := store.Changes{PutDocs: []store.Doc{{DocRef: headRef(f.namespace), Body: must(json.Marshal(f.head))(f.w.t)}}}
	for _, row := range f.rows {
		ch.PutDocs = append(ch.PutDocs, store.Doc{DocRef: rowRef(f.namespace, row.Number), Body: must(json.Marshal(row))(f.w.t)})
	}
	f.w.tamper(ch)
}

// rehash computes all hashes anew.
func (f *forgery) rehash() {
	chain := core.NewAuditChain(f.w.store.Info().Installation, f.namespace)
	for i := range f.rows {
		f.rows[i] = chain.Append(f.rows[i])
	}
	f.head.First, f.head.Anchor, f.head.Last, f.head.Hash, f.head.At = chain.First, chain.Anchor, chain.Last, chain.Hash, chain.At
}

// check is what the engine says of a chain.
func (w *world) check(namespace string) engine.AuditCheck {
	w.t.Helper()
	return must(w.e.VerifyAudit(w.ctx(), admin, namespace))(w.t)
}

// finds fails the test unless the engine finds that fault of the chain.
func (w *world) finds(namespace, problem string) {
	w.t.Helper()
	if check := w.check(namespace); problem == "" || !strings.Contains(check.Problem, problem) {
		w.t.Errorf("chain of %s: found %q in row %d, want %q", namespace, check.Problem, check.Broken, problem)
	}
}

// attacked lets somebody without the key alter the chain of a, which has six rows. It is found, also once the engine has written and
// sealed further rows, and once it was started anew.
func attacked(t *testing.T, attack func(f *forgery), problem, later string) {
	t.Helper()
	onStoresWith(t, sealed, func(t *testing.T, w *world) {
		for range 6 {
			w.hold(w.submit(core.Submission{Namespace: "a"}))
		}
		w.hold(w.submit(core.Submission{Namespace: "b"}))
		w.verified("a", 6)
		says(t, w.e, lenient(), "audit_seals", engine.CheckOK, "chains: 2")
		attack(w.forge("a"))
		w.finds("a", problem)
		says(t, w.e, lenient(), "audit_seals", engine.CheckFail, `audit chain of "a"`)
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		w.finds("a", later)
		w.restart()
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		w.finds("a", later)
		w.verified("b", 1)
	})
}

func TestU131_a_row_changed_and_all_hashes_computed_anew_without_the_key_is_found(t *testing.T) {
	t.Parallel()
	attacked(t, func(f *forgery) {
		f.rows[3].Principal = "somebody else"
		f.rehash()
		f.put()
	}, "without the key", "row was written after somebody without the key")
}

func TestU131_oldest_rows_dropped_by_hand_as_retention_does_are_found(t *testing.T) {
	t.Parallel()
	attacked(t, func(f *forgery) {
		for range 2 {
			f.head.Drop(&f.rows[0])
			f.rows = f.rows[1:]
		}
		f.put()
	}, "without the key", "row was written after somebody without the key")
}

func TestU131_newest_rows_dropped_with_the_head_set_back_are_found(t *testing.T) {
	t.Parallel()
	attacked(t, func(f *forgery) {
		f.rows = f.rows[:4]
		f.head.Last, f.head.Hash, f.head.At = 4, f.rows[3].Hash, f.rows[3].At
		f.put()
	}, "without the key", "row was written after somebody without the key")
}

func TestU131_a_chain_whose_seal_was_taken_off_is_found(t *testing.T) {
	t.Parallel()
	attacked(t, func(f *forgery) {
		f.rows = f.rows[:4]
		f.rehash()
		f.head.Seal, f.head.Keyed = nil, 0 // as if there had never been a key
		f.put()
	}, "without the key", "row was written after somebody without the key")
}

func TestU131_a_chain_that_was_removed_whole_is_found_also_when_it_is_begun_anew(t *testing.T) {
	t.Parallel()
	attacked(t, func(f *forgery) {
		f.drop()
		same(f.w.t, "found with the others", f.w.check("*").Removed, []string{"a"})
		f.w.finds("*", "removed")
	}, "the chain was removed", "removed, and begun anew")
}

func TestU131_a_chain_moved_from_another_namespace_is_found(t *testing.T) {
	t.Parallel()
	attacked(t, func(f *forgery) {
		for range 3 {
			f.w.hold(f.w.submit(core.Submission{Namespace: "other"}))
		}
		f.drop()
		moved := f.w.forge("other")
		moved.namespace = "a"
		moved.put()
	}, "without the key", "row was written after somebody without the key")
}

func TestU131_a_list_of_chains_that_was_changed_or_removed_is_found(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(w *world, roll store.Doc) store.Changes{
		"removed": func(_ *world, roll store.Doc) store.Changes {
			return store.Changes{DropDocs: []store.DocRef{roll.DocRef}}
		},
		"emptied": func(w *world, roll store.Doc) store.Changes {
			var list core.AuditRoll
			ok(w.t, json.Unmarshal(roll.Body, &list))
			list.Names = nil
			roll.Body = must(json.Marshal(list))(w.t)
			return store.Changes{PutDocs: []store.Doc{roll}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStoresWith(t, sealed, func(t *testing.T, w *world) {
				w.hold(w.submit(core.Submission{Namespace: "a"}))
				roll := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{listRef("a")}}))(t).Docs[listRef("a")]
				w.forge("a").drop()
				w.tamper(attack(w, roll))
				w.finds("a", "the list of chains was altered")
				w.finds("*", "the list of chains was altered")
				says(t, w.e, lenient(), "audit_seals", engine.CheckFail, "the list of audit chains was altered")
				w.hold(w.submit(core.Submission{Namespace: "a"})) // puts it on the list
				w.finds("a", "the list of chains was altered")
			})
		})
	}
}

func TestU131_a_head_is_locked_with_its_list_only_when_the_chain_is_new(t *testing.T) {
	t.Parallel()
	onStoresWith(t, sealed, func(t *testing.T, w *world) {
		counting := &chainLocks{Store: w.store}
		closeEngine(t, w.e)
		w.e = w.openEngine(counting)
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		same(t, "a new chain: trips", counting.count(), 2)
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		same(t, "a known one: trips", counting.count(), 3)
	})
}

func TestS73_chains_that_are_new_in_many_processes_are_all_listed(t *testing.T) {
	t.Parallel()
	onShared(t, sealed, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		log := &lines{}
		w.cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		w.e = w.openEngine(w.store)
		other := w.another()
		var all sync.WaitGroup
		names := map[string]bool{"*": true}
		for i := range 40 {
			name := fmt.Sprint("n", i/2)
			names[name] = true
			id := w.submit(core.Submission{Namespace: name})
			e := []*engine.Engine{w.e, other}[i%2]
			all.Go(func() {
				if _, err := e.Hold(w.ctx(), admin, id, engine.Operator{}); err != nil {
					t.Errorf("hold: %v", err)
				}
			})
		}
		all.Wait()
		w.lane("l", core.LaneSettings{MaxConcurrent: 1})
		for name := range maps.Keys(names) {
			check := w.check(name)
			same(t, name, []any{check.Problem, check.Keyed}, []any{"", int64(1)})
		}
		chains := must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: 10}}}))(t).Scanned[0]
		same(t, "chains", len(chains), len(names))
		same(t, "alarms", []int{log.count("altered"), log.count("removed")}, []int{0, 0})
	})
}

// beforeLists is a store on which something happens before a transaction locks a list of chains.
type beforeLists struct {
	store.Store
	act func()
}

func (b *beforeLists) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := b.Store.Begin(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	return beforeListsTx{tx, b.act}, loaded, nil
}

type beforeListsTx struct {
	store.Tx
	act func()
}

func (tx beforeListsTx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if want.LockDocs && slices.ContainsFunc(want.Docs, func(ref store.DocRef) bool { return ref.Kind == 43 }) {
		tx.act()
	}
	return tx.Tx.Load(ctx, want)
}

func TestS73_a_chain_that_another_process_begins_at_the_same_time_is_no_alarm(t *testing.T) {
	t.Parallel()
	onShared(t, sealed, func(t *testing.T, w *world) {
		first, second := w.submit(core.Submission{Namespace: "a"}), w.submit(core.Submission{Namespace: "a"})
		log := &lines{}
		w.cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		late := w.openEngine(&beforeLists{Store: w.openStore(), act: sync.OnceFunc(func() { w.hold(first) })})
		must(late.Hold(w.ctx(), admin, second, engine.Operator{}))(t)
		w.verified("a", 2)
		same(t, "alarms", []int{log.count("altered"), log.count("removed")}, []int{0, 0})
	})
}

func TestU131_a_chain_that_was_removed_or_altered_is_told_in_the_log_once_something_is_written(t *testing.T) {
	t.Parallel()
	onStoresWith(t, sealed, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		log := &lines{}
		w.cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		w.e = w.openEngine(w.store)
		for _, namespace := range []string{"a", "b"} {
			w.hold(w.submit(core.Submission{Namespace: namespace}))
		}
		w.forge("a").drop()
		altered := w.forge("b")
		altered.head.Keyed = 7
		altered.put()
		for _, namespace := range []string{"a", "b"} {
			w.hold(w.submit(core.Submission{Namespace: namespace}))
		}
		same(t, "alarms", []int{log.count("an audit chain was removed"), log.count("an audit chain was altered")}, []int{1, 1})
	})
}

func TestU131_a_chain_without_a_master_key_is_unkeyed_and_one_that_comes_later_seals_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for range 3 {
			w.hold(w.submit(core.Submission{Namespace: "a"}))
		}
		check := w.check("a")
		same(t, "unkeyed", []any{check.Problem, check.Keyed, check.First, check.Last}, []any{"", int64(0), int64(1), int64(3)})
		if f := w.forge("a"); f.head.Seal != nil || f.head.Keyed != 0 {
			t.Errorf("%+v", f.head)
		}
		closeEngine(t, w.e)
		w.cfg.MasterKey = masterKey(1)
		w.e = w.openEngine(w.store)
		check = w.check("a")
		same(t, "sealed", []any{check.Problem, check.Keyed, check.Last}, []any{"", int64(4), int64(3)})
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		w.hold(w.submit(core.Submission{Namespace: "b"}))
		w.restart()
		same(t, "kept", []any{w.check("a").Keyed, w.check("b").Keyed, w.check("none").Keyed}, []any{int64(4), int64(1), int64(1)})
		w.verified("a", 4)
		f := w.forge("a") // what stood before the key is anchored too
		f.rows[0].Principal = "somebody else"
		f.rehash()
		f.put()
		w.finds("a", "without the key")
	})
}

func TestU131_a_rewrap_of_the_master_key_keeps_the_seals(t *testing.T) {
	t.Parallel()
	onStoresWith(t, sealed, func(t *testing.T, w *world) {
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		must(w.e.RewrapSigningKeys(w.ctx(), admin, masterKey(2), engine.AdminAction{}))(t)
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		w.verified("a", 2)
		closeEngine(t, w.e)
		w.cfg.MasterKey = masterKey(2)
		w.e = w.openEngine(w.store)
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		w.verified("a", 3)
		same(t, "keyed", []any{w.check("a").Keyed, w.check("*").Keyed, w.check("*").Problem}, []any{int64(1), int64(1), ""})
	})
}

func TestU131_a_wrong_master_key_is_an_error_and_not_reported_as_tampering(t *testing.T) {
	t.Parallel()
	onStoresWith(t, sealed, func(t *testing.T, w *world) {
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		closeEngine(t, w.e)
		for master, code := range map[keyring.MasterKey]base.Code{{}: base.CodeMasterKeyRequired, masterKey(2): base.CodeMasterKeyMismatch} {
			w.cfg = engine.Config{MasterKey: master, NoTimers: true}
			w.e = w.openEngine(w.store)
			_, err := w.e.VerifyAudit(w.ctx(), admin, "a")
			refused(t, err, code)
			for _, namespace := range []string{"a", "new"} { // what cannot stand in the log is not done
				id := w.submit(core.Submission{Namespace: namespace})
				_, err = w.e.Hold(w.ctx(), admin, id, engine.Operator{})
				refused(t, err, code)
			}
			closeEngine(t, w.e)
		}
		w.cfg = sealed
		w.e = w.openEngine(w.store)
		w.verified("a", 1)
		w.verified("new", 0)
	})
}

func TestU131_a_key_of_the_audit_log_that_was_taken_away_is_found(t *testing.T) {
	t.Parallel()
	onStoresWith(t, sealed, func(t *testing.T, w *world) {
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		set := storedKeys(t, w)
		set.Audit = keyring.StoredSecret{}
		w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: store.DocRef{Kind: 14, Key: "signing_keys"}, Body: set.Encode()}}})
		w.restart()
		w.finds("a", "row was written after somebody without the key")
		w.finds("new", "the list of chains was altered")
	})
}

func TestU131_a_key_of_the_audit_log_that_somebody_else_has_put_there_is_refused(t *testing.T) {
	t.Parallel()
	onStoresWith(t, sealed, func(t *testing.T, w *world) {
		set := storedKeys(t, w)
		set.MakeAuditKey(keyring.Sealing{}, [32]byte{1})
		w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: store.DocRef{Kind: 14, Key: "signing_keys"}, Body: set.Encode()}}})
		refused(t, w.begins(masterKey(1), nil), base.CodeCorruption)
	})
}

func TestU131_retention_seals_what_it_leaves_and_drops_nothing_of_an_altered_chain(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{MasterKey: masterKey(1), AuditRetention: time.Hour}, func(t *testing.T, w *world) {
		three := func() {
			for _, namespace := range []string{"a", "b", "c"} {
				for range 3 {
					w.hold(w.submit(core.Submission{Namespace: namespace}))
				}
			}
		}
		three()
		w.turn(30 * base.Minute)
		three()
		older := w.forge("b") // rows that are made older by hand would go early
		for i := range older.rows {
			older.rows[i].At = 1
		}
		older.put()
		shorter := w.forge("c")
		shorter.head.Drop(&shorter.rows[0])
		shorter.rows = shorter.rows[1:]
		shorter.put()
		w.turn(31 * base.Minute)
		eventually(t, "three rows are gone", func() bool { return len(w.told(admin, core.AuditFilter{Namespace: "a"})) == 3 })
		check := w.check("a")
		same(t, "a", []any{check.Problem, check.First, check.Last, check.Rows, check.Keyed}, []any{"", int64(4), int64(6), int64(3), int64(1)})
		eventually(t, "the others were looked at", func() bool {
			return w.forge("b").head.LookAt.Sub(base.TimeOf(w.time())) > base.Hour && w.forge("c").head.LookAt.Sub(base.TimeOf(w.time())) > base.Hour
		})
		same(t, "kept", []int{len(w.told(admin, core.AuditFilter{Namespace: "b"})), len(w.told(admin, core.AuditFilter{Namespace: "c"}))}, []int{6, 5})
		w.finds("b", "was changed")
		w.finds("c", "without the key")
	})
}

func TestU131_every_chain_of_a_large_installation_is_on_one_of_the_lists(t *testing.T) {
	t.Parallel()
	onStoresWith(t, sealed, func(t *testing.T, w *world) {
		docs := must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: 43}}}))(t).Scanned[0]
		same(t, "lists from the beginning", len(docs), core.AuditRolls)
		for i := range 70 {
			w.hold(w.submit(core.Submission{Namespace: fmt.Sprint("n", i)}))
		}
		same(t, "all there", w.check("*").Problem, "")
		gone := []string{"n11", "n3", "n69"}
		for _, name := range gone {
			w.forge(name).drop()
		}
		slices.Sort(gone)
		same(t, "removed", w.check("*").Removed, gone)
	})
}
