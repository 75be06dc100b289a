package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// indexedTo is a store whose index of the log ends at a position at most.
type indexedTo struct {
	store.Store
	bound atomic.Int64
	reads atomic.Int64 // of the log, for the sake of a caller of theCaller
	names atomic.Int64 // the most executions and flows that one round of indexing has named
}

func (s *indexedTo) Log(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	if ctx.Value(callerKey{}) != nil {
		s.reads.Add(1)
	}
	return s.Store.Log(ctx, after, limit)
}

func (s *indexedTo) Index(ctx context.Context, part store.IndexPart) error {
	s.names.Store(max(s.names.Load(), int64(len(part.Mentions))))
	bound := s.bound.Load()
	if part.From >= bound {
		return errors.New("no further")
	}
	if part.To > bound {
		part.To = bound
		for i := range part.Mentions {
			m := &part.Mentions[i]
			m.Seqs = slices.DeleteFunc(m.Seqs, func(seq int64) bool { return seq > bound })
		}
		part.Mentions = slices.DeleteFunc(part.Mentions, func(m store.Mention) bool { return len(m.Seqs) == 0 })
	}
	return s.Store.Index(ctx, part)
}

// ends waits until the index ends at a position.
func (s *indexedTo) ends(w *world, at int64) {
	w.t.Helper()
	s.bound.Store(at)
	closeEngine(w.t, w.e)
	w.e = w.openEngine(s) // it has nothing of the log in its memory
	eventually(w.t, fmt.Sprintf("the index ends at %d", at), func() bool {
		_, end, err := s.LogOf(w.ctx(), store.LogOf{})
		return err == nil && end == at
	})
}

func TestEI10_E35_events_of_one_execution_are_those_of_the_log_wherever_its_index_ends(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		limited := &indexedTo{Store: w.store}
		closeEngine(t, w.e)
		w.e = w.openEngine(limited)
		lives := w.livesAtRandom(testseed.New(t))
		closeEngine(t, w.e)
		w.cfg.NoTimers = true // nothing happens from here on
		w.e = w.openEngine(limited)
		all := w.events(engine.EventFilter{})
		last := must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).LogEnd
		for _, end := range []int64{1, last / 3, last} {
			limited.ends(w, end)
			for _, id := range lives {
				f := engine.EventFilter{ExecutionID: &id}
				of := func(ev engine.LoggedEvent) bool { return ev.ExecutionID.UUID == id.UUID }
				same(t, fmt.Sprintf("of %s with an index up to %d of %d", id.ID(), end, last),
					cursors(w.events(f), func(engine.LoggedEvent) bool { return true }), cursors(all, of))
				w.pagesOf(f, cursors(all, of))
			}
		}
	})
}

// pagesOf reads the events of a filter one by one.
func (w *world) pagesOf(f engine.EventFilter, want []string) {
	w.t.Helper()
	var got []string
	r := engine.EventsRequest{After: "start", Limit: 1, Filter: f}
	for range len(want) + 1 {
		page := must(w.e.ReadEvents(w.ctx(), client, r))(w.t)
		got = append(got, cursors(page.Events, func(engine.LoggedEvent) bool { return true })...)
		r.After = page.Next
	}
	same(w.t, "one by one", got, want)
}

func TestEI10_E35_events_of_one_flow_are_found_by_the_index(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		limited := &indexedTo{Store: w.store}
		closeEngine(t, w.e)
		w.e = w.openEngine(limited)
		flow := w.submitFlow(core.FlowSubmission{Kind: "two", Nodes: nodesNamed("a", "b")})
		id := flow.Flow.ID.Given()
		w.submit(core.Submission{})
		for range 3 {
			w.complete(w.claim())
		}
		all := w.events(engine.EventFilter{})
		limited.ends(w, must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).LogEnd)
		of := func(ev engine.LoggedEvent) bool { return ev.FlowID.UUID == id.UUID || ev.RootFlowID.UUID == id.UUID }
		w.pagesOf(engine.EventFilter{FlowID: &id}, cursors(all, of))
	})
}

