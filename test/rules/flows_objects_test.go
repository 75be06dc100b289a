package rules

import (
	"strings"
	"testing"
)

func TestF1_there_is_one_edge_for_an_ordered_pair_inside_one_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, growing(nodes("a", "b"), edge("a", "b", `"pass":"x"`)))
		g.shows(t, fields{"edge_count": 1})
		w.extend(t, g, more(edge("a", "b", `"pass":"x"`))).wants(t, 200).shows(t, fields{"created": false, "edge_count": 1, "graph_revision": 1})
		w.extend(t, g, more(edge("a", "b"))).refuses(t, 409, "dependency_already_exists")
		w.edgeOf(t, g, "a", "b").shows(t, fields{
			"upstream": "a", "upstream_id": g.member(t, "a"), "downstream": "b", "downstream_id": g.member(t, "b"),
			"kind": "success_only", "pass": "x", "state": "pending", "upstream_outcome": nil, "upstream_run": nil, "resolved_at": nil,
		})
		other := w.flow(t, growing(nodes("stranger")))
		w.extend(t, g, more(edge(other.member(t, "stranger"), "b"))).refuses(t, 404, "execution_not_in_flow").shows(t, fields{"field": "/edges/0/from"})
		w.flowIs(t, g, fields{"edge_count": 1, "graph_revision": 1})
	})
}

func TestF1_an_edge_leaves_pending_once_per_run_of_its_upstream(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a", "b"), node("two", after("a", "b"))))
		first := w.take(t, "a")
		w.complete(t, first, `1`)
		w.complete(t, first, `1`) // the same completion, delivered again
		w.joinIs(t, g, "two", fields{"n": 2, "satisfied": 1, "impossible": 0, "state": "pending"})
		edge := w.edgeOf(t, g, "a", "two").shows(t, fields{"state": "satisfied", "upstream_outcome": "succeeded", "upstream_run": 0})
		if edge.text(t, "resolved_at") == "" {
			t.Errorf("%s", edge.body)
		}
		w.post(t, at(first.id)+"/replay", `{"reason":"again"}`).wants(t, 200)
		w.edgeOf(t, g, "a", "two").shows(t, fields{"state": "pending", "upstream_outcome": nil, "upstream_run": nil, "resolved_at": nil})
		w.joinIs(t, g, "two", fields{"satisfied": 0, "state": "pending"})
		w.breaks(t, "a")
		w.edgeOf(t, g, "a", "two").shows(t, fields{"state": "impossible", "upstream_outcome": "failed", "upstream_run": 1})
	})
}

