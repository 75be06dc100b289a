package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestS16_work_submitted_while_a_pick_is_under_way_is_handed_over_after_it(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		b := w.interpose()
		w.complete(w.started(core.Submission{}))
		w.nothing()
		submitted := make(chan base.GivenID, 1)
		b.afterBegin.set(func(want store.Want) bool { return len(want.Docs) > 0 }, func() {
			go func() { submitted <- w.submit(core.Submission{}) }()
			eventually(t, "it is kept back", func() bool { return gauge(t, w.e, metrics.CommitQueueDepth) == 1 })
		})
		r := ask()
		r.InstanceID = "w2" // of which nothing is known: it looks first
		answer := w.claiming(r)
		id := <-submitted
		same(t, "the claim", given(w.only(answer)), id)
		same(t, "written at once", w.commitOf(id, "execution.submitted"), w.commitOf(id, "lease.acquired"))
	})
}

func TestS72_a_submit_that_waits_for_a_pick_is_committed_by_an_engine_that_stops(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		b := w.interpose()
		w.complete(w.started(core.Submission{}))
		w.nothing()
		submitted, closed := make(chan base.GivenID, 1), make(chan struct{})
		b.afterBegin.set(func(want store.Want) bool { return len(want.Docs) > 0 }, func() {
			go func() { submitted <- w.submit(core.Submission{}) }()
			eventually(t, "it is kept back", func() bool { return gauge(t, w.e, metrics.CommitQueueDepth) == 1 })
			go func() {
				closeEngine(t, w.e)
				close(closed)
			}()
			eventually(t, "it stops", func() bool {
				_, err := w.e.SubmitMany(w.ctx(), client, nil, false)
				return base.CodeOf(err) == base.CodeShuttingDown
			})
		})
		r := ask()
		r.InstanceID = "w2"
		w.take(r)
		id := <-submitted
		<-closed
		w.e = w.openEngine(w.store)
		w.is(id, core.Ready, core.WaitingForWorker)
	})
}

func TestS16_a_submit_of_another_lane_does_not_wait_for_a_pick(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{NoTimers: true}, func(t *testing.T, w *world) {
		b := w.interpose()
		w.complete(w.started(core.Submission{}))
		w.submit(core.Submission{Lane: "other"})
		b.afterBegin.set(func(want store.Want) bool { return len(want.Docs) > 0 }, func() {
			w.submit(core.Submission{Lane: "other"}) // it returns while the pick stands
		})
		w.nothing()
	})
}

// A full worker: its only task is about to end, and more work is submitted.
func TestS16_a_submit_waits_for_one_commit_of_endings_if_no_claim_waits_for_it(t *testing.T) {
	t.Parallel()
	type answer = <-chan engine.ClaimAnswer
	for name, c := range map[string]struct {
		prepare  func(w *world) answer
		together bool
	}{
		"no claim waits":    {func(*world) answer { return nil }, false},
		"a claim waits":     {func(w *world) answer { return w.waiting(w.e, ask()) }, true},
		"others are queued": {func(w *world) answer { w.submit(core.Submission{}); return nil }, true},
		"one of other kinds": {func(w *world) answer {
			r := ask()
			r.Kinds = []string{"z"}
			return w.waiting(w.e, r)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unswept(t, func(t *testing.T, w *world) {
				b := w.interpose()
				task := w.started(core.Submission{})
				w.nothing()
				claimed := c.prepare(w)
				var id base.GivenID
				w.batched(b, func() { ok(t, w.completing(task)) }, func() { id = w.submit(core.Submission{}) })
				ended, submitted := w.commitOf(given(task), "execution.completed"), w.commitOf(id, "execution.submitted")
				if c.together {
					same(t, "one commit", submitted, ended)
				} else if submitted <= ended {
					t.Errorf("submitted by commit %d, ended by %d: want the ending first", submitted, ended)
				}
				if claimed != nil {
					w.submit(core.Submission{Kind: "z"}) // so that no claim waits on
					<-claimed
				}
			})
		})
	}
}
