package storetest

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func atomicityTests() []test {
	return []test{
		{"L80: an id that exists is a conflict and nothing of the batch is written", refusedBatch(store.Conflict, func(b *batch) {
			b.ch.Insert = append(b.ch.Insert, b.old)
		}), anyStore},
		{"L82: a key that exists is a conflict and nothing of the batch is written", refusedBatch(store.Conflict, func(b *batch) {
			b.ch.NewKeys = append(b.ch.NewKeys, b.oldKey)
		}), anyStore},
		{"a doc that exists is a conflict and nothing of the batch is written", refusedBatch(store.Conflict, func(b *batch) {
			b.ch.NewDocs = append(b.ch.NewDocs, b.oldDoc)
		}), anyStore},
		{"S4: an old dictionary is stale and nothing of the batch is written", refusedBatch(store.Stale, func(b *batch) {
			b.ch.Dictionary = b.version + 1
		}), anyStore},
		{"L13: an unknown status is broken and nothing of the batch is written", refusedBatch(store.Broken, func(b *batch) {
			b.poison.Status = 99
			b.ch.Insert = append(b.ch.Insert, b.poison)
		}), anyStore},
		{"L13: a reason that the status does not have is broken and nothing of the batch is written", refusedBatch(store.Broken, func(b *batch) {
			b.poison.Reason = core.Completed
			b.ch.Insert = append(b.ch.Insert, b.poison)
		}), anyStore},
		{"L13: an unknown next is broken and nothing of the batch is written", refusedBatch(store.Broken, func(b *batch) {
			b.poison.Next = 99
			b.ch.Insert = append(b.ch.Insert, b.poison)
		}), anyStore},
		{"L13: an update to an unknown status is broken and nothing of the batch is written", refusedBatch(store.Broken, func(b *batch) {
			b.ch.Update[0].Status = 99
		}), anyStore},
		{"L13: an update to a reason that the status does not have is broken and nothing of the batch is written", refusedBatch(store.Broken, func(b *batch) {
			b.ch.Update[0].Reason = core.WaitingForDelay
		}), anyStore},
		{"a context that has ended writes nothing", endedContext, anyStore},
		{"a rolled back transaction leaves nothing and frees its rows", rolledBack, anyStore},
		{"Rollback after Commit, and a second Rollback, do nothing", rollbackTwice, anyStore},
		{"a commit that fails ends the transaction and frees its rows", failedCommitFreesRows, anyStore},
		{"a call that waits until a commit is safe is answered once, and never for one that failed", answeredWhenSafe, anyStore},
	}
}

// batch is a transaction that writes to every part of Changes, and the rows that exist before.
type batch struct {
	want    store.Want
	ch      *store.Changes
	version int64

	old    *core.Execution // an execution, a key and a doc that exist
	oldKey store.KeyRow
	oldDoc store.Doc
	poison *core.Execution // a new execution, for a test to make invalid
}

// newBatch writes the rows that the batch refers to and builds the batch.
func newBatch(ctx context.Context, w *world) *batch {
	x, held, done, queued := w.execution(), claimed(w.execution(), w.now), claimed(w.execution(), w.now), w.execution()
	_, first := completed(held, nil, w.now)
	b := &batch{old: w.execution(), poison: w.execution()}
	b.oldKey, b.oldDoc = w.key("old", b.old), doc(1, "", "old", "{}")
	expired, taken := w.key("expired", x), w.key("taken", x)
	expired.ExpiresAt = w.now.Add(-1000)
	dropped := doc(1, "", "dropped", "{}")
	w.add(ctx, &store.Changes{
		NewKeys: []store.KeyRow{b.oldKey, expired, taken}, Insert: []*core.Execution{b.old, held, done, queued},
		History: []core.LeaseRecord{first}, Enqueue: []store.QueueRow{queueRow(queued)}, Counters: map[string]int64{"c": 5},
		NewDocs: []store.Doc{b.oldDoc, dropped}, AddTimers: []store.Timer{{At: w.now.Add(-1), Kind: 1, Texts: []string{"old"}}},
	})
	timers := w.takeDue(ctx, 10, time.Hour)
	b.version = w.version(ctx)

	updated, record := completed(claimed(b.old, w.now), nil, w.now)
	renewed := held.Clone()
	renewed.Lease.ExpiresAt = w.now.Add(99_999)
	lane := w.lane
	lane.Settings.State, lane.Revision = core.LanePaused, 2
	replaced := taken
	replaced.Fingerprint = []byte("replaced")
	fresh := w.key("fresh", x)
	b.want = store.Want{
		Keys: []store.Key{b.oldKey.Key, expired.Key, taken.Key, fresh.Key}, Executions: append(idsOf([]*core.Execution{b.old, held, done, queued}), x.ID.UUID, b.poison.ID.UUID),
		Inputs: true, Results: true, Counters: []string{"c", "d"}, LockLanes: []int32{w.lane.ID},
		History: []store.HistoryRef{{ID: b.old.ID.UUID, All: true}, {ID: held.ID.UUID, All: true}},
		Docs:    []store.DocRef{b.oldDoc.DocRef, dropped.DocRef, {Kind: 1, Key: "new"}, {Kind: 1, Key: "put"}}, LockDocs: true,
		Scans: []store.Scan{{Kind: 1}},
	}
	b.ch = &store.Changes{
		Dictionary: b.version, NewKeys: []store.KeyRow{fresh}, ReplaceKeys: []store.KeyRow{replaced}, DropKeys: []store.Key{expired.Key},
		Insert: []*core.Execution{x}, Update: []*core.Execution{updated}, Renew: []*core.Execution{renewed}, History: []core.LeaseRecord{record},
		Patches: []core.AttemptPatch{{ExecutionID: held.ID, Epoch: 1, State: core.EndedFailure, EndedAt: w.now.Add(7)}},
		Enqueue: []store.QueueRow{queueRow(x)}, Dequeue: []store.QueueRow{queueRow(queued)},
		AddTimers: []store.Timer{{At: w.now.Add(60_000), Kind: 2, IDs: []base.UUID{x.ID.UUID}}}, DropTimers: timers,
		Counters: map[string]int64{"c": -5, "d": 2}, Lanes: []core.Lane{lane},
		PutDocs: []store.Doc{doc(1, "", "put", "{}"), doc(store.FirstRule, "", "rule", "{}")}, NewDocs: []store.Doc{doc(1, "", "new", "{}")}, DropDocs: []store.DocRef{dropped.DocRef},
		Remove: []base.UUID{done.ID.UUID}, Events: []core.Event{event(x, w.now, 1), event(b.old, w.now, 2)},
	}
	return b
}