func TestE35_the_events_of_one_execution_cost_the_same_in_a_long_log(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		limited := &indexedTo{Store: w.store}
		closeEngine(t, w.e)
		w.e = w.openEngine(limited)
		id := w.submit(core.Submission{})
		w.complete(w.claim())
		for range 3 * 256 { // more than one read of the log
			w.submit(core.Submission{})
		}
		asked := &counted{Store: limited, callers: true}
		last := must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).LogEnd
		limited.ends(w, last)
		closeEngine(t, w.e)
		w.e = w.openEngine(asked)
		page := must(w.e.ReadEvents(theCaller(w.ctx()), client, engine.EventsRequest{After: "start", Filter: engine.EventFilter{ExecutionID: &id}}))(t)
		same(t, "events", len(page.Events), 3)
		if n := asked.queries.Load(); n > 4 {
			t.Errorf("%d questions to the store for the events of one execution", n)
		}
		asked.queries.Store(0)
		why := must(w.e.Explain(theCaller(w.ctx()), client, id, 0))(t)
		same(t, "changes in the explanation", len(why.History), 3)
		if n := asked.queries.Load(); n > 12 {
			t.Errorf("%d questions to the store for an explanation", n)
		}
	})
}

func TestS57_an_explanation_reads_the_end_of_a_log_of_five_thousand_commits_that_was_never_indexed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		limited := &indexedTo{Store: w.store}
		closeEngine(t, w.e)
		w.cfg.NoTimers = true
		w.e = w.openEngine(limited)
		id := w.submit(core.Submission{})
		closeEngine(t, w.e)
		other := core.Event{Kind: "execution.tagged", At: w.now(), ExecutionID: id.ID(), AttemptIndex: -1}
		other.ExecutionID.UUID[15]++
		for range 5000 {
			tx, _ := w.beginOn(w.store, store.Want{})
			ok(t, tx.Commit(w.ctx(), &store.Changes{Events: []core.Event{other}}))
		}
		w.e = w.openEngine(limited)
		why := must(w.e.Explain(theCaller(w.ctx()), client, id, 0))(t)
		same(t, "its present state is in the explanation", len(why.History), 1)
		if n := limited.reads.Load(); n == 0 || n > 17 { // of 20 that the whole log takes
			t.Errorf("%d reads of the log", n)
		}
	})
}

func TestE35_a_filter_that_keeps_nothing_makes_no_call_read_the_whole_log(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		limited := &indexedTo{Store: w.store}
		closeEngine(t, w.e)
		w.cfg.NoTimers = true
		w.e = w.openEngine(limited)
		id := w.submit(core.Submission{Kind: "wanted"})
		other := core.Event{Kind: "execution.tagged", At: w.now(), ExecutionID: id.ID(), AttemptIndex: -1}
		other.ExecutionID.UUID[15]++
		const commits = 12
		for range commits {
			tx, _ := w.beginOn(w.store, store.Want{})
			ok(t, tx.Commit(w.ctx(), &store.Changes{Events: slices.Repeat([]core.Event{other}, 30_000)}))
		}
		limited.ends(w, 1)
		closeEngine(t, w.e)
		w.e = w.openEngine(limited) // it has nothing of the log in its memory
		var found []string
		r := engine.EventsRequest{After: "start", Filter: engine.EventFilter{Kinds: []string{"execution.submitted"}}}
		pages := 0
		for atEnd := false; !atEnd; pages++ {
			limited.reads.Store(0)
			page := must(w.e.ReadEvents(theCaller(w.ctx()), client, r))(t)
			if n := limited.reads.Load(); n > 3 {
				t.Fatalf("page %d took %d reads of the log", pages, n)
			}
			found = append(found, cursors(page.Events, func(engine.LoggedEvent) bool { return true })...)
			r.After, atEnd = page.Next, page.AtEnd
		}
		same(t, "events found", len(found), 1)
		if pages < 3 || pages > commits {
			t.Errorf("%d commits of 30,000 events took %d pages", commits, pages)
		}
	})
}

func TestE35_a_round_of_indexing_names_some_thousand_executions_at_most(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		limited := &indexedTo{Store: w.store}
		closeEngine(t, w.e)
		w.cfg.NoTimers = true
		w.e = w.openEngine(limited)
		const commits, names = 40, 1000
		for commit := range commits {
			events := make([]core.Event, names)
			for i := range events {
				events[i] = core.Event{Kind: "execution.tagged", At: w.now(), AttemptIndex: -1}
				events[i].ExecutionID.UUID = base.MintUUID(w.now(), [10]byte{byte(commit), byte(i >> 8), byte(i)})
			}
			tx, _ := w.beginOn(w.store, store.Want{})
			ok(t, tx.Commit(w.ctx(), &store.Changes{Events: events}))
		}
		limited.ends(w, must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).LogEnd)
		if n := limited.names.Load(); n == 0 || n > 30_000 {
			t.Errorf("one round of indexing wrote %d rows", n)
		}
	})
}
