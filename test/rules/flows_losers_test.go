package rules

import "testing"

const cut = `"on_satisfied":"cancel_remaining"`

// lost checks that a member was cancelled by a join.
func (w *world) lost(t testing.TB, g graph, name, reason string) {
	t.Helper()
	w.ended(t, g.member(t, name), fields{"status": "cancelled", "reason": reason, "cancellation.source": "join"})
	w.toldOnce(t, g.member(t, name), "execution.completed").shows(t, fields{"data.outcome": "cancelled", "data.reason": reason})
}

func TestF5_F30_F31_a_race_ends_its_losers_in_whatever_state_they_are(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("fast", "ready", "running", "suspended"), node("late", `"delay_ms":600000`),
			node("first", after("fast", "ready", "running", "suspended", "late"), join("any_of", cut))))
		running := w.take(t, "running")
		w.suspend(t, w.take(t, "suspended"))
		w.does(t, "fast")
		for _, name := range []string{"ready", "running", "suspended", "late"} {
			w.lost(t, g, name, "join_satisfied")
		}
		w.under(t, running, "complete", `"result":1`).wants(t, 409) // its lease is dead
		w.state(t, running.id, fields{"status": "cancelled", "has_result": false})
		w.state(t, g.member(t, "fast"), fields{"status": "succeeded"})
		w.edgeOf(t, g, "ready", "first").shows(t, fields{"state": "impossible", "upstream_outcome": "cancelled"})
		w.joinIs(t, g, "first", fields{"state": "satisfied", "n": 5, "satisfied": 1, "impossible": 4})
		w.does(t, "first")
		w.flowEnds(t, g, fields{"state": "completed", "counts.cancelled": 4, "counts.completed": 2})
	})
}

func TestF30_F31_a_join_that_has_become_impossible_ends_its_upstreams_too(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a", "b", "c"), node("two", after("a", "b", "c"), join("quorum", `"k":2`, cut)), node("all", after("a", "b", "c"), join("all_of", cut))))
		w.breaks(t, "a")
		w.joinIs(t, g, "all", fields{"state": "impossible"})
		// all of them still feed two
		w.state(t, g.member(t, "b"), fields{"status": "ready"})
		w.state(t, g.member(t, "c"), fields{"status": "ready"})
		w.breaks(t, "b")
		w.joinIs(t, g, "two", fields{"state": "impossible"})
		w.lost(t, g, "c", "join_impossible")
		w.flowEnds(t, g, fields{"state": "failed", "counts.failed": 2, "counts.cancelled": 1, "counts.skipped": 2})
	})
}

func TestF31_a_losing_branch_ends_as_a_whole_and_what_others_need_survives(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		// l1 -> l2 -> l3 loses with l3; shared feeds l3 and other too; o is the output of the flow and feeds only first.
		g := w.flow(t, `{"kind":"k","output":"o",`+drawn(nodes("fast", "l1", "shared", "o"), node("l2", after("l1")), node("l3", after("l2", "shared")),
			node("first", after("fast", "l3", "o"), join("any_of", cut)), node("other", after("shared")))+`}`)
		w.does(t, "fast")
		for _, name := range []string{"l3", "l2", "l1"} {
			w.lost(t, g, name, "join_satisfied")
		}
		w.joinIs(t, g, "first", fields{"state": "satisfied"})
		w.state(t, g.member(t, "shared"), fields{"status": "ready"})
		w.state(t, g.member(t, "o"), fields{"status": "ready"})
		w.does(t, "shared", "o", "other", "first")
		w.flowEnds(t, g, fields{"state": "completed", "counts.cancelled": 3, "counts.completed": 5})
	})
}

func TestF31_only_the_decision_of_the_join_that_a_candidate_still_feeds_makes_it_one_again(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for second, ends := range map[string]bool{join("any_of", cut): true, join("any_of"): false} {
			g := w.flow(t, whole(nodes("x", "y", "shared", "loser"), node("one", after("x", "shared", "loser"), join("any_of", cut)), node("two", after("y", "shared"), second)))
			w.does(t, "x")
			w.joinIs(t, g, "one", fields{"state": "satisfied"})
			w.lost(t, g, "loser", "join_satisfied") // now both have been looked at
			w.state(t, g.member(t, "shared"), fields{"status": "ready"})
			w.does(t, "y")
			w.joinIs(t, g, "two", fields{"state": "satisfied"})
			if ends {
				w.lost(t, g, "shared", "join_satisfied")
			} else {
				w.does(t, "shared")
			}
			w.does(t, "one", "two")
			w.flowEnds(t, g, fields{"state": "completed"})
		}
	})
}

func TestF31_a_candidate_whose_other_downstreams_have_ended_is_cancelled(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("x", "slow"), node("gone", after("slow")), node("one", after("x", "slow"), join("any_of", cut))))
		w.cancel(t, g.member(t, "gone"))
		w.does(t, "x")
		w.lost(t, g, "slow", "join_satisfied")
		w.does(t, "one")
		w.flowEnds(t, g, fields{"state": "failed", "counts.cancelled": 2}) // by gone, which has no worker
	})
}

func TestF32_let_run_touches_no_member(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("fast", "slow", "bad"), node("first", after("fast", "slow", "bad"), join("any_of")), node("all", after("fast", "slow", "bad"))))
		running := w.take(t, "slow")
		w.does(t, "fast")
		w.breaks(t, "bad")
		w.joinIs(t, g, "first", fields{"state": "satisfied"})
		w.joinIs(t, g, "all", fields{"state": "impossible"})
		w.does(t, "first")
		w.state(t, running.id, fields{"status": "running"})
		w.complete(t, running, `1`)
		w.flowEnds(t, g, fields{"state": "failed", "counts.cancelled": 0, "counts.completed": 3, "counts.failed": 1, "counts.skipped": 1})
	})
}

func TestF32_who_has_ended_before_the_join_is_decided_is_no_candidate(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a", "b", "c", "d"), node("two", after("a", "b", "c", "d"), join("quorum", `"k":2`, cut))))
		w.breaks(t, "c")
		w.does(t, "a", "b")
		w.lost(t, g, "d", "join_satisfied")
		w.state(t, g.member(t, "a"), fields{"status": "succeeded"})
		w.state(t, g.member(t, "b"), fields{"status": "succeeded"})
		w.state(t, g.member(t, "c"), fields{"status": "failed"})
		w.does(t, "two")
		w.flowEnds(t, g, fields{"state": "completed"}) // somebody took care of c
	})
}

func TestF32_more_losers_than_one_batch_all_end(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const n = 300
		parts, names := []string{nodes("fast")}, []string{"fast"}
		for i := range n {
			name := "l" + string(rune('a'+i/26)) + string(rune('a'+i%26))
			parts, names = append(parts, node(name)), append(names, name)
		}
		g := w.flow(t, whole(append(parts, node("first", after(names...), join("any_of", cut)))...))
		w.does(t, "fast", "first")
		w.flowEnds(t, g, fields{"state": "completed", "counts.cancelled": n, "counts.completed": 2})
		list := w.get(t, g.path+"/members?state=cancelled&limit=1000").wants(t, 200)
		for _, item := range list.items(t, "items") {
			if member := item.(map[string]any); member["reason"] != "join_satisfied" {
				t.Errorf("%v", member)
			}
		}
		if len(list.items(t, "items")) != n {
			t.Errorf("%d losers", len(list.items(t, "items")))
		}
	})
}
