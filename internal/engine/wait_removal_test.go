package engine_test

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of docs that tell of waits: two that executions own, four without an owner.
var (
	ownedWaitDocs = []store.DocKind{15, 16}
	looseWaitDocs = []store.DocKind{17, 18, 19, 20}
)

// waitDocs counts the docs that tell of waits, by kind; those with an owner of these executions.
func (w *world) waitDocs(ids ...base.GivenID) map[store.DocKind]int {
	w.t.Helper()
	var want store.Want
	for _, kind := range looseWaitDocs {
		want.Scans = append(want.Scans, store.Scan{Kind: kind})
	}
	for _, id := range ids {
		for _, kind := range ownedWaitDocs {
			want.Owned = append(want.Owned, store.Owned{Kind: kind, Owner: id.UUID.String()})
		}
	}
	loaded := must(w.store.Read(w.ctx(), want))(w.t)
	counts := map[store.DocKind]int{}
	for i, kind := range looseWaitDocs {
		if n := len(loaded.Scanned[i]); n > 0 {
			counts[kind] = n
		}
	}
	for owned, docs := range loaded.Owned {
		counts[owned.Kind] += len(docs)
	}
	return counts
}

// waited is an execution with everything that a wait may leave behind, suspended for a second time.
func (w *world) waited() (base.GivenID, engine.SuspendAnswer) {
	w.t.Helper()
	task := w.started(policy(`{"retention_ms":5000}`))
	w.pending(task, "p")
	at := w.suspend(task, atA)
	w.link(at.Waitpoints[0].ID, "ann")
	w.signalled(at, "x")
	id := given(task)
	at = w.suspend(w.claim(), atA, timingOut(base.Hour, core.BehaviorFail))
	l := w.link(at.Waitpoints[0].ID, "ann")
	ok(w.t, w.e.RevokeLink(w.ctx(), operator, l.ID, nil, engine.Operator{}))
	same(w.t, "docs", w.waitDocs(id), map[store.DocKind]int{15: 3 + 1 + 2 + 1 + 1 + 2 + 1, 16: 1, 17: 3, 18: 2, 19: 2, 20: 1})
	return id, at
}

func TestL141_W35_removal_takes_everything_that_waits_left_behind(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(w *world, id base.GivenID){
		"delete": func(w *world, id base.GivenID) {
			must(w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{}))(w.t)
			same(w.t, "marks of what is over", w.waitDocs(id)[18]+w.waitDocs(id)[20], 0)
			ok(w.t, w.e.Delete(w.ctx(), operator, id, engine.Operator{}))
		},
		"delete when the timeout is due": func(w *world, id base.GivenID) {
			w.turn(base.Hour)
			ok(w.t, w.e.Delete(w.ctx(), operator, id, engine.Operator{}))
		},
		"bulk": func(w *world, id base.GivenID) {
			must(w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{}))(w.t)
			view := w.bulk(engine.BulkRequest{Action: "delete", IDs: []base.GivenID{id}})
			same(w.t, "deleted", view.Done, 1)
		},
		"retention": func(w *world, id base.GivenID) {
			must(w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{}))(w.t)
			w.pass(5001)
			w.gone(id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onSigning(t, func(t *testing.T, w *world) {
				id, at := w.waited()
				remove(w, id)
				same(t, "docs left", w.waitDocs(id), map[store.DocKind]int{})
				refused(t, second(w.e.Waitpoint(w.ctx(), client, at.Waitpoints[0].ID)), base.CodeWaitpointNotFound)
				refused(t, second(w.signal(at.Waitpoints[0].ID, at.Tokens[0], "x")), base.CodeInvalidToken)
			})
		})
	}
}

func TestL141_W35_a_bulk_delete_of_many_waits_leaves_those_of_others(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		var over []base.GivenID
		for range 5 {
			id, _ := w.asleep(atA)
			over = append(over, id)
		}
		spared, at := w.asleep(atA)
		w.bulk(engine.BulkRequest{Action: "cancel", IDs: over})
		same(t, "deleted", w.bulk(engine.BulkRequest{Action: "delete", IDs: over}).Done, 5)
		same(t, "left", w.waitDocs(append(slices.Clone(over), spared)...), map[store.DocKind]int{15: 2, 17: 1, 18: 1, 20: 1})
		w.signalled(at, "x")
	})
}

func TestU206_open_waitpoints_are_counted(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{SigningKey: withKey.SigningKey, Clock: turned}, func(t *testing.T, w *world) {
		count := func() float64 {
			w.turn(3000) // what was read is kept so long
			return gauge(t, w.e, metrics.WaitpointsOpen)
		}
		same(t, "none", count(), 0)
		task := w.started(core.Submission{})
		w.pending(task, "p")
		at := w.suspend(task, atA)
		same(t, "pending and active", count(), 2)
		w.signalled(at, "x")
		same(t, "pending", count(), 1)
		must(w.e.Cancel(w.ctx(), operator, given(task), nil, "", engine.Operator{}))(t)
		same(t, "none is left", count(), 0)
	})
}

func TestU113_an_integrity_check_finds_marks_that_are_missing_and_marks_of_nothing(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, at := w.asleep(atA)
		gone, _ := w.asleep(atA)
		same(t, "whole", must(w.e.Integrity(w.ctx()))(t).Differences, nil)

		marks := must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: 18}, {Kind: 20}}}))(t).Scanned
		mine := slices.IndexFunc(marks[0], func(d store.Doc) bool { return d.Key == at.Waitpoints[0].ID.String() })
		stray := marks[1][0]
		must(w.e.Cancel(w.ctx(), operator, gone, nil, "", engine.Operator{}))(t)
		stray.Key = stray.Key[:len(stray.Key)-len(gone.UUID.String())] + gone.UUID.String()
		w.tamper(store.Changes{DropDocs: []store.DocRef{marks[0][mine].DocRef}, PutDocs: []store.Doc{stray}})
		same(t, "broken", must(w.e.Integrity(w.ctx()))(t).Differences, []engine.Difference{
			{What: "wait_marks", Key: w.get(id).ID.String(), Found: 1}, {What: "wait_marks", Key: gone.UUID.String(), Stored: 1},
		})
	})
}

func TestL141_W35_what_one_transaction_makes_and_removes_is_not_there_afterwards(t *testing.T) {
	t.Parallel()
	unsweptWithKey(t, func(t *testing.T, w *world) {
		b := w.interpose()
		task := w.started(core.Submission{})
		id := given(task)
		w.batched(
			b,
			func() { w.pending(task, "p") },
			func() { ok(t, w.completing(task)) },
			func() { ok(t, w.e.Delete(w.ctx(), operator, id, engine.Operator{})) },
		)
		same(t, "one transaction", w.commitOf(id, "waitpoint.created"), w.commitOf(id, "execution.completed"))
		same(t, "docs left", w.waitDocs(id), map[store.DocKind]int{})
	})
}
