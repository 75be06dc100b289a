package storetest

import (
	"context"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func outcomeTests() []test {
	return []test{
		{"TxOutcomes: an execution carries what was left iff the user's transaction commits", carriesIffCommitted, submitsTx},
		{"TxOutcomes: the next write ends it, and a cached row is not written", carriesUntilWritten, submitsTx},
		{"TxOutcomes: an execution that is not there, or only submitted, is none", locksNothing, submitsTx},
		{"TxOutcomes: a transaction of another database is refused", outcomeWrongDatabase, submitsTx},
		{"TxOutcomes: the row is held until the end of the transaction", outcomeHoldsRow, sharedTx},
		{"TxOutcomes: a row that others hold is not waited for in the database", outcomeGivesUp, sharedTx},
	}
}

// outcomeKind is a kind of small record of an execution.
const outcomeKind store.DocKind = 44

func outcomesOf(t *testing.T, w *inboxWorld) store.TxOutcomes {
	t.Helper()
	to, able := w.s.(store.TxOutcomes)
	if !able {
		t.Fatal("the store is a TxSubmitter and takes no outcomes")
	}
	return to
}

func outcomeDoc(x *core.Execution, text string) store.Doc {
	return store.Doc{DocRef: store.DocRef{Kind: outcomeKind, Owner: x.ID.UUID.String()}, Body: []byte(`["` + text + `"]`), Data: everyByte()}
}

// leaves leaves a doc in a transaction of the user's own.
func (g *inboxWorld) leaves(ctx context.Context, x *core.Execution, doc store.Doc, keep bool) {
	t := g.tester
	t.Helper()
	to := outcomesOf(t, g)
	tx, commit, rollback := g.f.OwnTx(t, g.s)
	ref, owned := doc.DocRef, store.Owned{Kind: 15, Owner: doc.Owner}
	locked, err := to.LockTx(ctx, tx, x.ID.UUID, []store.DocRef{ref}, []store.Owned{owned})
	if err != nil || locked == nil {
		g.t.Fatalf("LockTx = %v, %v", locked, err)
	}
	g.equal("status", x.Status, locked.Execution.Status)
	g.equal("epoch", x.LeaseEpoch, locked.Execution.LeaseEpoch)
	g.equal("namespace", x.Class.Namespace, locked.Execution.Class.Namespace)
	if err := to.LeaveTx(ctx, tx, x.ID, doc); err != nil {
		t.Fatal(err)
	}
	again, err := to.LockTx(ctx, tx, x.ID.UUID, []store.DocRef{ref}, nil)
	if err != nil || again == nil {
		g.t.Fatalf("LockTx in the same transaction = %v, %v", again, err)
	}
	g.equal("carries", true, store.Carries(again.Execution.Version))
	g.equal("doc", doc, again.Docs[ref])
	end := rollback
	if keep {
		end = commit
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
}

func carriesIffCommitted(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	x := g.runs(ctx)
	doc := outcomeDoc(x, "kept")
	g.leaves(ctx, x, outcomeDoc(x, "rolled back"), false)
	g.equal("carries after a rollback", false, store.Carries(g.load(ctx, x.ID.UUID).Version))
	g.equal("inbox after a rollback", 0, len(g.inbox(ctx)))
	g.leaves(ctx, x, doc, true)
	got := g.read(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}, Docs: []store.DocRef{doc.DocRef}, Inbox: 10})
	g.equal("carries", true, store.Carries(got.Executions[x.ID.UUID].Version))
	g.equal("doc", doc, got.Docs[doc.DocRef])
	g.equal("inbox", [2]int{1, 0}, [2]int{len(got.Inbox), len(got.Inbox[0].Body)})
	g.equal("id in the inbox", x.ID, got.Inbox[0].ID)
	g.equal("ids that wait to be filed", 0, len(got.NotIngested))
	if !g.poll(ctx).Inbox {
		t.Fatal("Poll does not see it")
	}
	g.leaves(ctx, x, doc, true) // once more, before it was applied
	g.equal("inbox", 1, len(g.inbox(ctx)))
}

func carriesUntilWritten(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	x := g.runs(ctx)
	cached := g.load(ctx, x.ID.UUID)
	doc := outcomeDoc(x, "a")
	g.leaves(ctx, x, doc, true)
	g.refuse(ctx, store.Want{}, &store.Changes{Assume: []*core.Execution{cached}}, store.Conflict)
	loaded := g.load(ctx, x.ID.UUID)
	g.equal("written", cached.Version>>32, store.NextVersion(loaded.Version, 0)>>32-1)
	g.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{
		Renew: []*core.Execution{loaded}, DropDocs: []store.DocRef{doc.DocRef}, DropInbox: []base.UUID{x.ID.UUID},
	})
	after := g.load(ctx, x.ID.UUID)
	g.equal("carries", false, store.Carries(after.Version))
	g.equal("writes", cached.Version>>32+1, after.Version>>32)
	g.equal("inbox", 0, len(g.inbox(ctx)))
	g.refuse(ctx, store.Want{}, &store.Changes{Assume: []*core.Execution{cached}}, store.Conflict)
}

func locksNothing(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	row := g.row("submitted")
	g.submit(ctx, t, nil, row, true)
	to := outcomesOf(t, g)
	tx, _, rollback := f.OwnTx(t, g.s)
	for _, id := range []base.UUID{newUUID(g.now), row.ID.UUID} {
		if locked, err := to.LockTx(ctx, tx, id, nil, nil); locked != nil || err != nil {
			t.Errorf("LockTx of nothing = %v, %v", locked, err)
		}
	}
	if err := rollback(); err != nil {
		t.Fatal(err)
	}
}

func outcomeWrongDatabase(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	x := g.runs(ctx)
	tx, _, rollback := f.OwnTx(t, f.Open(t))
	if _, err := outcomesOf(t, g).LockTx(ctx, tx, x.ID.UUID, nil, nil); base.CodeOf(err) != base.CodeWrongDatabase {
		t.Errorf("LockTx = %v, want wrong_database", err)
	}
	_ = rollback() // in whatever state the refusal left it
}

func outcomeHoldsRow(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	x, other := g.runs(ctx), g.runs(ctx)
	tx, commit, _ := f.OwnTx(t, g.s)
	if locked, err := outcomesOf(t, g).LockTx(ctx, tx, x.ID.UUID, nil, nil); locked == nil || err != nil {
		t.Fatalf("LockTx = %v, %v", locked, err)
	}
	g.busy(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}})
	g.put(ctx, store.Want{Executions: []base.UUID{other.ID.UUID}}, &store.Changes{})
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	g.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{})
}

func outcomeGivesUp(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	x := g.runs(ctx)
	holder, _ := g.begin(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}})
	defer holder.Rollback(ctx)
	tx, commit, _ := f.OwnTx(t, g.s)
	if _, err := outcomesOf(t, g).LockTx(ctx, tx, x.ID.UUID, nil, nil); base.CodeOf(err) != base.CodeStoreUnavailable {
		t.Errorf("LockTx of a held row = %v, want store_unavailable", err)
	}
	holder.Rollback(ctx)
	if locked, err := outcomesOf(t, g).LockTx(ctx, tx, x.ID.UUID, nil, nil); locked == nil || err != nil {
		t.Errorf("LockTx in the same transaction, once the row is free = %v, %v", locked, err)
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
}
