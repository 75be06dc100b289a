package rules

import (
	"strings"
	"testing"
)

// around is a flow of a flow node n, somebody after its end who gets its result.
func around(inner string) string {
	return `{"kind":"outer","nodes":[{"name":"n","flow":` + inner + `},` + nodes("after") + `],"edges":[{"from":"n","to":"after","kind":"any_terminal","pass":"sub"}]}`
}

// twoInside is a sub-flow of x, then y, which is its output.
const twoInside = `{"output":"y","nodes":[{"name":"x","kind":"x"},{"name":"y","kind":"y","after":["x"]}]}`

func TestF46_F47_a_flow_node_has_no_worker_and_succeeds_with_the_output_of_its_sub_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		flow := w.flow(t, around(twoInside))
		n := flow.member(t, "n")
		flow.shows(t, fields{"node_count": 2, "edge_count": 1})
		w.state(t, n, fields{"status": "blocked", "reason": "waiting_for_subflow", "public_state": "waiting_children"})
		x := w.take(t, "x")
		sub := w.home(t, x.id)
		w.get(t, sub).wants(t, 200).shows(t, fields{
			"parent_execution_id": n, "root_flow_id": flow.id, "depth": 1, "sealed": true, "state": "open", "output": "y", "node_count": 2, "graph_revision": 1,
		})
		w.claimsNothing(t, "default") // neither the node nor who waits for it
		w.complete(t, x, `1`)
		w.complete(t, w.take(t, "y"), `{"answer":42}`)
		after := w.take(t, "after")
		after.shows(t, fields{"tasks.0.inputs.0.name": "sub", "tasks.0.inputs.0.from": "n", "tasks.0.inputs.0.outcome": "succeeded", "tasks.0.inputs.0.result.answer": 42})
		w.get(t, sub).wants(t, 200).shows(t, fields{"state": "completed"})
		w.state(t, n, fields{"status": "succeeded", "has_result": true, "result.answer": 42, "total_attempts": 0, "started_at": nil, "attempt": nil})
		if result := w.get(t, at(n)+"/result").wants(t, 200); string(result.body) != `{"answer":42}` {
			t.Errorf("the result is %s", result.body)
		}
		for _, list := range []string{"/attempts", "/leases"} {
			w.get(t, at(n)+list).wants(t, 200).count(t, "items", 0)
		}
		w.complete(t, after, `1`)
		w.over(t, flow.path, fields{"state": "completed", "counts.total": 2})
	})
}

func TestF46_the_sub_flow_begins_when_the_join_of_its_node_is_satisfied(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const late = `{"kind":"outer","nodes":[{"name":"a","kind":"a"},{"name":"n","after":["a"],"flow":` + twoInside + `}]}`
		g := w.flow(t, late)
		w.state(t, g.member(t, "n"), fields{"status": "blocked", "reason": "waiting_for_children"})
		w.get(t, "/v1/flows").wants(t, 200).count(t, "items", 1)
		w.does(t, "a")
		w.state(t, g.member(t, "n"), fields{"status": "blocked", "reason": "waiting_for_subflow"})
		w.does(t, "x", "y")
		w.over(t, g.path, fields{"state": "completed"})

		skipped := w.flow(t, late)
		w.breaks(t, "a")
		w.over(t, skipped.path, fields{"state": "failed", "counts.skipped": 1})
		w.get(t, "/v1/flows").wants(t, 200).count(t, "items", 3) // two and one sub-flow
	})
}

func TestF46_B3_budgets_of_nodes_inside_may_be_below_those_that_the_request_makes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const limit = `"dimensions":{"tokens":{"hard":9}}`
		g := w.flow(t, `{"kind":"outer","budgets":[{"name":"whole",`+limit+`}],"nodes":[{"name":"n","flow":{"nodes":[`+
			`{"name":"x","kind":"x","budgets":[{"name":"part","parent":"whole",`+limit+`}]},`+
			`{"name":"m","after":["x"],"flow":{"nodes":[{"name":"y","kind":"y","budgets":[{"name":"less","parent":"part",`+limit+`}]}]}}]}}]}`)
		w.does(t, "x", "y")
		w.over(t, g.path, fields{"state": "completed"})
		w.get(t, "/v1/budgets/less").wants(t, 200).shows(t, fields{"parent": w.get(t, "/v1/budgets/part").wants(t, 200).text(t, "budget_id")})
		w.get(t, "/v1/budgets/part").wants(t, 200).shows(t, fields{"parent": w.get(t, "/v1/budgets/whole").wants(t, 200).text(t, "budget_id")})
		w.post(t, "/v1/flows", around(`{"nodes":[{"name":"x","kind":"x","budgets":[{"name":"less",`+limit+`}]}]}`)).refuses(t, 409, "budget_already_exists")
	})
}

