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

// readyStore is a store that tells of the batches of submits, and of the counts of what waits.
type readyStore struct {
	store.Store
	careful atomic.Int64 // batches that looked for keys and ids first
	counts  atomic.Int64
	finds   atomic.Int64                                    // what each count finds; 0: what there is
	onCount atomic.Pointer[func(ctx context.Context) error] // before a count; nil: nothing
}

func (s *readyStore) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	if want.Inputs && len(want.Executions) > 0 {
		s.careful.Add(1)
	}
	return s.Store.Begin(ctx, want)
}

func (s *readyStore) Count(ctx context.Context, q store.Query, limit int) (int, error) {
	s.counts.Add(1)
	if act := s.onCount.Load(); act != nil {
		if err := (*act)(ctx); err != nil {
			return 0, err
		}
	}
	if n := s.finds.Load(); n != 0 {
		return min(int(n), limit), nil
	}
	return s.Store.Count(ctx, q, limit)
}

// onReady runs a test on every store, with an engine whose counts are seen and whose clock the test turns.
func onReady(t *testing.T, f func(t *testing.T, w *world, s *readyStore)) {
	t.Helper()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		s := &readyStore{Store: w.store}
		w.e = w.openEngine(s)
		f(t, w, s)
	})
}

// inA is a submission of the namespace a, with a key or without.
func inA(key string) core.Submission {
	return core.Submission{Namespace: "a", Kind: "k", IdempotencyKey: key}
}

// isFull fails the test unless the error says that the namespace has as much as may wait.
func isFull(t *testing.T, err error, most int) {
	t.Helper()
	full(t, err, base.CodeRateLimited, "max_ready", most, most)
}

func TestU101_L80_what_a_full_namespace_refuses_is_in_no_batch(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, s *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 2})
		repeatable := client
		repeatable.RequestKey = "first"
		first, second := inA("0"), inA("")
		second.ID = &base.GivenID{UUID: base.UUID{0: 5, 15: 1}}
		w.submit(first)
		must(w.e.Submit(w.ctx(), repeatable, second))(t)
		s.careful.Store(0)

		fresh := inA("")
		fresh.ID = &base.GivenID{UUID: base.UUID{0: 5, 15: 2}}
		other := repeatable
		other.RequestKey = "second"
		for _, try := range []struct {
			by engine.Caller
			s  core.Submission
		}{{client, inA("")}, {client, inA("new")}, {client, fresh}, {other, fresh}} {
			_, err := w.e.Submit(w.ctx(), try.by, try.s)
			isFull(t, err, 2)
		}
		items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{inA(""), inA("new"), fresh}, false))(t)
		for _, item := range items {
			isFull(t, item.Err, 2)
		}
		_, err := w.e.SubmitMany(w.ctx(), client, []core.Submission{first, inA("new")}, true)
		isFull(t, err, 2)
		same(t, "batches that ran with care", s.careful.Load(), int64(0))

		for _, again := range []core.Submission{first, second} {
			same(t, "a repeat", must(w.e.Submit(w.ctx(), client, again))(t).Outcome, "duplicate")
		}
		same(t, "a repeat of the call", must(w.e.Submit(w.ctx(), repeatable, second))(t).Outcome, "duplicate")
		changed := first
		changed.Kind = "other"
		_, err = w.e.Submit(w.ctx(), client, changed)
		refused(t, err, base.CodeIdempotencyConflict)
	})
}

func TestU101_L87_an_item_that_repeats_another_of_its_call_is_a_duplicate_also_when_that_fills_the_namespace(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, _ *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 2})
		var outcomes []string
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, []core.Submission{inA("0"), inA("1"), inA("0"), inA("2"), inA("2"), inA("1")}, false))(t) {
			outcomes = append(outcomes, fmt.Sprint(item.Outcome, base.CodeOf(item.Err)))
		}
		same(t, "outcomes", outcomes, []string{"created", "created", "duplicate", "rate_limited", "rate_limited", "duplicate"})
	})
}

func TestU101_submits_do_not_wait_for_a_count_that_another_makes(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, s *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 2})
		counts, counted := make(chan struct{}), make(chan struct{})
		s.onCount.Store(new(func(context.Context) error {
			close(counts)
			<-counted
			return nil
		}))
		first := make(chan error, 1)
		go func() {
			_, err := w.e.Submit(w.ctx(), client, inA(""))
			first <- err
		}()
		<-counts
		w.submit(inA("")) // while the first counts
		s.onCount.Store(nil)
		close(counted)
		ok(t, <-first)
		_, err := w.e.Submit(w.ctx(), client, inA(""))
		isFull(t, err, 2)
		same(t, "counts", s.counts.Load(), int64(1))
	})
}

