package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ahead sets the store's clock forward by an hour, lets the engine do something there, and sets it back.
func (w *world) ahead(do func()) {
	w.turn(base.Hour)
	do()
	w.setBack(base.Hour)
}

func (w *world) leased(ttl base.Millis, s core.Submission) engine.Task {
	w.t.Helper()
	w.submit(s)
	req := ask()
	req.TTL = ttl
	answer := must(w.e.Claim(w.ctx(), client, req))(w.t)
	same(w.t, "tasks", len(answer.Tasks), 1)
	return answer.Tasks[0]
}

// armedSoon waits until the execution has a timer that comes within a time.
func (w *world) armedSoon(id base.GivenID, within base.Millis) {
	w.t.Helper()
	eventually(w.t, "a timer that comes soon", func() bool { return w.get(id).TimerAt <= w.now().Add(within) })
}

func TestL5_a_lease_that_was_renewed_by_a_clock_which_was_set_back_lapses_after_its_time(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var task engine.Task
		w.ahead(func() {
			task = w.leased(5000, core.Submission{})
			must(w.renew(task, 0))(t)
		})
		id := given(task)
		w.armedSoon(id, 5100)
		w.turn(4000)
		same(t, "before its time", w.get(id).Status, core.Running)
		w.pass(1100)
		w.becomes(id, core.Ready)
		if x := w.get(id); x.LastMutationAt < task.Execution.LastMutationAt {
			t.Fatalf("times ran backwards: %s after %s", x.LastMutationAt, task.Execution.LastMutationAt)
		}
	})
}

func TestL5_what_is_done_after_the_clock_was_set_back_lasts_as_long_as_it_should(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var id base.GivenID
		w.ahead(func() { id = w.submit(core.Submission{}) })
		req := ask()
		req.TTL = 5000
		task := must(w.e.Claim(w.ctx(), client, req))(t).Tasks[0]
		for range 4 { // a worker that renews keeps its lease
			w.pass(3000)
			must(w.renew(task, 0))(t)
		}
		same(t, "renewed", w.get(id).Status, core.Running)
		w.pass(5100)
		w.becomes(id, core.Ready)
		again := must(w.e.Claim(w.ctx(), client, req))(t).Tasks[0] // and so is the next one
		w.pass(5100)
		w.becomes(given(again), core.Ready)
	})
}

func TestL5_I16_a_pause_that_is_measured_ends_in_time_and_a_moment_that_was_named_is_kept(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var failed, delayed base.GivenID
		w.ahead(func() {
			task := w.leased(5000, policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":10000}}}`))
			w.fail(task, "")
			failed = given(task)
			delayed = w.submit(core.Submission{Kind: "named", DelayMS: ptr(int64(10_000))})
		})
		w.armedSoon(failed, 10_100)
		w.turn(9000)
		same(t, "before its time", w.get(failed).Status, core.Delayed)
		w.pass(1100)
		w.becomes(failed, core.Ready)
		w.is(delayed, core.Delayed, core.WaitingForDelay)
		w.pass(base.Hour)
		w.becomes(delayed, core.Ready)
	})
}

func TestL5_I16_a_lease_that_ends_in_time_brings_no_deadline_nearer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var task engine.Task
		w.ahead(func() { task = w.leased(60_000, core.Submission{DeadlineAt: w.now().Add(30_000)}) })
		id := given(task)
		w.armedSoon(id, 60_100)
		w.pass(60_100)
		w.becomes(id, core.Ready)
		req := ask()
		req.TTL = 5000
		for range 5 { // each of them by the times ahead
			same(t, "tasks", len(must(w.e.Claim(w.ctx(), client, req))(t).Tasks), 1)
			w.armedSoon(id, 5100)
			w.pass(5100)
			w.becomes(id, core.Ready)
		}
		w.pass(base.Hour)
		w.becomes(id, core.Expired)
	})
}

