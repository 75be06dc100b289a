package rules

import (
	"strings"
	"testing"
)

func TestF13_an_empty_flow_is_made_and_known_by_its_id(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		minted := w.empty(t)
		minted.shows(t, fields{"created": true, "kind": "k", "sealed": false, "graph_revision": 0, "node_count": 0, "edge_count": 0, "state": "open"})
		id := w.fresh(t, minted.id)
		create := func(as *world, body string) reply {
			return as.post(t, "/v1/flows?empty=true", `{"flow_id":"`+id+`",`+body+`}`)
		}
		first := create(w, `"kind":"grown","tags":{"a":"1"}`).wants(t, 201).shows(t, fields{"created": true, "flow_id": bare(id), "tags.a": "1"})
		create(w, `"kind":"grown","tags":{"a":"1"}`).wants(t, 200).shows(t, fields{"created": false, "flow_id": bare(id), "graph_revision": 0})
		for _, other := range []string{`"kind":"other","tags":{"a":"1"}`, `"kind":"grown"`, `"kind":"grown","tags":{"a":"2"}`, `"kind":"grown","tags":{"a":"1","b":"2"}`} {
			create(w, other).refuses(t, 409, "flow_already_exists").shows(t, fields{"field": "/flow_id"})
		}
		create(&world{w.serving, w.namespace + "-other", w.leases}, `"kind":"grown","tags":{"a":"1"}`).refuses(t, 409, "flow_already_exists")
		w.get(t, first.header.Get("Location")).wants(t, 200).shows(t, fields{"kind": "grown", "tags.a": "1", "tags.b": nil, "namespace": w.namespace})
		w.post(t, "/v1/flows?empty=true", `{"kind":"k",`+drawn(nodes("a"))+`}`).refuses(t, 400, "invalid_flow")
	})
}

func TestF14_an_extension_joins_new_and_old_members_by_name_or_id(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, growing(nodes("a")))
		old := w.fresh(t, g.id)
		w.submit(t, `{"kind":"old","execution_id":"`+old+`","input":7}`)
		grown := w.extend(t, g, `{"members":[{"execution_id":"`+old+`","name":"joined"}],`+
			drawn(node("b", after("a")), nodes("c", "d"), edge(g.member(t, "a"), "c"), edge(old, "d"), edge("b", bare(old)))+`}`).wants(t, 200)
		grown.shows(t, fields{"created": true, "graph_revision": 2, "node_count": 5, "edge_count": 4, "members.joined": bare(old)})
		for member, reason := range map[string]any{grown.text(t, "members.b"): "a", grown.text(t, "members.c"): "a", grown.text(t, "members.d"): "joined", old: "b"} {
			w.state(t, member, fields{"status": "blocked", "reason": "waiting_for_children", "flow_id": g.id})
			name := w.get(t, at(member)).text(t, "name")
			w.joinIs(t, g, name, fields{"n": 1, "waiting.0.name": reason})
		}
		w.state(t, old, fields{"name": "joined", "input": 7})
		w.does(t, "a", "b", "old", "c", "d")
		w.post(t, g.path+"/seal", "").wants(t, 200).shows(t, fields{"state": "completed"})
	})
}

func TestF14_a_refused_extension_adds_nothing_and_a_node_comes_with_its_edges(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, growing(nodes("a")))
		alone := w.fresh(t, g.id)
		w.submit(t, `{"kind":"alone","execution_id":"`+alone+`"}`)
		before := w.seen(t, g)
		w.extend(t, g, `{"seal":true,"members":[{"execution_id":"`+alone+`","name":"m"}],`+drawn(nodes("b"), edge("a", "b"), edge("a", "missing"))+`}`).
			refuses(t, 404, "execution_not_in_flow").shows(t, fields{"field": "/edges/1/to"})
		if after := w.seen(t, g); after != before {
			t.Errorf("%s\nwas %s", after, before)
		}
		w.state(t, alone, fields{"flow_id": nil, "status": "ready"})
		claimed := make(chan []task, 1)
		go func() {
			defer close(claimed)
			claimed <- w.claims(t, `"lanes":["default"],"kinds":["b"],"wait_ms":60000`)
		}()
		w.extend(t, g, more(node("b", after("a")))).wants(t, 200)
		w.does(t, "a")
		got := <-claimed
		if len(got) != 1 {
			t.Fatal("b was never claimed")
		}
		got[0].shows(t, fields{got[0].of("inputs.0.from"): "a", got[0].of("inputs.0.outcome"): "succeeded"}) // not before a had ended
	})
}

