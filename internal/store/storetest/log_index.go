package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func logIndexTests() []test {
	return []test{
		{"E35: the index has the commits of a subject, from any position up to any limit", indexedCommits, anyStore},
		{"positions of several eras are found in order", indexedEras, anyStore},
		{"a round of indexing that does not begin at the end of the index is stale and changes nothing", staleIndex, anyStore},
		{"of concurrent rounds of indexing from one position one happens", oneIndexWins, anyStore},
		{"E37: what the log no longer has is left out", indexOfDroppedLog, anyStore},
		{"a read of the log ends with the commit that fills LogBytes", largeCommits, anyStore},
		{"E35: the commits of an execution that was removed are still found", indexOfTheRemoved, anyStore},
	}
}

// index adds mentions up to a position.
func (w *world) index(ctx context.Context, to int64, mentions ...store.Mention) {
	w.t.Helper()
	if err := w.s.Index(ctx, store.IndexPart{From: w.indexed(ctx), To: to, Mentions: mentions}); err != nil {
		w.t.Fatalf("Index: %v", err)
	}
}

// indexed is the end of the index.
func (w *world) indexed(ctx context.Context) int64 {
	w.t.Helper()
	_, end, err := w.s.LogOf(ctx, store.LogOf{})
	if err != nil {
		w.t.Fatalf("LogOf: %v", err)
	}
	return end
}

// of returns the positions of the commits that are asked for.
func (w *world) of(ctx context.Context, ask store.LogOf) []int64 {
	w.t.Helper()
	commits, _, err := w.s.LogOf(ctx, ask)
	if err != nil {
		w.t.Fatalf("LogOf: %v", err)
	}
	seqs := make([]int64, 0, len(commits))
	for _, c := range commits {
		if c.Unreadable != nil || len(c.Events) == 0 {
			w.t.Fatalf("commit %d has %d events: %v", c.Seq, len(c.Events), c.Unreadable)
		}
		seqs = append(seqs, c.Seq)
	}
	return seqs
}

// written makes commits, and returns the position before the first and that of the last.
func (w *world) written(ctx context.Context, n int) (before, last int64) {
	w.t.Helper()
	before = w.poll(ctx).LogEnd
	x := w.execution()
	for i := range n {
		w.add(ctx, &store.Changes{Events: []core.Event{event(x, w.now, i)}})
	}
	return before, before + int64(n)
}

func indexedCommits(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	random := testseed.New(t)
	before, last := w.written(ctx, 60)
	subjects := []base.UUID{newUUID(w.now), newUUID(w.now), newUUID(w.now)}
	known := map[base.UUID][]int64{}
	for at := before; at < last; {
		to := min(last, at+1+int64(random.IntN(9)))
		w.index(ctx, to, mentionsOf(random, subjects, at, to, known)...)
		at = to
		for _, subject := range append(subjects, newUUID(w.now)) {
			ask := store.LogOf{Subject: subject, After: before - 2 + int64(random.IntN(65)), Limit: random.IntN(9), Newest: random.IntN(2) == 0}
			w.equal("positions", asked(known[subject], ask), w.of(ctx, ask))
		}
	}
}

// mentionsOf draws which commits behind one position up to another name which subjects.
func mentionsOf(random *rand.Rand, subjects []base.UUID, from, to int64, known map[base.UUID][]int64) (mentions []store.Mention) {
	for _, subject := range subjects {
		var seqs []int64
		for seq := from + 1; seq <= to; seq++ {
			if random.IntN(3) == 0 {
				seqs = append(seqs, seq)
			}
		}
		if len(seqs) > 0 {
			mentions = append(mentions, store.Mention{Subject: subject, Seqs: seqs})
			known[subject] = append(known[subject], seqs...)
		}
	}
	return mentions
}

// asked is what a store should return.
func asked(all []int64, ask store.LogOf) []int64 {
	found := slices.DeleteFunc(slices.Clone(all), func(seq int64) bool { return seq <= ask.After })
	n := min(ask.Limit, len(found))
	if ask.Newest {
		return append([]int64{}, found[len(found)-n:]...)
	}
	return append([]int64{}, found[:n]...)
}

// An era has more positions than a test can write: those of later eras name commits that the log does not have.
func indexedEras(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before, last := w.written(ctx, 4)
	const era = 1 << 20
	x, y := newUUID(w.now), newUUID(w.now)
	w.index(ctx, 2*era, store.Mention{Subject: x, Seqs: []int64{before + 1, last, era + 5, 2*era - 1}}, store.Mention{Subject: y, Seqs: []int64{before + 2}})
	w.index(ctx, 3*era, store.Mention{Subject: x, Seqs: []int64{2*era + 1, 3*era - 1}}, store.Mention{Subject: y, Seqs: []int64{2*era + 1}})
	w.equal("all", []int64{before + 1, last}, w.of(ctx, store.LogOf{Subject: x, Limit: 9}))
	w.equal("behind the first", []int64{last}, w.of(ctx, store.LogOf{Subject: x, After: before + 1, Limit: 1}))
	w.equal("behind the last", []int64{}, w.of(ctx, store.LogOf{Subject: x, After: last, Limit: 9}))
	w.equal("the newest", []int64{before + 2}, w.of(ctx, store.LogOf{Subject: y, Limit: 9, Newest: true}))
	w.equal("end", int64(3*era), w.indexed(ctx))
}

