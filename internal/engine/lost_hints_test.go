package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What a process knows by hints and by the log, while its claims always find work and never wait for any.

// comesSoon claims with a backlog, polling in between, until this one comes.
func (p *process) comesSoon(what string, id base.GivenID) {
	p.w.t.Helper()
	for range 20 {
		p.w.polled(p)
		if p.next(patience) == id {
			return
		}
	}
	p.w.t.Fatalf("%s: it never came", what)
}

func TestSI16_S47_room_that_another_process_makes_is_seen_by_claims_that_never_wait(t *testing.T) {
	t.Parallel()
	for name, room := range map[string]struct {
		quota core.QuotaSettings
		free  func(w *world, holder engine.Task)
	}{
		"a slot is free":   {core.QuotaSettings{ConcurrencyLimit: 1}, func(w *world, holder engine.Task) { w.complete(holder) }},
		"slots are raised": {core.QuotaSettings{ConcurrencyLimit: 1}, func(w *world, _ engine.Task) { w.quota("q", core.QuotaSettings{ConcurrencyLimit: 2}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
				all := w.deafProcesses(2)
				b := all[1]
				w.quota("q", room.quota)
				holder := w.started(underQuota(""))
				waits := w.submit(underQuota(""))
				w.nothing()
				w.blockedOn(waits, "slots:q")
				backlog := w.inLine(30, core.Submission{})
				same(t, "while there is no room", b.next(patience), backlog[0])
				room.free(w, holder)
				b.comesSoon(name, waits)
			})
		})
	}
}

func TestSI16_S3_a_lane_that_another_process_opens_is_seen_by_claims_that_never_wait(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		all := w.deafProcesses(2)
		b := all[1]
		w.lane("shut", core.LaneSettings{State: core.LanePaused})
		id := w.submit(core.Submission{Lane: "shut"})
		w.inLine(10, core.Submission{})
		r := ask()
		r.Lanes, r.LaneOrder, r.Wait = []string{"shut", "default"}, "listed", patience
		same(t, "while it is shut", len(must(b.e.Claim(w.ctx(), client, r))(t).Tasks), 1)
		w.lane("shut", core.LaneSettings{})
		w.polled(all...)
		same(t, "after the poll", given(must(b.e.Claim(w.ctx(), client, r))(t).Tasks[0]), id)
	})
}

// trimmed is the store of a process that was cut off for so long that commits were removed before it came to them.
type trimmed struct {
	store.Store
	floor atomic.Int64 // no earlier commit is there
}

func (s *trimmed) Log(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	return s.Store.Log(ctx, max(after, s.floor.Load()), limit)
}

func TestS70_S53_what_rests_on_commits_that_were_removed_from_the_log_is_looked_at_again(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		w.store = deaf{w.store}
		w.e = w.openEngine(w.store)
		log := &trimmed{Store: deaf{w.openStore()}}
		reads := &between{Store: log, busy: make(chan struct{})}
		b := &process{w: w, store: &counted{Store: reads}}
		b.e = w.openEngine(b.store)
		task := w.started(core.Submission{})
		w.polled(b)
		begun := make(chan struct{})
		reads.afterRead.set(func(want store.Want) bool { return len(want.Executions) > 0 }, func() { close(begun) })
		ended := make(chan core.Status, 1)
		waits := make(chan engine.ClaimAnswer, 1)
		go func() {
			view, err := b.e.Wait(w.ctx(), client, given(task), patience)
			if err != nil {
				t.Error(err)
			}
			ended <- view.Execution.Status
		}()
		go func() {
			r := ask()
			r.InstanceID, r.Wait = "idle", patience
			answer, err := b.e.Claim(w.ctx(), client, r)
			if err != nil {
				t.Error(err)
			}
			waits <- answer
		}()
		<-begun
		w.seen("idle")
		w.complete(task)
		ok(t, w.e.Drain(w.ctx(), operator, "", "idle", true))
		log.floor.Store(must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).LogEnd)
		w.register(core.Registration{WorkerID: "w", InstanceID: "later"}) // the first commit that is there
		w.polled(b)
		same(t, "wait(id)", <-ended, core.Succeeded)
		same(t, "the waiting claim", (<-waits).Drain, true)
	})
}

func TestL117_a_claim_that_waits_gets_what_another_process_gave_to_the_same_request(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		all := w.deafProcesses(2)
		b := all[1]
		w.complete(w.started(core.Submission{}))
		w.polled(all...) // both know lane, kind and instance
		r := ask()
		r.RequestKey, r.Wait = "again", patience
		repeat := make(chan engine.ClaimAnswer, 1)
		go func() {
			answer, err := b.e.Claim(w.ctx(), client, r)
			if err != nil {
				t.Error(err)
			}
			repeat <- answer
		}()
		eventually(t, "it waits", func() bool { return gauge(t, b.e, metrics.ClaimWaiters) == 1 })
		w.polled(b) // nothing was answered before
		first := w.claiming(r)
		id := w.submit(core.Submission{})
		same(t, "the first", given(w.only(first)), id)
		w.polled(b)
		same(t, "the same once more", given(w.only(repeat)), id)
	})
}

func TestU199_work_that_only_a_poll_finds_counts_as_found_by_one(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		all := w.deafProcesses(2)
		b := all[1]
		w.polled(all...)
		name := metrics.Wakeups.Name
		before, hints := metered(t, b.e, name, "poll"), metered(t, b.e, name, "notify")
		w.submit(core.Submission{})
		w.polled(b)
		// The log is read in the background: a second poll may come before the first one's work is seen.
		same(t, "a wakeup by a poll", metered(t, b.e, name, "poll") > before, true)
		same(t, "wakeups by hints", metered(t, b.e, name, "notify"), hints)
	})
}
