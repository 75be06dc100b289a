package engine_test

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// unpolled sets up an engine that never looks at the store by itself: the clock stands still, and is not turned as far as the poll.
var unpolled = engine.Config{Clock: turned, PollInterval: 24 * time.Hour}

func TestS47_room_in_a_key_wakes_the_claim_that_waits_for_it_without_the_poll(t *testing.T) {
	t.Parallel()
	slots, rate := core.QuotaSettings{ConcurrencyLimit: 1}, core.QuotaSettings{RateLimit: 1, WindowMS: 20_000}
	for name, c := range map[string]struct {
		limit core.QuotaSettings
		free  func(w *world, holder engine.Task)
	}{
		"a slot is free":   {slots, func(w *world, holder engine.Task) { w.complete(holder) }},
		"slots are raised": {slots, func(w *world, _ engine.Task) { w.quota("q", core.QuotaSettings{ConcurrencyLimit: 2}) }},
		"slots are off":    {slots, func(w *world, _ engine.Task) { w.quota("q", core.QuotaSettings{RateLimit: 9}) }},
		"a rate is raised": {rate, func(w *world, _ engine.Task) {
			w.quota("q", core.QuotaSettings{RateLimit: 2, WindowMS: 20_000})
		}},
		"the quota is gone":      {rate, func(w *world, _ engine.Task) { ok(w.t, w.deleteQuota("q", true)) }},
		"a rate is free by time": {rate, func(w *world, _ engine.Task) { w.turn(20_000) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStoresWith(t, unpolled, func(t *testing.T, w *world) {
				w.quota("q", c.limit)
				holder := w.started(underQuota(""))
				id := w.submit(underQuota(""))
				w.nothing()
				w.is(id, core.Blocked, core.WaitingForQuota)
				answer := w.waiting(w.e, ask())
				w.waiters(1)
				c.free(w, holder)
				same(t, "woken", given(w.only(answer)), id)
			})
		})
	}
}

func TestB33_B36_a_scheduled_reset_wakes_the_claim_that_waits_without_the_poll(t *testing.T) {
	t.Parallel()
	onStoresWith(t, unpolled, func(t *testing.T, w *world) {
		const until = 20 * base.Second
		w.create(tokens("team", 10, resetting(core.BudgetReset{Type: "interval", EveryMS: base.Hour, AnchorAt: w.now().Add(until)})))
		must(w.charge("team", 10))(t)
		id := w.submit(costing(4, "team"))
		w.nothing()
		w.is(id, core.Blocked, core.WaitingForBudget)
		answer := w.waiting(w.e, ask())
		w.waiters(1)
		w.turn(until - 1)
		w.nothing()
		select {
		case <-answer:
			t.Fatal("it was answered before there was room")
		default:
		}
		w.turn(1) // and nothing touches the budget
		same(t, "woken", given(w.only(answer)), id)
		same(t, "told", len(w.events(engine.EventFilter{Kinds: []string{"budget.reset"}})), 1)
		same(t, "numbers", w.numbers("team"), [3]int64{0, 4, 0})
	})
}

// The claim's own process would ask again when an hour of the host's time is over. Here the store's clock goes there at once, and of what
// the engine does by itself only the sweep goes by that one; on a store that several share its poll has doubts as well.
func TestB33_B36_the_sweep_alone_carries_out_a_scheduled_reset_and_wakes_the_claim_that_waits(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 10, resetting(core.BudgetReset{Type: "interval", EveryMS: base.Hour, AnchorAt: w.now()})))
		must(w.charge("team", 10))(t)
		id := w.submit(costing(4, "team"))
		w.nothing()
		w.is(id, core.Blocked, core.WaitingForBudget)
		answer := w.waiting(w.e, ask())
		w.waiters(1)
		w.turn(base.Hour) // and nothing touches the budget
		same(t, "woken", given(w.only(answer)), id)
		same(t, "told", len(w.events(engine.EventFilter{Kinds: []string{"budget.reset"}})), 1)
	})
}
