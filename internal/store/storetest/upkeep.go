package storetest

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func upkeepTests() []test {
	return []test{
		{"Info names the store and its two identities", infoIsComplete, anyStore},
		{"two handles on one database are the same installation and see each other's commits", twoHandles, shared},
		{"I1: everything is there after the store was opened again", reopened, reopens},
		{"a copy holds everything that was committed before it", copied, backsUp},
		{"E37: Maintain keeps the log that is younger", maintainKeepsTheYounger, anyStore},
		{"E37: positions go on after the log was dropped, and Poll knows where it starts", positionsGoOn, anyStore},
		{"S69: Listen ends with its context, and Notify needs no listener", listenEnds, anyStore},
		{"S68: a hint reaches other processes", hintArrives, shared},
		{"U213: the size grows with what is stored", sizeGrows, anyStore},
		{"Close ends the store", closeEnds, anyStore},
	}
}

func infoIsComplete(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	info := w.s.Info()
	if info.Kind == "" || info.Version == "" || info.Schema < 1 || info.Installation.IsZero() || info.LogID.IsZero() {
		t.Fatalf("info: %+v", info)
	}
	if info.Shared != (f.OpenAgain != nil) {
		t.Fatalf("shared: %v; the factory opens it twice: %v", info.Shared, f.OpenAgain != nil)
	}
	w.insert(ctx, w.execution())
	w.equal("info", info, w.s.Info())
}

func sizeGrows(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	sizer, able := w.s.(store.Sizer)
	if !able {
		t.Fatal("the store does not return its size")
	}
	size := func() int64 {
		bytes, err := sizer.Size(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	// A database that was used before has room in its tables, which what is written fills first.
	const more, mostRoom = 1 << 20, 128 << 20
	for written := 0; ; written += more {
		before := size()
		x := w.execution()
		x.Input.Data = make([]byte, more)
		_, _ = rand.Read(x.Input.Data) // never fails, and random bytes cannot be compressed
		x.Input.Size = more
		w.insert(ctx, x)
		after := size()
		if before > 0 && after >= before+more {
			return
		}
		if before <= 0 || written > mostRoom {
			t.Fatalf("%d bytes, then %d with %d more in it", before, after, more)
		}
	}
}

func twoHandles(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	other := w.at(f.OpenAgain(t, w.s))
	w.equal("info", w.s.Info(), other.s.Info())
	b := newBatch(ctx, w)
	w.put(ctx, b.want, b.ch)
	b.checkWritten(ctx, other, b.ch)
	lanes, classes := other.register(ctx, []core.Lane{w.newLane("default"), w.newLane("second")}, []core.Class{newClass("second", "k")})
	w.equal("number of the lane", w.lane.ID, lanes[0].ID)
	x := w.execution()
	x.Class = classes[0]
	other.insert(ctx, x)
	w.equal("execution of a class that the other handle registered", x, w.load(ctx, x.ID.UUID))
}

func reopened(t *testing.T, f Factory) {
	open := f.Reopen
	if open == nil {
		open = f.OpenAgain
	}
	ctx, w := start(t, f)
	b := newBatch(ctx, w)
	w.put(ctx, b.want, b.ch)
	info, before := w.s.Info(), b.picture(ctx, w)
	w.project(ctx, b.ch.Insert, nil)
	again := w.at(open(t, w.s))
	w.equal("info", info, again.s.Info())
	w.equal("everything", before, b.picture(ctx, again))
	b.checkWritten(ctx, again, b.ch)
	w.equal("search rows", 1, len(again.find(ctx, store.Query{Limit: 9})))
	again.insert(ctx, again.execution())
}

func copied(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	from, able := w.s.(store.Backuper)
	if able != (f.OpenCopy != nil) {
		t.Fatalf("the store is a Backuper: %v; the factory opens copies: %v", able, f.OpenCopy != nil)
	}
	b := newBatch(ctx, w)
	w.put(ctx, b.want, b.ch)
	path := filepath.Join(t.TempDir(), "copy")
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- insertUntil(ctx, w, stop) }()
	err := from.Backup(ctx, path, nil)
	close(stop)
	if writing := <-stopped; err != nil || writing != nil {
		t.Fatalf("Backup: %v, writes beside it: %v", err, writing)
	}
	again := w.at(f.OpenCopy(t, path))
	b.checkWritten(ctx, again, b.ch)
	w.equal("installation", w.s.Info().Installation, again.s.Info().Installation)
	again.insert(ctx, again.execution())
	if err := from.Backup(ctx, path, nil); err == nil {
		t.Fatal("Backup overwrote a file")
	}
}

// insertUntil keeps the store in use.
func insertUntil(ctx context.Context, w *world, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		err := insist(ctx, w.s, store.Want{}, func(*store.Loaded) *store.Changes {
			return &store.Changes{Insert: w.executions(3)}
		})
		if err != nil {
			return err
		}
	}
}

