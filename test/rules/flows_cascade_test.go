package rules

import (
	"fmt"
	"testing"
)

// toldOnce is the event of that kind about an execution, which there is once.
func (w *world) toldOnce(t testing.TB, id, kind string) reply {
	t.Helper()
	told := w.toldOf(t, id, kind)
	if len(told) != 1 {
		t.Fatalf("%s of %s was told %d times", kind, id, len(told))
	}
	return told[0]
}

func TestF26_a_member_whose_join_is_satisfied_passes_the_gate(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a"), node("plain", after("a")), node("late", after("a"), `"delay_ms":600000`), node("held", after("a"))))
		w.post(t, at(g.member(t, "held"))+"/hold", `{"reason":"wait"}`).wants(t, 200).shows(t, fields{"status": "blocked"})
		w.does(t, "a")
		for _, name := range []string{"plain", "late", "held"} {
			w.joinIs(t, g, name, fields{"state": "satisfied"})
		}
		w.state(t, g.member(t, "plain"), fields{"status": "ready"})
		w.state(t, g.member(t, "late"), fields{"status": "delayed"})
		w.state(t, g.member(t, "held"), fields{"status": "blocked", "reason": "paused_by_operator"})
		w.does(t, "plain")
		w.claimsNothing(t, "default")
		w.send(t, "DELETE", at(g.member(t, "held"))+"/hold", "").wants(t, 200)
		w.does(t, "held")
	})
}

func TestF26_a_member_whose_join_is_impossible_is_skipped_and_told_by_which_edges(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a", "b", "c"), node("d", after("a", "b", "c"), join("quorum", `"k":2`))))
		w.breaks(t, "a")
		w.state(t, g.member(t, "d"), fields{"status": "blocked"})
		w.breaks(t, "c")
		skipped := w.state(t, g.member(t, "d"), fields{"status": "skipped", "reason": "dependency_impossible", "public_state": "skipped", "total_attempts": 0, "has_result": false})
		if skipped.text(t, "completed_at") == "" {
			t.Errorf("%s", skipped.body)
		}
		w.toldOnce(t, g.member(t, "d"), "execution.completed").shows(t, fields{
			"data.outcome": "skipped", "data.reason": "dependency_impossible", "data.edges.0": "a", "data.edges.1": "c", "data.edges.2": nil, "flow_id": g.id,
		})
		w.does(t, "b")
		w.flowEnds(t, g, fields{"state": "failed", "counts.skipped": 1, "counts.completed": 1, "counts.failed": 2})
	})
}

func TestF26_a_member_that_is_not_blocked_on_its_join_is_left_alone(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a", "b"), node("good", after("a")), node("bad", after("b"))))
		for _, name := range []string{"good", "bad"} {
			w.cancel(t, g.member(t, name))
		}
		w.does(t, "a")
		w.breaks(t, "b")
		for _, name := range []string{"good", "bad"} {
			w.state(t, g.member(t, name), fields{"status": "cancelled", "reason": "cancelled"})
			w.toldOnce(t, g.member(t, name), "execution.completed").shows(t, fields{"data.outcome": "cancelled"})
		}
		w.edgeOf(t, g, "a", "good").shows(t, fields{"state": "satisfied"})
		w.claimsNothing(t, "default")
	})
}

// fan is a root with so many leaves behind it.
func fan(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(`{"name":"x%03d","kind":"leaf","after":["root"]}`, i)
	}
	return whole(append(parts, nodes("root"))...)
}

// edgesFrom counts the edges from a member by state, outcome and run of the upstream.
func (w *world) edgesFrom(t testing.TB, g graph, name string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for cursor := ""; ; {
		page := w.get(t, g.path+"/edges?limit=1000&from="+name+cursor).wants(t, 200)
		for _, item := range page.items(t, "items") {
			e := item.(map[string]any)
			counts[fmt.Sprintf("%v %v %v", e["state"], e["upstream_outcome"], e["upstream_run"])]++
		}
		if cursor = page.text(t, "next_cursor"); cursor == "" {
			return counts
		}
		cursor = "&cursor=" + cursor
	}
}

