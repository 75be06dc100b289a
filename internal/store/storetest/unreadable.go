package storetest

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/store"
)

func unreadableTests() []test {
	return []test{
		{"an execution that cannot be read is code corruption", unreadableIsCorruption, anyStore},
		{"S63: those beside one that cannot be read are loaded, and it is named", unreadableIsNamed, anyStore},
		{"S63: a pick answers the queue row of one that cannot be read, and brings the others", pickWithUnreadable, anyStore},
		{"S63: one that cannot be read is not taken for one that is held", unreadableIsNotHeld, anyStore},
		{"I6: a commit of the log that cannot be read says so in its place, and hides no other", unreadableCommit, anyStore},
	}
}

// broken returns an execution that can be written but not read: its last lease has an unknown end.
func broken(x *core.Execution) *core.Execution {
	x.LastLease = &core.LastLease{End: 250}
	return x
}

func unreadableIsCorruption(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(1, 2)
	broken(list[0])
	ids := w.file(ctx, list...)
	for name, want := range map[string]store.Want{
		"named":  {Executions: ids},
		"picked": {Pick: []store.Pick{whole(w.class.ID, 2)}},
	} {
		_, _, err := w.s.Begin(ctx, want)
		w.equal(name, base.CodeCorruption, base.CodeOf(err))
	}
	_, err := w.s.Read(ctx, store.Want{Executions: ids})
	w.equal("read", base.CodeCorruption, base.CodeOf(err))
	w.equal("the other", list[1].ID, w.load(ctx, ids[1]).ID)
}

func unreadableIsNamed(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(1, 2, 3)
	broken(list[1])
	ids := w.file(ctx, list...)
	want := store.Want{Executions: ids, SkipUnreadable: true}
	tx, got := w.begin(ctx, want)
	w.named(got, ids[1], ids[0], ids[2])
	tx.Rollback(ctx)
	w.named(w.read(ctx, want), ids[1], ids[0], ids[2])
}

// named checks that one execution is unreadable and the others were loaded.
func (w *world) named(got *store.Loaded, bad base.UUID, good ...base.UUID) {
	w.t.Helper()
	w.equal("unreadable", []base.UUID{bad}, slices.Collect(maps.Keys(got.Unreadable)))
	w.equal("why", base.CodeCorruption, base.CodeOf(got.Unreadable[bad]))
	w.equal("loaded", len(good), len(got.Executions))
	for _, id := range good {
		if got.Executions[id] == nil {
			w.t.Fatalf("%s is missing", id)
		}
	}
}

func pickWithUnreadable(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(1, 2, 3)
	broken(list[0])
	ids := w.file(ctx, list...)
	tx, got := w.begin(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 2)}, SkipUnreadable: true})
	w.named(got, ids[0], ids[1])
	w.equal("queue rows", []store.QueueRow{queueRow(list[0]), queueRow(list[1])}, got.Picked)
	w.commit(ctx, tx, &store.Changes{Dequeue: []store.QueueRow{queueRow(list[0])}})
	rest := w.read(ctx, store.Want{Pick: []store.Pick{whole(w.class.ID, 3)}})
	w.equal("it can be taken from the queue", []store.QueueRow{queueRow(list[1]), queueRow(list[2])}, rest.Picked)
}

func unreadableIsNotHeld(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := w.file(ctx, broken(w.ordered(1)[0]))
	tx, got := w.begin(ctx, store.Want{Executions: ids, SkipLocked: true, SkipUnreadable: true})
	w.named(got, ids[0])
	w.equal("held", 0, len(got.Held))
	tx.Rollback(ctx)
}

// brokenEvent returns an event that can be written, but whose commit cannot be read: its data has no shape.
func brokenEvent(x *core.Execution, at base.Time) core.Event {
	e := event(x, at, 0)
	e.Data = eventdata.Of("\xff", "", nil)
	return e
}

func unreadableCommit(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	before := w.poll(ctx).LogEnd
	w.add(ctx, &store.Changes{Events: []core.Event{event(x, w.now, 1)}})
	w.add(ctx, &store.Changes{Events: []core.Event{event(x, w.now, 2), brokenEvent(x, w.now)}})
	w.add(ctx, &store.Changes{Events: []core.Event{event(x, w.now, 3)}})
	w.equal("end of the log", before+3, w.poll(ctx).LogEnd)
	for _, after := range []int64{before, before + 1} {
		commits := w.commits(ctx, after)
		w.equal("commits", int(before+3-after), len(commits))
		for i, commit := range commits {
			w.equal("position", after+int64(i)+1, commit.Seq)
			if broken := commit.Seq == before+2; broken != (base.CodeOf(commit.Unreadable) == base.CodeCorruption) || broken != (len(commit.Events) == 0) {
				t.Fatalf("commit %d has %d events and is unreadable: %v", commit.Seq, len(commit.Events), commit.Unreadable)
			}
			if commit.At < w.now {
				t.Fatalf("commit %d is of %v", commit.Seq, commit.At)
			}
		}
	}
}

func panickingTests() []test {
	return []test{
		{"S63: a commit that panics writes nothing, is a fault of its rows, and keeps no connection", commitThatPanics, anyStore},
		{"S63: a search row that panics keeps no connection", projectThatPanics, anyStore},
	}
}

// poison returns an execution that no store can write: it has no class.
func poison(x *core.Execution) *core.Execution {
	x.Class = nil
	return x
}

func commitThatPanics(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.ordered(1, 2)
	ids := w.file(ctx, list...)
	for range 40 { // more often than there are connections
		tx, got := w.begin(ctx, store.Want{Executions: ids})
		var cause *store.Panicked
		err := tx.Commit(ctx, &store.Changes{Update: []*core.Execution{poison(got.Executions[ids[0]])}})
		if !errors.As(err, &cause) || store.FaultOf(err) != store.Broken || len(cause.Stack) == 0 {
			t.Fatalf("commit: %v", err)
		}
		tx.Rollback(ctx)
	}
	tx, got := w.begin(ctx, store.Want{Executions: ids})
	w.equal("both are as they were", 2, len(got.Executions))
	if err := tx.Commit(ctx, &store.Changes{Update: []*core.Execution{got.Executions[ids[1]]}}); err != nil {
		t.Fatalf("the next commit: %v", err)
	}
}

func projectThatPanics(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ids := w.file(ctx, w.ordered(1)...)
	x := w.load(ctx, ids[0])
	for range 40 {
		func() {
			defer func() {
				if recover() == nil {
					t.Fatal("nothing panicked")
				}
			}()
			_ = w.s.Project(ctx, store.Projection{Rows: []*core.Execution{poison(x.Clone())}})
		}()
	}
	if err := w.s.Project(ctx, store.Projection{Rows: []*core.Execution{x}}); err != nil {
		t.Fatalf("the next round: %v", err)
	}
	w.load(ctx, ids[0])
}