func maintainKeepsTheYounger(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	b := newBatch(ctx, w)
	w.put(ctx, b.want, b.ch)
	before := b.picture(ctx, w)
	for _, logBefore := range []base.Time{0, w.now.Add(-base.Hour)} {
		if err := w.s.Maintain(ctx, logBefore); err != nil {
			t.Fatalf("Maintain: %v", err)
		}
		w.equal("everything", before, b.picture(ctx, w))
	}
	if err := w.s.Maintain(ctx, w.now.Add(base.Year)); err != nil {
		t.Fatalf("Maintain: %v", err)
	}
	after := b.rows(ctx, w)
	before.Events, after.Poll.LogStart = nil, before.Poll.LogStart // only the log may have lost rows
	w.equal("everything but the log", before, after)
}

func positionsGoOn(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	for n := range 5 {
		w.add(ctx, &store.Changes{Events: []core.Event{event(x, w.now, n)}})
	}
	end := w.poll(ctx).LogEnd
	if err := w.s.Maintain(ctx, w.now.Add(base.Year)); err != nil {
		t.Fatalf("Maintain: %v", err)
	}
	answer := w.poll(ctx)
	w.equal("end of the log", end, answer.LogEnd)
	kept := w.commits(ctx, answer.LogStart)
	w.equal("commits kept", int(end-answer.LogStart), len(kept))
	if len(kept) > 0 {
		w.equal("oldest commit kept", answer.LogStart+1, kept[0].Seq)
	}
	w.add(ctx, &store.Changes{Events: []core.Event{event(x, w.now, 6)}})
	seen, err := follow(ctx, w.s, end, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.equal("event after the last position", []int{6}, seen[x.ID.UUID])
	w.equal("start of the log", answer.LogStart, w.poll(ctx).LogStart)
}

func listenEnds(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	hint := store.Hint{Lanes: []string{"default"}, Log: true, Dictionary: true, Inbox: true, Keys: []string{"slots:a"}, Blocked: true}
	if err := w.s.Notify(ctx, hint); err != nil {
		t.Fatalf("Notify: %v", err)
	}
	listening, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.s.Listen(listening, func(store.Hint) {})
	}()
	stop()
	select {
	case <-ended:
	case <-ctx.Done():
		t.Fatal("Listen goes on after its context ended")
	}
}

func hintArrives(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	other := f.OpenAgain(t, w.s)
	hint := store.Hint{
		Lanes: []string{"default", "ü~"}, Named: true, Classes: []int32{1, 2_147_483_647}, Log: true, Dictionary: true, Inbox: true, Keys: []string{"rate:api/ü", "budget:1"}, Blocked: true,
	}
	listening, stop := context.WithTimeout(ctx, waitBound)
	defer stop()
	heard, ended := make(chan store.Hint, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_ = other.Listen(listening, func(h store.Hint) {
			select {
			case heard <- h:
			default:
			}
		})
	}()
	beat := time.NewTicker(20 * time.Millisecond) // any single hint may be lost (S69)
	defer beat.Stop()
	for waiting := true; waiting; {
		select {
		case got := <-heard:
			w.equal("hint", hint, got)
			waiting = false
		case <-beat.C:
			if err := w.s.Notify(ctx, hint); err != nil {
				t.Fatalf("Notify: %v", err)
			}
		case <-listening.Done():
			t.Fatalf("no hint was heard within %v", waitBound)
		}
	}
	stop()
	<-ended
}

func closeEnds(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.insert(ctx, w.execution())
	if err := w.s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if tx, _, err := w.s.Begin(ctx, store.Want{LockLanes: []int32{w.lane.ID}}); err == nil {
		tx.Rollback(ctx)
		t.Fatal("a closed store begins transactions")
	}
	if err := w.s.Close(); err != nil {
		t.Fatalf("a second Close: %v", err)
	}
}
