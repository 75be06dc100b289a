package storetest

import (
	"context"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func incarnationTests() []test {
	return []test{
		{"R1: every answer names the same incarnation", oneIncarnation, anyStore},
		{"R1: so does another process", sharedIncarnation, shared},
		{"R2: changes that were decided on another incarnation are refused, and nothing is written", otherIncarnation, anyStore},
		{"R2: search rows that were read on another incarnation are refused, and the projection stays", otherProjection, anyStore},
		{"R4: two histories of a row that were written equally often differ", drawnVersions, anyStore},
		{"E32: the log gets another identity", newLogIdentity, anyStore},
		{"E32: other processes learn of it with the dictionary", newLogIdentityElsewhere, shared},
		{"R1 R2: after a failover nothing is written that was decided before it", failedOver, failsOver},
		{"R4: after a failover a row that was written again differs from the one that was lost", writtenAnew, failsOver},
		{"R3: after a failover classes are what the database says, whatever had their numbers before", classesAnew, failsOver},
		{"R5: after a failover the log ends where it ended, and goes on from there", logAnew, failsOver},
	}
}

// incarnation returns the incarnation that a transaction sees.
func (w *world) incarnation(ctx context.Context) string {
	w.t.Helper()
	return w.read(ctx, store.Want{Counters: []string{"any"}}).Incarnation
}

func oneIncarnation(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	want := w.incarnation(ctx)
	if want == "" {
		t.Fatal("the incarnation has no name")
	}
	x := w.execution()
	w.insert(ctx, x)
	for what, names := range map[string]store.Want{"nothing": {}, "rows": {Executions: []base.UUID{x.ID.UUID}}} {
		tx, loaded := w.begin(ctx, names)
		w.equal("Begin with "+what, want, loaded.Incarnation)
		more, err := tx.Load(ctx, store.Want{Counters: []string{"a"}})
		tx.Rollback(ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.equal("Load behind it", want, more.Incarnation)
		w.equal("Read of "+what, want, w.read(ctx, names).Incarnation)
	}
	w.equal("Poll", want, w.poll(ctx).Incarnation)
	w.equal("Dictionary", want, w.dictionary(ctx).Incarnation)
	known, err := w.s.Register(ctx, nil, []core.Class{newClass("default", "new")})
	if err != nil {
		t.Fatal(err)
	}
	w.equal("Register", want, known.Incarnation)
}

func sharedIncarnation(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.equal("incarnation", w.incarnation(ctx), w.at(f.OpenAgain(t, w.s)).incarnation(ctx))
}

func otherIncarnation(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.runs(ctx)
	for what, want := range map[string]store.Want{"unseen": {}, "seen": {Executions: []base.UUID{x.ID.UUID}}} {
		for _, dictionary := range []int64{0, w.version(ctx)} {
			fresh := w.execution()
			changes := func(incarnation string) *store.Changes {
				return &store.Changes{Insert: []*core.Execution{fresh}, Events: []core.Event{event(fresh, w.now, 1)}, Dictionary: dictionary, Incarnation: incarnation}
			}
			before := w.poll(ctx).LogEnd
			w.refuse(ctx, want, changes("another"), store.Stale)
			w.gone(ctx, fresh.ID.UUID)
			w.equal(what+": end of the log", before, w.poll(ctx).LogEnd)
			w.put(ctx, want, changes(w.incarnation(ctx)))
			w.equal(what, fresh, w.load(ctx, fresh.ID.UUID))
		}
	}
}

func otherProjection(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.insert(ctx, x)
	at := w.poll(ctx).Projected
	round := store.Projection{From: at, To: at + 1, Rows: []*core.Execution{x}, Incarnation: "another"}
	w.expectFault(w.s.Project(ctx, round), store.Stale)
	w.equal("projected", at, w.poll(ctx).Projected)
	w.equal("search rows", 0, len(w.find(ctx, store.Query{Limit: 9})))
	round.Incarnation = w.incarnation(ctx)
	if err := w.s.Project(ctx, round); err != nil {
		t.Fatal(err)
	}
	w.equal("projected", at+1, w.poll(ctx).Projected)
	w.equal("search rows", 1, len(w.find(ctx, store.Query{Limit: 9})))
}

func drawnVersions(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := claimed(w.execution(), w.now)
	seen := map[int64]bool{}
	for range 3 { // an id that is reused begins another history
		w.insert(ctx, x.Clone())
		for range 3 {
			now := w.load(ctx, x.ID.UUID)
			if seen[now.Version] {
				t.Fatalf("version %x came twice", now.Version)
			}
			seen[now.Version] = true
			w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Update: []*core.Execution{later(now)}})
		}
		w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Remove: []base.UUID{x.ID.UUID}})
	}
}

// renames gives the log a new identity.
func (w *world) renames(ctx context.Context) base.UUID {
	w.t.Helper()
	id := newUUID(w.now)
	w.add(ctx, &store.Changes{NewLogID: id})
	return id
}

func newLogIdentity(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before, version := w.s.Info(), w.version(ctx)
	id := w.renames(ctx)
	w.equal("version of the dictionary", version+1, w.dictionary(ctx).Version)
	after := w.s.Info()
	w.equal("identity", id, after.LogID)
	after.LogID = before.LogID
	w.equal("all else", before, after)
	if f.Reopen != nil {
		w.equal("identity, opened again", id, f.Reopen(t, w.s).Info().LogID)
	}
}

