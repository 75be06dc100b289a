package storetest

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func inboxTests() []test {
	return []test{
		{"L88: a submission exists iff the user's transaction commits", submitCommitsOrNot, submitsTx},
		{"L88: an ingested submission leaves the inbox with the transaction that files it", ingestion, submitsTx},
		{"L82: an execution cannot have the id of a submission that waits", inboxTakesIDs, submitsTx},
		{"L88: a key that exists answers its row and inserts nothing", submitDuplicateKey, submitsTx},
		{"L88: an id that exists inserts nothing", submitDuplicateID, submitsTx},
		{"L80: the key is looked at before the id", submitKeyBeforeID, submitsTx},
		{"L88: what the transaction itself has left is there", submitTwiceInOne, submitsTx},
		{"L88: a submission without a body is only looked for", submitLooksOnly, submitsTx},
		{"L88: a transaction of another database is refused", submitWrongDatabase, submitsTx},
		{"L88: the inbox is read page by page, by ids", inboxPages, submitsTx},
		{"L88: submissions that another transaction ingests are passed over", inboxPassesOverHeld, submitsTx},
		{"L88: an open transaction of a user holds up no other submission", openSubmissionHoldsUpNobody, sharedTx},
	}
}

// inboxWorld is a store that accepts submissions inside the user's own transaction.
type inboxWorld struct {
	*world
	f      Factory
	to     store.TxSubmitter
	tester *testing.T
}

func startInbox(t *testing.T, f Factory) (context.Context, *inboxWorld) {
	t.Helper()
	ctx, w := start(t, f)
	to, able := w.s.(store.TxSubmitter)
	if able != (f.OwnTx != nil) {
		t.Fatalf("the store is a TxSubmitter: %v; the factory begins transactions: %v", able, f.OwnTx != nil)
	}
	return ctx, &inboxWorld{world: w, f: f, to: to, tester: t}
}

// submit runs one submission in a transaction of its own.
func (g *inboxWorld) submit(ctx context.Context, t *testing.T, key *store.KeyRow, row store.InboxRow, keep bool) *store.Existing {
	t.Helper()
	tx, commit, rollback := g.f.OwnTx(t, g.s)
	existing, err := g.to.SubmitTx(ctx, tx, key, row)
	end := rollback
	if keep {
		end = commit
	}
	if endErr := end(); err != nil || endErr != nil {
		t.Fatalf("SubmitTx: %v, end of the transaction: %v", err, endErr)
	}
	return existing
}

func (g *inboxWorld) inbox(ctx context.Context) []store.InboxRow {
	g.t.Helper()
	return g.read(ctx, store.Want{Inbox: 100}).Inbox
}

func (g *inboxWorld) row(body string) store.InboxRow {
	return store.InboxRow{ID: base.ID{N: 77, UUID: newUUID(g.now)}, Body: append([]byte(body), everyByte()...)}
}

func submitCommitsOrNot(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	row, other, plain := g.row("kept"), g.row("rolled back"), g.row("without a key")
	key, otherKey := g.key("kept", &core.Execution{ID: row.ID}), g.key("rolled back", &core.Execution{ID: other.ID})
	if g.poll(ctx).Inbox {
		t.Fatal("Poll sees submissions in an empty inbox")
	}
	if existing := g.submit(ctx, t, &otherKey, other, false); existing != nil {
		t.Fatalf("a new key answered %+v", existing)
	}
	g.equal("inbox after a rollback", 0, len(g.inbox(ctx)))
	if g.poll(ctx).Inbox {
		t.Fatal("Poll sees a submission that was rolled back")
	}
	g.submit(ctx, t, &key, row, true)
	g.equal("inbox", []store.InboxRow{row}, g.inbox(ctx))
	g.submit(ctx, t, nil, plain, true)
	g.equal("submissions", 2, len(g.inbox(ctx)))
	if !g.poll(ctx).Inbox {
		t.Fatal("Poll does not see the submissions")
	}
	g.equal("keys", keyMap(key), g.read(ctx, store.Want{Keys: []store.Key{key.Key, otherKey.Key}}).Keys)
	g.gone(ctx, row.ID.UUID)
}

func ingestion(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	row := g.row("a")
	g.submit(ctx, t, nil, row, true)
	x := g.execution()
	x.ID = row.ID
	ingest := &store.Changes{Insert: []*core.Execution{x}, Enqueue: []store.QueueRow{queueRow(x)}, DropInbox: []base.UUID{row.ID.UUID}}
	tx, got := g.begin(ctx, store.Want{Inbox: 10})
	g.equal("inbox", []store.InboxRow{row}, got.Inbox)
	tx.Rollback(ctx)
	g.equal("inbox after a rollback", []store.InboxRow{row}, g.inbox(ctx))
	g.equal("ids that it has", []base.UUID{row.ID.UUID}, g.read(ctx, store.Want{Executions: []base.UUID{row.ID.UUID, newUUID(g.now)}}).NotIngested)
	g.put(ctx, store.Want{Inbox: 10, Executions: []base.UUID{row.ID.UUID}}, ingest)
	g.equal("inbox after the ingestion", 0, len(g.inbox(ctx)))
	g.equal("execution", x, g.load(ctx, x.ID.UUID))
	g.equal("ids after the ingestion", 0, len(g.read(ctx, store.Want{Executions: []base.UUID{row.ID.UUID}}).NotIngested))
}