// picture is everything that a batch could have changed, as readers see it.
type picture struct {
	Loaded *store.Loaded
	Poll   store.PollAnswer
	Events []core.Event
	Rules  []store.Doc
}

func (b *batch) picture(ctx context.Context, w *world) picture {
	w.t.Helper()
	p := b.rows(ctx, w)
	p.Events = w.events(ctx, 0)
	return p
}

// rows returns the picture without the log.
func (b *batch) rows(ctx context.Context, w *world) picture {
	w.t.Helper()
	class := w.class.ID
	want := b.want
	want.ShareLanes, want.LockLanes, want.LockDocs = want.LockLanes, nil, false
	want.Pick = []store.Pick{{Class: class, Floor: math.MinInt64, Limit: 100}}
	p := picture{Loaded: w.read(ctx, want), Poll: w.poll(ctx, anyRow(class, 0)), Rules: w.dictionary(ctx).Rules}
	p.Loaded.Now, p.Poll.Now = 0, 0
	p.Loaded.Incarnation, p.Poll.Incarnation = "", "" // specific to the open handle if only one process has the database
	p.Poll.LogEnd = 0                                 // a writer that rolled back may fill its number (E33)
	return p
}

// refusedBatch makes a batch invalid, expects the fault, compares pictures, and then writes the valid batch to show that each of its parts would
// have been seen.
func refusedBatch(kind store.FaultKind, spoil func(*batch)) func(*testing.T, Factory) {
	return func(t *testing.T, f Factory) {
		ctx, w := start(t, f)
		b := newBatch(ctx, w)
		good := *b.ch
		good.Update = []*core.Execution{b.ch.Update[0].Clone()}
		before := b.picture(ctx, w)
		spoil(b)
		w.refuse(ctx, b.want, b.ch, kind)
		w.equal("after the refused batch", before, b.picture(ctx, w))
		w.put(ctx, b.want, &good)
		b.checkWritten(ctx, w, &good)
	}
}

// checkWritten checks that every part of the batch was written.
func (b *batch) checkWritten(ctx context.Context, w *world, ch *store.Changes) {
	w.t.Helper()
	after := b.picture(ctx, w)
	got := after.Loaded
	for _, x := range append(ch.Insert, ch.Update[0]) {
		w.equal("execution", x, got.Executions[x.ID.UUID])
	}
	w.equal("renewed", ch.Renew[0], got.Executions[ch.Renew[0].ID.UUID])
	if got.Executions[ch.Remove[0]] != nil {
		w.t.Fatalf("the removed execution is there")
	}
	w.equal("keys", map[store.Key]store.KeyRow{
		b.oldKey.Key: b.oldKey, ch.NewKeys[0].Key: ch.NewKeys[0], ch.ReplaceKeys[0].Key: ch.ReplaceKeys[0],
	}, got.Keys)
	if len(got.History) != 2 || got.History[0].Epoch != 1 || got.History[1].Attempt.State != core.EndedFailure {
		w.t.Fatalf("history: %+v", got.History)
	}
	w.equal("queue", ch.Enqueue, got.Picked)
	w.equal("docs", []store.Doc{ch.NewDocs[0], b.oldDoc, ch.PutDocs[0]}, got.Scanned[0])
	w.equal("rules", ch.PutDocs[1:], after.Rules)
	w.equal("lane", ch.Lanes[0], got.Lanes[w.lane.ID])
	w.equal("events", asLogged(ch.Events), asLogged(after.Events))
	if got.Counters["c"] != 0 || got.Counters["d"] != 2 {
		w.t.Fatalf("counters: %v", got.Counters)
	}
	if got.Dictionary <= b.version || after.Poll.Dictionary != got.Dictionary {
		w.t.Fatalf("dictionary version %d and %d, was %d", got.Dictionary, after.Poll.Dictionary, b.version)
	}
	if after.Poll.NextTimer != ch.AddTimers[0].At {
		w.t.Fatalf("next timer %v, want %v", after.Poll.NextTimer, ch.AddTimers[0].At)
	}
}

