package sim

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/invariants"
	"github.com/flowfabric/flowfabric/internal/store"
)

// check holds the store, and what callers were told, to what must hold when everything is over.
func (w *World) check() {
	w.pass(quietTime)
	s, done := w.direct()
	defer done()
	broken, err := invariants.Audit(context.Background(), s)
	if err != nil {
		w.found("the audit: %v", err)
	}
	slices.Sort(broken)
	for _, text := range broken {
		w.found("%s", text)
	}
	if snap := w.snapshot(); snap != nil {
		w.checkEnded(snap)
		w.checkAcknowledged(snap)
		w.checkPlaces(snap)
	}
	if len(w.findings) > 0 {
		return
	}
	w.checkReaders()
	w.checkStreams()
	w.checkIntegrity()
}

// checkEnded checks that everything is over, also what no event names (I7).
func (w *World) checkEnded(snap *invariants.Snapshot) {
	for _, id := range slices.SortedFunc(maps.Keys(snap.Records), compareIDs) {
		if x := snap.Records[id].X; !x.Status.Terminal() {
			w.found("I7: %s is %s (%s) at the end", x.ID, x.Status, x.Reason)
		}
	}
}

// checkAcknowledged compares what callers were told with the records (I1, I5, I13).
func (w *World) checkAcknowledged(snap *invariants.Snapshot) {
	for _, j := range w.journal.jobs {
		r, there := snap.Records[j.id.UUID]
		switch {
		case !there && !j.deleted && !(j.member && w.journal.deletes):
			w.found("I1: %s was acknowledged and does not exist", j.id)
		case !there:
		case r.X.LeaseEpoch < j.epoch:
			w.found("I1: epoch %d of %s was acknowledged, it has %d", j.epoch, j.id, r.X.LeaseEpoch)
		case j.replayed:
		case j.outcome != core.StatusNone && r.X.Status != j.outcome:
			w.found("I5: %s was acknowledged as %s and is %s", j.id, j.outcome, r.X.Status)
		case j.cancelled && r.X.Status == core.Succeeded && j.outcome == core.StatusNone:
			w.found("I13: the cancel of %s was acknowledged, and it is %s", j.id, r.X.Status)
		}
	}
}

// checkPlaces checks that nothing is held any more (LI17, SI7).
func (w *World) checkPlaces(snap *invariants.Snapshot) {
	for _, key := range slices.Sorted(maps.Keys(snap.Counters)) {
		if n := snap.Counters[key]; n != 0 {
			w.found("SI7: everything is over, and %s counts %d", key, n)
		}
	}
}

// checkIntegrity recounts what is stored twice, by an engine that was there and one that opens anew. What it looks at first is drawn by the
// engine, so its calls are no part of the history.
func (w *World) checkIntegrity() {
	w.procs[0].kill()
	w.start(0)
	w.releaseAll()
	for _, p := range w.procs[:2] {
		<-p.opened
		if p.e == nil {
			w.found("I7: p%d does not open", p.index)
			return
		}
		report, err := p.e.Integrity(context.Background())
		if err != nil {
			w.found("integrity: %v", err)
			return
		}
		w.checkBudgets(context.Background(), p.e)
		for _, d := range report.Differences {
			w.found("U113: %s of %s: stored %d, found %d", d.What, d.Key, d.Stored, d.Found)
		}
	}
}

// checkReaders lets the readers of the log come to its end: each has seen every event once, in the same order, whichever process it asked (I6).
func (w *World) checkReaders() {
	s, done := w.direct()
	defer done()
	events, err := w.events(s)
	if err != nil {
		w.found("I6: %v", err)
		return
	}
	for i := range w.journal.readers {
		w.readOn(i, events)
		seen, known := w.journal.readers[i].seen, map[base.UUID]bool{}
		for _, id := range seen {
			if known[id] {
				w.found("I6: reader %d saw event %s twice", i, id)
				return
			}
			known[id] = true
		}
		if len(seen) < events {
			w.found("I6: reader %d saw %d events, the log has %d", i, len(seen), events)
			return
		}
		if first := w.journal.readers[0].seen; !slices.Equal(seen[:events], first[:events]) {
			w.found("I6: readers 0 and %d saw the events in another order", i)
		}
	}
}

// readOn lets a reader read until it has seen so many events, or is at the end.
func (w *World) readOn(i, events int) {
	r := &w.journal.readers[i]
	for n := 0; n < 1000 && len(w.findings) == 0 && (len(r.seen) < events || n == 0); n++ {
		answer, err, ok := w.call(n%len(w.procs), "read on", func(ctx context.Context, e *engine.Engine) (any, error) {
			return e.ReadEvents(ctx, client(""), engine.EventsRequest{After: r.cursor, Limit: 500})
		})
		if !ok || err != nil {
			w.found("I6: reader %d: %v", i, err)
			return
		}
		page := answer.(engine.EventPage)
		r.take(page)
		if page.AtEnd && n > 3 {
			return
		}
	}
}

// events counts the events that readers see.
func (w *World) events(s store.Store) (n int, err error) {
	for after := int64(0); ; {
		commits, err := s.Log(context.Background(), after, 1000)
		if err != nil || len(commits) == 0 {
			return n, err
		}
		for _, c := range commits {
			after = c.Seq
			for i := range c.Events {
				if c.Events[i].Kind != core.SilentChange {
					n++
				}
			}
		}
	}
}
