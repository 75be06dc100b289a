package storetest

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func historyTests() []test {
	return []test{
		{"L40: every field of an entry comes back", everyFieldOfAnEntry, anyStore},
		{"L40: entries are found by epoch, and above an epoch in order up to a limit", entriesByReference, anyStore},
		{"L36: a late command replaces the entry of the lapse", replacedEntry, anyStore},
		{"L36: a lapse and the command that replaces it may come in one transaction", replacedInOneTransaction, anyStore},
		{"L30: an attempt gets its final state in the entry of its last lease", patchedEntry, anyStore},
		{"L30: an entry and its patch may come in one transaction", patchedInOneTransaction, anyStore},
		{"L40: the entries named are dropped, and no other", droppedEntries, anyStore},
		{"L7: the result lies in the entry of its epoch, bit for bit", resultOfAnEntry, anyStore},
	}
}

// plain returns an entry as it is loaded: Replaces is not stored.
func plain(r core.LeaseRecord) core.LeaseRecord {
	r.Replaces = false
	return r
}

func (w *world) history(ctx context.Context, refs ...store.HistoryRef) []core.LeaseRecord {
	w.t.Helper()
	return w.read(ctx, store.Want{History: refs, Results: true}).History
}

// entry returns an entry of the lease history of x, ended by a lapse.
func (w *world) entry(x *core.Execution, epoch int64) core.LeaseRecord {
	return core.LeaseRecord{
		ExecutionID: x.ID, Epoch: epoch, LeaseID: newUUID(w.now), WorkerID: "w", InstanceID: "w-1", AcquiredAt: w.now, EndedAt: w.now.Add(epoch),
		End: core.EndExpired,
		Attempt: core.Attempt{
			ID: newUUID(w.now), Index: int(epoch - 1), Type: core.AttemptInitial, State: core.AttemptInterrupted, StartedAt: w.now,
			FirstEpoch: epoch, LastEpoch: epoch, Interruption: core.InterruptedLeaseExpired, InterruptAt: w.now.Add(epoch),
		},
	}
}

func droppedEntries(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x, y := w.execution(), w.execution()
	w.insert(ctx, x, y)
	ofX, ofY := []core.LeaseRecord{w.entry(x, 1), w.entry(x, 2), w.entry(x, 3)}, []core.LeaseRecord{w.entry(y, 1), w.entry(y, 2)}
	want := store.Want{Executions: idsOf([]*core.Execution{x, y})}
	w.put(ctx, want, &store.Changes{History: append(ofX, ofY...)})
	w.put(ctx, want, &store.Changes{DropHistory: []store.HistoryRef{
		{ID: x.ID.UUID, Epoch: 2}, {ID: x.ID.UUID, Epoch: 1}, {ID: y.ID.UUID, Epoch: 2}, {ID: y.ID.UUID, Epoch: 9},
	}})
	left := w.history(ctx, store.HistoryRef{ID: x.ID.UUID, All: true}, store.HistoryRef{ID: y.ID.UUID, All: true})
	w.equal("entries", []core.LeaseRecord{ofX[2], ofY[0]}, left)
}

func everyFieldOfAnEntry(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.insert(ctx, x)
	epoch := int64(0)
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		epoch++
		record := w.drawRecord(rt, x, epoch)
		w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{History: []core.LeaseRecord{record}})
		w.equal("entry", []core.LeaseRecord{record}, w.history(ctx, store.HistoryRef{ID: x.ID.UUID, Epoch: epoch}))
	})
}

func entriesByReference(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x, y := w.execution(), w.execution()
	w.insert(ctx, x, y)
	var ofX []core.LeaseRecord
	for epoch := range int64(12) {
		ofX = append(ofX, w.entry(x, epoch+1))
	}
	ofY := w.entry(y, 5)
	w.put(ctx, store.Want{Executions: idsOf([]*core.Execution{x, y})}, &store.Changes{History: append([]core.LeaseRecord{ofY, ofX[11]}, ofX[:11]...)})
	id := x.ID.UUID
	for _, one := range []struct {
		what string
		refs []store.HistoryRef
		want []core.LeaseRecord
	}{
		{"one epoch", []store.HistoryRef{{ID: id, Epoch: 3}}, ofX[2:3]},
		{"an epoch that is not there", []store.HistoryRef{{ID: id, Epoch: 99}}, nil},
		{"all", []store.HistoryRef{{ID: id, All: true}}, ofX},
		{"above an epoch", []store.HistoryRef{{ID: id, Epoch: 4, All: true}}, ofX[4:]},
		{"above an epoch up to a limit", []store.HistoryRef{{ID: id, Epoch: 4, All: true, Limit: 3}}, ofX[4:7]},
		{"above the last", []store.HistoryRef{{ID: id, Epoch: 12, All: true}}, nil},
		{"in the order asked", []store.HistoryRef{{ID: id, Epoch: 10, All: true}, {ID: y.ID.UUID, All: true}, {ID: id, Epoch: 2}}, append(append(ofX[10:12:12], ofY), ofX[1])},
		{"of no execution", []store.HistoryRef{{ID: newUUID(w.now), All: true}}, nil},
	} {
		w.equal(one.what, one.want, w.history(ctx, one.refs...))
		tx, got := w.begin(ctx, store.Want{Executions: []base.UUID{id}, History: one.refs, Results: true})
		tx.Rollback(ctx)
		w.equal(one.what+", in a transaction", one.want, got.History)
	}
}

