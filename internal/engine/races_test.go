package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Everything here happens between two steps of the engine, exactly where it would be lost if a step wrote down what it had seen
// before. The clock of these engines stands still or the poll is far away, so that no safety net helps.

// between is a store that lets a test act right after an answer came and before the engine sees it, or right before a transaction begins.
// A hook acts once.
type between struct {
	store.Store
	afterRead   hook
	beforeBegin hook
	afterBegin  hook
	busy        chan struct{} // closed when a transaction met a lock
	failPolls   atomic.Int64
	polls       atomic.Int64
	hideLogs    atomic.Int64 // looks at the log that show nothing
	once        sync.Once
}

type hook struct {
	mu  sync.Mutex
	fit func(want store.Want) bool
	act func()
}

// set makes the hook act at the next want that fits.
func (h *hook) set(fit func(want store.Want) bool, act func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fit, h.act = fit, act
}

func (h *hook) run(want store.Want) {
	h.mu.Lock()
	act := h.act
	if act == nil || !h.fit(want) {
		h.mu.Unlock()
		return
	}
	h.act = nil
	h.mu.Unlock()
	act()
}

func picks(want store.Want) bool { return len(want.Pick) > 0 }

// interpose opens the world's engine on a store with hooks.
func (w *world) interpose() *between {
	w.t.Helper()
	closeEngine(w.t, w.e)
	b := &between{Store: w.store, busy: make(chan struct{})}
	w.e = w.openEngine(b)
	return b
}

func (b *between) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	loaded, err := b.Store.Read(ctx, want)
	b.afterRead.run(want)
	return loaded, err
}

func (b *between) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	b.beforeBegin.run(want)
	tx, loaded, err := b.Store.Begin(ctx, want)
	if err == nil {
		b.afterBegin.run(want)
	} else if store.FaultOf(err) == store.Busy {
		b.once.Do(func() { close(b.busy) })
	}
	return tx, loaded, err
}

func (b *between) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	defer b.polls.Add(1)
	if b.failPolls.Add(-1) >= 0 {
		return store.PollAnswer{}, &store.Fault{Kind: store.Unavailable, Err: errors.New("not now")}
	}
	return b.Store.Poll(ctx, ask)
}

func (b *between) Log(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	if b.hideLogs.Add(-1) >= 0 {
		return nil, nil
	}
	return b.Store.Log(ctx, after, limit)
}

// claiming starts a claim that waits and returns where its answer comes.
func (w *world) claiming(r engine.ClaimRequest) <-chan engine.ClaimAnswer {
	answer := make(chan engine.ClaimAnswer, 1)
	r.Wait = max(r.Wait, patience)
	go func() {
		got, err := w.e.Claim(w.ctx(), client, r)
		for base.CodeOf(err) == base.CodeOverloaded { // a test that looks whether it waits was in the way
			got, err = w.e.Claim(w.ctx(), client, r)
		}
		if err != nil {
			w.t.Error(err)
		}
		answer <- got
	}()
	return answer
}

// only is the one task of an answer.
func (w *world) only(answer <-chan engine.ClaimAnswer) engine.Task {
	w.t.Helper()
	tasks := (<-answer).Tasks
	if len(tasks) != 1 {
		w.t.Fatalf("%d tasks", len(tasks))
	}
	return tasks[0]
}

func TestS68_no_call_waits_for_a_claim_that_peeks_and_what_is_filed_meanwhile_is_found(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		all := make([]core.Submission, 40)
		for i := range all {
			all[i] = core.Submission{Kind: fmt.Sprint("k", i)}
		}
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
			ok(t, item.Err)
		}
		r := ask()
		r.Max = len(all)
		for left := len(all); left > 0; {
			for _, task := range w.take(r) {
				w.complete(task)
				left--
			}
		}
		b := w.interpose()
		peeked, goOn := make(chan struct{}), make(chan struct{})
		open := sync.OnceFunc(func() { close(goOn) })
		defer open()
		b.afterRead.set(picks, func() { close(peeked); <-goOn })
		answer := w.claiming(r)
		<-peeked
		id := w.submit(all[7]) // a commit that tells the picker of a row in a queue that was seen to be empty
		gone, cancel := context.WithCancel(w.ctx())
		cancel()
		other := ask()
		other.InstanceID, other.Wait = "gone", patience
		_, err := w.e.Claim(gone, client, other)
		refused(t, err, base.CodeTimeout)
		open()
		same(t, "the row", given(w.only(answer)), id)
	})
}

