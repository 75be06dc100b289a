package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestSC17_an_idle_process_with_a_thousand_waiting_claims_asks_once_a_second_and_writes_nothing(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned, MaxWaitingClaims: 1000}, func(t *testing.T, w *world) {
		w.unaudited = true // the engine that counts is the test's own
		closeEngine(t, w.e)
		counting := &counted{Store: w.store}
		w.e = w.openCounted(counting, counting)
		w.register(core.Registration{WorkerID: "w", InstanceID: "idle", LivenessTTLMS: base.Hour})
		w.register(core.Registration{WorkerID: "w", InstanceID: "w1", LivenessTTLMS: base.Hour})
		r := ask()
		r.Lanes, r.TTL = []string{"held"}, base.Hour
		w.submit(core.Submission{Lane: "held"})
		held := w.claimAs(r)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = w.e.Wait(ctx, client, given(held), 60*time.Second) })
		for i := range 1000 {
			wg.Go(func() {
				r := ask()
				r.InstanceID, r.Lanes, r.Wait = "idle", []string{fmt.Sprint("l", i%3)}, 60*time.Second
				for {
					if _, err := w.e.Claim(ctx, client, r); base.CodeOf(err) != base.CodeOverloaded {
						return
					}
				}
			})
		}
		defer wg.Wait()
		defer cancel()
		eventually(t, "a thousand wait", func() bool {
			r := ask()
			r.InstanceID = "idle"
			_, err := w.e.Claim(w.ctx(), client, r)
			return base.CodeOf(err) == base.CodeOverloaded
		})
		w.quiets(counting)
		queries, writes := counting.queries.Load(), counting.writes.Load()
		for range 30 {
			w.second(counting)
		}
		if n := counting.queries.Load() - queries; n > 32 { // two for what a hint of the beginning may still cause
			t.Errorf("%d queries in 30 seconds", n)
		}
		same(t, "writes", counting.writes.Load()-writes, 0)
	})
}

func TestS71_a_thousand_waiting_instances_are_kept_alive_by_few_transactions(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.unaudited = true // the engine that counts is the test's own
		closeEngine(t, w.e)
		counting := &counted{Store: w.store}
		w.e = w.openCounted(counting, counting)
		w.register(core.Registration{WorkerID: "w", InstanceID: "w1", LivenessTTLMS: base.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for step := range 10 { // so that they do not all come due at once
			for i := range 100 {
				wg.Go(func() {
					r := ask()
					r.InstanceID, r.Wait = fmt.Sprint("i", step*100+i), 60*time.Second
					_, _ = w.e.Claim(ctx, client, r)
				})
			}
			eventually(t, "they wait", func() bool { return len(w.workers(engine.WorkerQuery{})) == 1+(step+1)*100 })
			w.second(counting)
		}
		writes := counting.writes.Load()
		for range 45 {
			w.second(counting)
			w.nothing() // the answer to another claim: the picker has looked at the clock
		}
		same(t, "all are alive", len(w.workers(engine.WorkerQuery{})), 1001)
		same(t, "none was ever dead", len(w.events(engine.EventFilter{Kinds: []string{"worker.dead"}})), 0)
		if n := counting.writes.Load() - writes; n > 45 { // of a thousand instances, each seen three times
			t.Errorf("%d writes in 45 seconds", n)
		}
	})
}

func TestSC17_S71_calls_for_grants_that_wait_for_instances_of_others_cost_no_more_than_the_poll(t *testing.T) {
	t.Parallel()
	config := withKey
	config.Clock = turned
	onStoresWith(t, config, func(t *testing.T, w *world) {
		w.unaudited = true // the engine that counts is the test's own
		closeEngine(t, w.e)
		counting := &counted{Store: w.store}
		w.e = w.openCounted(counting, counting)
		w.register(core.Registration{WorkerID: "w", InstanceID: "taken", LivenessTTLMS: base.Hour})
		scheduler := engine.Caller{Principal: "scheduler", Actor: "client", KeyID: "of-the-scheduler"}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for _, instance := range []string{"not-registered", "taken"} {
			wg.Go(func() {
				r := ask()
				r.InstanceID, r.Wait = instance, 60*time.Second
				if grants, err := w.e.Grant(ctx, scheduler, r); err == nil && len(grants) > 0 {
					t.Error(grants)
				}
			})
		}
		eventually(t, "both wait", func() bool { return w.e.WaitingClaims() == 2 })
		w.quiets(counting)
		queries, writes := counting.queries.Load(), counting.writes.Load()
		for range 30 {
			w.second(counting)
		}
		if n := counting.queries.Load() - queries; n > 32 { // two for what a hint of the beginning may still cause
			t.Errorf("%d queries in 30 seconds", n)
		}
		same(t, "writes", counting.writes.Load()-writes, 0)
	})
}