func staleIndex(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before, last := w.written(ctx, 3)
	x := newUUID(w.now)
	w.index(ctx, last-1, store.Mention{Subject: x, Seqs: []int64{before + 1}})
	for _, from := range []int64{before, last, last + 1} {
		round := store.IndexPart{From: from, To: last + 2, Mentions: []store.Mention{{Subject: x, Seqs: []int64{last}}}}
		w.expectFault(w.s.Index(ctx, round), store.Stale)
	}
	round := store.IndexPart{From: last - 1, To: last, Incarnation: "another", Mentions: []store.Mention{{Subject: x, Seqs: []int64{last}}}}
	w.expectFault(w.s.Index(ctx, round), store.Stale)
	w.equal("end", last-1, w.indexed(ctx))
	w.equal("positions", []int64{before + 1}, w.of(ctx, store.LogOf{Subject: x, Limit: 9}))
}

func oneIndexWins(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before, _ := w.written(ctx, 1)
	at, x := w.indexed(ctx), newUUID(w.now)
	won := make([]bool, crowd)
	err := together(crowd, func(i int) error {
		for {
			err := w.s.Index(ctx, store.IndexPart{From: at, To: before + 1 + int64(i), Mentions: []store.Mention{{Subject: x, Seqs: []int64{before + 1}}}})
			if err != nil && passing(err) && ctx.Err() == nil {
				continue
			}
			won[i] = err == nil
			if err != nil && store.FaultOf(err) != store.Stale {
				return err
			}
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	winner := slices.Index(won, true)
	if winner < 0 || slices.Contains(won[winner+1:], true) {
		t.Fatalf("rounds from one position that happened: %v", won)
	}
	w.equal("end", before+1+int64(winner), w.indexed(ctx))
	w.equal("positions", []int64{before + 1}, w.of(ctx, store.LogOf{Subject: x, Limit: 9}))
}

func indexOfDroppedLog(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before, _ := w.written(ctx, 3)
	kept := w.poll(ctx).Now + 1
	for w.poll(ctx).Now < kept { // what is written now is younger
	}
	_, last := w.written(ctx, 2)
	x := newUUID(w.now)
	var all []int64
	for seq := before + 1; seq <= last; seq++ {
		all = append(all, seq)
	}
	w.index(ctx, last, store.Mention{Subject: x, Seqs: all})
	if err := w.s.Maintain(ctx, kept); err != nil {
		t.Fatal(err)
	}
	w.equal("from the start", all[3:], w.of(ctx, store.LogOf{Subject: x, Limit: 9}))
	w.equal("from among what is gone", all[3:4], w.of(ctx, store.LogOf{Subject: x, After: before + 1, Limit: 1}))
	w.equal("the newest", all[3:], w.of(ctx, store.LogOf{Subject: x, Limit: 4, Newest: true}))
}

func indexOfTheRemoved(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	before := w.poll(ctx).LogEnd
	w.add(ctx, &store.Changes{Insert: []*core.Execution{x}, Events: []core.Event{event(x, w.now, 0)}})
	w.index(ctx, before+1, store.Mention{Subject: x.ID.UUID, Seqs: []int64{before + 1}})
	w.add(ctx, &store.Changes{Remove: []base.UUID{x.ID.UUID}})
	w.equal("positions", []int64{before + 1}, w.of(ctx, store.LogOf{Subject: x.ID.UUID, Limit: 9}))
}

func largeCommits(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before := w.poll(ctx).LogEnd
	x := w.execution()
	var all []int64
	for n := range 5 {
		large := event(x, w.now, n)
		large.Tags = base.Tags{"large": strings.Repeat("x", 2*store.LogBytes/5)}
		w.add(ctx, &store.Changes{Events: []core.Event{large}})
		all = append(all, before+int64(n)+1)
	}
	for after, want := range map[int64]int{before: 3, before + 1: 3, before + 3: 2} {
		commits, err := w.s.Log(ctx, after, 100)
		if err != nil {
			t.Fatal(err)
		}
		w.equal(fmt.Sprintf("commits after %d", after-before), want, len(commits))
		w.equal("there may be more", want == 3, store.Full(commits, 100))
		w.equal("the first", after+1, commits[0].Seq)
	}
	id := newUUID(w.now)
	w.index(ctx, before+5, store.Mention{Subject: id, Seqs: all})
	w.equal("the oldest of a subject", all[:3], w.of(ctx, store.LogOf{Subject: id, Limit: 9}))
	w.equal("those behind them", all[3:], w.of(ctx, store.LogOf{Subject: id, After: all[2], Limit: 9}))
	w.equal("the newest of a subject", all[2:], w.of(ctx, store.LogOf{Subject: id, Limit: 9, Newest: true}))
}
