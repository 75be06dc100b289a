package rules

import (
	"fmt"
	"testing"
)

func TestF19_an_edge_is_refused_and_the_refusal_tells_why(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, growing(nodes("a", "b", "c", "free", "granted", "running", "released", "suspended", "done", "gone", "up"), node("decided", after("up")), node("skipped"),
			edge("a", "b", edgeID), edge("b", "c", `"kind":"any_terminal","pass":"in"`), edge("up", "skipped", `"kind":"failure_only"`)))
		w.take(t, "running")
		w.under(t, w.take(t, "released"), "release", "").wants(t, 200)
		w.suspend(t, w.take(t, "suspended"))
		w.does(t, "done", "up")
		w.cancel(t, g.member(t, "gone"))
		w.post(t, "/v1/work/grants", `{"worker_id":"w","worker_instance_id":"`+w.namespace+`","lanes":["default"],"kinds":["granted"],"grant_ttl_ms":60000,"wait_ms":60000}`).wants(t, 200)
		w.state(t, g.member(t, "granted"), fields{"status": "granted"})
		w.state(t, g.member(t, "released"), fields{"status": "ready"})
		w.state(t, g.member(t, "suspended"), fields{"status": "suspended"})
		before := w.seen(t, g)
		there := w.edgeOf(t, g, "b", "c").text(t, "edge_id")
		for _, c := range []struct {
			edge   string
			status int
			code   string
			at     string
			more   fields
		}{
			{edge("missing", "missing"), 400, "self_referencing_edge", "", nil},
			{edge("a", g.member(t, "a")), 400, "self_referencing_edge", "", nil},
			{edge("missing", "b"), 404, "execution_not_in_flow", "/from", nil},
			{edge("a", "missing"), 404, "execution_not_in_flow", "/to", nil},
			{edge("a", w.fresh(t, g.id)), 404, "execution_not_in_flow", "/to", nil},
			{edge("b", "c"), 409, "dependency_already_exists", "", fields{
				"current.edge.edge_id": there, "current.edge.kind": "any_terminal", "current.edge.pass": "in", "current.edge.from": "b", "current.edge.to": "c",
			}},
			{edge("b", "c", `"kind":"any_terminal","pass":"other"`), 409, "dependency_already_exists", "", nil},
			{edge("b", "free", edgeID), 409, "edge_id_taken", "/edge_id", nil},
			{edge("b", "free", `"kind":"sometimes"`), 400, "invalid_flow", "/kind", nil},
			{edge("a", "decided"), 409, "join_already_decided", "", fields{"current.state": "satisfied"}},
			{edge("a", "skipped"), 409, "join_already_decided", "", fields{"current.state": "impossible"}},
			{edge("a", "granted"), 409, "downstream_already_started", "", fields{"current.status": "granted"}},
			{edge("a", "running"), 409, "downstream_already_started", "", fields{"current.status": "running"}},
			{edge("a", "released"), 409, "downstream_already_started", "", fields{"current.status": "ready"}},
			{edge("a", "suspended"), 409, "downstream_already_started", "", fields{"current.status": "suspended"}},
			{edge("a", "done"), 409, "downstream_already_started", "", fields{"current.status": "succeeded"}},
			{edge("a", "gone"), 409, "downstream_already_started", "", fields{"current.status": "cancelled"}},
			{edge("c", "a"), 409, "cycle_detected", "", nil},
			// Of two faults of one edge the earlier in the list is reported.
			{edge("missing", "missing", edgeID), 400, "self_referencing_edge", "", nil},
			{edge("missing", "decided", edgeID), 404, "execution_not_in_flow", "/from", nil},
			{edge("b", "c", edgeID), 409, "dependency_already_exists", "", nil},
			{edge("c", "decided", edgeID), 409, "edge_id_taken", "/edge_id", nil},
			{edge("decided", "done", edgeID), 409, "edge_id_taken", "/edge_id", nil},
			{edge("decided", "up"), 409, "downstream_already_started", "", nil},
		} {
			got := w.extend(t, g, more(edge("a", "free"), c.edge))
			if got.status != c.status || got.text(t, "code") != c.code || got.text(t, "field") != "/edges/1"+c.at {
				t.Errorf("%s: %d %s", c.edge, got.status, got.body)
			}
			got.shows(t, c.more)
		}
		if after := w.seen(t, g); after != before {
			t.Errorf("%s\nwas %s", after, before)
		}
		w.extend(t, g, more(edge("a", "b", edgeID), edge(g.member(t, "b"), bare(g.member(t, "c")), `"kind":"any_terminal","pass":"in"`))).wants(t, 200).shows(t, fields{"created": false, "graph_revision": 1})
		w.extend(t, g, more(edge("a", "free"))).wants(t, 200).shows(t, fields{"created": true, "graph_revision": 2})
	})
}

