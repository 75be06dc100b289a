package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func fairKey(key string) core.Submission {
	return policy(fmt.Sprintf(`{"fairness_key":%q}`, key))
}

// keysOf counts tasks by fairness key.
func keysOf(tasks []engine.Task) map[string]int {
	keys := map[string]int{}
	for _, task := range tasks {
		keys[task.Execution.Class.FairnessKey]++
	}
	return keys
}

func TestSI4_SC9_two_keys_share_by_weight_and_never_leave_the_bound(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("default", core.LaneSettings{Fairness: "key", FairnessWeights: map[string]int{"a": 3}})
		w.submitMany(60, fairKey("b"))
		w.turn(1)
		w.submitMany(60, fairKey("a"))
		picks := map[string]float64{}
		for range 10 {
			r := ask()
			r.Max = 4
			for _, task := range w.take(r) {
				picks[task.Execution.Class.FairnessKey]++
				if gap := picks["a"]/3 - picks["b"]; gap > 1.0/3+1 || gap < -1.0/3-1 {
					t.Fatalf("a %v, b %v", picks["a"], picks["b"])
				}
			}
		}
		same(t, "share", picks, map[string]float64{"a": 30, "b": 10})
	})
}

func TestSC9_an_idle_key_saves_up_no_turns(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("default", core.LaneSettings{Fairness: "key"})
		w.submitMany(100, fairKey("a"))
		w.submitMany(2, fairKey("b"))
		r := ask()
		r.Max = 60
		w.take(r)
		w.submitMany(40, fairKey("b"))
		r.Max = 20
		keys := keysOf(w.take(r))
		if keys["b"] > 11 || keys["b"] < 9 {
			t.Fatalf("after a pause b got %d of 20", keys["b"])
		}
	})
}

func TestS24_fairness_by_namespace_orders_by_priority_inside_a_key(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("default", core.LaneSettings{Fairness: "namespace"})
		a1, a2 := w.submit(core.Submission{Namespace: "a"}), w.submit(core.Submission{Namespace: "a", Priority: 9})
		b1 := w.submit(core.Submission{Namespace: "b"})
		same(t, "order", w.drain(ask()), []base.GivenID{a2, b1, a1})
	})
}

// takeUntil takes until it has so many tasks, with no more calls than tasks.
func (w *world) takeUntil(r engine.ClaimRequest, n int) {
	w.t.Helper()
	got := 0
	for range n {
		if got += len(w.take(r)); got >= n {
			return
		}
	}
	w.t.Fatalf("%d calls got %d of %d tasks", n, got, n)
}

// namespacesOf counts tasks by namespace.
func namespacesOf(tasks []engine.Task) map[string]int {
	names := map[string]int{}
	for _, task := range tasks {
		names[task.Execution.Class.Namespace]++
	}
	return names
}

func TestS24_I14_with_default_settings_no_namespace_keeps_another_waiting(t *testing.T) {
	t.Parallel()
	for name, greedy := range map[string]func(i int) core.Submission{
		"by priority": func(int) core.Submission { return core.Submission{Namespace: "greedy", Kind: "k", Priority: 1000} },
		"by fairness keys": func(i int) core.Submission {
			s := fairKey(fmt.Sprint("key", i))
			s.Namespace, s.Kind = "greedy", "k"
			return s
		},
		"by kinds": func(i int) core.Submission { return core.Submission{Namespace: "greedy", Kind: fmt.Sprint("k", i)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				all := make([]core.Submission, 600)
				for i := range all {
					all[i] = greedy(i)
				}
				for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
					ok(t, item.Err)
				}
				w.turn(1000)
				w.submitMany(30, core.Submission{Namespace: "modest"})
				r, got, calls := ask(), map[string]int{}, 0
				// Of a namespace with hundreds of queues the whole answer to one call may come, before it is the turn of another.
				for r.Max = 5; got["modest"] < 30; calls++ {
					if calls == len(all) {
						t.Fatalf("after %d calls: %v", calls, got)
					}
					for _, task := range w.take(r) {
						got[task.Execution.Class.Namespace]++
					}
					if got["modest"] < 30 && max(got["greedy"]-got["modest"], got["modest"]-got["greedy"]) > r.Max+2 {
						t.Fatalf("shares: %v", got)
					}
				}
			})
		})
	}
}