func TestF1_F2_a_flow_its_members_and_their_joins_show_their_fields(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"pair","output":"b","tags":{"team":"blue"},`+drawn(nodes("a"), node("b", after("a"), `"may_fail":true`, join("quorum", `"k":1,"on_satisfied":"cancel_remaining"`)))+`}`)
		shown := w.flowIs(t, g, fields{
			"flow_id": g.id, "namespace": w.namespace, "kind": "pair", "state": "open", "sealed": true, "graph_revision": 1, "node_count": 2, "edge_count": 1,
			"output": "b", "parent_execution_id": nil, "root_flow_id": g.id, "depth": 0, "tags.team": "blue", "ended_at": nil, "cancel": nil,
		})
		if shown.text(t, "created_at") == "" || shown.text(t, "last_mutation_at") == "" {
			t.Errorf("%s", shown.body)
		}
		members := w.get(t, g.path+"/members").wants(t, 200).shows(t, fields{
			"items.0.name": "a", "items.0.may_fail": nil, "items.0.run_index": 0, "items.0.join": nil,
			"items.1.name": "b", "items.1.may_fail": true, "items.1.execution_id": g.member(t, "b"),
			"items.1.join.policy": "quorum", "items.1.join.k": 1, "items.1.join.on_satisfied": "cancel_remaining", "items.1.join.n": 1,
			"items.1.join.satisfied": 0, "items.1.join.impossible": 0, "items.1.join.state": "pending", "items.1.join.decided_at": nil,
		})
		if len(members.items(t, "items")) != 2 {
			t.Errorf("%s", members.body)
		}
		w.state(t, g.member(t, "b"), fields{"flow_id": g.id, "name": "b", "run_index": 0})
		w.does(t, "a")
		if decided := w.joinIs(t, g, "b", fields{"state": "satisfied", "satisfied": 1}); decided.text(t, "decided_at") == "" {
			t.Errorf("%s", decided.body)
		}
		w.does(t, "b")
		if ended := w.flowIs(t, g, fields{"state": "completed"}); ended.text(t, "ended_at") == "" {
			t.Errorf("%s", ended.body)
		}
	})
}

func TestF1_names_of_members_are_1_to_64_letters_digits_dots_dashes_and_underscores(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		check := func(name string) reply {
			return w.post(t, "/v1/flows", `{"dry_run":true,"kind":"k","nodes":[{"name":"`+name+`","kind":"job"}]}`)
		}
		for _, good := range []string{"a", "0", "A.b_c-d", "a.", "a_", strings.Repeat("a", 64)} {
			check(good).wants(t, 200)
		}
		for _, bad := range []string{"", "-a", ".a", "_a", "a b", "a/b", "a:b", "ä", strings.Repeat("a", 65)} {
			check(bad).refuses(t, 400, "invalid_flow").shows(t, fields{"field": "/nodes/0/name"})
		}
	})
}

func TestF2_an_execution_belongs_to_one_flow_for_ever(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a")))
		other := w.post(t, "/v1/flows?empty=true", `{"kind":"k","flow_id":"`+w.fresh(t, g.id)+`"}`).wants(t, 201)
		join := `{"members":[{"execution_id":"` + g.member(t, "a") + `","name":"stolen"}]}`
		w.post(t, other.header.Get("Location")+"/extend", join).refuses(t, 409, "execution_already_in_flow").shows(t, fields{"current.flow_id": g.id})
		w.get(t, other.header.Get("Location")).shows(t, fields{"node_count": 0, "graph_revision": 0})
		w.does(t, "a")
		w.state(t, g.member(t, "a"), fields{"flow_id": g.id, "name": "a"})
		w.post(t, at(g.member(t, "a"))+"/replay", `{"reason":"again"}`).wants(t, 200)
		w.state(t, g.member(t, "a"), fields{"flow_id": g.id, "name": "a", "run_index": 1})
		w.submit(t, `{"kind":"alone"}`)
		w.listed(t)
		w.get(t, "/v1/executions?flow_id="+bare(g.id)).wants(t, 200).shows(t, fields{"items.0.execution_id": g.member(t, "a"), "items.1": nil})
	})
}

func TestF2_members_sub_flows_and_children_share_the_number_of_their_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("parent"), `{"name":"sub","flow":{"nodes":[`+node("inner")+`]}}`))
		inner := w.take(t, "inner")
		parent := w.take(t, "parent")
		child := w.under(t, parent, "spawn", `"children":[`+node("child")+`]`).wants(t, 200).text(t, "children.child")
		below := w.get(t, "/v1/flows").wants(t, 200)
		if len(below.items(t, "items")) != 3 {
			t.Fatalf("%s", below.body)
		}
		ids := []string{inner.id, parent.id, child, g.member(t, "sub")}
		for _, at := range []string{"items.0.", "items.1.", "items.2."} {
			ids = append(ids, below.text(t, at+"flow_id"))
			below.shows(t, fields{at + "root_flow_id": g.id})
		}
		for _, id := range ids {
			if w.tag(t, id) != w.tag(t, g.id) {
				t.Errorf("%s is not of the partition of %s", id, g.id)
			}
		}
		w.state(t, inner.id, fields{"name": "inner", "parent_id": nil})
		w.get(t, "/v1/flows?kind=sub").wants(t, 200).shows(t, fields{"items.0.parent_execution_id": g.member(t, "sub"), "items.0.depth": 1, "items.0.sealed": true})
		w.get(t, "/v1/flows?kind=children").wants(t, 200).shows(t, fields{"items.0.parent_execution_id": parent.id, "items.0.depth": 1, "items.0.sealed": false})
	})
}