func TestS53_a_drain_between_the_look_at_an_instance_and_its_note_reaches_the_next_claim(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		b := w.interpose()
		w.nothing() // it registers; nothing is due for a while
		w.submit(core.Submission{})
		b.afterBegin.set(picks, func() { ok(t, w.e.Drain(w.ctx(), operator, "", "w1", true)) })
		r := ask()
		r.Max = 2
		same(t, "as it was when the claim looked", len(w.take(r)), 1)
		same(t, "the next one", (<-w.claiming(ask())).Drain, true)
	})
}

// meanwhile acts once, in the middle of the next claim's transaction.
type meanwhile struct{ act func() }

// BeforeCommit acts at the first claim.
func (m *meanwhile) BeforeCommit(commands []string) error {
	if act := m.act; act != nil && commands[0] == "claim" {
		m.act = nil
		act()
	}
	return nil
}

// AfterCommit takes nothing away.
func (*meanwhile) AfterCommit([]string) error { return nil }

func TestS53_a_drain_while_a_claim_writes_that_it_was_seen_is_not_overwritten(t *testing.T) {
	t.Parallel()
	probe := &meanwhile{}
	onShared(t, engine.Config{Clock: turned, Probe: probe}, func(t *testing.T, w *world) {
		b := w.interpose()
		w.register(core.Registration{WorkerID: "w", InstanceID: "w1"})
		w.turn(15_000)
		drained := make(chan error, 1)
		probe.act = func() {
			done := make(chan struct{})
			go func() {
				drained <- w.e.Drain(w.ctx(), operator, "", "w1", true)
				close(done)
			}()
			select { // either it is done, or it waits for the claim
			case <-done:
			case <-b.busy:
			}
		}
		w.take(ask())
		ok(t, <-drained)
		view := must(w.e.Worker(w.ctx(), client, "w1"))(t)
		same(t, "both happened", [2]any{view.State, view.Worker.LastSeen}, [2]any{"draining", w.now()})
	})
}

func TestS49_a_registration_while_a_claim_registers_the_instance_is_not_overwritten(t *testing.T) {
	t.Parallel()
	probe := &meanwhile{}
	onShared(t, engine.Config{Probe: probe}, func(t *testing.T, w *world) {
		probe.act = func() {
			w.register(core.Registration{WorkerID: "w", InstanceID: "w1", Version: "2", Lanes: []string{"default", "more"}})
		}
		w.nothing()
		view := must(w.e.Worker(w.ctx(), client, "w1"))(t)
		same(t, "what it said of itself", [2]any{view.Worker.Version, len(view.Worker.Lanes)}, [2]any{"2", 2})
	})
}

func TestL117_a_poll_that_failed_does_not_hide_that_a_claim_was_answered_before(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned, MaxWaitingClaims: 1}, func(t *testing.T, w *world) {
		b := w.interpose()
		w.submit(core.Submission{})
		r := ask()
		r.Max, r.RequestKey = 2, "r1"
		first := w.take(r) // and the queue is known to be empty
		answer := w.claiming(r)
		eventually(t, "it waits", func() bool {
			_, err := w.e.Claim(w.ctx(), client, ask())
			return base.CodeOf(err) == base.CodeOverloaded
		})
		b.failPolls.Store(1)
		for range 3 {
			polls := w.e.Polls()
			w.turn(1000)
			eventually(t, "the poll of this second", func() bool { return w.e.Polls() > polls })
		}
		same(t, "the leases again", leasesOf((<-answer).Tasks), leasesOf(first))
	})
}