func TestL5_a_timer_that_had_come_before_the_clock_was_set_back_ends_no_lease(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		w.turn(base.Hour)
		task := w.leased(60_000, core.Submission{})
		id := given(task)
		w.turn(50_000)
		must(w.renew(task, 0))(t)
		release := w.holdRow("select from exec where id = $1 for update", id.UUID.String())
		w.turn(10_100) // the first timer of the lease comes, and meets the row
		eventually(t, "a sweep that waits", func() bool { return w.lockWaits() > 0 })
		w.setBack(base.Hour)
		release()
		w.armedSoon(id, 60_100)
		w.turn(50_000)
		same(t, "before its time", w.get(id).Status, core.Running)
		w.pass(10_200)
		w.becomes(id, core.Ready)
	})
}

func TestL5_a_process_that_begins_after_the_clock_was_set_back_finds_what_lies_ahead(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.turn(base.Hour)
		task := w.leased(5000, core.Submission{})
		closeEngine(t, w.e)
		w.setBack(base.Hour)
		w.e = w.openEngine(w.store)
		w.armedSoon(given(task), 5100)
		w.pass(5100)
		w.becomes(given(task), core.Ready)
	})
}

func TestL5_U165_a_clock_that_was_set_is_told(t *testing.T) {
	t.Parallel()
	for _, on := range []func(*testing.T, engine.Config, func(*testing.T, *world)){onAlone, onShared} {
		var told lockedBuffer
		on(t, engine.Config{Logger: slog.New(slog.NewTextHandler(&told, nil))}, func(t *testing.T, w *world) {
			says(t, w.e, lenient(), "clock", engine.CheckOK, "ahead of the store's")
			eventually(t, "a first poll", func() bool { return w.e.StoreTime().Sub(w.now()) > -base.Second })
			// The time of the host that passes meanwhile is part of the step.
			w.turn(base.Hour)
			eventually(t, "a warning", func() bool { return told.has(`step=(1h0m|59m)\d+s`) })
			says(t, w.e, lenient(), "clock", engine.CheckWarn, "was set by ")
			w.setBack(base.Hour)
			eventually(t, "a warning", func() bool { return told.has(`step=-(1h0m|59m)\d+s`) })
			says(t, w.e, lenient(), "clock", engine.CheckWarn, "was set by -")
		})
	}
}

// lockedBuffer is a buffer that several goroutines write to.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) has(pattern string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return regexp.MustCompile(pattern).Match(b.text.Bytes())
}

// slowPoll is a store that lets a test act after a poll has read the store and before the engine hears of it.
type slowPoll struct {
	store.Store
	meanwhile atomic.Pointer[func()]
}

func (s *slowPoll) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	seen, err := s.Store.Poll(ctx, ask)
	if act := s.meanwhile.Swap(nil); act != nil {
		(*act)()
	}
	return seen, err
}

func TestL5_an_answer_that_comes_late_is_no_step_of_the_clock(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		s := &slowPoll{Store: w.store}
		w.e = w.openEngine(s)
		late := make(chan struct{})
		act := func() {
			w.turn(base.Hour)
			w.submit(core.Submission{}) // later than the answer, and known before it
			close(late)
		}
		poll := func() { w.polled(&process{e: w.e}) }
		poll()
		s.meanwhile.Store(&act)
		poll()
		<-late
		poll()
		same(t, "the store's clock", w.e.StoreTime(), w.now())
		says(t, w.e, lenient(), "clock", engine.CheckOK, "0s ahead of the store's")
		eventually(t, "the poll is over", func() bool { return w.e.Sweep.LastRead() == w.now() }) // otherwise it reads the clock before the turn and ends after it
		w.setBack(base.Hour)
		w.turn(1000)
		eventually(t, "the step", func() bool { return w.e.Sweep.LastRead() == w.now() })
		says(t, w.e, lenient(), "clock", engine.CheckWarn, "was set by -") // by an hour, or a second less if a poll was under way while the clock was turned
	})
}
