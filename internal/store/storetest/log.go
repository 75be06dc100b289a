package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/store"
)

func logTests() []test {
	return []test{
		{"E24: every field of an event comes back", everyFieldOfAnEvent, anyStore},
		{"E31: commits have consecutive positions and events keep their order", consecutiveCommits, anyStore},
		{"E34: the log is read after a position up to a limit", logByPosition, anyStore},
		{"Commit returns the position of its events", commitReturnsPosition, anyStore},
		{"a transaction without events writes no row of the log", noEventsNoRow, anyStore},
		{"E33: the number of a writer that failed does not hold up the log", failedWriterFillsItsNumber, anyStore},
		{"I6 E31: events of one execution stand in commit order and a reader misses none", concurrentWriters, anyStore},
		{"I6 E33: readers in another process miss none", concurrentWritersOfTwoProcesses, shared},
		{"the log outlives the class that an event names", eventOfADroppedClass, anyStore},
		{"S71: Poll knows where the log starts and ends", endOfTheLog, anyStore},
	}
}

// commits reads the whole log after a position. It waits until the log ends at the position that Poll reports.
func (w *world) commits(ctx context.Context, after int64) []store.Commit {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, followBound)
	defer cancel()
	end := w.poll(ctx).LogEnd
	var all []store.Commit
	for after < end {
		got, err := w.s.Log(ctx, after, 1000)
		if err != nil {
			w.t.Fatalf("Log: %v", err)
		}
		if len(got) > 0 {
			after = got[len(got)-1].Seq
		}
		all = append(all, got...)
	}
	return all
}

func (w *world) events(ctx context.Context, after int64) []core.Event {
	w.t.Helper()
	var events []core.Event
	for _, commit := range w.commits(ctx, after) {
		events = append(events, commit.Events...)
	}
	return events
}

func everyFieldOfAnEvent(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{{Namespace: "n", Lane: "default", Kind: "k", Capabilities: []string{"a", "b"}, FairnessKey: "f"}})
	id, flow, root := base.IDOf(newUUID(w.now)), base.IDOf(newUUID(w.now)), base.ID{N: 3, UUID: newUUID(w.now)}
	events := []core.Event{
		{
			Kind: "execution.completed", At: w.now, Namespace: "n", ExecutionID: id, Class: classes[0], FlowID: flow, RootFlowID: root,
			AttemptIndex: 7, InstanceID: "w-1", Tags: base.Tags{"team": "ü", "empty": ""}, Actor: core.Actor{Type: "worker", ID: "ann"},
			RequestID: "req-1", Data: eventdata.OfJSON(json.RawMessage(`{ "b":1, "a":"\u0000é", "f":1.0 }`)),
		},
		{Kind: "lane.changed", At: w.now.Add(1), AttemptIndex: -1, Actor: core.Actor{Type: "operator", ID: "bob"}, Data: eventdata.OfJSON(json.RawMessage(`{}`))},
		{Kind: "execution.submitted", At: w.now, Namespace: "default", ExecutionID: id, Class: w.class, AttemptIndex: 0, Actor: core.Actor{Type: "engine"}},
	}
	w.add(ctx, &store.Changes{Events: events})
	got := w.commits(ctx, 0)
	w.equal("commits", 1, len(got))
	w.equal("events", asLogged(events), asLogged(got[0].Events))
	if at := got[0].At; at < w.now.Add(-base.Minute) || at > w.clock(ctx).Add(base.Minute) {
		t.Fatalf("the commit is of %v, now is %v", at, w.now)
	}
}

func consecutiveCommits(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before := w.poll(ctx).LogEnd
	x := w.execution()
	n := 0
	for size := 1; size <= 20; size++ {
		ch := &store.Changes{}
		for range size {
			n++
			ch.Events = append(ch.Events, event(x, w.now, n))
		}
		w.add(ctx, ch)
	}
	commits := w.commits(ctx, before)
	w.equal("commits", 20, len(commits))
	n = 0
	for i, commit := range commits {
		w.equal("position", before+int64(i)+1, commit.Seq)
		w.equal("events of the commit", i+1, len(commit.Events))
		for _, e := range commit.Events {
			n++
			w.equal("event", asLogged([]core.Event{event(x, w.now, n)}), asLogged([]core.Event{e}))
		}
	}
}