func TestE33_a_gap_in_the_log_that_the_store_cannot_explain_yet_is_looked_at_again(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		probe := &forgetful{}
		w.cfg.Probe = probe
		b := w.interpose()
		page := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: "end"}))(t)
		b.hideLogs.Store(1)
		probe.next("submit")
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "lost"}) // it is in the log, and this process was not told
		refused(t, err, base.CodeTimeout)
		w.submit(core.Submission{})
		page = must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: page.Next, Wait: patience}))(t)
		if len(page.Events) == 0 {
			t.Fatal("no event behind the gap")
		}
	})
}

func TestS68_a_submit_of_a_new_class_wakes_a_claim_of_another_process_without_the_poll(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		other := w.another()
		r := ask()
		r.Lanes = []string{"new"}
		answer := w.waiting(w.e, r)
		must(other.Submit(w.ctx(), client, core.Submission{Lane: "new", Kind: "k"}))(t)
		same(t, "lane", w.only(answer).Execution.Class.Lane, "new")
	})
}

func TestS9_a_row_that_a_refused_command_held_while_a_claim_looked_is_found(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.release(task)
		b := w.interpose()
		var answer <-chan engine.ClaimAnswer
		b.afterBegin.set(func(want store.Want) bool { return len(want.Executions) > 0 }, func() {
			passed := make(chan struct{})
			b.afterBegin.set(picks, func() { close(passed) })
			r := ask()
			r.InstanceID = "waiting"
			answer = w.claiming(r)
			<-passed
			w.seen("waiting") // its look is over
		})
		_, err := w.e.Cancel(w.ctx(), operator, given(task), &core.Fence{LeaseID: base.UUID{1}, AttemptID: task.Execution.Attempt.ID, Epoch: 9}, "", engine.Operator{})
		refused(t, err, base.CodeStaleLease)
		same(t, "the row", given(w.only(answer)), given(task))
	})
}

// holding lets a claim that does not wait look while a command of e holds the row of the task, which the command then leaves as it was. meanwhile
// runs between. It returns where the answer of the claim comes.
func (w *world) holding(e *engine.Engine, b *between, task engine.Task, meanwhile func(answer <-chan engine.ClaimAnswer)) <-chan engine.ClaimAnswer {
	w.t.Helper()
	answer := make(chan engine.ClaimAnswer, 1)
	b.afterBegin.set(func(want store.Want) bool { return len(want.Executions) > 0 }, func() {
		r := ask()
		r.InstanceID = "does-not-wait"
		go func() {
			got, err := w.e.Claim(w.ctx(), client, r)
			if err != nil {
				w.t.Error(err)
			}
			answer <- got
		}()
		w.seen("does-not-wait")
		r.InstanceID, r.Lanes = "next", []string{"empty"}
		if _, err := w.e.Claim(w.ctx(), client, r); err != nil { // picks take turns: that of the first claim is over
			w.t.Error(err)
		}
		if len(answer) > 0 {
			w.t.Error("the claim did not wait for the row")
		}
		meanwhile(answer)
	})
	_, err := e.Cancel(w.ctx(), operator, given(task), &core.Fence{LeaseID: base.UUID{1}, AttemptID: task.Execution.Attempt.ID, Epoch: 9}, "", engine.Operator{})
	refused(w.t, err, base.CodeStaleLease)
	return answer
}

func TestS19_a_claim_that_does_not_wait_gets_the_row_that_a_refused_command_held_while_it_looked(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.release(task)
		b := w.interpose()
		answer := w.holding(w.e, b, task, func(<-chan engine.ClaimAnswer) {})
		same(t, "the row", given(w.only(answer)), given(task))
	})
}

func TestS19_a_claim_that_does_not_wait_looks_again_for_the_row_that_another_process_held(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned, PollInterval: time.Hour}, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.release(task)
		b := &between{Store: w.openStore(), busy: make(chan struct{})}
		answer := w.holding(w.openEngine(b), b, task, func(<-chan engine.ClaimAnswer) {})
		w.turn(250)
		same(t, "the row", given(w.only(answer)), given(task))
	})
}