func TestF15_the_checks_of_an_extension_come_in_their_order(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		open := w.flow(t, growing(nodes("a", "b"), edge("a", "b")))
		sealed := w.flow(t, whole(nodes("z")))
		over := w.empty(t)
		w.post(t, over.path+"/seal", "").wants(t, 200)
		none := graph{path: "/v1/flows/0198f0a0-0000-7000-8000-000000000000"}
		const shape, badNode, badMember = `{"name":"x"}`, `{"name":"x","kind":"x","lane":"no lane"}`, `{"execution_id":"0198f0a0-0000-7000-8000-000000000000","name":"m"}`
		body := func(node, member string, edges ...string) string {
			return `{"nodes":[` + node + `],"members":[` + member + `],"edges":[` + strings.Join(edges, ",") + `]}`
		}
		badJoin := node("j", join("any_of"))
		for _, c := range []struct {
			what     string
			on       graph
			revision int
			body     string
			status   int
			code     string
			field    string
		}{
			{"shape before everything", none, 9, body(shape, badMember, edge("a", "a")), 400, "invalid_flow", "/nodes/0/kind"},
			{"flow before its nodes", none, 9, body(badNode, badMember, edge("a", "a")), 404, "flow_not_found", ""},
			{"terminal before the rest", over, 9, body(badNode, badMember, edge("a", "a")), 409, "flow_already_terminal", ""},
			{"sealed before the rest", sealed, 9, body(badNode, badMember, edge("a", "a")), 409, "flow_sealed", ""},
			{"revision before nodes", open, 9, body(badNode, badMember, edge("a", "a")), 409, "stale_graph_revision", "header.If-Match"},
			{"nodes before members", open, 1, body(badNode, badMember, edge("a", "a")), 400, "invalid_argument", "/nodes/0/lane"},
			{"nodes before members, unknown budget", open, 1, body(node("x", `"budget_ids":["missing"]`), badMember, edge("a", "a")), 400, "invalid_policy", "/nodes/0/budget_ids/0"},
			{"members before edges", open, 1, body(badJoin, badMember, edge("a", "a")), 404, "execution_not_found", "/members/0"},
			{"edges before joins", open, 1, body(badJoin, "", edge("a", "a")), 400, "self_referencing_edge", "/edges/0"},
			{"joins", open, 1, body(badJoin, ""), 400, "join_without_edges", "/nodes/0/join"},
			{"k of a join", open, 1, body(node("j", join("quorum"), after("a")), ""), 400, "invalid_join", "/nodes/0/join/k"},
		} {
			got := w.expecting(c.revision).extend(t, c.on, c.body)
			if got.status != c.status || got.text(t, "code") != c.code || got.text(t, "field") != c.field {
				t.Errorf("%s: %d %s", c.what, got.status, got.body)
			}
			if c.code == "stale_graph_revision" {
				got.shows(t, fields{"current.graph_revision": 1})
			}
		}
		w.flowIs(t, open, fields{"graph_revision": 1, "node_count": 2, "edge_count": 1, "sealed": false})
	})
}