func endedContext(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	ended, end := context.WithCancel(ctx)
	end()
	if tx, _, err := w.s.Begin(ended, store.Want{Executions: []base.UUID{x.ID.UUID}}); err == nil {
		tx.Rollback(ctx)
		t.Fatal("Begin with a context that has ended succeeded")
	}
	if _, err := w.s.Read(ended, store.Want{Executions: []base.UUID{x.ID.UUID}}); err == nil {
		t.Fatal("Read with a context that has ended succeeded")
	}
	for _, want := range []store.Want{{}, {Executions: []base.UUID{x.ID.UUID}}} {
		tx, _ := w.begin(ctx, want)
		if err := tx.Commit(ended, &store.Changes{Insert: []*core.Execution{x}, Enqueue: []store.QueueRow{queueRow(x)}}); err == nil {
			t.Fatal("Commit with a context that has ended succeeded")
		}
		w.gone(ctx, x.ID.UUID)
	}
	if _, err := w.s.Register(ended, []core.Lane{w.newLane("late")}, nil); err == nil {
		t.Fatal("Register with a context that has ended succeeded")
	}
	w.file(ctx, x)
	w.equal("execution", x, w.load(ctx, x.ID.UUID))
}

func rolledBack(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.file(ctx, x)
	want := store.Want{
		Executions: []base.UUID{x.ID.UUID}, Inputs: true, Counters: []string{"c"}, LockLanes: []int32{w.lane.ID},
		Pick: []store.Pick{{Class: w.class.ID, Floor: math.MinInt64, Limit: 1}},
	}
	for range 3 { // each round finds the rows free again
		tx, got := w.begin(ctx, want)
		w.equal("execution", x, got.Executions[x.ID.UUID])
		w.equal("queue", []store.QueueRow{queueRow(x)}, got.Picked)
		tx.Rollback(ctx)
	}
	tx, _ := w.begin(ctx, store.Want{})
	tx.Rollback(ctx)
	w.equal("execution", x, w.load(ctx, x.ID.UUID))
}

func rollbackTwice(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	for _, want := range []store.Want{{}, {LockLanes: []int32{w.lane.ID}}} {
		x := w.execution()
		tx, _ := w.begin(ctx, want)
		w.commit(ctx, tx, &store.Changes{Insert: []*core.Execution{x}})
		tx.Rollback(ctx)
		tx.Rollback(ctx)
		w.equal("execution", x, w.load(ctx, x.ID.UUID))
		tx, _ = w.begin(ctx, want)
		tx.Rollback(ctx)
		tx.Rollback(ctx)
	}
	w.insert(ctx, w.execution())
}

func failedCommitFreesRows(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	want := store.Want{Executions: w.insert(ctx, x)}
	for range 3 {
		tx, _ := w.begin(ctx, want)
		w.expectFault(tx.Commit(ctx, &store.Changes{Insert: []*core.Execution{x}}), store.Conflict)
		tx.Rollback(ctx)
	}
	y := claimed(x, w.now)
	w.put(ctx, want, &store.Changes{Update: []*core.Execution{y}})
	w.equal("execution", y, w.load(ctx, x.ID.UUID))
}

func answeredWhenSafe(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	answers := make(chan error, 10)
	safe := func(err error) { answers <- err }
	x := w.execution()
	w.put(ctx, store.Want{}, &store.Changes{Insert: []*core.Execution{x}, Safe: safe})
	w.equal("answer for the commit", nil, <-answers)
	tx, _ := w.begin(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}})
	tx.Rollback(ctx)
	tx.Seen(safe)
	w.equal("answer for what was seen", nil, <-answers)
	w.refuse(ctx, store.Want{}, &store.Changes{Insert: []*core.Execution{x}, Safe: safe}, store.Conflict)
	w.add(ctx, &store.Changes{Insert: []*core.Execution{w.execution()}}) // durable when it returns, and so is everything before it
	w.equal("other answers", 0, len(answers))
}