// late returns the entry with which a completion after the lapse replaces old.
func (w *world) late(old core.LeaseRecord) core.LeaseRecord {
	result := payload("text/plain", []byte("late"))
	r := old
	r.End, r.Late, r.Replaces, r.Result, r.EndedAt = core.EndComplete, true, true, &result, old.EndedAt.Add(100)
	r.Attempt.State, r.Attempt.EndedAt, r.Attempt.Interruption, r.Attempt.InterruptAt = core.EndedSuccess, r.EndedAt, core.InterruptedNone, 0
	r.Answer = []byte(`{"late":true}`)
	return r
}

func replacedEntry(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	want := store.Want{Executions: w.insert(ctx, x)}
	lapse, other := w.entry(x, 1), w.entry(x, 2)
	w.put(ctx, want, &store.Changes{History: []core.LeaseRecord{lapse, other}})
	late := w.late(lapse)
	w.put(ctx, want, &store.Changes{History: []core.LeaseRecord{late}})
	w.equal("history", []core.LeaseRecord{plain(late), other}, w.history(ctx, store.HistoryRef{ID: x.ID.UUID, All: true}))
}

func replacedInOneTransaction(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	want := store.Want{Executions: w.insert(ctx, x)}
	lapse := w.entry(x, 1)
	late := w.late(lapse)
	w.put(ctx, want, &store.Changes{History: []core.LeaseRecord{lapse, late}})
	w.equal("history", []core.LeaseRecord{plain(late)}, w.history(ctx, store.HistoryRef{ID: x.ID.UUID, All: true}))
}

// patch ends the attempt of an entry.
func patch(r core.LeaseRecord, failure *core.Failure) (core.AttemptPatch, core.LeaseRecord) {
	p := core.AttemptPatch{ExecutionID: r.ExecutionID, Epoch: r.Epoch, State: core.EndedFailure, EndedAt: r.EndedAt.Add(1000), Failure: failure}
	r.Attempt.State, r.Attempt.EndedAt, r.Attempt.Failure = p.State, p.EndedAt, failure
	return p, r
}

func patchedEntry(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x, y := w.execution(), w.execution()
	want := store.Want{Executions: w.insert(ctx, x, y)}
	one, two, of := w.entry(x, 1), w.entry(x, 2), w.entry(y, 1)
	w.put(ctx, want, &store.Changes{History: []core.LeaseRecord{one, two, of}})
	failure := &core.Failure{Class: "timeout", Category: "timeout", Message: "late", Detail: everyByte(), At: w.now}
	withFailure, two := patch(two, failure)
	without, of := patch(of, nil)
	w.put(ctx, want, &store.Changes{Patches: []core.AttemptPatch{without, withFailure}})
	w.equal("history", []core.LeaseRecord{one, two, of}, w.history(ctx, store.HistoryRef{ID: x.ID.UUID, All: true}, store.HistoryRef{ID: y.ID.UUID, All: true}))
}

func patchedInOneTransaction(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	want := store.Want{Executions: w.insert(ctx, x)}
	lapse := w.entry(x, 1)
	ended, patched := patch(lapse, nil)
	w.put(ctx, want, &store.Changes{History: []core.LeaseRecord{lapse}, Patches: []core.AttemptPatch{ended}})
	w.equal("history", []core.LeaseRecord{patched}, w.history(ctx, store.HistoryRef{ID: x.ID.UUID, All: true}))
}

func resultOfAnEntry(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	result, older := payload("application/octet-stream", everyByte()), payload("text/plain", []byte("older run"))
	x := claimed(w.execution(), w.now)
	w.insert(ctx, x)
	first := w.entry(x, 7)
	first.Result = &older
	x.LeaseEpoch = 9
	done, second := completed(x, &result, w.now)
	w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{
		Update: []*core.Execution{done}, History: []core.LeaseRecord{first, second},
	})
	w.equal("execution", done, w.load(ctx, x.ID.UUID))
	w.equal("history", []core.LeaseRecord{first, second}, w.history(ctx, store.HistoryRef{ID: x.ID.UUID, All: true}))
}