// inboxTakesIDs: an execution cannot have the id of a submission in the inbox, unless it is made from it (L82).
func inboxTakesIDs(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	row := g.row("a")
	g.submit(ctx, t, nil, row, true)
	x := g.execution()
	x.ID = row.ID
	g.refuse(ctx, store.Want{}, &store.Changes{Insert: []*core.Execution{g.execution(), x}}, store.Conflict)
	tx, got := g.begin(ctx, store.Want{Executions: []base.UUID{row.ID.UUID}, SkipLocked: true})
	g.equal("ids that it has", []base.UUID{row.ID.UUID}, got.NotIngested)
	g.equal("executions and held ones", [2]int{}, [2]int{len(got.Executions), len(got.Held)})
	if err := tx.Commit(ctx, &store.Changes{DropInbox: []base.UUID{row.ID.UUID}}); err != nil {
		t.Fatal(err)
	}
	g.insert(ctx, x) // free again
	g.equal("execution", x, g.load(ctx, x.ID.UUID))
}

func submitDuplicateKey(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	x := g.execution()
	key := g.key("order", x)
	g.add(ctx, &store.Changes{NewKeys: []store.KeyRow{key}, Insert: []*core.Execution{x}})
	row := g.row("second")
	second := g.key("order", &core.Execution{ID: row.ID})
	second.Fingerprint = []byte("other")
	existing := g.submit(ctx, t, &second, row, true)
	if existing == nil {
		t.Fatal("a key that exists answered nothing")
	}
	g.equal("id of the existing row", key.ID, existing.ID)
	g.equal("fingerprint of the existing row", key.Fingerprint, existing.Fingerprint)
	g.equal("inbox", 0, len(g.inbox(ctx)))
	g.equal("keys", keyMap(key), g.read(ctx, store.Want{Keys: []store.Key{key.Key}}).Keys)
}

func submitDuplicateID(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	row := g.row("first")
	first := g.key("first", &core.Execution{ID: row.ID})
	g.submit(ctx, t, &first, row, true)
	again := row
	again.Body = []byte("again")
	second := g.key("second", &core.Execution{ID: row.ID})
	existing := g.submit(ctx, t, &second, again, true)
	if existing == nil || existing.ID != row.ID {
		t.Fatalf("an id that waits in the inbox answered %+v", existing)
	}
	filed := g.execution()
	g.insert(ctx, filed)
	third := g.key("third", filed)
	existing = g.submit(ctx, t, &third, store.InboxRow{ID: filed.ID, Body: []byte("again")}, true)
	if existing == nil || existing.ID != filed.ID {
		t.Fatalf("an id that has been filed answered %+v", existing)
	}
	g.equal("inbox", []store.InboxRow{row}, g.inbox(ctx))
	g.equal("keys", keyMap(first), g.read(ctx, store.Want{Keys: []store.Key{first.Key, second.Key, third.Key}}).Keys)
}

func submitKeyBeforeID(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	byKey, byID := g.execution(), g.execution()
	key := g.key("order", byKey)
	g.add(ctx, &store.Changes{NewKeys: []store.KeyRow{key}, Insert: []*core.Execution{byKey, byID}})
	again := g.key("order", byID)
	existing := g.submit(ctx, t, &again, store.InboxRow{ID: byID.ID, Body: []byte("again")}, true)
	g.equal("what is there", &store.Existing{KeyRow: key}, existing)
	fresh := g.key("fresh", byID)
	existing = g.submit(ctx, t, &fresh, store.InboxRow{ID: byID.ID, Body: []byte("again")}, true)
	g.equal("an id whose key is free", &store.Existing{KeyRow: store.KeyRow{ID: byID.ID}}, existing)
	g.equal("inbox", 0, len(g.inbox(ctx)))
	g.equal("keys", keyMap(key), g.read(ctx, store.Want{Keys: []store.Key{key.Key, fresh.Key}}).Keys)
}

