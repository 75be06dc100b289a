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

func TestS16_S44_work_under_slots_is_leased_in_the_transaction_that_creates_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 2})
		id, got := w.untilHanded(h, underQuota(""), askTwo())
		same(t, "handed over", [2]any{len(got.Tasks), h.done.Load()}, [2]any{1, int64(1)})
		same(t, "written at once", w.commitOf(id, "execution.submitted"), w.commitOf(id, "lease.acquired"))
		same(t, "slots", w.inUse("q").Held, 1)
		w.complete(got.Tasks[0])
		same(t, "slots given back", w.inUse("q").Held, 0)
	})
}

func TestS44_work_that_has_no_slot_is_not_handed_over(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		_, got := w.untilHanded(h, underQuota(""), askTwo())
		running := got.Tasks[0]
		h.seen.Store(0)
		answer := w.claiming(ask())
		w.waiters(1)
		id := w.submit(underQuota(""))
		w.becomes(id, core.Blocked)
		w.blockedOn(id, "slots:q")
		w.turn(1) // else they stand in the order of their ids
		later := w.submit(underQuota(""))
		same(t, "tried", h.seen.Load(), 0)
		same(t, "slots", w.inUse("q").Held, 1)
		w.complete(running)
		same(t, "the first one starts (S46)", given(w.only(answer)), id)
		w.is(later, core.Ready, core.WaitingForWorker)
	})
}

func TestS40_work_under_a_rate_is_left_to_a_pick(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		w.quota("q", core.QuotaSettings{RateLimit: 3})
		for range 3 {
			answer := w.claiming(ask())
			w.waiters(1)
			id := w.submit(underQuota(""))
			task := w.only(answer)
			same(t, "the work", given(task), id)
			w.complete(task)
		}
		same(t, "handed over", h.done.Load(), 0)
		id := w.submit(underQuota(""))
		w.nothing()
		w.blockedOn(id, "rate:q")
	})
}

// elsewhere is work under the quota q in a lane of its own.
func elsewhere() core.Submission {
	s := underQuota("")
	s.Lane = "elsewhere"
	return s
}

// takeElsewhere has another process start such work.
func (w *world) takeElsewhere(other *engine.Engine) engine.Task {
	w.t.Helper()
	r := ask()
	r.Lanes, r.InstanceID, r.Wait = []string{"elsewhere"}, "other", patience
	return must(other.Claim(w.ctx(), client, r))(w.t).Tasks[0]
}

func TestS47_work_is_not_handed_over_once_another_process_has_taken_the_slot(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		var other *engine.Engine
		var freed atomic.Bool
		done := make(chan struct{})
		h := w.handing(func() {
			taken := w.takeElsewhere(other)
			go func() { // the claim waits until the slot is free again
				defer close(done)
				eventually(t, "it is blocked", func() bool { return w.inUse("q").Blocked == 1 })
				freed.Store(true)
				must(other.Complete(w.ctx(), client, given(taken), fence(taken), nil))(t)
			}()
		})
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		w.submit(elsewhere())
		other = w.another()
		id, got := w.untilHanded(h, underQuota(""), askTwo())
		same(t, "handed over", h.done.Load(), 0)
		same(t, "not before", freed.Load(), true)
		same(t, "the work", given(got.Tasks[0]), id)
		<-done
		same(t, "slots", w.inUse("q").Held, 1)
	})
}

func TestS36_work_is_not_handed_over_under_a_limit_that_another_process_has_lowered(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		var other *engine.Engine
		var running engine.Task
		done := make(chan struct{})
		limit := func(n int) {
			must(other.PutQuota(w.ctx(), operator, "q", core.QuotaSettings{ConcurrencyLimit: n}, engine.AdminAction{}))(t)
		}
		h := w.handing(func() {
			limit(1)
			go func() {
				defer close(done)
				eventually(t, "it is blocked", func() bool { return w.inUse("q").Blocked == 1 })
				must(other.Complete(w.ctx(), client, given(running), fence(running), nil))(t)
			}()
		})
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 2})
		w.submit(elsewhere())
		other = w.another()
		running = w.takeElsewhere(other)
		id, got := w.untilHanded(h, underQuota(""), askTwo())
		same(t, "the work", given(got.Tasks[0]), id)
		<-done
		same(t, "slots", w.inUse("q").Held, 1)
	})
}

// assuming is a store that sees which transactions take slots that are not locked, and what picks load.
type assuming struct {
	store.Store
	tried, failed atomic.Int64
	loaded        atomic.Int64 // executions by the largest pick
}

type assumingTx struct {
	store.Tx
	s *assuming
}

func (w *world) assuming() *assuming {
	w.t.Helper()
	closeEngine(w.t, w.e)
	s := &assuming{Store: w.store}
	w.e = w.openEngine(s)
	return s
}

func (s *assuming) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := s.Store.Begin(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	if len(want.Pick) > 0 {
		s.loaded.Store(max(s.loaded.Load(), int64(len(loaded.Executions))))
	}
	return assumingTx{tx, s}, loaded, nil
}

func (t assumingTx) Commit(ctx context.Context, ch *store.Changes) error {
	err := t.Tx.Commit(ctx, ch)
	if len(ch.AssumeCounters) > 0 {
		t.s.tried.Add(1)
		if err != nil {
			t.s.failed.Add(1)
		}
	}
	return err
}

func TestS47_a_pick_takes_slots_that_it_knows_and_finds_out_when_they_are_gone(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		s := w.assuming()
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		for range 2 {
			w.complete(w.started(underQuota("")))
		}
		same(t, "the second start", [2]int64{s.tried.Load(), s.failed.Load()}, [2]int64{1, 0})
		w.submit(elsewhere())
		other := w.another()
		taken := w.takeElsewhere(other)
		id := w.submit(underQuota(""))
		w.nothing()
		same(t, "found out", s.failed.Load(), 1)
		w.blockedOn(id, "slots:q")
		same(t, "slots", w.inUse("q").Held, 1)
		must(other.Complete(w.ctx(), client, given(taken), fence(taken), nil))(t)
		same(t, "it goes on", given(w.claim()), id)
	})
}

func TestS6_S19_a_pick_of_many_keys_takes_the_best_and_loads_nothing_else(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := w.assuming()
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 3, PerKey: true})
		var all []core.Submission
		for i := range 120 {
			one := attached(core.QuotaUse{Quota: "q", Key: fmt.Sprint("key", i%40)})
			one.Kind = "k"
			all = append(all, one)
		}
		var ids []base.GivenID
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
			ok(t, item.Err)
			ids = append(ids, item.ID.Given())
		}
		r := ask()
		r.Max = 50
		var got []base.GivenID
		for range 2 {
			for _, task := range w.take(r) {
				got = append(got, given(task))
			}
		}
		same(t, "the best first", got, ranked(ids)[:len(got)])
		if n := s.loaded.Load(); n > 50 || len(got) < 60 {
			t.Errorf("%d loaded by a pick of 50, %d taken by two", n, len(got))
		}
	})
}
