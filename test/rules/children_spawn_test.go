package rules

import (
	"fmt"
	"strings"
	"testing"
)

// parent is a running execution outside any flow.
func (w *world) parent(t testing.TB, more string) task {
	t.Helper()
	w.submit(t, `{"kind":"parent"`+more+`}`)
	return w.take(t, "parent")
}

// spawn spawns children under a task.
func (w *world) spawn(t testing.TB, k task, names ...string) reply {
	t.Helper()
	return w.under(t, k, "spawn", `"children":[`+nodes(names...)+`]`).wants(t, 200)
}

func TestF38_children_live_in_a_flow_of_their_own_outside_that_of_their_parent(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, line(`,"seal":false`, "p", "q"))
		p := w.take(t, "p")
		spawned := w.under(t, p, "spawn", `"defaults":{"kind":"kid","tags":{"by":"p"}},"children":[{"name":"a","kind":"a"},{"name":"q"}],"edges":[{"from":"a","to":"q","pass":"of-a"}]`).wants(t, 200)
		spawned.shows(t, fields{"created": 2, "wait": nil})
		a, q := spawned.text(t, "children.a"), spawned.text(t, "children.q")

		own := w.home(t, a)
		w.get(t, own).wants(t, 200).shows(t, fields{
			"kind": "children", "sealed": false, "state": "open", "parent_execution_id": p.id, "root_flow_id": g.id, "depth": 1,
			"graph_revision": 1, "node_count": 2, "edge_count": 1, "namespace": w.namespace,
		})
		w.get(t, g.path).wants(t, 200).shows(t, fields{"graph_revision": 1, "node_count": 2, "edge_count": 1, "depth": 0})
		w.stand(t, g.path, "p:running", "q:blocked")
		w.state(t, a, fields{"status": "ready", "name": "a", "parent_id": p.id, "root_flow_id": g.id, "tags.by": "p"})
		w.state(t, q, fields{"status": "blocked", "reason": "waiting_for_children", "kind": "kid"})
		for _, id := range []string{a, q, g.id} {
			if w.tag(t, id) != w.tag(t, p.id) {
				t.Errorf("%s and %s are of different partitions", id, p.id)
			}
		}

		w.does(t, "a") // at once: the parent still runs
		w.take(t, "kid").shows(t, fields{"tasks.0.execution_id": q, "tasks.0.parent_id": p.id, "tasks.0.inputs.0.name": "of-a", "tasks.0.inputs.0.result": "a"})
		if more := w.spawn(t, p, "c"); w.home(t, more.text(t, "children.c")) != own {
			t.Error("a second spawn made a second flow")
		}
		w.get(t, own).wants(t, 200).shows(t, fields{"graph_revision": 2, "node_count": 3, "sealed": false})
		w.get(t, at(p.id)+"/children").wants(t, 200).lists(t, "items", "name", "a", "c", "q")
		w.complete(t, p, `1`)
		w.does(t, "c")
		w.get(t, own).wants(t, 200).shows(t, fields{"state": "open"})
	})
}

func TestF38_there_is_one_children_flow_for_each_run_of_the_parent(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		first := w.parent(t, "")
		old := w.spawn(t, first, "a").text(t, "children.a")
		w.does(t, "a")
		w.complete(t, first, `1`)
		w.over(t, w.home(t, old), fields{"state": "completed", "sealed": true})

		w.post(t, at(first.id)+"/replay", `{}`).wants(t, 200)
		w.get(t, at(first.id)+"/children").wants(t, 200).count(t, "items", 0)
		again := w.take(t, "parent")
		spawned := w.spawn(t, again, "a").shows(t, fields{"created": 1})
		if a := spawned.text(t, "children.a"); a == old || w.home(t, a) == w.home(t, old) {
			t.Errorf("the second run has the child of the first: %s", spawned.body)
		}
	})
}

func TestF38_a_spawn_that_is_refused_leaves_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		many := make([]string, 1001)
		for i := range many {
			many[i] = fmt.Sprintf("n%d", i)
		}
		for _, c := range []struct{ more, code, field string }{
			{`"children":[` + nodes("a") + `,{"name":"b","kind":"b","lane":"no lane"}]`, "invalid_argument", "/children/1/lane"},
			{`"children":[` + nodes("a", "a") + `]`, "duplicate_name", "/children/1/name"},
			{`"children":[` + nodes("a") + `],"edges":[{"from":"a","to":"a"}]`, "self_referencing_edge", "/edges/0"},
			{`"children":[` + nodes("a") + `,{"name":"b","kind":"b","join":{"policy":"any_of"}}]`, "join_without_edges", "/children/1/join"},
			{`"children":[` + nodes(many...) + `]`, "flow_limit_exceeded", "/children"},
			{`"children":[` + nodes("a") + `],"on_parent_end":"explode"`, "invalid_argument", "/on_parent_end"},
		} {
			w.under(t, k, "spawn", c.more).refuses(t, 400, c.code).shows(t, fields{"field": c.field})
		}
		w.under(t, k, "spawn", `"children":[`+nodes("a")+`,{"name":"b","kind":"b","after":["c"]}]`).refuses(t, 404, "execution_not_in_flow").shows(t, fields{"field": "/children/1/after/0"})
		w.under(t, k, "spawn", `"children":[{"name":"a","kind":"a","after":["b"]},{"name":"b","kind":"b","after":["a"]}]`).refuses(t, 409, "cycle_detected")
		w.get(t, at(k.id)+"/children").wants(t, 200).count(t, "items", 0)
		w.get(t, "/v1/flows").wants(t, 200).count(t, "items", 0)
		w.claimsNothing(t, "default")

		w.complete(t, k, `1`)
		w.under(t, k, "spawn", `"children":[`+nodes("a")+`]`).refuses(t, 409, "execution_not_active")
		w.post(t, at(k.id)+"/spawn", `{"children":[`+nodes("a")+`]}`).refuses(t, 400, "fence_required")
	})
}