func TestF46_the_definition_of_a_sub_flow_is_validated_with_the_outer_request(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, c := range []struct{ inner, code, field string }{
			{`{"nodes":[{"name":"x","kind":"x","lane":"no lane"}]}`, "invalid_argument", "/nodes/0/flow/nodes/0/lane"},
			{`{"nodes":[{"name":"x","kind":"x","after":["z"]}]}`, "unknown_name", "/nodes/0/flow/nodes/0/after/0"},
			{`{"nodes":[` + nodes("x", "x") + `]}`, "duplicate_name", "/nodes/0/flow/nodes/1/name"},
			{`{"nodes":[` + nodes("x") + `],"output":"z"}`, "unknown_name", "/nodes/0/flow/output"},
			{`{"nodes":[` + nodes("x") + `],"edges":[{"from":"x","to":"x"}]}`, "self_referencing_edge", "/nodes/0/flow/edges/0"},
			{`{"nodes":[{"name":"m","flow":{"nodes":[{"name":"x","kind":"x","join":{"policy":"any_of"}}]}}]}`, "join_without_edges", "/nodes/0/flow/nodes/0/flow/nodes/0/join"},
		} {
			w.post(t, "/v1/flows", around(c.inner)).refuses(t, 400, c.code).shows(t, fields{"field": c.field})
		}
		w.get(t, "/v1/flows").wants(t, 200).count(t, "items", 0)
		w.claimsNothing(t, "default")
	})
}

func TestF47_a_flow_node_ends_as_its_sub_flow_ends(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			name, inner string
			end         func(sub string)
			node, input fields
		}{
			{
				"without output", `{"nodes":[` + nodes("x") + `]}`, func(string) { w.does(t, "x") },
				fields{"status": "succeeded", "has_result": false},
				fields{"outcome": "succeeded", "present": false},
			},
			{
				"failed", `{"output":"y","nodes":[` + nodes("x", "y", "z") + `]}`, func(string) { w.does(t, "y"); w.breaks(t, "x"); w.breaks(t, "z") },
				fields{"status": "failed", "reason": "subflow_failed", "failure.category": "subflow_failed", "has_result": false},
				fields{"outcome": "failed", "present": false, "failure_reason": "subflow_failed"},
			},
			{
				"cancelled", twoInside, func(sub string) { w.post(t, sub+"/cancel", `{"reason":"not that one"}`).wants(t, 200) },
				fields{"status": "cancelled", "reason": "flow_cancelled", "cancellation.reason": "not that one"},
				fields{"outcome": "cancelled", "present": false, "failure_reason": "flow_cancelled"},
			},
		} {
			g := w.flow(t, around(c.inner))
			c.end(w.subflow(t, g, "n"))
			after := w.take(t, "after")
			node := w.over(t, at(g.member(t, "n")), c.node)
			after.at(t, "tasks.0.inputs.0").shows(t, c.input)
			if c.name == "failed" {
				if text := node.text(t, "failure.message"); !strings.HasSuffix(text, ": x, z") {
					t.Errorf("it says %q", text)
				}
			} else if c.name == "without output" {
				w.get(t, at(g.member(t, "n"))+"/result").wants(t, 204)
			}
			w.complete(t, after, `1`)
			w.over(t, g.path, fields{"state": "completed"}) // after took care of it
		}
	})
}

