package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
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