func TestF39_a_child_is_known_by_its_name_whatever_attempt_asks(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const both = `"children":[{"name":"a","kind":"a","input":{"n":1}},{"name":"b","kind":"b","after":["a"]}]`
		k := w.parent(t, `,"policy":{"retry_policy":{"max_retries":2,"backoff":{"strategy":"fixed","delay_ms":0}}}`)
		first := w.under(t, k, "spawn", both).wants(t, 200).shows(t, fields{"created": 2})
		ids := fields{"created": 0, "children": first.field(t, "children")}
		w.under(t, k, "spawn", both).wants(t, 200).shows(t, ids)
		own := w.home(t, first.text(t, "children.a"))
		for attempt := 1; attempt <= 2; attempt++ {
			w.under(t, k, "fail", `"class":"transient","message":"again"`).wants(t, 200).shows(t, fields{"outcome": "retry_scheduled"})
			k = w.take(t, "parent")
			k.shows(t, fields{"tasks.0.attempt.attempt_index": attempt})
			w.under(t, k, "spawn", both).wants(t, 200).shows(t, ids)
		}
		w.does(t, "a", "b") // a child that has ended is the same child
		w.under(t, k, "spawn", both).wants(t, 200).shows(t, ids)
		w.get(t, own).wants(t, 200).shows(t, fields{"graph_revision": 1, "node_count": 2})
		w.claimsNothing(t, "default")
	})
}

func TestF39_the_same_name_for_other_work_is_refused_and_changes_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		own := w.home(t, w.under(t, k, "spawn", `"children":[{"name":"a","kind":"a","input":1}]`).wants(t, 200).text(t, "children.a"))
		for _, other := range []string{
			`{"name":"a","kind":"a","input":2}`,
			`{"name":"a","kind":"b","input":1}`,
			`{"name":"a","kind":"a","input":1,"lane":"other"}`,
			`{"name":"a","kind":"a","input":1,"may_fail":true}`,
			`{"name":"a","flow":{"nodes":[{"name":"x","kind":"x"}]}}`,
		} {
			w.under(t, k, "spawn", `"children":[`+nodes("new")+`,`+other+`]`).refuses(t, 409, "name_taken")
		}
		w.get(t, own).wants(t, 200).shows(t, fields{"graph_revision": 1, "node_count": 1})
		w.under(t, k, "spawn", `"children":[{"name":"a","kind":"a","input":1},`+nodes("new")+`]`).wants(t, 200).shows(t, fields{"created": 1})
		w.get(t, own).wants(t, 200).shows(t, fields{"graph_revision": 2, "node_count": 2})
	})
}

func TestF45_an_execution_outside_any_flow_has_a_children_flow_that_is_its_own_root(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		a := w.spawn(t, k, "a").text(t, "children.a")
		w.state(t, k.id, fields{"flow_id": nil, "root_flow_id": nil})
		own := w.get(t, at(a)).wants(t, 200).text(t, "flow_id")
		w.get(t, flowAt(own)).wants(t, 200).shows(t, fields{"flow_id": own, "root_flow_id": own, "depth": 0, "parent_execution_id": k.id})
		w.state(t, a, fields{"root_flow_id": own, "parent_id": k.id})
		w.under(t, k, "wait-children", "").wants(t, 200).shows(t, fields{"outcome": "waiting"})
		w.does(t, "a")
		w.take(t, "parent").shows(t, fields{"tasks.0.resumed.cause": "children"})
	})
}

func TestF45_flows_nest_no_deeper_than_32(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		nested := func(levels int) string {
			return strings.Repeat(`{"name":"n","flow":{"nodes":[`, levels) + nodes("leaf") + strings.Repeat(`]}}`, levels)
		}
		w.post(t, "/v1/flows", `{"kind":"deep","nodes":[`+nested(33)+`]}`).refuses(t, 400, "nesting_limit_exceeded")
		w.get(t, "/v1/flows").wants(t, 200).count(t, "items", 0)
		g := w.flow(t, `{"kind":"deep","nodes":[`+nested(32)+`]}`)
		leaf := w.take(t, "leaf")
		leaf.shows(t, fields{"tasks.0.root_flow_id": g.id})
		w.get(t, w.home(t, leaf.id)).wants(t, 200).shows(t, fields{"depth": 32, "root_flow_id": g.id})
		w.under(t, leaf, "spawn", `"children":[`+nodes("a")+`]`).refuses(t, 400, "nesting_limit_exceeded")
		w.get(t, at(leaf.id)+"/children").wants(t, 200).count(t, "items", 0)
		w.complete(t, leaf, `1`)
		w.over(t, g.path, fields{"state": "completed"})

		k := w.parent(t, "")
		w.under(t, k, "spawn", `"children":[`+nested(33)+`]`).refuses(t, 400, "nesting_limit_exceeded")
		for depth := range 33 {
			w.spawn(t, k, "kid")
			k = w.take(t, "kid")
			if depth%16 == 0 {
				w.get(t, w.home(t, k.id)).wants(t, 200).shows(t, fields{"depth": depth})
			}
		}
		w.under(t, k, "spawn", `"children":[`+nodes("kid")+`]`).refuses(t, 400, "nesting_limit_exceeded")
	})
}