func logByPosition(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	for n := range 6 {
		w.add(ctx, &store.Changes{Events: []core.Event{event(x, w.now, n)}})
	}
	all := w.commits(ctx, 0)
	for _, one := range []struct {
		after int64
		limit int
		want  []store.Commit
	}{
		{0, 2, all[:2]}, {all[1].Seq, 3, all[2:5]}, {all[4].Seq, 100, all[5:]}, {all[5].Seq, 100, nil}, {all[5].Seq + 50, 100, nil},
	} {
		got, err := w.s.Log(ctx, one.after, one.limit)
		if err != nil {
			t.Fatal(err)
		}
		w.equal(fmt.Sprintf("%d commits after %d", one.limit, one.after), one.want, got)
	}
}

func commitReturnsPosition(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	silent := &store.Changes{Insert: []*core.Execution{x}}
	w.add(ctx, silent)
	w.equal("position without events", int64(0), silent.Seq)
	for n := range 3 {
		ch := &store.Changes{Events: []core.Event{event(x, w.now, n)}}
		want := store.Want{}
		if n == 1 {
			want.Executions = []base.UUID{x.ID.UUID}
		}
		w.put(ctx, want, ch)
		commits := w.commits(ctx, ch.Seq-1)
		if len(commits) != 1 || commits[0].Seq != ch.Seq {
			t.Fatalf("Commit says position %d, the log has %+v", ch.Seq, commits)
		}
		w.equal("events at the position", asLogged(ch.Events), asLogged(commits[0].Events))
	}
}

func noEventsNoRow(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before := w.poll(ctx).LogEnd
	w.insert(ctx, w.execution())
	w.register(ctx, []core.Lane{w.newLane("second")}, nil)
	w.put(ctx, store.Want{LockLanes: []int32{w.lane.ID}}, &store.Changes{Lanes: []core.Lane{w.lane}, Counters: map[string]int64{"a": 1}})
	w.add(ctx, &store.Changes{})
	w.equal("end of the log", before, w.poll(ctx).LogEnd)
	got, err := w.s.Log(ctx, before, 10)
	if err != nil || len(got) != 0 {
		t.Fatalf("log of transactions without events: %v, %v", got, err)
	}
}

func failedWriterFillsItsNumber(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.add(ctx, &store.Changes{Insert: []*core.Execution{x}, Events: []core.Event{event(x, w.now, 1)}})
	for n := range 5 {
		w.refuse(ctx, store.Want{}, &store.Changes{Insert: []*core.Execution{x}, Events: []core.Event{event(x, w.now, 99)}}, store.Conflict)
		bad := w.execution()
		bad.Status = 99
		w.refuse(ctx, store.Want{}, &store.Changes{Insert: []*core.Execution{bad}, Events: []core.Event{event(x, w.now, 99)}}, store.Broken)
		w.add(ctx, &store.Changes{Events: []core.Event{event(x, w.now, n+2)}})
	}
	seen, err := follow(ctx, w.s, 0, 6)
	if err != nil {
		t.Fatal(err)
	}
	w.equal("events", []int{1, 2, 3, 4, 5, 6}, seen[x.ID.UUID])
}