func submitTwiceInOne(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	row := g.row("first")
	key := g.key("order", &core.Execution{ID: row.ID})
	tx, commit, _ := f.OwnTx(t, g.s)
	submit := func(key *store.KeyRow, row store.InboxRow) *store.Existing {
		existing, err := g.to.SubmitTx(ctx, tx, key, row)
		if err != nil {
			t.Fatalf("SubmitTx: %v", err)
		}
		return existing
	}
	if existing := submit(&key, row); existing != nil {
		t.Fatalf("the first answered %+v", existing)
	}
	g.equal("the same key", &store.Existing{KeyRow: key, Body: row.Body}, submit(&key, g.row("second")))
	g.equal("the same id", &store.Existing{KeyRow: store.KeyRow{ID: row.ID}, Body: row.Body}, submit(nil, row))
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	g.equal("inbox", []store.InboxRow{row}, g.inbox(ctx))
	g.equal("the same key in another transaction", &store.Existing{KeyRow: key, Body: row.Body}, g.submit(ctx, t, &key, g.row("third"), true))
}

func submitLooksOnly(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	row := g.row("a")
	key := g.key("order", &core.Execution{ID: row.ID})
	look := store.InboxRow{ID: row.ID}
	if existing := g.submit(ctx, t, &key, look, true); existing != nil {
		t.Fatalf("a look at nothing answered %+v", existing)
	}
	g.equal("inbox", 0, len(g.inbox(ctx)))
	g.equal("keys", 0, len(g.read(ctx, store.Want{Keys: []store.Key{key.Key}}).Keys))
	g.submit(ctx, t, &key, row, true)
	g.equal("what is there", &store.Existing{KeyRow: key, Body: row.Body}, g.submit(ctx, t, &key, look, true))
	g.equal("inbox", []store.InboxRow{row}, g.inbox(ctx))
}

func submitWrongDatabase(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	other := f.Open(t)
	tx, _, rollback := f.OwnTx(t, other)
	_, err := g.to.SubmitTx(ctx, tx, nil, g.row("lost"))
	_ = rollback() // in whatever state the refusal left it
	if base.CodeOf(err) != base.CodeWrongDatabase {
		t.Fatalf("a transaction of another database: %v", err)
	}
	if _, err := g.to.SubmitTx(ctx, "no transaction", nil, g.row("lost")); err == nil {
		t.Fatal("something that is no transaction was accepted")
	}
	g.equal("inbox", 0, len(g.inbox(ctx)))
}

func inboxPages(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	rows := []store.InboxRow{g.row("a"), g.row("b"), g.row("c")}
	for _, row := range rows {
		g.submit(ctx, t, nil, row, true)
	}
	slices.SortFunc(rows, func(a, b store.InboxRow) int { return bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]) })
	page := func(n int, after base.UUID) []store.InboxRow {
		want := store.Want{Inbox: n, InboxAfter: after}
		read := g.read(ctx, want).Inbox
		tx, locked := g.begin(ctx, want)
		tx.Rollback(ctx)
		g.equal("the same page, locked", read, locked.Inbox)
		return read
	}
	g.equal("the first page", rows[:2], page(2, base.UUID{}))
	g.equal("the second", rows[2:], page(2, rows[1].ID.UUID))
	g.equal("what is behind all", 0, len(page(2, rows[2].ID.UUID)))
}

func inboxPassesOverHeld(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	for range 3 {
		g.submit(ctx, t, nil, g.row("a"), true)
	}
	tx, two := g.begin(ctx, store.Want{Inbox: 2})
	g.equal("first", 2, len(two.Inbox))
	if g.s.Info().Shared {
		other, one := g.begin(ctx, store.Want{Inbox: 9})
		other.Rollback(ctx)
		if len(one.Inbox) != 1 || one.Inbox[0].ID == two.Inbox[0].ID || one.Inbox[0].ID == two.Inbox[1].ID {
			t.Fatalf("second transaction got %v, first holds %v", one.Inbox, two.Inbox)
		}
	}
	tx.Rollback(ctx)
}

func openSubmissionHoldsUpNobody(t *testing.T, f Factory) {
	ctx, g := startInbox(t, f)
	row := g.row("open")
	key := g.key("open", &core.Execution{ID: row.ID})
	tx, commit, _ := f.OwnTx(t, g.s)
	if _, err := g.to.SubmitTx(ctx, tx, &key, row); err != nil {
		t.Fatalf("SubmitTx: %v", err)
	}
	x := g.execution()
	other := g.key("other", x)
	g.put(ctx, store.Want{Keys: []store.Key{other.Key}, LockLanes: []int32{g.lane.ID}, Inbox: 10, Counters: []string{"c"}}, &store.Changes{
		NewKeys: []store.KeyRow{other}, Insert: []*core.Execution{x}, Counters: map[string]int64{"c": 1}, Events: []core.Event{event(x, g.now, 1)},
	})
	g.equal("event", 1, len(g.events(ctx, 0)))
	if err := commit(); err != nil {
		t.Fatalf("commit of the user's transaction: %v", err)
	}
	g.equal("inbox", []store.InboxRow{row}, g.inbox(ctx))
}
