package rules

import (
	"slices"
	"strings"
	"testing"
)

// replay replays a member, with further fields.
func (w *world) replay(t testing.TB, g graph, name, more string) reply {
	t.Helper()
	return w.post(t, at(g.member(t, name))+"/replay", `{"reason":"again"`+more+`}`)
}

// edge is the edge between two members.
func (w *world) edge(t testing.TB, g graph, from, to string) reply {
	t.Helper()
	return w.get(t, g.path+"/edges?from="+from+"&to="+to).wants(t, 200).count(t, "items", 1).at(t, "items.0")
}

func TestF54_F58_a_member_that_was_not_skipped_runs_again_with_its_join_and_inputs(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, line("", "a", "b", "c"))
		w.complete(t, w.take(t, "a"), `"first"`)
		w.breaks(t, "b")
		w.over(t, g.path, fields{"state": "failed"})
		w.replay(t, g, "a", "").wants(t, 200) // another result of a is none of b's
		w.complete(t, w.take(t, "a"), `"second"`)
		w.over(t, g.path, fields{"state": "failed"})

		w.replay(t, g, "b", "").wants(t, 200).shows(t, fields{"status": "ready", "run_index": 1, "replay_count": 1, "failure": nil, "completed_at": nil})
		w.get(t, g.path).wants(t, 200).shows(t, fields{"state": "open", "ended_at": nil, "sealed": true, "graph_revision": 1})
		w.stand(t, g.path, "a:succeeded", "b:ready", "c:skipped")
		w.get(t, g.path+"/members/b/join").wants(t, 200).shows(t, fields{"state": "satisfied", "satisfied": 1})
		b := w.take(t, "b")
		b.shows(t, fields{"tasks.0.run_index": 1, "tasks.0.attempt.type": "replay", "tasks.0.inputs.0.result": "first"}).count(t, "tasks.0.inputs", 1)
		w.complete(t, b, `1`)
		w.over(t, g.path, fields{"state": "completed", "counts.skipped": 1})
	})
}

func TestF54_a_skipped_member_is_judged_by_its_upstreams_as_they_are_now(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","nodes":[`+nodes("a", "b")+`,{"name":"c","kind":"c","after":["a","b"]}]}`)
		w.breaks(t, "a")
		w.does(t, "b")
		before := w.over(t, g.path, fields{"state": "failed"})
		refused := w.replay(t, g, "c", "").refuses(t, 409, "dependencies_impossible")
		if !strings.Contains(string(refused.at(t, "current.upstreams").body), `"a"`) || strings.Contains(string(refused.at(t, "current.upstreams").body), `"b"`) {
			t.Errorf("which to replay first: %s", refused.body)
		}
		w.get(t, g.path).wants(t, 200).shows(t, fields{"state": "failed", "last_mutation_at": before.field(t, "last_mutation_at")})
		w.state(t, g.member(t, "c"), fields{"status": "skipped", "replay_count": 0})

		w.replay(t, g, "a", "").wants(t, 200) // pending
		w.replay(t, g, "c", "").wants(t, 200).shows(t, fields{"status": "blocked", "reason": "waiting_for_children", "run_index": 1})
		w.get(t, g.path+"/members/c/join").wants(t, 200).shows(t, fields{"state": "pending", "n": 2, "satisfied": 1, "impossible": 0}).lists(t, "waiting", "name", "a")
		w.edge(t, g, "a", "c").shows(t, fields{"state": "pending", "upstream_outcome": nil})
		w.does(t, "a")
		w.take(t, "c").lists(t, "tasks.0.inputs", "name", "a", "b")

		late := w.flow(t, line("", "x", "y")) // satisfied
		w.breaks(t, "x")
		w.replay(t, late, "x", "").wants(t, 200)
		w.does(t, "x")
		w.replay(t, late, "y", "").wants(t, 200).shows(t, fields{"status": "ready", "run_index": 1})
		w.state(t, late.member(t, "y"), fields{"status": "ready", "run_index": 1})
		w.edge(t, late, "x", "y").shows(t, fields{"state": "satisfied", "upstream_outcome": "succeeded", "upstream_run": 1})
	})
}

