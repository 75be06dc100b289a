package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/engine/claims"
)

// manyKinds is one more than the classes of a key that are looked at one by one.
const manyKinds = claims.IdleLooks + 1

// contest is a lane in which two namespaces have a backlog for one worker, while another worker takes work of the one that has many classes
// and more weight.
type contest struct {
	*world
	picks map[string]int
}

func newContest(w *world) *contest {
	w.lane("default", core.LaneSettings{Fairness: "namespace", FairnessWeights: map[string]int{"wide": 10}})
	all := make([]core.Submission, manyKinds)
	for i := range all {
		all[i] = core.Submission{Namespace: "wide", Kind: fmt.Sprint("k", i)}
	}
	for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(w.t) {
		ok(w.t, item.Err)
	}
	w.submitMany(100, core.Submission{Namespace: "wide", Kind: "k2"})
	w.submitMany(100, core.Submission{Namespace: "slim", Kind: "k2"})
	return &contest{w, map[string]int{}}
}

// note counts what was picked and fails the test if the namespaces are further apart than they may (S25).
func (c *contest) note(tasks []engine.Task) {
	c.t.Helper()
	for _, task := range tasks {
		c.picks[task.Execution.Class.Namespace]++
	}
	if gap := float64(c.picks["wide"])/10 - float64(c.picks["slim"]); gap > 1.2 || gap < -1.2 {
		c.t.Fatalf("picks: %v", c.picks)
	}
}

func forKinds(instance string, kinds ...string) engine.ClaimRequest {
	r := ask()
	r.InstanceID, r.Kinds = instance, kinds
	return r
}

func TestS25_a_namespace_of_many_classes_is_not_idle_while_workers_of_another_filter_have_work_of_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		c := newContest(w)
		for range 60 {
			c.note(w.take(forKinds("backlog", "k2")))
			w.submit(core.Submission{Namespace: "wide", Kind: "k1"})
			r := forKinds("fresh", "k1")
			r.Max = 2 // so that it sees the end
			c.note(w.take(r))
		}
	})
}

func TestS25_a_namespace_of_many_classes_is_not_idle_when_work_of_it_was_handed_over(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		c := newContest(w)
		c.note(w.take(forKinds("fresh", "k1")))
		for i := range 60 {
			c.note(w.take(forKinds("backlog", "k2")))
			r := forKinds(fmt.Sprint("waits", i), "k1")
			r.Wait = patience
			answer := make(chan []engine.Task, 1)
			go func() { answer <- must(w.e.Claim(w.ctx(), client, r))(t).Tasks }()
			w.seen(r.InstanceID)
			w.submit(core.Submission{Namespace: "wide", Kind: "k1"})
			c.note(<-answer)
		}
	})
}

// It is not parallel: allocations of others would be counted.
func TestS24_the_classes_of_a_namespace_are_counted_and_looked_at_without_a_copy_of_them(t *testing.T) {
	for _, n := range []int{0, 1, 2, 10_000} {
		count, all := claims.ClassesUnder("wide", n)
		same(t, "count", count(), n)
		same(t, "allocations", testing.AllocsPerRun(10, func() { count() }), 0.0)
		var seen []int32
		for class := range all {
			seen = append(seen, class.ID)
			if len(seen) == 2 {
				break
			}
		}
		same(t, "seen", seen, [][]int32{nil, {0}, {0, 1}}[min(n, 2)])
	}
}
