package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestS46_what_is_blocked_is_found_by_a_process_that_knows_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		running := w.started(underQuota(""))
		id := w.submit(underQuota(""))
		w.nothing()
		w.blockedOn(id, "slots:q")
		w.restart()
		w.nothing()
		w.complete(running)
		same(t, "it goes on", given(w.claim()), id)
	})
}

// The younger of two stays where it was when the older is blocked (S19): a process that starts finds it first, and a survey finds the other.
func TestS6_S46_what_is_blocked_comes_before_younger_work_in_a_process_that_knows_nothing(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]core.QuotaSettings{"slots": {ConcurrencyLimit: 1}, "rate": {RateLimit: 1, WindowMS: base.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
				w.quota("q", q)
				running := w.started(underQuota(""))
				id := w.submit(underQuota(""))
				w.turn(1)
				w.submit(underQuota(""))
				w.nothing()
				w.blockedOn(id, name+":q")
				w.complete(running)
				w.turn(2 * base.Second)
				w.restart()
				tasks := w.take(ask())
				same(t, "taken", len(tasks), 1)
				same(t, "the older one", given(tasks[0]), id)
			})
		})
	}
}

// prompted is a store whose hints are given by the test, in its own goroutine: they have been heard once the call returns.
type prompted struct {
	store.Store
	hear chan func(store.Hint)
}

func (p prompted) Notify(context.Context, store.Hint) error { return nil }

func (p prompted) Listen(ctx context.Context, hear func(store.Hint)) error {
	p.hear <- hear
	<-ctx.Done()
	return ctx.Err()
}

// The process has surveyed the class when nothing was blocked. The hint says only that something is blocked now, and that there is room.
func TestS6_S46_what_another_process_has_blocked_comes_before_younger_work_once_the_hint_is_heard(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		told := prompted{w.openStore(), make(chan func(store.Hint), 1)}
		here, other := w.e, w.openEngine(told)
		hear := <-told.hear
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		w.submit(underQuota(""))
		w.e = other
		running := w.claim()
		w.nothing()
		w.e = here
		older := w.submit(underQuota(""))
		w.turn(1)
		w.submit(underQuota(""))
		w.nothing()
		w.blockedOn(older, "slots:q")
		w.complete(running)
		class := must(w.store.Read(w.ctx(), store.Want{Executions: []base.UUID{older.UUID}}))(t).Executions[older.UUID].Class.ID
		hear(store.Hint{Named: true, Classes: []int32{class}, Blocked: true, Keys: []string{"slots:q"}})
		w.e = other
		tasks := w.take(ask())
		same(t, "taken", len(tasks), 1)
		same(t, "the older one", given(tasks[0]), older)
	})
}

func TestS46_one_that_is_blocked_alone_starts_when_there_is_room(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		running := w.started(underQuota(""))
		id := w.submit(underQuota(""))
		for range 3 { // the first look blocks it, the next ones find it blocked
			w.nothing()
			w.blockedOn(id, "slots:q")
		}
		answer := w.waiting(w.e, ask())
		w.complete(running)
		same(t, "it goes on", given(w.only(answer)), id)
	})
}

func TestSI16_S47_room_that_another_process_makes_is_seen_though_no_hint_arrives(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.openEngine(deaf{w.openStore()})
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		running := w.started(underQuota(""))
		answer := w.waiting(other, ask())
		id := w.submit(underQuota(""))
		w.becomes(id, core.Blocked)
		w.complete(running)
		same(t, "it goes on", given(w.only(answer)), id)
	})
}

func TestS19_rows_behind_one_that_is_refused_stay_as_they_are(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		w.started(underQuota(""))
		w.submitMany(50, underQuota(""))
		free := w.submit(core.Submission{})
		same(t, "others are not hidden", given(w.claim()), free)
		w.nothing()
		f := core.Filter{Status: []string{"blocked"}}
		eventually(t, "one is blocked", func() bool { return must(w.e.Count(w.ctx(), client, f))(t).Total == 1 })
	})
}

func TestS18_S19_behind_a_refused_row_the_next_of_its_queue_comes_before_other_lanes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("first", core.LaneSettings{})
		w.lane("second", core.LaneSettings{})
		own := func(lane string, n int) core.Submission { // of one class: what they make themselves is no part of it
			s := policy(fmt.Sprintf(`{"budgets":[{"name":"%s %d","dimensions":{"tokens":{"hard":5}}}]}`, lane, n))
			s.Lane = lane
			return s
		}
		const refused = 20
		for i := range refused {
			w.submit(own("first", i))
			must(w.e.CloseBudget(w.ctx(), operator, ofName(fmt.Sprintf("first %d", i)), engine.AdminAction{}))(t)
		}
		next, other := w.submit(own("first", refused)), w.submit(own("second", 0))
		r := ask()
		r.Lanes, r.LaneOrder = []string{"first", "second"}, "listed"
		same(t, "the next of the lane", given(w.claimAs(r)), next)
		same(t, "then the other lane", given(w.claimAs(r)), other)
	})
}

func surveys(want store.Want) bool { return len(want.Blocks) > 0 }

// Of what goes on after a suspension a class that needs something has a queue of its own, which is made when the first is filed there.
func TestS9_SI16_a_claim_that_does_not_wait_takes_what_was_filed_after_its_queues_were_chosen(t *testing.T) {
	t.Parallel()
	for name, stall := range map[string]base.Millis{"at once": 0, "on a machine that stands still for a second": base.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := withKey
			cfg.Clock = turned
			onShared(t, cfg, func(t *testing.T, w *world) {
				b := w.interpose()
				w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
				task := w.started(underQuota(""))
				suspended := w.suspend(task, atA)
				w.nothing() // the next look at the other queues begins at their start
				b.beforeBegin.set(surveys, func() {
					w.signalled(suspended, "go")
					w.turn(stall)
				})
				tasks := w.take(ask())
				same(t, "taken", len(tasks), 1)
				same(t, "it goes on", given(tasks[0]), given(task))
			})
		})
	}
}
