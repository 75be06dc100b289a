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

// What hints, nudges and other processes cost where there are many keys.

// beside makes many keys of which a second process knows that they have no work, and counts the queues which that asks for.
func (w *world) beside(of func(key string) core.Submission, keys int) (*process, *asking) {
	w.t.Helper()
	w.unaudited = true
	a := &asking{Store: w.openStore()}
	b := &process{w: w, e: w.openEngine(a)}
	w.submitEach(of, 0, keys)
	for got := 0; got < keys; {
		r := ask()
		r.Max, r.Wait = 1000, patience
		tasks := must(b.e.Claim(w.ctx(), client, r))(w.t).Tasks
		if len(tasks) == 0 {
			w.t.Fatalf("%d of %d came", got, keys)
		}
		for _, task := range tasks {
			ok(w.t, succeeds(b.e, w, task))
		}
		got += len(tasks)
	}
	return b, a
}

func TestS69_a_hint_of_another_process_leads_to_no_look_at_thousands_of_queues(t *testing.T) {
	t.Parallel()
	for name, way := range keyed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onShared(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
				const keys, more = 2000, 20
				way.set(w)
				b, a := w.beside(way.of, keys)
				before := int64(-1)
				for i := range more + 1 {
					var id base.GivenID
					task := b.waitedFor(func() {
						if i == 1 { // what came before may still have been on its way
							before = a.queues.Load()
						}
						id = w.submit(way.of(fmt.Sprintf("user%06d", i)))
					})
					same(t, "claimed by the other process", given(task), id)
				}
				if n := a.queues.Load() - before; n > 10*more {
					t.Fatalf("%d queues were asked to start %d", n, more)
				}
			})
		})
	}
}

// waitedFor lets the process wait with a claim while something is done, and returns what it got.
func (p *process) waitedFor(act func()) engine.Task {
	p.w.t.Helper()
	answer := make(chan engine.ClaimAnswer, 1)
	go func() {
		r := ask()
		r.Wait = patience
		got, err := p.e.Claim(p.w.ctx(), client, r)
		if err != nil {
			p.w.t.Error(err)
		}
		answer <- got
	}()
	eventually(p.w.t, "it waits", func() bool { return p.e.WaitingClaims() == 1 })
	act()
	return p.w.only(answer)
}

func TestU118_a_nudge_leads_to_no_look_at_thousands_of_queues(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		const more = 10
		keyed["fairness"].set(w)
		a := w.countingQueues()
		w.submitEach(fairKey, 0, 5000) // more than one poll asks about
		for _, task := range w.takeWaiting(5000, 1000) {
			w.complete(task)
		}
		before := a.queues.Load()
		for i := range more {
			id := w.submit(fairKey(fmt.Sprintf("user%06d", i)))
			ok(t, w.e.Nudge(w.ctx(), client, "default"))
			same(t, "claimed", given(w.takeWaiting(1, 1)[0]), id)
		}
		if n := a.queues.Load() - before; n > 10*more {
			t.Fatalf("%d queues were asked to start %d", n, more)
		}
	})
}

func TestS5_a_place_that_another_process_frees_leads_to_no_look_at_thousands_of_queues(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		const more = 10
		w.lane("default", core.LaneSettings{Fairness: "key", MaxConcurrent: 1000})
		b, a := w.beside(fairKey, 2000)
		w.submitEach(fairKey, 0, 2000)
		r := ask()
		r.Max, r.Wait = 1000, patience
		running := w.take(r) // by one process
		same(t, "running", len(running), 1000)
		b.waitedFor(func() { w.complete(running[0]) }) // what is new to the picker is looked at once
		before := a.queues.Load()
		for i := range more {
			b.waitedFor(func() { w.complete(running[1+i]) })
		}
		if n := a.queues.Load() - before; n > 300*more { // so few are all asked
			t.Fatalf("%d queues were asked to start %d", n, more)
		}
	})
}

// hinting is a store whose hints wait until they may go, and are counted then.
type hinting struct {
	store.Store
	goes chan struct{}

	mu      sync.Mutex
	named   map[int32]bool
	unnamed int
	longest int
}

func (h *hinting) Notify(ctx context.Context, hint store.Hint) error {
	select {
	case <-h.goes:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(hint.Lanes) > 0 && !hint.Named {
		h.unnamed++
	}
	for _, class := range hint.Classes {
		h.named[class] = true
	}
	h.longest = max(h.longest, len(hint.Classes))
	return h.Store.Notify(ctx, hint)
}

func (h *hinting) seen() (named, unnamed, longest int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.named), h.unnamed, h.longest
}

func TestS69_hints_name_all_classes_however_many_wait_to_be_told(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		w.unaudited = true
		closeEngine(t, w.e)
		h := &hinting{Store: w.store, goes: make(chan struct{}), named: map[int32]bool{}}
		w.store = h
		w.e = w.openEngine(h)
		keyed["fairness"].set(w)
		w.submitEach(keyed["fairness"].of, 0, manyKeys)
		close(h.goes)
		eventually(t, "hints of all classes", func() bool { named, _, _ := h.seen(); return named >= manyKeys })
		_, unnamed, longest := h.seen()
		same(t, "hints that name no class", unnamed, 0)
		if longest > 4096 {
			t.Fatalf("a hint names %d classes", longest)
		}
	})
}