func newLogIdentityElsewhere(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	other := w.at(f.OpenAgain(t, w.s))
	id := w.renames(ctx)
	other.dictionary(ctx)
	w.equal("identity", id, other.s.Info().LogID)
}

// falls opens a store that can lose commits.
func falls(t *testing.T, f Factory) (context.Context, *world, Fallible) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testBound)
	t.Cleanup(cancel)
	fallible := f.FailOver(t)
	return ctx, settle(ctx, t, fallible.Store), fallible
}

// insisted reads, and retries because connections may have been lost with the server.
func (w *world) insisted(ctx context.Context, want store.Want) *store.Loaded {
	w.t.Helper()
	loaded, err := w.s.Read(ctx, want)
	for range crowd {
		if err == nil {
			return loaded
		}
		loaded, err = w.s.Read(ctx, want)
	}
	w.t.Fatalf("Read: %v", err)
	return nil
}

func failedOver(t *testing.T, f Factory) {
	ctx, w, fallible := falls(t, f)
	x := w.runs(ctx)
	before, version := w.incarnation(ctx), w.version(ctx)
	fallible.Mark()
	lost := w.execution()
	w.insert(ctx, lost)
	w = w.at(fallible.Fall())
	loaded := w.insisted(ctx, store.Want{Executions: []base.UUID{x.ID.UUID, lost.ID.UUID}, Inputs: true})
	if loaded.Incarnation == before || loaded.Executions[lost.ID.UUID] != nil {
		t.Fatalf("incarnation %q after %q, the lost one: %v", loaded.Incarnation, before, loaded.Executions[lost.ID.UUID])
	}
	w.equal("kept", x, loaded.Executions[x.ID.UUID])
	for what, want := range map[string]store.Want{"unseen": {}, "seen": {Executions: []base.UUID{x.ID.UUID}}} {
		ch := &store.Changes{Update: []*core.Execution{later(x)}, Dictionary: version, Incarnation: before}
		if what == "unseen" {
			ch.Update, ch.Assume = nil, ch.Update
		}
		w.refuse(ctx, want, ch, store.Stale)
	}
	w.equal("not written", x, w.load(ctx, x.ID.UUID))
	w.put(ctx, store.Want{}, &store.Changes{Assume: []*core.Execution{later(x)}, Dictionary: version, Incarnation: loaded.Incarnation})
}

func writtenAnew(t *testing.T, f Factory) {
	ctx, w, fallible := falls(t, f)
	x := w.runs(ctx)
	fallible.Mark()
	writes := func() *core.Execution {
		w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Update: []*core.Execution{later(x)}})
		return w.load(ctx, x.ID.UUID)
	}
	lost := writes()
	w = w.at(fallible.Fall())
	w.insisted(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}})
	now := writes()
	w.equal("written equally often", lost.Version>>32, now.Version>>32)
	w.refuse(ctx, store.Want{}, &store.Changes{Assume: []*core.Execution{later(lost)}}, store.Conflict)
	w.put(ctx, store.Want{}, &store.Changes{Assume: []*core.Execution{later(now)}})
}

func classesAnew(t *testing.T, f Factory) {
	ctx, w, fallible := falls(t, f)
	fallible.Mark()
	_, lost := w.register(ctx, nil, []core.Class{newClass("default", "lost")})
	x := w.execution()
	x.Class = lost[0]
	w.insert(ctx, x)
	w.load(ctx, x.ID.UUID)
	w = w.at(fallible.Fall())
	w.insisted(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}})
	_, anew := w.register(ctx, nil, []core.Class{newClass("default", "anew")})
	for tries := 0; anew[0].ID < lost[0].ID && tries < 100; tries++ { // numbers may be assigned in steps
		_, anew = w.register(ctx, nil, []core.Class{newClass("default", string(rune('a'+tries)))})
	}
	y := w.execution()
	y.Class = anew[0]
	w.insert(ctx, y)
	w.equal("class", anew[0], w.load(ctx, y.ID.UUID).Class)
	known := w.dictionary(ctx)
	for _, class := range known.Classes {
		if class.Kind == "lost" {
			t.Fatalf("class %d is %q", class.ID, class.Kind)
		}
	}
}

func logAnew(t *testing.T, f Factory) {
	ctx, w, fallible := falls(t, f)
	x := w.execution()
	say := func(n int) int64 {
		ch := &store.Changes{Events: []core.Event{event(x, w.now, n)}}
		w.add(ctx, ch)
		return ch.Seq
	}
	kept := say(1)
	fallible.Mark()
	lost := say(2)
	w.equal("end", lost, w.poll(ctx).LogEnd)
	w = w.at(fallible.Fall())
	w.insisted(ctx, store.Want{Counters: []string{"any"}})
	w.equal("end after the failover", kept, w.poll(ctx).LogEnd)
	next := say(3)
	var seqs []int64
	var events int
	for after := kept; after < next; {
		commits, err := w.s.Log(ctx, after, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commits {
			seqs, after, events = append(seqs, c.Seq), c.Seq, events+len(c.Events)
		}
	}
	if events != 1 || seqs[len(seqs)-1] != next {
		t.Fatalf("commits %v with %d events after %d, the last one is %d", seqs, events, kept, next)
	}
}