// subflow is the path of the sub-flow of a flow node, once it is there.
func (w *world) subflow(t testing.TB, g graph, node string) string {
	t.Helper()
	for _, one := range w.told(t, "kind=flow.created&flow_id="+bare(g.id), "flow.created", 2) {
		path := flowAt(one.text(t, "flow_id"))
		if w.get(t, path).wants(t, 200).text(t, "parent_execution_id") == g.member(t, node) {
			return path
		}
	}
	t.Fatalf("%s has no sub-flow", node)
	return ""
}

func TestF47_the_roots_of_a_sub_flow_get_the_inputs_of_its_node_beside_their_own(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.flow(t, `{"kind":"outer","nodes":[{"name":"a","kind":"a"},{"name":"n","after":["a"],"flow":{"nodes":[
			{"name":"root","kind":"root","input":{"own":1}},{"name":"next","kind":"next","after":["root"]},{"name":"m","flow":{"nodes":[{"name":"deep","kind":"deep"}]}}]}}]}`)
		w.does(t, "a")
		for kind, own := range map[string]any{"root": 1.0, "deep": nil} {
			k := w.take(t, kind)
			k.shows(t, fields{"tasks.0.inputs.0.name": "a", "tasks.0.inputs.0.from": "a", "tasks.0.inputs.0.result": "a", "tasks.0.input.own": own}).count(t, "tasks.0.inputs", 1)
			if input := w.get(t, at(k.id)+"/inputs/a").wants(t, 200); string(input.body) != `"a"` {
				t.Errorf("the input of %s is %s", kind, input.body)
			}
			w.complete(t, k, `1`)
		}
		w.take(t, "next").lists(t, "tasks.0.inputs", "name", "root")
	})
}

func TestF48_cancelling_a_node_or_its_flow_cancels_what_is_below_at_every_depth(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, whole := range []bool{false, true} {
			g := w.flow(t, around(`{"nodes":[{"name":"m","flow":{"nodes":[`+nodes("x")+`]}}]}`))
			x := w.take(t, "x")
			child := w.spawn(t, x, "c").text(t, "children.c")
			c := w.take(t, "c")
			grandchild := w.spawn(t, c, "d").text(t, "children.d")
			if whole {
				w.post(t, g.path+"/cancel?wait_ms=20000", `{"reason":"enough"}`).wants(t, 200).shows(t, fields{"state": "cancelled"})
				w.state(t, g.member(t, "n"), fields{"status": "cancelled", "cancellation.source": "flow", "cancellation.reason": "enough"})
			} else {
				w.post(t, at(g.member(t, "n"))+"/cancel", `{"reason":"enough"}`).wants(t, 200).shows(t, fields{"status": "cancelled"})
			}
			for _, id := range []string{x.id, child, grandchild} {
				w.over(t, at(id), fields{"status": "cancelled", "reason": "flow_cancelled", "cancellation.source": "parent"})
				w.over(t, w.home(t, id), fields{"state": "cancelled", "cancel.policy": "cancel_all"})
			}
			w.under(t, c, "complete", `"result":1`).refuses(t, 409, "execution_not_active")
			if !whole {
				w.does(t, "after")
			}
			w.over(t, g.path, fields{"state": map[bool]string{true: "cancelled", false: "completed"}[whole]})
		}
	})
}

func TestF48_a_flow_node_is_spawned_and_waited_for_like_any_child(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		spawned := w.under(t, k, "spawn", `"children":[{"name":"n","flow":`+twoInside+`}],"wait":{}`).wants(t, 200).shows(t, fields{"created": 1, "wait.outcome": "waiting"})
		w.does(t, "x")
		w.complete(t, w.take(t, "y"), `[7]`)
		n := spawned.text(t, "children.n")
		w.take(t, "parent").shows(t, fields{
			"tasks.0.resumed.cause": "children", "tasks.0.resumed.children.0.name": "n", "tasks.0.resumed.children.0.execution_id": n,
			"tasks.0.resumed.children.0.outcome": "succeeded", "tasks.0.resumed.children.0.has_result": true, "tasks.0.resumed.children.0.result_size": 3,
		})
		if result := w.get(t, at(n)+"/result").wants(t, 200); string(result.body) != `[7]` {
			t.Errorf("the result is %s", result.body)
		}
	})
}
