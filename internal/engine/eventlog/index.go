package eventlog

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	indexCommits = 2048                   // commits indexed in one round, about
	indexNames   = 10_000                 // executions and flows named in one round, about: as many rows are written at once
	indexRounds  = 16                     // between two rests: a log that was never indexed is no reason to slow others down
	indexPause   = 500 * time.Millisecond // commits of one subject within this time become one row
	indexYield   = 3 * time.Second        // while the engine is busy
	busyCommits  = 50                     // with this many commits in a pause it is
)

// indexer fills the index of the log by execution and by flow, behind the log, so that it costs the hot path nothing. Any number of processes may do
// so: the end of the index in the store decides whose round counts. A reader looks behind the end itself, so nothing depends on when this happens.
type indexer struct {
	e  *txn.Engine
	at int64  // the end of the index as last known
	of string // the incarnation of the database that the end belongs to; "": the end is not known
}

// run brings the index forward until ctx ends.
func (x *indexer) run(ctx context.Context) {
	for {
		// The channel belongs to the position that is compared: if the log grows after the comparison, it is closed.
		end, grew := x.e.Log.Position()
		if x.of == x.e.Incarnation() && x.at >= end { // another incarnation may know less of the index
			select {
			case <-ctx.Done():
				return
			case <-grew:
			}
		}
		if !x.rest(ctx) {
			return
		}
		end, _ = x.e.Log.Position()
		for rounds := 0; rounds < indexRounds && x.round(ctx) && x.at < end; rounds++ {
		}
	}
}

// rest lets commits collect, for longer while the engine is busy. It returns false once ctx has ended.
func (x *indexer) rest(ctx context.Context) bool {
	for waited := time.Duration(0); ; {
		before, _ := x.e.Log.Position()
		timer := x.e.Cfg.Clock.NewTimer(indexPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
		end, _ := x.e.Log.Position()
		if waited += indexPause; waited >= indexYield || end-before < busyCommits {
			return true
		}
	}
}

// round indexes the next commits. It reports whether there may be more.
func (x *indexer) round(ctx context.Context) bool {
	if of := x.e.Incarnation(); of != x.of {
		_, end, err := x.e.Store.LogOf(ctx, store.LogOf{})
		if x.e.Failed(err) != nil {
			return false
		}
		x.at, x.of = end, of
	}
	found := mentions{}
	to := x.at
	for to < x.at+indexCommits && len(found) < indexNames {
		commits, err := x.e.Log.Read(ctx, to, txn.LogRead)
		if x.e.Failed(err) != nil {
			return false
		}
		if len(commits) == 0 {
			break
		}
		to = commits[len(commits)-1].Seq
		found.add(commits)
	}
	if to == x.at {
		return false
	}
	switch err := x.e.Failed(x.e.Store.Index(ctx, store.IndexPart{From: x.at, To: to, Incarnation: x.of, Mentions: found.sorted()})); {
	case err == nil:
		x.at = to
		return true
	// Another process has moved the end, or the database is another incarnation. Nothing was written.
	case store.FaultOf(err) == store.Stale:
		before := x.at
		x.of = ""
		_, end, err := x.e.Store.LogOf(ctx, store.LogOf{})
		if x.e.Failed(err) != nil {
			return false
		}
		x.at, x.of = end, x.e.Incarnation()
		return end > before
	default:
		return false
	}
}

// mentions are the positions of commits by the executions and flows that they name.
type mentions map[base.UUID][]int64

// add adds commits that come behind all that were added before.
func (m mentions) add(commits []store.Commit) {
	for i := range commits {
		seq := commits[i].Seq
		for j := range commits[i].Events {
			ev := &commits[i].Events[j]
			for _, id := range [...]base.UUID{ev.ExecutionID.UUID, ev.FlowID.UUID, ev.RootFlowID.UUID} {
				if seqs := m[id]; !id.IsZero() && (len(seqs) == 0 || seqs[len(seqs)-1] != seq) {
					m[id] = append(seqs, seq)
				}
			}
		}
	}
}

// sorted lists them in order of the ids.
func (m mentions) sorted() []store.Mention {
	list := make([]store.Mention, 0, len(m))
	for id, seqs := range m {
		list = append(list, store.Mention{Subject: id, Seqs: seqs})
	}
	slices.SortFunc(list, func(a, b store.Mention) int { return bytes.Compare(a.Subject[:], b.Subject[:]) })
	return list
}

// subjectCommits is how many commits of one subject are read at a time.
const subjectCommits = 32

// commits returns the next commits behind a position that may hold what a filter keeps, and the position up to which there are no others. That is
// not above the given one at the end of the log.
func (e *Reader) commits(ctx context.Context, f *Filter, after int64) (commits []store.Commit, reached int64, err error) {
	if subject := f.subject(); !subject.IsZero() && !e.Log.Holds(after+1) {
		commits, end, err := e.Store.LogOf(ctx, store.LogOf{Subject: subject, After: after, Limit: subjectCommits})
		switch {
		case err != nil:
			return nil, 0, err
		case store.Full(commits, subjectCommits):
			e.Log.Readable(commits)
			return commits, commits[len(commits)-1].Seq, nil
		case end > after:
			e.Log.Readable(commits)
			return commits, end, nil
		}
	}
	commits, err = e.Log.Read(ctx, after, txn.LogRead)
	if err != nil || len(commits) == 0 {
		return nil, after, err
	}
	return commits, commits[len(commits)-1].Seq, nil
}

// newestTail is how many commits behind the end of the index are searched for the newest ones at most: a log that was never indexed may be long.
const newestTail = 16 * txn.LogRead

// Newest returns the newest events of an execution, oldest first: those of so many commits in the index, and those behind its end.
func (e *Reader) Newest(ctx context.Context, id base.UUID, commits int) ([]core.Event, error) {
	found, end, err := e.Store.LogOf(ctx, store.LogOf{Subject: id, Limit: commits, Newest: true})
	if err != nil {
		return nil, err
	}
	e.Log.Readable(found)
	events := eventsOf(nil, found, id)
	last, _ := e.Log.Position()
	for end = max(end, last-newestTail); ; end = found[len(found)-1].Seq {
		if found, err = e.Log.Read(ctx, end, txn.LogRead); err != nil || len(found) == 0 {
			return events, err
		}
		events = eventsOf(events, found, id)
	}
}

// eventsOf appends the events of one execution.
func eventsOf(events []core.Event, commits []store.Commit, id base.UUID) []core.Event {
	for i := range commits {
		for _, event := range commits[i].Events {
			if event.ExecutionID.UUID == id && event.Kind != core.SilentChange {
				events = append(events, event)
			}
		}
	}
	return events
}