func TestS24_a_namespace_of_many_classes_that_was_idle_has_saved_no_turns(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		many := func(n int) {
			all := make([]core.Submission, n)
			for i := range all {
				all[i] = core.Submission{Namespace: "many", Kind: fmt.Sprint("k", i)}
			}
			for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
				ok(t, item.Err)
			}
		}
		r := ask()
		r.Max = 1000
		many(300)
		w.takeUntil(r, 300)
		w.submitMany(200, core.Submission{Namespace: "few"})
		r.Max = 150
		w.takeUntil(r, 150)
		many(50)
		r.Max = 20
		same(t, "shares", namespacesOf(w.take(r)), map[string]int{"many": 10, "few": 10})
	})
}

func TestS24_a_namespace_with_work_that_no_claim_asks_for_has_saved_no_turns(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		of := func(namespace string) core.Submission { return core.Submission{Namespace: namespace, Kind: "k"} }
		w.submit(core.Submission{Namespace: "back", Kind: "orphan"})
		w.submitMany(2, of("back"))
		w.submitMany(100, of("busy"))
		r := ask()
		r.Kinds = []string{"k"}
		r.Max = 62
		w.takeUntil(r, 62)
		w.submitMany(40, of("back"))
		r.Max = 20
		shares := namespacesOf(w.take(r))
		if n := shares["back"]; n < 9 || n > 11 || n+shares["busy"] != 20 {
			t.Fatalf("after a pause: %v", shares)
		}
	})
}

func TestS6_work_of_one_namespace_is_served_by_priority_and_age_alone_whatever_its_kinds_and_keys(t *testing.T) {
	t.Parallel()
	for _, fairness := range []string{core.FairnessAuto, core.FairnessOff} {
		t.Run(fairness, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				w.lane("default", core.LaneSettings{Fairness: fairness})
				var low, high []base.GivenID
				for i := range 24 {
					s := fairKey(fmt.Sprint(i % 5))
					s.Kind = fmt.Sprint("k", i%3)
					low = append(low, w.submit(s))
					w.turn(1)
					s.Priority = 5
					high = append(high, w.submit(s))
					w.turn(1)
				}
				same(t, "order", w.drain(ask()), append(high, low...))
			})
		})
	}
}

func TestS26_with_fairness_off_a_priority_comes_before_that_of_another_namespace(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("default", core.LaneSettings{Fairness: core.FairnessOff})
		modest := w.submit(core.Submission{Namespace: "modest"})
		first, second := w.submit(core.Submission{Namespace: "greedy", Priority: 9}), w.submit(core.Submission{Namespace: "greedy", Priority: 8})
		same(t, "order", w.drain(ask()), []base.GivenID{first, second, modest})
	})
}

func TestS26_with_fairness_off_the_key_has_no_effect(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		want := []base.GivenID{}
		for i := range 12 {
			want = append(want, w.submit(fairKey([]string{"a", "a", "a", "b"}[i%4])))
			w.turn(1)
		}
		same(t, "order", w.drain(ask()), want)
	})
}

func TestSC9_many_keys_each_get_a_turn_before_any_gets_two(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("default", core.LaneSettings{Fairness: "key"})
		var all []core.Submission
		for i := range 200 {
			s := fairKey(fmt.Sprint("key", i%100))
			s.Kind = "k"
			all = append(all, s)
		}
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
			ok(t, item.Err)
		}
		r := ask()
		r.Max = 10
		keys := map[string]int{}
		for n := 0; n < 100; {
			tasks := w.take(r)
			n += len(tasks)
			for key, got := range keysOf(tasks) {
				keys[key] += got
			}
		}
		same(t, "keys served", len(keys), 100)
	})
}

func TestS18_a_lane_of_many_classes_keeps_no_other_lane_from_its_turn(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		all := make([]core.Submission, 100)
		for i := range all {
			all[i] = core.Submission{Lane: "wide", Kind: fmt.Sprint("k", i)}
		}
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
			ok(t, item.Err)
		}
		w.turn(1000)
		id := w.submit(core.Submission{Lane: "narrow"})
		r := ask()
		r.Lanes, r.Max = []string{"wide", "narrow"}, 4
		found := false
		for _, task := range w.take(r) {
			found = found || given(task) == id
		}
		same(t, "the narrow lane had its turn", found, true)
	})
}

func TestS5_a_full_lane_of_many_classes_lets_a_waiting_claim_end(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.capped("default", 1)
		w.started(core.Submission{})
		all := make([]core.Submission, 100)
		for i := range all {
			all[i] = core.Submission{Kind: fmt.Sprint("k", i)}
		}
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
			ok(t, item.Err)
		}
		r := ask()
		r.Wait = 30 * time.Millisecond
		same(t, "nothing", len(w.take(r)), 0)
		w.nothing()
	})
}
