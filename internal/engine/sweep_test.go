package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// onlyStatus waits until every execution of a kind has that status.
func (w *world) onlyStatus(kind string, status core.Status, n int) {
	w.t.Helper()
	f := core.Filter{Kind: []string{kind}, Status: []string{status.String()}}
	eventually(w.t, fmt.Sprint(n, " are ", status), func() bool { return must(w.e.Count(w.ctx(), client, f))(w.t).Total == n })
}

func TestSC16_five_thousand_timers_due_at_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(5000, core.Submission{DelayMS: ptr(int64(1000))})
		w.turn(1000)
		w.onlyStatus("k", core.Ready, 5000)
		same(t, "each told once", len(w.events(engine.EventFilter{Kinds: []string{"execution.ready"}})), 5000)
	})
}

func TestSI15_S64_SC16_two_processes_sweep_and_each_timer_acts_once(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		w.another()
		for i := range 40 {
			w.submitMany(10, core.Submission{DelayMS: ptr(int64(100 + i*50)), PolicyJSON: []byte(`{"timeout_policy":{"execution_deadline_ms":3000}}`)})
		}
		for range 40 {
			w.turn(50)
		}
		w.turn(100)
		w.onlyStatus("k", core.Ready, 400)
		w.turn(3000)
		w.onlyStatus("k", core.Expired, 400)
		same(t, "ready told once each", len(w.events(engine.EventFilter{Kinds: []string{"execution.ready"}})), 400)
		same(t, "end told once each", len(w.events(engine.EventFilter{Kinds: []string{"execution.completed"}})), 400)
	})
}

func TestS63_a_poisoned_row_is_set_aside_and_the_others_go_on(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		bad := w.submit(core.Submission{Kind: "bad", DelayMS: ptr(int64(1000))})
		w.submitMany(50, core.Submission{DelayMS: ptr(int64(1000))})
		closeEngine(t, w.e)
		poison := &poisoned{Store: w.store, id: bad.UUID}
		w.store = poison
		w.e = w.openEngine(poison)
		w.turn(1000)
		w.onlyStatus("k", core.Ready, 50)
		w.submitMany(5, core.Submission{Kind: "later", DelayMS: ptr(int64(100))})
		w.turn(100)
		w.onlyStatus("later", core.Ready, 5)
		quarantined := func() []engine.LoggedEvent {
			return w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})
		}
		eventually(t, "sweep.quarantined", func() bool { return len(quarantined()) == 1 })
		same(t, "row", data(t, quarantined()[0])["row"], any(bad.UUID.String()))
		w.turn(1500)
		eventually(t, "another try, later", func() bool { return len(quarantined()) == 2 })
		same(t, "failures", data(t, quarantined()[1])["failures"], any(2.0))
		poison.cure.Store(true)
		w.turn(3000)
		w.becomes(bad, core.Ready)
	})
}

func TestS65_a_renewed_lease_is_armed_again_without_a_trace(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		armed := w.get(id).TimerAt
		for range 4 {
			w.turn(20_000)
			w.renewed(task)
		}
		eventually(t, "a later timer", func() bool { return w.get(id).TimerAt > w.now() })
		x := w.get(id)
		same(t, "still running", x.Status, core.Running)
		if x.TimerAt <= armed {
			t.Fatal("the timer was not armed again")
		}
		same(t, "the record is untouched", x.LastMutationAt, task.Execution.LastMutationAt)
		same(t, "events", w.story(id), []string{"execution.submitted", "lease.acquired"})
		w.pass(30_000)
		w.becomes(id, core.Ready)
	})
}

func TestSI15_I16_SC16_nothing_fires_early_when_the_clock_is_set_back(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{DelayMS: ptr(int64(10_000))})
		w.turn(5000)
		w.setBack(4000)
		w.turn(8950) // 50 ms before its time
		marker := w.submit(core.Submission{Kind: "marker", DelayMS: ptr(int64(0))})
		w.cancel(marker)
		w.is(id, core.Delayed, core.WaitingForDelay)
		w.turn(50)
		w.becomes(id, core.Ready)
	})
}

