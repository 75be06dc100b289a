package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// begun is a store that counts the transactions that look at small records, as every look on behalf of a claim does.
type begun struct {
	store.Store
	looks atomic.Int64
}

func (b *begun) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	if len(want.Docs) > 0 {
		b.looks.Add(1)
	}
	return b.Store.Begin(ctx, want)
}

func TestS50_a_claim_that_waits_without_a_look_at_the_store_keeps_its_instance_alive(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		b := &begun{Store: w.store}
		w.e = w.openEngine(b)
		w.complete(w.started(core.Submission{}))
		w.nothing() // the queue was seen to end, and the instance is known
		seen := must(w.e.Worker(w.ctx(), client, "w1"))(t).Worker.LastSeen
		looks := b.looks.Load()
		r := ask()
		r.Wait = time.Minute
		answer := w.claiming(r)
		w.waiters(1)
		w.turn(5000)
		must(w.e.Worker(w.ctx(), client, "w1"))(t)
		same(t, "looks of the waiting claim", b.looks.Load(), looks)
		for range 3 {
			eventually(t, "it is seen again", func() bool {
				if w.now() < seen+28_000 { // the rest of its time is for a machine that is slow
					w.turn(200)
				}
				at := must(w.e.Worker(w.ctx(), client, "w1"))(t).Worker.LastSeen
				seen, at = at, seen
				return seen != at
			})
		}
		same(t, "it never died", len(w.events(engine.EventFilter{Kinds: []string{"worker.dead"}})), 0)
		id := w.submit(core.Submission{})
		same(t, "and it still waits", given(w.only(answer)), id)
	})
}

func TestSI16_a_claim_that_does_not_wait_sees_what_another_process_registered_or_opened(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		w.lane("shut", core.LaneSettings{State: core.LanePaused})
		b := w.openEngine(deaf{w.openStore()})
		r := ask()
		r.Lanes = []string{"default", "shut"}
		got := func(what string, id base.GivenID) {
			t.Helper()
			tasks := must(b.Claim(w.ctx(), client, r))(t).Tasks
			same(t, what, len(tasks), 1)
			same(t, what, given(tasks[0]), id)
		}
		must(b.Claim(w.ctx(), client, r))(t) // it knows the instance, and of no work
		got("a new lane", w.submit(core.Submission{}))
		got("a new kind", w.submit(core.Submission{Kind: "new"}))
		waits := w.submit(core.Submission{Lane: "shut"})
		must(b.Claim(w.ctx(), client, r))(t)
		w.lane("shut", core.LaneSettings{})
		got("a lane that was opened", waits)
	})
}

func TestS49_an_instance_id_of_other_namespaces_is_refused_also_when_there_is_nothing_to_claim(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		owner := engine.Caller{Principal: "o", Actor: "worker", Namespaces: []string{"a"}}
		stranger := engine.Caller{Principal: "s", Actor: "worker", Namespaces: []string{"b"}}
		for range 3 {
			same(t, "the owner", len(must(w.e.Claim(w.ctx(), owner, ask()))(t).Tasks), 0)
			_, err := w.e.Claim(w.ctx(), stranger, ask())
			refused(t, err, base.CodeInstanceIDTaken)
		}
		r := ask()
		r.Wait = patience
		_, err := w.e.Claim(w.ctx(), stranger, r)
		refused(t, err, base.CodeInstanceIDTaken)
		same(t, "the instance is the owner's", must(w.e.Worker(w.ctx(), owner, "w1"))(t).Worker.Namespaces, []string{"a"})
	})
}