func TestF16_F17_what_is_there_already_is_unchanged_and_raises_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, growing(node("a", `"input":1`), node("b", join("any_of"), after("a"), `"may_fail":true`)))
		old := w.fresh(t, g.id)
		w.submit(t, `{"kind":"old","execution_id":"`+old+`"}`)
		member := `{"members":[{"execution_id":"` + old + `","name":"m"}]}`
		w.extend(t, g, member).wants(t, 200).shows(t, fields{"created": true, "graph_revision": 2, "node_count": 3})
		for what, body := range map[string]string{
			"member":        member,
			"node":          more(node("a", `"input":1`, `"priority":9`, `"tags":{"x":"y"}`)),
			"node and edge": more(node("b", join("any_of"), `"may_fail":true`, after("a"))),
			"edge":          more(edge("a", "b", `"pass":"a"`)),
			"nothing":       `{}`,
		} {
			got := w.extend(t, g, body).wants(t, 200)
			if got.field(t, "created") != false || got.field(t, "graph_revision") != 2.0 {
				t.Errorf("%s: %s", what, got.body)
			}
		}
		for what, part := range map[string]string{
			"input":    node("a", `"input":2`),
			"no input": node("a"),
			"kind":     `{"name":"a","kind":"other","input":1}`,
			"lane":     node("a", `"input":1`, `"lane":"other"`),
			"policy":   node("a", `"input":1`, `"policy":{"retry_policy":{"max_retries":3}}`),
			"may_fail": node("b", join("any_of"), after("a")),
			"join":     node("b", `"may_fail":true`, after("a")),
		} {
			got := w.extend(t, g, more(nodes("new"), part))
			if name := part[len(`{"name":"`)]; got.status != 409 || got.text(t, "code") != "name_taken" || got.text(t, "field") != "/nodes/1/name" || got.text(t, "current.execution_id") != g.member(t, string(name)) {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		}
		w.flowIs(t, g, fields{"graph_revision": 2, "node_count": 3, "edge_count": 1})
	})
}