func TestS62_a_restarted_engine_turns_what_fell_due_meanwhile(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		delayed := w.submit(core.Submission{DelayMS: ptr(int64(1000))})
		task := w.started(core.Submission{})
		closeEngine(t, w.e)
		w.turn(60_000)
		w.e = w.openEngine(w.store)
		w.becomes(delayed, core.Ready)
		w.becomes(given(task), core.Ready)
	})
}

func TestS61_a_slow_kind_of_timer_holds_up_no_other(t *testing.T) {
	t.Parallel()
	keys := newGate("drop_keys")
	onShared(t, engine.Config{Probe: keys}, func(t *testing.T, w *world) { // on SQLite one writer keeps all others from writing
		open := sync.OnceFunc(func() { close(keys.open) })
		defer open() // also when the test fails
		w.submit(core.Submission{Lane: "other", IdempotencyKey: "key", PolicyJSON: []byte(`{"dedup_window_ms":1000}`)})
		w.pass(base.Minute + 1000)
		<-keys.reached
		task := w.started(core.Submission{})
		later := w.submit(core.Submission{Lane: "other", IdempotencyKey: "later", PolicyJSON: []byte(`{"dedup_window_ms":1000,"retention_ms":0}`)})
		w.pass(base.Minute)
		w.becomes(given(task), core.Ready)
		w.cancel(later)
		w.pass(1000)
		w.gone(later)
		open()
		w.pass(base.Minute)
		eventually(t, "the kind goes on when it can", func() bool {
			again, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", Lane: "other", IdempotencyKey: "later"})
			return err == nil && again.Outcome == "created"
		})
	})
}

func TestS62_timers_that_a_dead_process_had_taken_act_within_two_seconds(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		delayed := w.submit(core.Submission{DelayMS: ptr(int64(1000))})
		closeEngine(t, w.e)
		dies := &dying{Store: w.store, taken: make(chan struct{})}
		w.e = w.openEngine(dies)
		w.turn(1000)
		<-dies.taken
		closeEngine(t, w.e)
		w.e = w.openEngine(w.store)
		w.turn(2000)
		eventually(t, "the delay is over", func() bool { // a claim would settle it
			return must(w.store.Read(w.ctx(), store.Want{Executions: []base.UUID{delayed.UUID}}))(t).Executions[delayed.UUID].Status == core.Ready
		})
	})
}

func TestS64_a_timer_that_is_handled_for_long_stays_hidden_from_others(t *testing.T) {
	t.Parallel()
	keys := newGate("drop_keys")
	onShared(t, engine.Config{Clock: turned, Probe: keys}, func(t *testing.T, w *world) {
		open := sync.OnceFunc(func() { close(keys.open) })
		defer open()
		w.submit(core.Submission{IdempotencyKey: "key", PolicyJSON: []byte(`{"dedup_window_ms":1000}`)})
		w.turn(2 * base.Minute)
		<-keys.reached
		next := func() base.Time { return must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).NextTimer }
		for range 5 { // it is the only timer
			hidden := next()
			w.turning(10, "it is hidden for longer", func() bool { return next() > hidden })
		}
		open()
		w.turning(10, "it is handled", func() bool { return next() == 0 })
	})
}

func TestS61_a_long_job_holds_up_no_timer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		job := newGate("bulk_batch")
		w.cfg.Probe = job
		w.restart()
		open := sync.OnceFunc(func() { close(job.open) })
		defer open() // also when the test fails
		w.submit(core.Submission{Kind: "bulk"})
		started := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "hold", Filter: kindFilter("bulk")}))(t)
		<-job.reached
		if w.url != "" { // on SQLite the job holds the one right to write
			delayed := w.submit(core.Submission{DelayMS: ptr(int64(1000))})
			w.turn(1000)
			w.becomes(delayed, core.Ready)
		}
		open()
		same(t, "job", w.ended(started.JobID).Done, 1)
	})
}