func TestF54_dependencies_that_are_ignored_override_the_join(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","nodes":[`+nodes("a", "b")+`,{"name":"c","kind":"c","after":["a","b"]}]}`)
		w.does(t, "b")
		w.breaks(t, "a")
		w.replay(t, g, "c", `,"ignore_dependencies":true`).wants(t, 200).shows(t, fields{"status": "ready"})
		w.get(t, g.path+"/members/c/join").wants(t, 200).shows(t, fields{"state": "overridden", "n": 2, "satisfied": 1, "impossible": 1})
		w.get(t, g.path).wants(t, 200).shows(t, fields{"joins.overridden": 1})
		c := w.take(t, "c")
		c.lists(t, "tasks.0.inputs", "name", "b")
		w.complete(t, c, `1`)
		w.over(t, g.path, fields{"state": "completed"}) // somebody took care of a
	})
}

func TestF55_edges_into_pending_joins_wait_again_and_others_stay_as_recorded(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","nodes":[`+nodes("a", "b", "pending", "started", "ended")+`],"edges":[{"from":"a","to":"pending","kind":"any_terminal"},{"from":"b","to":"pending"},
			{"from":"a","to":"started","kind":"any_terminal"},{"from":"a","to":"ended","kind":"failure_only"}]}`)
		w.breaks(t, "a")
		w.does(t, "ended")
		started := w.take(t, "started")
		w.edge(t, g, "a", "pending").shows(t, fields{"state": "satisfied", "upstream_run": 0})
		kept := []reply{w.edge(t, g, "a", "started").shows(t, fields{"state": "satisfied"}), w.edge(t, g, "a", "ended").shows(t, fields{"state": "satisfied"})}

		w.replay(t, g, "a", "").wants(t, 200)
		w.edge(t, g, "a", "pending").shows(t, fields{"state": "pending", "upstream_outcome": nil, "upstream_run": nil, "resolved_at": nil})
		w.get(t, g.path+"/members/pending/join").wants(t, 200).shows(t, fields{"state": "pending", "satisfied": 0}).lists(t, "waiting", "name", "a", "b")
		w.does(t, "a", "b")
		w.edge(t, g, "a", "pending").shows(t, fields{"state": "satisfied", "upstream_outcome": "succeeded", "upstream_run": 1})
		w.does(t, "pending")
		for i, to := range []string{"started", "ended"} {
			w.edge(t, g, "a", to).shows(t, fields{"state": "satisfied", "upstream_outcome": "failed", "upstream_run": 0, "resolved_at": kept[i].field(t, "resolved_at")})
		}
		w.complete(t, started, `1`)
		w.over(t, g.path, fields{"state": "completed"})
	})
}

// family is a member, whose failure skips b and c, and whose end starts d, and then e.
const family = `{"kind":"f","nodes":[{"name":"a","kind":"a"},{"name":"b","kind":"b","after":["a"]},{"name":"c","kind":"c","after":["b"]},{"name":"d","kind":"d"},{"name":"e","kind":"e","after":["d"]}],
	"edges":[{"from":"a","to":"d","kind":"any_terminal"}]}`

func TestF55_F56_a_cascade_reopens_the_skipped_or_all_descendants(t *testing.T) {
	t.Parallel()
	for cascade, after := range map[string][]string{
		"none":    {"a:ready", "b:skipped", "c:skipped", "d:succeeded", "e:succeeded"},
		"skipped": {"a:ready", "b:blocked", "c:blocked", "d:succeeded", "e:succeeded"},
		"all":     {"a:ready", "b:blocked", "c:blocked", "d:blocked", "e:blocked"},
	} {
		onEveryStore(t, func(t *testing.T, w *world) {
			g := w.flow(t, family)
			w.breaks(t, "a")
			w.does(t, "d", "e")
			w.over(t, g.path, fields{"state": "failed"})
			w.replay(t, g, "a", `,"cascade":"`+cascade+`"`).wants(t, 200)
			w.stand(t, g.path, after...)
			for _, name := range []string{"b", "c", "d", "e"} {
				runs, join := 0, "impossible"
				if name == "d" || name == "e" {
					join = "satisfied"
				}
				if slices.Contains(after, name+":blocked") {
					runs, join = 1, "pending"
					w.get(t, g.path+"/members/"+name+"/join").wants(t, 200).shows(t, fields{"satisfied": 0, "impossible": 0})
				}
				w.state(t, g.member(t, name), fields{"run_index": runs, "replay_count": runs})
				w.get(t, g.path+"/members/"+name+"/join").wants(t, 200).shows(t, fields{"state": join, "n": 1})
			}
			run := map[string]int{"none": 0, "skipped": 0, "all": 1}[cascade]
			w.does(t, "a")
			w.edge(t, g, "a", "d").shows(t, fields{"upstream_run": run}) // stays, unless d is reopened too
			if cascade != "none" {
				w.does(t, "b", "c")
			}
			if cascade == "all" {
				w.does(t, "d", "e")
			}
			w.claimsNothing(t, "default")
			w.over(t, g.path, fields{"state": "completed"})
		})
	}
}

func TestF57_a_replayed_flow_node_gets_a_new_sub_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"outer","nodes":[{"name":"n","flow":`+twoInside+`}]}`)
		first := w.take(t, "x")
		w.complete(t, first, `1`)
		w.complete(t, w.take(t, "y"), `1`)
		w.over(t, g.path, fields{"state": "completed"})
		w.replay(t, g, "n", "").wants(t, 200).shows(t, fields{"status": "blocked", "reason": "waiting_for_subflow", "has_result": false, "run_index": 1})
		second := w.take(t, "x")
		if w.home(t, first.id) == w.home(t, second.id) || first.id == second.id {
			t.Error("the second run has the sub-flow of the first")
		}
		w.get(t, w.home(t, first.id)).wants(t, 200).shows(t, fields{"state": "completed"})
		w.complete(t, second, `1`)
		w.complete(t, w.take(t, "y"), `2`)
		w.over(t, g.path, fields{"state": "completed"})
		w.state(t, g.member(t, "n"), fields{"result": 2})
	})
}