func TestF19_F20_a_cycle_through_the_whole_flow_is_found_and_spelled_out(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const length = 400
		name := func(i int) string { return fmt.Sprintf("m%03d", i) }
		parts := []string{nodes(name(0))}
		for i := 1; i < length; i++ {
			parts = append(parts, node(name(i), after(name(i-1))))
		}
		w.post(t, "/v1/flows", whole(append(parts, edge(name(length-1), name(0)))...)).refuses(t, 409, "cycle_detected")
		g := w.flow(t, growing(parts...))
		g.shows(t, fields{"node_count": length, "edge_count": length - 1})
		edges := map[[2]any]bool{{name(length - 1), name(0)}: true, {name(length - 1), "new"}: true, {"new", name(0)}: true}
		for i := 1; i < length; i++ {
			edges[[2]any{name(i - 1), name(i)}] = true
		}
		for names, body := range map[int]string{
			length + 1: more(edge(name(length-1), name(0))),
			length + 2: more(nodes("new"), edge(name(length-1), "new"), edge("new", name(0))),
		} {
			cycle := w.extend(t, g, body).refuses(t, 409, "cycle_detected").items(t, "current.cycle")
			if len(cycle) != names || cycle[0] != cycle[names-1] {
				t.Fatalf("%d names, want %d: %v", len(cycle), names, cycle)
			}
			for i := range cycle[1:] {
				if !edges[[2]any{cycle[i], cycle[i+1]}] {
					t.Errorf("no edge leads from %v to %v", cycle[i], cycle[i+1])
				}
			}
		}
		w.flowIs(t, g, fields{"node_count": length, "edge_count": length - 1, "graph_revision": 1})
		// What looks like one and is none is taken.
		w.extend(t, g, more(edge(name(0), name(length-1)), node("end", after(name(length-1))))).wants(t, 200).shows(t, fields{"edge_count": length + 1})
	})
}

func TestF21_an_added_edge_looks_at_its_upstream_as_it_is(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, growing(nodes("ok", "bad", "open", "ready", "other", "poor"), node("late", `"delay_ms":600000`)))
		w.does(t, "ok")
		w.breaks(t, "bad")
		until := w.state(t, g.member(t, "late"), fields{"status": "delayed"}).text(t, "delay_until")
		w.extend(t, g, more(edge("ok", "ready"), edge("bad", "poor"), edge("ok", "late"), edge("open", "late"), edge("open", "other"))).wants(t, 200)
		w.edgeOf(t, g, "ok", "ready").shows(t, fields{"state": "satisfied", "upstream_outcome": "succeeded", "upstream_run": 0})
		w.joinIs(t, g, "ready", fields{"state": "satisfied", "n": 1, "satisfied": 1})
		w.state(t, g.member(t, "ready"), fields{"status": "ready"})
		w.edgeOf(t, g, "bad", "poor").shows(t, fields{"state": "impossible", "upstream_outcome": "failed"})
		w.ended(t, g.member(t, "poor"), fields{"status": "skipped", "reason": "dependency_impossible"})
		w.edgeOf(t, g, "open", "other").shows(t, fields{"state": "pending", "upstream_outcome": nil})
		w.state(t, g.member(t, "other"), fields{"status": "blocked", "reason": "waiting_for_children"})
		w.state(t, g.member(t, "late"), fields{"status": "blocked", "reason": "waiting_for_children", "delay_until": until})
		w.joinIs(t, g, "late", fields{"state": "pending", "n": 2, "satisfied": 1})
		w.does(t, "open")
		w.state(t, g.member(t, "late"), fields{"status": "delayed", "delay_until": until})
		w.state(t, g.member(t, "other"), fields{"status": "ready"})
	})
}

func TestF21_the_result_does_not_depend_on_whether_edges_came_before_the_end_or_after(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		fates := map[bool]string{}
		for _, before := range []bool{true, false} {
			// x waits for two, of which one fails; y is for the failure; z waits for x.
			edges := []string{edge("ok", "x"), edge("bad", "x", `"kind":"any_terminal","pass":"why"`), edge("bad", "y"), edge("y", "z", `"kind":"any_terminal"`)}
			g := w.flow(t, growing(nodes("ok", "bad", "gate")))
			late := []string{nodes("x", "y", "z"), edge("gate", "x"), edge("gate", "y"), edge("gate", "z")}
			if before {
				w.extend(t, g, more(append(late, edges...)...)).wants(t, 200)
			} else {
				w.extend(t, g, more(late...)).wants(t, 200)
			}
			w.does(t, "ok")
			w.breaks(t, "bad")
			if !before {
				w.extend(t, g, more(edges...)).wants(t, 200)
			}
			w.does(t, "gate")
			w.ended(t, w.idOf(t, g, "y"), fields{"status": "skipped"})
			ran := w.take(t, "x")
			fates[before] = fmt.Sprintln(ran.field(t, ran.of("inputs.0.outcome")), w.joinIs(t, g, "x", nil).field(t, "satisfied"), w.joinIs(t, g, "y", nil).field(t, "state"),
				w.joinIs(t, g, "z", nil).field(t, "state"), w.get(t, g.path+"/members?state=skipped").field(t, "items.0.name"))
			w.complete(t, ran, `1`)
			w.does(t, "z")
			w.post(t, g.path+"/seal", "").wants(t, 200).shows(t, fields{"state": "failed"})
		}
		if fates[true] != fates[false] || fates[true] != "failed 3 impossible satisfied y\n" {
			t.Errorf("before: %s, after: %s", fates[true], fates[false])
		}
	})
}