func TestF28_more_than_256_edges_resolve_in_batches_and_none_is_forgotten(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const n = 300
		g := w.flow(t, fan(n))
		w.does(t, "root")
		if at := w.edgesFrom(t, g, "root"); at["satisfied succeeded 0"] < 256 {
			t.Errorf("when the call was answered: %v", at)
		}
		claimed := map[string]bool{}
		for len(claimed) < n {
			got := w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"`+w.namespace+`","lanes":["default"],"kinds":["leaf"],"max":1000,"wait_ms":60000`+w.leases+`}`).wants(t, 200)
			tasks := got.items(t, "tasks")
			if len(tasks) == 0 {
				t.Fatalf("%d of %d could be claimed", len(claimed), n)
			}
			for _, item := range tasks {
				id := item.(map[string]any)["execution_id"].(string)
				if claimed[id] {
					t.Errorf("%s was claimed twice", id)
				}
				claimed[id] = true
			}
		}
		if at := w.edgesFrom(t, g, "root"); at["satisfied succeeded 0"] != n {
			t.Errorf("in the end: %v", at)
		}
		w.flowIs(t, g, fields{"counts.active": n, "joins.satisfied": n, "joins.pending": nil})
	})
}

func TestF28_a_child_can_be_claimed_within_a_second_of_the_decisive_commit(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a", "b"), node("c", after("a", "b"))))
		w.does(t, "a")
		last := w.take(t, "b")
		if early := w.claims(t, `"lanes":["default"],"kinds":["c"]`); len(early) != 0 {
			t.Errorf("claimed before: %s", early[0].body)
		}
		w.complete(t, last, `1`)
		if got := w.claims(t, `"lanes":["default"],"kinds":["c"],"wait_ms":1000`); len(got) != 1 || got[0].id != g.member(t, "c") {
			t.Error("c could not be claimed")
		}
	})
}

func TestF28_F29_skips_reach_everything_however_wide_and_deep(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const wide, deep = 280, 60
		parts := []string{nodes("root"), node("l0", after("root"))}
		last := make([]string, wide)
		for i := range wide {
			last[i] = fmt.Sprintf("x%03d", i)
			parts = append(parts, node(last[i], after("root")))
		}
		for i := 1; i < deep; i++ {
			parts = append(parts, node(fmt.Sprintf("l%d", i), after(fmt.Sprintf("l%d", i-1))))
		}
		parts = append(parts, node("end", after(append(last, fmt.Sprintf("l%d", deep-1))...)), node("anyway"), edge("end", "anyway", `"kind":"any_terminal"`))
		g := w.flow(t, whole(parts...))
		w.breaks(t, "root")
		w.does(t, "anyway") // the end was told to it too
		w.flowEnds(t, g, fields{"state": "failed", "counts.failed": 1, "counts.skipped": wide + deep + 1, "counts.completed": 1, "counts.total": wide + deep + 3, "joins.pending": nil})
		w.claimsNothing(t, "default")
		w.state(t, g.member(t, "end"), fields{"status": "skipped", "reason": "dependency_impossible"})
	})
}

func TestF27_edges_resolve_from_the_run_that_ended_the_upstream(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const n = 300
		g := w.flow(t, fan(n))
		w.does(t, "root")
		// The rest of the edges may still be owed: what was resolved stays, what was not waits for the new run.
		w.post(t, at(g.member(t, "root"))+"/replay", `{"reason":"again"}`).wants(t, 200)
		first := w.edgesFrom(t, g, "root")["satisfied succeeded 0"]
		w.breaks(t, "root")
		comes(t, "all edges are resolved", func() bool { return w.flowIs(t, g, nil).field(t, "joins.pending") == nil })
		got := w.edgesFrom(t, g, "root")
		if got["satisfied succeeded 0"] != first || got["satisfied succeeded 0"]+got["impossible failed 1"] != n || first < 256 {
			t.Errorf("%d were resolved by the first run, then %v", first, got)
		}
		w.flowIs(t, g, fields{"counts.waiting": first, "counts.skipped": n - first})
	})
}
