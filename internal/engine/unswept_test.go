package engine_test

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// unswept runs a test on engines whose timers do not run.
func unswept(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	onStoresWith(t, engine.Config{NoTimers: true, PollInterval: time.Hour}, f)
}

func TestL18_a_duplicate_is_answered_with_the_state_after_due_timers(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		own := base.GivenID{UUID: base.UUID{0: 3, 15: 1}}
		s := core.Submission{Kind: "k", ID: &own, DelayUntil: w.now() + 1000}
		same(t, "at first", must(w.e.Submit(w.ctx(), client, s))(t).PublicState, "delayed")
		w.turn(1000)
		again := must(w.e.Submit(w.ctx(), client, s))(t)
		same(t, "afterwards", [2]string{again.Outcome, again.PublicState}, [2]string{"duplicate", "waiting"})
	})
}

func TestS17_a_claim_sees_what_stands_behind_rows_that_timers_end(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		for range 3 {
			w.submit(core.Submission{Priority: 9, DeadlineAt: w.now() + 1000})
		}
		behind := w.submit(core.Submission{Priority: 9})
		w.turn(1000)
		same(t, "claimed", given(w.claim()).UUID, behind.UUID)
	})
}

func TestL141_delete_takes_the_place_in_the_queue_that_a_due_deadline_left(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{DeadlineAt: w.now() + 1000})
		w.turn(1000)
		ok(t, w.e.Delete(w.ctx(), operator, id, engine.Operator{}))
		w.noTrace(id)
	})
}

func TestL141_recorded_answers_go_with_the_execution(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		own := base.GivenID{UUID: base.UUID{0: 3, 15: 1}}
		once := engine.Operator{RequestKey: "once"}
		for range 2 {
			must(w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", ID: &own}))(t)
			must(w.e.Cancel(w.ctx(), operator, own, nil, "", once))(t)
			w.is(own, core.Cancelled, core.CancelledByRequest)
			ok(t, w.e.Delete(w.ctx(), operator, own, once))
		}
	})
}

func TestI17_a_timer_is_armed_anew_after_the_clock_was_set_back(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{DelayUntil: w.now() + 1000})
		w.turn(1000)
		w.becomes(id, core.Ready)
		w.setBack(500) // the entry for the delay is used up, and lies ahead again
		task := w.claim()
		must(w.e.Delay(w.ctx(), client, given(task), fence(task), w.now()+600))(t)
		w.turn(1100)
		w.becomes(id, core.Ready)
	})
}

func TestS53_every_claim_of_a_draining_instance_is_told_so(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.nothing()
		ok(t, w.e.Drain(w.ctx(), operator, "", ask().InstanceID, true))
		for range 3 {
			same(t, "drain", must(w.e.Claim(w.ctx(), client, ask()))(t).Drain, true)
		}
	})
}

func TestU54_a_later_wish_to_retain_counts_from_then_on(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := policy(`{"retention_ms":1000}`)
		kept, other := w.started(s), w.started(s)
		w.complete(kept)
		w.complete(other)
		must(w.e.Retain(w.ctx(), operator, given(kept), 0, engine.Operator{}))(t)
		w.turn(2000)
		w.gone(given(other)) // so the timer of both has come
		must(w.e.Retain(w.ctx(), operator, given(kept), w.now()+60_000, engine.Operator{}))(t)
		w.turn(61_000)
		w.gone(given(kept))
	})
}

func TestL18_what_is_decided_from_memory_comes_too_late_if_a_deadline_passes_before_it_is_written(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		b := w.interpose()
		task := w.started(core.Submission{DeadlineAt: w.now() + 1000})
		b.afterBegin.set(func(store.Want) bool { return true }, func() { w.turn(1000) })
		_, err := w.e.Complete(w.ctx(), client, given(task), fence(task), nil)
		refused(t, err, base.CodeExecutionNotActive)
		w.is(given(task), core.Expired, core.ExecutionDeadline)
	})
}

func TestL141_SI7_delete_frees_the_slots_of_what_a_due_deadline_has_ended(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		w.quota("one", core.QuotaSettings{ConcurrencyLimit: 1})
		s := attached(use("one"))
		s.DeadlineAt = w.now() + 1000
		held := w.started(s)
		w.turn(1000)
		ok(t, w.e.Delete(w.ctx(), operator, given(held), engine.Operator{}))
		next := w.submit(attached(use("one")))
		same(t, "the slot is free", given(w.claim()), next)
	})
}