// openCounted opens an engine on a store that counts, and waits until its first poll is over: that comes by itself, and the polls after it
// when the test turns the clock.
func (w *world) openCounted(s store.Store, c *counted) *engine.Engine {
	w.t.Helper()
	e := w.openEngine(s)
	eventually(w.t, "the first poll", func() bool { return c.polls.Load() > 0 })
	return e
}

// quiets waits until everything that the beginning of a test left to do is done. Calls wait no longer than a minute: there is time for it.
func (w *world) quiets(c *counted) {
	w.t.Helper()
	must(w.e.List(w.ctx(), client, engine.ListRequest{}))(w.t) // the search rows are up to date
	last := must(w.store.Poll(w.ctx(), store.PollAsk{}))(w.t).LogEnd
	eventually(w.t, "the index of the log is up to date", func() bool {
		_, end, err := w.store.LogOf(w.ctx(), store.LogOf{})
		if err == nil && end < last {
			w.second(c)
		}
		return err == nil && end >= last
	})
	for quiet := 0; quiet < 5; {
		before, written := c.queries.Load(), c.writes.Load()
		w.second(c)
		if quiet++; c.queries.Load() > before+1 || c.writes.Load() > written {
			quiet = 0
		}
	}
}

// second turns the clock by a second and waits until the safety poll that then comes due is over.
func (w *world) second(c *counted) {
	w.t.Helper()
	begun := w.e.Polls()
	w.turn(1000)
	eventually(w.t, "the poll of this second", func() bool { return c.polls.Load() > begun })
}

func TestSI16_SC17_everything_still_happens_when_all_hints_are_lost(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		w.store = deaf{w.store}
		w.e = w.openEngine(w.store)
		other := w.openEngine(deaf{w.openStore()})
		answer := w.waiting(w.e, ask())
		must(other.Submit(w.ctx(), client, core.Submission{Kind: "new-kind"}))(t)
		task := (<-answer).Tasks[0]
		ended := make(chan core.Status, 1)
		go func() {
			view, err := other.Wait(w.ctx(), client, given(task), patience)
			if err != nil {
				t.Error(err)
			}
			ended <- view.Execution.Status
		}()
		w.complete(task)
		same(t, "wait(id)", <-ended, core.Succeeded)
		delayed := w.submit(core.Submission{DelayMS: ptr(int64(1000))})
		w.turn(1000)
		w.becomes(delayed, core.Ready)
		again := w.waiting(other, engine.ClaimRequest{WorkerID: "w", InstanceID: "waiting", Lanes: []string{"paused"}})
		must(w.e.PutLane(w.ctx(), operator, "paused", core.LaneSettings{State: core.LanePaused}, engine.Operator{}))(t)
		w.submit(core.Submission{Lane: "paused"})
		w.lane("paused", core.LaneSettings{})
		same(t, "lane opened elsewhere", len((<-again).Tasks), 1)
	})
}

func TestS72_a_full_queue_answers_overloaded_at_once_and_loses_nothing(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{QueueLimit: 4}, func(t *testing.T, w *world) {
		gate := &slow{Store: w.store, open: make(chan struct{})}
		closeEngine(t, w.e)
		w.e = w.openEngine(gate)
		results := make(chan error, 64)
		for range 64 {
			go func() {
				_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k"})
				results <- err
			}()
		}
		overloaded := 0
		for range 50 { // at most 2 under way and 4 in the queues, so that at least these answer while nothing commits
			refusal := refused(t, <-results, base.CodeOverloaded)
			if refusal.RetryAfterMS == 0 {
				t.Fatal("no retry_after_ms")
			}
			overloaded++
		}
		close(gate.open)
		accepted := 0
		for range 64 - overloaded {
			if err := <-results; err == nil {
				accepted++
			} else {
				refused(t, err, base.CodeOverloaded)
			}
		}
		same(t, "what was accepted exists", must(w.e.Count(w.ctx(), client, core.Filter{}))(t).Total, accepted)
		if accepted == 0 {
			t.Fatal("nothing was accepted")
		}
	})
}

// slow is a store whose transactions begin only when the gate is open.
type slow struct {
	store.Store
	open chan struct{}
}

func (s *slow) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	<-s.open
	return s.Store.Begin(ctx, want)
}
