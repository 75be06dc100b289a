package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// meeting is a store that counts the transactions that waited for a row in vain.
type meeting struct {
	store.Store
	busy atomic.Int64
}

func (m *meeting) note(err error) {
	if store.FaultOf(err) == store.Busy {
		m.busy.Add(1)
	}
}

func (m *meeting) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := m.Store.Begin(ctx, want)
	m.note(err)
	return meetingTx{tx, m}, loaded, err
}

type meetingTx struct {
	store.Tx
	m *meeting
}

func (t meetingTx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	loaded, err := t.Tx.Load(ctx, want)
	t.m.note(err)
	return loaded, err
}

func (t meetingTx) Commit(ctx context.Context, ch *store.Changes) error {
	err := t.Tx.Commit(ctx, ch)
	t.m.note(err)
	return err
}

// limiting are rows that decide whether work may start, with work that needs them.
var limiting = map[string]struct {
	sql  string
	work func(w *world) core.Submission
}{
	"a budget": {"select from doc where owner = '' and kind = 21 for update", func(w *world) core.Submission {
		w.create(tokens("team", 1000))
		return costing(1, "team")
	}},
	"a rate": {"select from doc where owner = '' and kind = 27 for update", func(w *world) core.Submission {
		w.quota("q", core.QuotaSettings{RateLimit: 100, WindowMS: base.Day})
		return attached(use("q"))
	}},
	"slots": {"select from counter where key = 'slots:q' for update", func(w *world) core.Submission {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 100})
		return attached(use("q"))
	}},
	"slots without a limit": {"select from counter where key = 'slots:q' for update", func(w *world) core.Submission {
		w.quota("q", core.QuotaSettings{})
		return attached(use("q"))
	}},
	"the places of a lane": {"select from counter where key like 'lane:%' for update", func(w *world) core.Submission {
		w.lane("narrow", core.LaneSettings{MaxConcurrent: 100})
		return core.Submission{Lane: "narrow"}
	}},
}

// onLimits runs a test for each of these rows. The store knows the row already.
func onLimits(t *testing.T, cfg engine.Config, f func(t *testing.T, w *world, m *meeting, s core.Submission, hold func() (release func()))) {
	t.Helper()
	for name, limit := range limiting {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onShared(t, cfg, func(t *testing.T, w *world) {
				closeEngine(t, w.e)
				m := &meeting{Store: w.store}
				w.e = w.openEngine(m)
				s := limit.work(w)
				s.Kind = "limited"
				w.started(s)
				f(t, w, m, s, func() func() { return w.holdRow(limit.sql) })
			})
		})
	}
}

// askFor is a claim of work of one kind, in every lane of these tests, by an instance of its own.
func askFor(kind string) engine.ClaimRequest {
	r := ask()
	r.Lanes, r.Kinds, r.InstanceID = []string{"default", "narrow"}, []string{kind}, "of-"+kind
	return r
}

func TestS73_picks_pass_over_what_needs_a_row_that_others_hold_and_serve_everything_else(t *testing.T) {
	t.Parallel()
	onLimits(t, engine.Config{}, func(t *testing.T, w *world, m *meeting, s core.Submission, hold func() func()) {
		const rounds = 20
		w.unrelated(w.e, -1)
		release := hold()
		id := w.submit(s)
		claimed := w.claiming(askFor("limited"))
		eventually(t, "a pick meets the row", func() bool { return m.busy.Load() > 0 })
		for round := range rounds {
			w.unrelated(w.e, round)
			same(t, "claimed while the row is held", len(claimed), 0)
		}
		free := w.submit(core.Submission{Kind: "free"})
		both := askFor("limited")
		both.Kinds, both.Max = []string{"limited", "free"}, 2
		tasks := w.take(both)
		same(t, "what does not need it", fmt.Sprint(len(tasks), given(tasks[0])), fmt.Sprint(1, free))
		same(t, "a claim that does not wait", len(w.take(askFor("limited"))), 0)
		w.is(id, core.Ready, core.WaitingForWorker)
		if n := m.busy.Load(); n > rounds/4 { // each time that the row is forgotten, which takes seconds
			t.Fatalf("%d transactions waited for the row", n)
		}
		release()
		same(t, "claimed once it is free", given(w.only(claimed)), id)
	})
}

func TestS9_S73_a_claim_that_does_not_wait_gets_what_needs_a_row_that_was_held_for_a_moment(t *testing.T) {
	t.Parallel()
	onLimits(t, engine.Config{Clock: turned}, func(t *testing.T, w *world, m *meeting, s core.Submission, hold func() func()) {
		release := hold()
		w.submit(s)
		w.submit(s)
		claimed := w.claiming(askFor("limited"))
		eventually(t, "a pick meets the row", func() bool { return m.busy.Load() > 0 })
		w.waiters(1)
		r := askFor("limited")
		r.InstanceID = "hasty"
		hasty := make(chan int, 1)
		go func() {
			answer, err := w.e.Claim(w.ctx(), client, r)
			if err != nil {
				t.Error(err)
			}
			hasty <- len(answer.Tasks)
		}()
		w.waiters(2)
		release()
		same(t, "the claim that does not wait", <-hasty, 1)
		same(t, "the one that does", len((<-claimed).Tasks), 1)
	})
}