func TestU101_a_count_that_fails_is_not_made_again_by_every_submit(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, s *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 4})
		s.onCount.Store(new(func(context.Context) error { return &store.Fault{Kind: store.Unavailable, Err: errRefusesNow} }))
		for range 4 {
			w.submit(inA(""))
		}
		_, err := w.e.Submit(w.ctx(), client, inA(""))
		isFull(t, err, 4)
		same(t, "counts", s.counts.Load(), int64(1))
		s.onCount.Store(nil)
		r := ask()
		r.Max = 10
		same(t, "all run", len(w.take(r)), 4)
		w.turn(1000)
		w.submit(inA(""))
		same(t, "counts", s.counts.Load(), int64(2))
	})
}

func TestU101_a_caller_that_gives_up_ends_its_count(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, s *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 1})
		ctx, cancel := context.WithCancel(w.ctx())
		s.onCount.Store(new(func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}))
		_, err := w.e.Submit(ctx, client, inA("gave up"))
		refused(t, err, base.CodeTimeout)
		s.onCount.Store(nil)
		w.turn(1000)
		_, err = w.e.Submit(w.ctx(), client, inA("gave up")) // whether or not the first was committed
		ok(t, err)
		same(t, "counts", s.counts.Load(), int64(2))
	})
}

func TestU101_what_workers_have_taken_makes_room_within_a_moment(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, s *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 3})
		r := ask()
		r.Max = 3
		for range 4 {
			for range 3 {
				w.submit(inA(""))
			}
			same(t, "all run", len(w.take(r)), 3)
			for range 5 {
				_, err := w.e.Submit(w.ctx(), client, inA(""))
				isFull(t, err, 3)
			}
			w.turn(50)
		}
		same(t, "counts", s.counts.Load(), int64(4))
	})
}

func TestU101_submits_that_create_nothing_take_no_room(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, s *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 4})
		w.submit(core.Submission{Namespace: "a", Kind: "k", Lane: "closed"})
		w.lane("closed", core.LaneSettings{State: core.LaneDraining})
		closed := core.Submission{Namespace: "a", Kind: "k", Lane: "closed"}
		w.submit(inA("0"))
		for range 5 {
			same(t, "a repeat", must(w.e.Submit(w.ctx(), client, inA("0")))(t).Outcome, "duplicate")
			_, err := w.e.Submit(w.ctx(), client, closed)
			refused(t, err, base.CodeLaneNotAccepting)
			items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{closed, inA("0")}, false))(t)
			refused(t, items[0].Err, base.CodeLaneNotAccepting)
			same(t, "a repeat", items[1].Outcome, "duplicate")
			_, err = w.e.SubmitMany(w.ctx(), client, []core.Submission{inA(""), closed}, true)
			refused(t, err, base.CodeLaneNotAccepting)
		}
		w.submit(inA("1"))
		w.submit(inA("2"))
		_, err := w.e.Submit(w.ctx(), client, inA("3"))
		isFull(t, err, 4)
		same(t, "counts", s.counts.Load(), int64(1))
	})
}

func TestU101_children_of_a_running_execution_are_not_refused_by_a_full_namespace(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, _ *readyStore) {
		w.submit(inA(""))
		parent := w.claim()
		w.projected(w.now())
		w.namespace("a", core.NamespaceSettings{MaxReady: 1})
		w.submit(inA(""))
		_, err := w.e.Submit(w.ctx(), client, inA(""))
		isFull(t, err, 1)
		must(w.e.Spawn(w.ctx(), client, spawnOf(parent, "n", "m")))(t)
	})
}

func TestU101_delayed_submits_wait_as_well(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, s *readyStore) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 3})
		delayed := inA("")
		delayed.DelayMS = new(int64(3_600_000))
		for range 3 {
			w.submit(delayed)
		}
		w.turn(11_000) // what is known is too old
		for range 2 {
			_, err := w.e.Submit(w.ctx(), client, delayed)
			isFull(t, err, 3)
			w.turn(50)
		}
		same(t, "counts", s.counts.Load(), int64(3))
	})
}

func TestU101_a_namespace_that_sets_no_bound_has_that_of_the_default_once_another_has_work(t *testing.T) {
	t.Parallel()
	onReady(t, func(t *testing.T, w *world, s *readyStore) {
		w.submit(inA(""))
		w.submit(inA(""))
		same(t, "counts of a namespace that is alone", s.counts.Load(), int64(0))
		w.submit(core.Submission{Namespace: "b", Kind: "k"})
		s.finds.Store(2 * core.DefaultMaxReady)
		_, err := w.e.Submit(w.ctx(), client, inA(""))
		isFull(t, err, core.DefaultMaxReady)
		w.namespace("a", core.NamespaceSettings{MaxReady: 3 * core.DefaultMaxReady})
		must(w.e.Submit(w.ctx(), client, inA("")))(t)
		_, err = w.e.PutNamespace(w.ctx(), admin, "a", core.NamespaceSettings{MaxReady: 100*core.DefaultMaxReady + 1}, engine.AdminAction{})
		refused(t, err, base.CodeInvalidArgument)
	})
}
