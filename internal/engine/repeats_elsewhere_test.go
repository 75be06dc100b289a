package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestL117_a_claim_whose_answer_was_lost_gets_the_same_leases_from_another_server(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		w.nothing() // both know the instance, and that there is nothing
		same(t, "nothing there either", len(must(other.Claim(w.ctx(), client, ask()))(t).Tasks), 0)
		for i, wait := range []time.Duration{0, time.Minute} {
			w.submitMany(9, core.Submission{})
			r := ask()
			r.Max, r.Wait, r.RequestKey = 3, wait, fmt.Sprint("r", i)
			first := w.take(r)
			same(t, "tasks", len(first), 3)
			for range 2 {
				again := must(other.Claim(w.ctx(), client, r))(t).Tasks
				same(t, "the same leases", leasesOf(again), leasesOf(first))
			}
			w.complete(first[0])
			same(t, "what is still held", leasesOf(must(other.Claim(w.ctx(), client, r))(t).Tasks), leasesOf(first[1:]))
		}
	})
}

func TestL117_a_repeat_that_waits_at_another_server_is_not_handed_other_work(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		id := w.submit(core.Submission{})
		r := ask()
		r.Wait, r.RequestKey = time.Minute, "r1"
		first := w.take(r)
		same(t, "first answer", given(first[0]), id)
		answers := make(chan []engine.Task, 1)
		go func() { answers <- must(other.Claim(w.ctx(), client, r))(t).Tasks }()
		for range 20 { // one of them may be handed over by the commit that files it
			must(other.Submit(w.ctx(), client, core.Submission{Kind: "k"}))(t)
		}
		same(t, "the repeat", leasesOf(<-answers), leasesOf(first))
	})
}

// waits begins a claim in the background, once it waits at that engine.
func (w *world) waits(e *engine.Engine, r engine.ClaimRequest) <-chan []engine.Task {
	answers := make(chan []engine.Task, 1)
	go func() { answers <- must(e.Claim(w.ctx(), client, r))(w.t).Tasks }()
	eventually(w.t, "the claim waits", func() bool { return e.Claimants() > 0 })
	return answers
}

func TestL117_a_claim_that_waits_gets_nothing_once_its_repeat_at_another_server_got_nothing(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 10 * time.Second} {
		onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
			other := w.another()
			w.nothing()
			same(t, "nothing there either", len(must(other.Claim(w.ctx(), client, ask()))(t).Tasks), 0)
			r := ask()
			r.Wait, r.RequestKey = time.Minute, "r1"
			first := w.waits(w.e, r)
			r.Wait, r.Repeat = late, true
			if late == 0 {
				same(t, "the repeat", len(must(other.Claim(w.ctx(), client, r))(t).Tasks), 0)
			} else {
				again := w.waits(other, r)
				w.turn(late.Milliseconds())
				same(t, "the repeat", len(<-again), 0)
			}
			ids := w.submitMany(3, core.Submission{}) // at the first server: one could be handed over by the commit that files it
			same(t, "the first call", len(<-first), 0)
			r = ask()
			r.Max, r.RequestKey = 9, "r2"
			same(t, "under another key", len(must(other.Claim(w.ctx(), client, r))(t).Tasks), len(ids))
		})
	}
}

func TestL117_a_repeat_that_would_get_nothing_gets_what_the_first_call_is_given_meanwhile(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		other := w.another()
		r := ask()
		r.RequestKey = "r1"
		b := w.interpose()
		w.nothing()
		looks := 0 // the second look is the one that puts the answer on record
		closing := func(want store.Want) bool {
			if slices.Contains(want.Docs, store.DocRef{Kind: 3, Key: r.InstanceID + "\x01r1"}) {
				looks++
			}
			return looks == 2
		}
		var first []engine.Task
		b.afterBegin.set(closing, func() {
			must(other.Submit(w.ctx(), client, core.Submission{Kind: "k"}))(t)
			first = must(other.Claim(w.ctx(), client, r))(t).Tasks
		})
		repeat := r
		repeat.Repeat = true
		again := must(w.e.Claim(w.ctx(), client, repeat))(t).Tasks
		same(t, "looks", looks, 2)
		same(t, "the first call", len(first), 1)
		same(t, "the repeat", leasesOf(again), leasesOf(first))
	})
}

func TestL117_a_key_whose_repeat_got_nothing_may_be_used_again_later(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		r := ask()
		r.RequestKey, r.Repeat = "r1", true
		same(t, "nothing", len(must(w.e.Claim(w.ctx(), client, r))(t).Tasks), 0)
		w.turn(1000)
		id := w.submit(core.Submission{})
		got := must(w.another().Claim(w.ctx(), client, r))(t).Tasks
		same(t, "later", given(got[0]), id)
		again := must(w.e.Claim(w.ctx(), client, r))(t).Tasks
		same(t, "the same lease", leasesOf(again), leasesOf(got))
		w.complete(got[0])
		w.turn(10 * base.Minute)
		w.submit(core.Submission{})
		same(t, "it is not remembered", len(must(w.e.Claim(w.ctx(), client, r))(t).Tasks), 1)
	})
}