// follow reads the log from a position until it has seen that many events, and returns their numbers by execution. It fails if positions are not
// consecutive.
func follow(ctx context.Context, s store.Store, after int64, total int) (map[base.UUID][]int, error) {
	ctx, cancel := context.WithTimeout(ctx, followBound)
	defer cancel()
	seen := map[base.UUID][]int{}
	for total > 0 {
		commits, err := s.Log(ctx, after, 5)
		if err != nil {
			return nil, err
		}
		for _, commit := range commits {
			if commit.Seq != after+1 {
				return nil, fmt.Errorf("position %d follows %d", commit.Seq, after)
			}
			after = commit.Seq
			for _, e := range commit.Events {
				var data struct{ N int }
				if err := json.Unmarshal(e.Data.JSON(), &data); err != nil {
					return nil, err
				}
				seen[e.ExecutionID.UUID] = append(seen[e.ExecutionID.UUID], data.N)
				total--
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%d events were not seen after position %d: %w", total, after, ctx.Err())
		}
		runtime.Gosched()
	}
	return seen, nil
}

// raise raises the priority of an execution by one and logs the new value; if stumble is set, it first fails with a conflict and rolls back.
func raise(ctx context.Context, s store.Store, id base.UUID, stumble bool) error {
	want := store.Want{Executions: []base.UUID{id}, Inputs: true}
	next := func(got *store.Loaded) *store.Changes {
		x := got.Executions[id]
		x.Priority++
		return &store.Changes{Update: []*core.Execution{x}, Events: []core.Event{event(x, got.Now, x.Priority)}}
	}
	if stumble {
		err := insist(ctx, s, want, func(got *store.Loaded) *store.Changes {
			ch := next(got)
			ch.Insert = ch.Update
			return ch
		})
		if store.FaultOf(err) != store.Conflict {
			return fmt.Errorf("insert of an id that exists: %w", errors.Join(err, errors.New("no conflict")))
		}
		if err := insist(ctx, s, want, func(*store.Loaded) *store.Changes { return nil }); err != nil {
			return err
		}
	}
	return insist(ctx, s, want, next)
}

func concurrentWriters(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	writeAndFollow(ctx, t, w, []store.Store{w.s})
}

func concurrentWritersOfTwoProcesses(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	writeAndFollow(ctx, t, w, []store.Store{w.s, f.OpenAgain(t, w.s)})
}

func writeAndFollow(ctx context.Context, t *testing.T, w *world, handles []store.Store) {
	t.Helper()
	const rounds, readers = 12, 2
	ids := w.insert(ctx, w.executions(4)...)
	from := w.poll(ctx).LogEnd
	seen := make([]map[base.UUID][]int, readers)
	following, stop := context.WithCancel(ctx)
	defer stop()
	err := together(crowd+readers, func(i int) error {
		handle := handles[i%len(handles)]
		if i >= crowd {
			var err error
			seen[i-crowd], err = follow(following, handle, from, crowd*rounds)
			return err
		}
		for round := range rounds {
			if err := raise(ctx, handle, ids[(i+round)%len(ids)], round%3 == 1); err != nil {
				stop() // the missing events of this writer will never appear
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		last := w.load(ctx, id).Priority
		for _, numbers := range seen {
			if got := numbers[id]; len(got) != last {
				t.Fatalf("execution %v changed %d times, the reader saw %v", id, last, got)
			}
			for i, n := range numbers[id] {
				if n != i+1 {
					t.Fatalf("events of execution %v stand in the order %v", id, numbers[id])
				}
			}
		}
	}
}

func eventOfADroppedClass(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{newClass("default", "short")})
	x := w.execution()
	x.Class = classes[0]
	e := event(x, w.now, 1)
	w.add(ctx, &store.Changes{Events: []core.Event{e}})
	w.add(ctx, &store.Changes{RetireClasses: w.retired(classes[0])})
	w.add(ctx, &store.Changes{DropClasses: w.retired(classes[0])})
	w.equal("events", asLogged([]core.Event{e}), asLogged(w.events(ctx, 0)))
}

func endOfTheLog(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before := w.poll(ctx)
	if before.LogEnd != before.Projected || before.LogEnd != before.LogStart {
		t.Fatalf("a fresh log goes from %d to %d and is projected up to %d", before.LogStart, before.LogEnd, before.Projected)
	}
	for n := range 3 {
		w.add(ctx, &store.Changes{Events: []core.Event{event(w.execution(), w.now, n)}})
		w.equal("end", before.LogEnd+int64(n)+1, w.poll(ctx).LogEnd)
		w.equal("newest", before.LogEnd+int64(n)+1, w.poll(ctx).LogNewest)
	}
	w.equal("start", before.LogStart, w.poll(ctx).LogStart)
	w.equal("projected", before.Projected, w.poll(ctx).Projected)
}