func TestS19_a_claim_that_does_not_wait_is_told_empty_after_250_ms_if_another_process_holds_the_row(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned, PollInterval: time.Hour}, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.release(task)
		b := &between{Store: w.openStore(), busy: make(chan struct{})}
		w.holding(w.openEngine(b), b, task, func(answer <-chan engine.ClaimAnswer) {
			w.turn(250)
			if got := <-answer; len(got.Tasks) > 0 {
				t.Error(got.Tasks)
			}
		})
	})
}

func TestS5_a_place_that_another_process_frees_is_found_when_its_hint_is_lost(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		w.store = deaf{w.store}
		w.e = w.openEngine(w.store)
		w.capped("default", 1)
		task := w.started(core.Submission{})
		id := w.submit(core.Submission{})
		other := w.openEngine(deaf{w.openStore()})
		answer := w.waiting(w.e, ask())
		must(other.Complete(w.ctx(), client, given(task), fence(task), nil))(t)
		same(t, "the place was taken", given(w.only(answer)), id)
	})
}

func TestS70_a_wait_ends_when_the_execution_ends_and_goes_in_one_transaction(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned, NoTimers: true}, func(t *testing.T, w *world) {
		w.unaudited = true // lists need the loops that this engine does not run
		b := w.interpose()
		id := w.submit(core.Submission{DeadlineAt: w.now() + 100})
		waits := make(chan struct{})
		b.afterRead.set(func(want store.Want) bool { return len(want.Executions) > 0 }, func() { close(waits) })
		ended := make(chan error, 1)
		go func() {
			_, err := w.e.Wait(t.Context(), client, id, patience)
			ended <- err
		}()
		<-waits
		w.turn(100)
		ok(t, w.e.Delete(w.ctx(), operator, id, engine.Operator{}))
		select {
		case err := <-ended:
			refused(t, err, base.CodeExecutionNotFound)
		case <-w.ctx().Done():
			t.Fatal("it still waits")
		}
	})
}

// locked is a store that never gets a lock.
type locked struct {
	store.Store
	tries atomic.Int64
}

func (l *locked) Begin(context.Context, store.Want) (store.Tx, *store.Loaded, error) {
	l.tries.Add(1)
	return nil, nil, &store.Fault{Kind: store.Busy, Err: errors.New("somebody has it")}
}

func TestS72_a_stopping_engine_ends_claims_that_wait_for_a_lock(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true // nothing can be locked any more
		closeEngine(t, w.e)
		s := &locked{Store: w.store}
		w.e = w.openEngine(s)
		claimed := make(chan error, 1)
		go func() {
			_, err := w.e.Claim(w.ctx(), client, ask())
			claimed <- err
		}()
		eventually(t, "it tries", func() bool { return s.tries.Load() > 2 })
		closeEngine(t, w.e)
		refused(t, <-claimed, base.CodeShuttingDown)
	})
}

// registersAgain lets an instance register again as soon as it learns that it is dead.
type registersAgain struct {
	register func()
	once     sync.Once
}

func (*registersAgain) BeforeCommit([]string) error { return nil }

func (r *registersAgain) AfterCommit(commands []string) error {
	if commands[0] == "mark_dead" {
		r.once.Do(r.register)
	}
	return nil
}

func TestS52_leases_of_a_dead_instance_are_taken_though_it_registers_again_at_once(t *testing.T) {
	t.Parallel()
	probe := &registersAgain{}
	onShared(t, engine.Config{Probe: probe}, func(t *testing.T, w *world) {
		other := w.another()
		probe.register = func() {
			must(other.Register(w.ctx(), client, core.Registration{WorkerID: "w", InstanceID: "w1"}))(t)
		}
		task := w.started(core.Submission{})
		ok(t, w.e.MarkDead(w.ctx(), operator, "w1", "gone", true))
		w.is(given(task), core.Ready, core.WaitingForWorker)
		_, err := w.renew(task, 0)
		refused(t, err, base.CodeLeaseExpired)
	})
}
