package engine_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// handing is a store that sees which transactions hand work to claims that wait, and lets a test act just before the first of
// them is written.
type handing struct {
	store.Store
	act  func()
	seen atomic.Int64 // tried
	done atomic.Int64 // committed
}

type handingTx struct {
	store.Tx
	h *handing
}

func (w *world) handing(act func()) *handing {
	w.t.Helper()
	closeEngine(w.t, w.e)
	h := &handing{Store: w.store, act: act}
	w.e = w.openEngine(h)
	return h
}

func (h *handing) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := h.Store.Begin(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	return handingTx{tx, h}, loaded, nil
}

func (t handingTx) Commit(ctx context.Context, ch *store.Changes) error {
	hands := len(ch.AssumeDocs) > 0
	if hands && t.h.seen.Add(1) == 1 && t.h.act != nil {
		t.h.act()
	}
	err := t.Tx.Commit(ctx, ch)
	if hands && err == nil {
		t.h.done.Add(1)
	}
	return err
}

// askTwo is a claim whose look sees that there is nothing behind what it takes.
func askTwo() engine.ClaimRequest {
	r := ask()
	r.Max = 2
	return r
}

// waiters waits until so many claims wait.
func (w *world) waiters(n int) {
	w.t.Helper()
	eventually(w.t, "waiting claims", func() bool { return gauge(w.t, w.e, metrics.ClaimWaiters) == float64(n) })
}

// untilHanded submits while a claim waits, until the store has seen that the work was handed over: a claim that has not looked yet
// does so first. It returns what was submitted last and what the claim got.
func (w *world) untilHanded(h *handing, s core.Submission, r engine.ClaimRequest) (base.GivenID, engine.ClaimAnswer) {
	w.t.Helper()
	w.complete(w.started(s)) // the lane and the worker are known
	w.nothing()              // the queue was seen to end
	for {
		answer := w.claiming(r)
		w.waiters(1)
		id := w.submit(s)
		got := <-answer
		if h.seen.Load() > 0 {
			return id, got
		}
		for i := range got.Tasks {
			w.complete(got.Tasks[i])
		}
	}
}

func TestS16_work_submitted_while_a_claim_waits_is_leased_in_the_same_transaction(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		id, got := w.untilHanded(h, core.Submission{Input: core.Payload{Data: []byte("in")}}, askTwo())
		same(t, "handed over", [2]any{len(got.Tasks), h.done.Load()}, [2]any{1, int64(1)})
		task := got.Tasks[0]
		same(t, "the work", [3]any{given(task), task.How, string(task.Execution.Input.Data)}, [3]any{id, "fresh", "in"})
		x := w.is(id, core.Running, core.ReasonNone)
		same(t, "the lease", [3]any{x.LeaseEpoch, x.Lease.ID, x.Attempt.ID}, [3]any{int64(1), task.Execution.Lease.ID, task.Execution.Attempt.ID})
		same(t, "its story", w.story(id)[:2], []string{"execution.submitted", "lease.acquired"})
		same(t, "written at once", w.commitOf(id, "execution.submitted"), w.commitOf(id, "lease.acquired"))
		w.nothing()
		w.complete(task)
		w.is(id, core.Succeeded, core.Completed)
	})
}

// commitOf is the position of the commit that told of the execution's first event of a kind.
func (w *world) commitOf(id base.GivenID, kind string) int64 {
	w.t.Helper()
	for after := int64(0); ; {
		commits := must(w.store.Log(w.ctx(), after, 1000))(w.t)
		if len(commits) == 0 {
			w.t.Fatalf("no %s", kind)
		}
		for _, commit := range commits {
			after = commit.Seq
			for i := range commit.Events {
				if e := &commit.Events[i]; e.ExecutionID.UUID == id.UUID && e.Kind == kind {
					return commit.Seq
				}
			}
		}
	}
}

func TestS6_of_the_work_submitted_at_once_a_waiting_claim_gets_the_best(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		w.complete(w.started(core.Submission{}))
		for h.done.Load() == 0 {
			w.nothing()
			answer := w.claiming(ask())
			w.waiters(1)
			var all []core.Submission
			for _, priority := range []int{0, 5, 3} {
				all = append(all, core.Submission{Kind: "k", Priority: priority})
			}
			items := must(w.e.SubmitMany(w.ctx(), client, all, true))(t)
			first := w.only(answer)
			same(t, "the best", given(first), items[1].ID.Given())
			same(t, "the next", given(w.claim()), items[2].ID.Given())
			same(t, "the last", given(w.claim()), items[0].ID.Given())
		}
	})
}

func TestS9_a_row_that_another_process_filed_is_found_before_work_is_handed_over(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		var filed base.GivenID
		var other *engine.Engine
		h := w.handing(func() {
			filed = must(other.Submit(w.ctx(), client, core.Submission{Kind: "k"}))(t).ID.Given()
		})
		other = w.another()
		id, got := w.untilHanded(h, core.Submission{}, askTwo())
		same(t, "handed over", h.done.Load(), int64(0))
		if len(got.Tasks) == 1 {
			got.Tasks = append(got.Tasks, w.claim())
		}
		ids := map[base.GivenID]bool{given(got.Tasks[0]): true, given(got.Tasks[1]): true}
		same(t, "both, by a look at the queue", ids, map[base.GivenID]bool{id: true, filed: true})
	})
}