func TestF57_F58_a_replay_inside_a_finished_sub_flow_opens_it_and_its_nodes_outwards_to_the_root(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"outer","nodes":[{"name":"n","policy":{"max_replay_count":1},"flow":{"output":"m","nodes":[{"name":"m","flow":`+twoInside+`}]}}]}`)
		x := w.take(t, "x")
		w.complete(t, x, `1`)
		y := w.take(t, "y")
		w.fail(t, y)
		w.over(t, g.path, fields{"state": "failed"})
		inner := w.home(t, y.id)
		m := w.get(t, inner).wants(t, 200).text(t, "parent_execution_id")
		middle := w.home(t, m)

		w.post(t, at(y.id)+"/replay", `{}`).wants(t, 200)
		for _, path := range []string{inner, middle, g.path} {
			w.get(t, path).wants(t, 200).shows(t, fields{"state": "open", "ended_at": nil})
		}
		for _, node := range []string{m, g.member(t, "n")} {
			w.state(t, node, fields{"status": "blocked", "reason": "waiting_for_subflow", "replay_count": 1, "failure": nil})
		}
		if again := w.take(t, "y"); again.id != y.id || w.home(t, again.id) != inner {
			t.Error("the node did not keep its sub-flow")
		} else {
			w.complete(t, again, `7`)
		}
		w.over(t, g.path, fields{"state": "completed"})
		w.state(t, g.member(t, "n"), fields{"status": "succeeded", "result": 7})

		w.post(t, at(x.id)+"/replay", `{}`).refuses(t, 409, "max_replays_exhausted").shows(t, fields{"current.name": "n"}) // it counts against the cap of n
		w.state(t, x.id, fields{"status": "succeeded", "replay_count": 0})
		for _, path := range []string{inner, middle, g.path} {
			w.get(t, path).wants(t, 200).shows(t, fields{"state": "completed"})
		}
	})
}