func TestF16_existing_executions_that_cannot_become_members(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"k","flow_id":"`+w.fresh(t, "{fp:5}:x")+`","seal":false,`+drawn(nodes("a"))+`}`)
		other := w.flow(t, `{"kind":"k","flow_id":"`+w.fresh(t, g.id)+`",`+drawn(nodes("theirs"))+`}`)
		strange := w.submit(t, `{"kind":"s","execution_id":"`+w.fresh(t, "{fp:6}:x")+`"}`)
		mine, second := w.submit(t, `{"kind":"m","execution_id":"`+w.fresh(t, g.id)+`"}`), w.submit(t, `{"kind":"m","execution_id":"`+w.fresh(t, g.id)+`"}`)
		hidden := (&world{w.serving, w.namespace + "-other", w.leases}).submit(t, `{"kind":"m","execution_id":"`+w.fresh(t, g.id)+`"}`)
		w.extend(t, g, `{"members":[{"execution_id":"`+mine+`","name":"m"}]}`).wants(t, 200).shows(t, fields{"graph_revision": 2})
		before := w.seen(t, g)
		for _, c := range []struct {
			what, id, name string
			status         int
			code, field    string
		}{
			{"unknown", w.fresh(t, g.id), "x", 404, "execution_not_found", "/members/0"},
			{"another namespace", hidden, "x", 404, "execution_not_found", "/members/0"},
			{"another number", strange, "x", 400, "partition_mismatch", "/members/0/execution_id"},
			{"another flow", other.member(t, "theirs"), "x", 409, "execution_already_in_flow", "/members/0"},
			{"another name", mine, "x", 409, "execution_already_in_flow", "/members/0"},
			{"a name that is taken", second, "a", 409, "name_taken", "/members/0/name"},
		} {
			got := w.extend(t, g, `{"members":[{"execution_id":"`+c.id+`","name":"`+c.name+`"}],`+drawn(nodes("new"))+`}`)
			if got.status != c.status || got.text(t, "code") != c.code || got.text(t, "field") != c.field {
				t.Errorf("%s: %d %s", c.what, got.status, got.body)
			}
		}
		if after := w.seen(t, g); after != before {
			t.Errorf("%s\nwas %s", after, before)
		}
		w.state(t, second, fields{"flow_id": nil})
		w.state(t, strange, fields{"flow_id": nil})
		w.state(t, other.member(t, "theirs"), fields{"flow_id": other.id})
	})
}

func TestF17_each_change_raises_the_revision_by_one_and_of_two_with_one_expectation_one_wins(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.empty(t)
		for revision, body := range []string{more(nodes("a", "b", "c")), more(edge("a", "b")), more(node("d", after("a")), edge("b", "c"))} {
			w.expecting(revision).extend(t, g, body).wants(t, 200).shows(t, fields{"graph_revision": revision + 1, "created": true})
		}
		won, stale := 0, 0
		for _, got := range atOnce(4, func(n int) reply { return w.expecting(3).extend(t, g, more(nodes("x"+string(rune('0'+n))))) }) {
			switch got.status {
			case 200:
				won++
				got.shows(t, fields{"graph_revision": 4})
			default:
				stale++
				got.refuses(t, 409, "stale_graph_revision").shows(t, fields{"current.graph_revision": 4})
			}
		}
		if won != 1 || stale != 3 {
			t.Errorf("%d won, %d were stale", won, stale)
		}
		w.expecting(3).post(t, g.path+"/seal", "").refuses(t, 409, "stale_graph_revision").shows(t, fields{"current.graph_revision": 4})
		w.flowIs(t, g, fields{"graph_revision": 4, "node_count": 5, "edge_count": 3, "sealed": false})
		w.expecting(4).post(t, g.path+"/seal", "").wants(t, 200).shows(t, fields{"graph_revision": 5})
	})
}

func TestF18_a_join_is_set_while_no_edge_leads_to_its_member(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, growing(nodes("a", "b", "c")))
		set := func(body string) reply { return w.send(t, "PUT", g.path+"/members/c/join", body) }
		w.joinIs(t, g, "c", fields{"policy": "all_of", "k": nil, "on_satisfied": "let_run", "n": 0, "state": nil})
		set(`{"policy":"all_of"}`).wants(t, 200).shows(t, fields{"outcome": "unchanged"})
		set(`{"policy":"quorum","k":2,"on_satisfied":"cancel_remaining"}`).wants(t, 200).shows(t, fields{"outcome": "set", "policy": "quorum", "k": 2, "on_satisfied": "cancel_remaining"})
		w.flowIs(t, g, fields{"graph_revision": 2})
		set(`{"policy":"quorum","k":2,"on_satisfied":"cancel_remaining"}`).wants(t, 200).shows(t, fields{"outcome": "unchanged"})
		set(`{"policy":"quorum","k":1}`).wants(t, 200).shows(t, fields{"outcome": "set", "k": 1, "on_satisfied": "let_run"})
		w.flowIs(t, g, fields{"graph_revision": 3})
		for body, field := range map[string]string{
			`{"policy":"quorum"}`: "/k", `{"policy":"quorum","k":0}`: "/k", `{"policy":"any_of","k":1}`: "/k", `{"policy":"most"}`: "/policy",
		} {
			set(body).refuses(t, 400, "invalid_join").shows(t, fields{"field": field})
		}
		w.extend(t, g, more(edge("a", "c"))).wants(t, 200).shows(t, fields{"graph_revision": 4})
		w.joinIs(t, g, "c", fields{"policy": "quorum", "k": 1, "n": 1, "state": "pending"})
		set(`{"policy":"quorum","k":1,"on_satisfied":"let_run"}`).wants(t, 200).shows(t, fields{"outcome": "unchanged"})
		for _, other := range []string{`{"policy":"all_of"}`, `{"policy":"quorum","k":2}`, `{"policy":"quorum","k":1,"on_satisfied":"cancel_remaining"}`} {
			set(other).refuses(t, 409, "join_already_fixed")
		}
		w.send(t, "PUT", g.path+"/members/missing/join", `{"policy":"any_of"}`).refuses(t, 404, "execution_not_in_flow")
		w.joinIs(t, g, "c", fields{"policy": "quorum", "k": 1, "on_satisfied": "let_run"})
		w.flowIs(t, g, fields{"graph_revision": 4})
	})
}