func TestS53_work_is_not_handed_to_an_instance_that_another_process_drains(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		var other *engine.Engine
		h := w.handing(func() { ok(t, other.Drain(w.ctx(), operator, "", "w1", true)) })
		other = w.another()
		id, got := w.untilHanded(h, core.Submission{}, askTwo())
		same(t, "the answer", [2]any{len(got.Tasks), got.Drain}, [2]any{0, true})
		w.is(id, core.Ready, core.WaitingForWorker)
	})
}

func TestS4_work_is_not_handed_over_once_another_process_has_paused_the_lane(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		var other *engine.Engine
		var resumed atomic.Bool
		open := make(chan struct{})
		h := w.handing(func() {
			must(other.SetLaneState(w.ctx(), operator, "default", core.LanePaused, engine.Operator{}))(t)
			go func() { // the claim waits until it is open again
				defer close(open)
				eventually(t, "the submit", func() bool { return len(w.ready()) == 1 })
				resumed.Store(true)
				must(other.SetLaneState(w.ctx(), operator, "default", core.LaneActive, engine.Operator{}))(t)
			}()
		})
		other = w.another()
		id, got := w.untilHanded(h, core.Submission{}, askTwo())
		same(t, "not before", resumed.Load(), true)
		same(t, "the work", given(got.Tasks[0]), id)
		<-open
	})
}

// ready lists what is queued in the default lane.
func (w *world) ready() []store.QueueRow {
	w.t.Helper()
	var want store.Want
	for _, class := range must(w.store.Dictionary(w.ctx()))(w.t).Classes {
		want.Pick = append(want.Pick, store.Pick{Class: class.ID, Floor: math.MinInt64, Limit: 10})
	}
	return must(w.store.Read(w.ctx(), want))(w.t).Picked
}

func TestL117_a_repeated_claim_is_not_handed_other_work(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		r := askTwo()
		w.complete(w.started(core.Submission{}))
		for i := 0; h.seen.Load() == 0; i++ {
			r.RequestKey = fmt.Sprint("r", i)
			first := w.submit(core.Submission{})
			same(t, "first answer", given(w.only(w.claiming(r))), first)
			again := w.claiming(r)
			eventually(t, "the claim waits, or was told the same again at its first look", func() bool {
				return gauge(t, w.e, metrics.ClaimWaiters) == 1 || len(again) == 1
			})
			second := w.submit(core.Submission{})
			same(t, "the same again", given(w.only(again)), first)
			same(t, "the new one", given(w.claim()), second)
		}
	})
}

func TestL117_a_claim_that_was_answered_with_nothing_does_not_wait_on_elsewhere(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.complete(w.started(core.Submission{}))
		w.nothing()
		r := ask()
		r.RequestKey = "k1"
		broken := w.claiming(r) // its caller has gone, which was not noticed
		w.waiters(1)
		same(t, "the repeat", len(must(w.e.Claim(w.ctx(), client, r))(t).Tasks), 0)
		same(t, "the first", len((<-broken).Tasks), 0)
		id := w.submit(core.Submission{})
		r.RequestKey = "k2"
		same(t, "what is submitted then", given(w.claimAs(r)), id)
	})
}

func TestL117_calls_of_one_request_whose_time_ends_together_are_answered_once_each(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned, NoTimers: true}, func(t *testing.T, w *world) {
		r := ask()
		r.RequestKey, r.Wait = "k1", time.Second
		answers := make(chan int, 2)
		for range 2 {
			go func() { answers <- len(must(w.e.Claim(w.ctx(), client, r))(t).Tasks) }()
		}
		w.waiters(2)
		w.turn(1000)
		same(t, "tasks", [2]int{<-answers, <-answers}, [2]int{})
	})
}

func TestL117_the_same_claim_once_more_beside_the_first_gets_the_same_lease(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		w.complete(w.started(core.Submission{}))
		for i := 0; h.done.Load() == 0; i++ {
			w.nothing()
			r := ask()
			r.RequestKey = fmt.Sprint("r", i)
			one, two := w.claiming(r), w.claiming(r)
			w.waiters(2)
			id := w.submit(core.Submission{})
			same(t, "one", given(w.only(one)), id)
			same(t, "the other", given(w.only(two)), id)
		}
	})
}

func TestS17_work_whose_deadline_is_over_when_it_is_adopted_is_not_handed_over(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		w.complete(w.started(core.Submission{}))
		w.nothing()
		own := w.beginOwn()
		late := must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k", DeadlineAt: w.now().Add(1000)}))(t).ID.Given()
		ok(t, own.commit())
		w.turn(5000)
		answer := w.claiming(ask())
		w.waiters(1)
		w.is(late, core.Expired, core.ExecutionDeadline) // to look for it adopts it
		id := w.submit(core.Submission{})
		same(t, "the claim", given(w.only(answer)), id)
	})
}
