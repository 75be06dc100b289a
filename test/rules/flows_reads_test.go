package rules

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
)

func TestF59_a_flow_is_shown_with_all_its_fields(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, line(`,"output":"b","tags":{"team":"blue"}`, "a", "b"))
		shown := w.get(t, g.path).wants(t, 200).shows(t, fields{
			"flow_id": g.id, "namespace": w.namespace, "kind": "line", "state": "open", "phase": "waiting", "sealed": true, "graph_revision": 1, "node_count": 2,
			"edge_count": 1, "output": "b", "parent_execution_id": nil, "root_flow_id": g.id, "depth": 0, "tags.team": "blue", "creator": "tester", "ended_at": nil,
			"cancel": nil, "joins": map[string]any{"pending": 1.0}, "counts.total": 2, "counts.waiting": 1, "counts.waiting_children": 1,
		})
		if shown.text(t, "created_at") == "" || shown.field(t, "last_mutation_at") != shown.field(t, "created_at") {
			t.Errorf("%s", shown.body)
		}
		w.breaks(t, "a")
		ended := w.over(t, g.path, fields{
			"state": "failed", "phase": nil, "joins": map[string]any{"impossible": 1.0}, "counts.failed": 1, "counts.skipped": 1, "counts.waiting": 0, "counts.waiting_children": 0,
		})
		if ended.text(t, "ended_at") == "" || ended.field(t, "last_mutation_at") == shown.field(t, "last_mutation_at") {
			t.Errorf("%s", ended.body)
		}
		w.get(t, flowAt("0198f0a0-0000-7000-8000-000000000000")).refuses(t, 404, "flow_not_found")
	})
}

func TestF59_members_are_counted_by_every_public_state(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		quota := "q-" + w.namespace
		w.send(t, "PUT", "/v1/quotas/"+quota, `{"concurrency_limit":1}`).wants(t, 200)
		g := w.flow(t, `{"kind":"motley","nodes":[`+nodes("waiting", "resumable", "suspended", "completed", "failed", "cancelled")+`,
			{"name":"active","kind":"limited","priority":9,"quotas":[{"quota":"`+quota+`"}]},{"name":"rate_limited","kind":"limited","quotas":[{"quota":"`+quota+`"}]},
			{"name":"delayed","kind":"delayed","delay_ms":3600000},{"name":"waiting_children","kind":"blocked","after":["active"]},{"name":"skipped","kind":"skipped","after":["failed"]},
			{"name":"expired","kind":"expired","delay_ms":3600000,"policy":{"timeout_policy":{"execution_deadline_ms":1}}}]}`)
		w.over(t, at(g.member(t, "expired")), fields{"status": "expired"})
		for _, kind := range []string{"resumable", "suspended"} {
			w.under(t, w.take(t, kind), "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
		}
		w.post(t, at(g.member(t, "resumable"))+"/resume", `{}`).wants(t, 200)
		w.does(t, "completed")
		w.breaks(t, "failed")
		w.post(t, at(g.member(t, "cancelled"))+"/cancel", `{}`).wants(t, 200)
		w.take(t, "limited")
		w.claims(t, `"lanes":["default"],"kinds":["limited"]`)

		want := fields{"counts.total": 12, "phase": "running"}
		states := []string{"waiting", "resumable", "delayed", "rate_limited", "waiting_children", "active", "suspended", "completed", "failed", "cancelled", "expired", "skipped"}
		for _, state := range states {
			w.state(t, g.member(t, state), fields{"public_state": state})
			want["counts."+state] = 1
			w.get(t, g.path+"/members?state="+state).wants(t, 200).lists(t, "items", "name", state)
		}
		shown := w.get(t, g.path).wants(t, 200).shows(t, want)
		if counts, _ := shown.field(t, "counts").(map[string]any); len(counts) != 13 {
			t.Errorf("counts are %v", counts)
		}
		w.get(t, g.path+"/members?state=odd").refuses(t, 400, "invalid_argument")
	})
}

func TestF60_the_graph_shows_nodes_and_edges_and_comes_in_parts_by_name(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","nodes":[{"name":"c","kind":"c","may_fail":true,"join":{"policy":"any_of","on_satisfied":"cancel_remaining"}},`+nodes("b", "a", "d")+`],
			"edges":[{"from":"a","to":"c","pass":"p"},{"from":"b","to":"c","kind":"failure_only"}]}`)
		w.does(t, "a")
		w.over(t, at(g.member(t, "b")), fields{"status": "cancelled"})
		whole := w.get(t, g.path+"/graph").wants(t, 200).lists(t, "nodes", "name", "a", "b", "c", "d").count(t, "edges", 2)
		whole.shows(t, fields{
			"flow.flow_id": g.id, "flow.counts": nil, "next_cursor": nil,
			"nodes.0.execution_id": g.member(t, "a"), "nodes.0.public_state": "completed", "nodes.0.join": nil, "nodes.0.may_fail": nil,
			"nodes.2.execution_id": g.member(t, "c"), "nodes.2.public_state": "waiting", "nodes.2.may_fail": true, "nodes.2.started_at": nil, "nodes.2.ended_at": nil,
			"nodes.2.join.policy": "any_of", "nodes.2.join.on_satisfied": "cancel_remaining", "nodes.2.join.n": 2, "nodes.2.join.satisfied": 2, "nodes.2.join.state": "satisfied",
			"edges.0.upstream": "a", "edges.0.upstream_id": g.member(t, "a"), "edges.0.downstream": "c", "edges.0.downstream_id": g.member(t, "c"), "edges.0.kind": "success_only",
			"edges.0.pass": "p", "edges.0.state": "satisfied", "edges.0.upstream_outcome": "succeeded", "edges.0.upstream_run": 0,
			"edges.1.upstream": "b", "edges.1.kind": "failure_only", "edges.1.pass": nil, "edges.1.upstream_outcome": "cancelled",
		})
		for path, ended := range map[string]bool{"nodes.0.started_at": true, "nodes.0.ended_at": true, "edges.0.resolved_at": true, "nodes.3.started_at": false} {
			if (whole.text(t, path) != "") != ended {
				t.Errorf("%s: %s", path, whole.body)
			}
		}
		var names []string
		for cursor, parts := "", 0; parts < 4; parts++ {
			part := w.get(t, g.path+"/graph?limit=1&cursor="+url.QueryEscape(cursor)).wants(t, 200).count(t, "nodes", 1)
			names = append(names, part.texts(t, "nodes", "name")...)
			part.count(t, "edges", map[string]int{"a": 1, "b": 1}[names[parts]]) // those that lead from them
			if cursor = part.text(t, "next_cursor"); (cursor == "") != (parts == 3) {
				t.Fatalf("after %v: %s", names, part.body)
			}
		}
		if fmt.Sprint(names) != "[a b c d]" {
			t.Errorf("parts are %v", names)
		}
		w.get(t, g.path+"/graph?limit=0").refuses(t, 400, "invalid_argument")
	})
}

func TestF60_members_edges_and_joins_are_read_for_themselves(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","nodes":[`+nodes("a", "b", "c")+`,{"name":"d","kind":"d","after":["a","b","c"],"join":{"policy":"quorum","k":2}},{"name":"e","kind":"e","after":["a"]}]}`)
		w.does(t, "a")
		w.breaks(t, "b")
		w.get(t, g.path+"/members").wants(t, 200).lists(t, "items", "name", "a", "b", "c", "d", "e")
		w.get(t, g.path+"/members?state=waiting").wants(t, 200).lists(t, "items", "name", "c", "e")
		first := w.get(t, g.path+"/members?limit=2").wants(t, 200).lists(t, "items", "name", "a", "b")
		w.get(t, g.path+"/members?limit=3&cursor="+url.QueryEscape(first.text(t, "next_cursor"))).wants(t, 200).lists(t, "items", "name", "c", "d", "e").shows(t, fields{"next_cursor": nil})

		for query, want := range map[string][]string{
			"?to=d": {"a", "b", "c"}, "?from=c": {"c"}, "?from=a&to=e": {"a"}, "?to=" + url.QueryEscape(g.member(t, "e")): {"a"}, "?to=a": {}, "?from=e": {},
		} {
			got := w.get(t, g.path+"/edges"+query).wants(t, 200).texts(t, "items", "upstream")
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: edges from %v, want %v", query, got, want)
			}
		}
		if below := w.get(t, g.path+"/edges?from=a").wants(t, 200).texts(t, "items", "downstream"); len(below) != 2 || !slices.Contains(below, "d") || !slices.Contains(below, "e") {
			t.Errorf("a leads to %v", below)
		}
		w.get(t, g.path+"/edges").wants(t, 200).count(t, "items", 4)
		one := w.edge(t, g, "b", "d").shows(t, fields{"state": "impossible", "upstream_outcome": "failed", "pass": "b"})
		if got := w.get(t, g.path+"/edges/"+one.text(t, "edge_id")).wants(t, 200); string(got.at(t, "edge_id").body) != string(one.at(t, "edge_id").body) || got.text(t, "upstream") != "b" {
			t.Errorf("one edge: %s", got.body)
		}
		w.get(t, g.path+"/edges/0198f0a0-0000-7000-8000-000000000009").refuses(t, 404, "edge_not_found")
		other := w.flow(t, line("", "x", "y"))
		w.get(t, other.path+"/edges/"+one.text(t, "edge_id")).refuses(t, 404, "edge_not_found")

		w.get(t, g.path+"/members/d/join").wants(t, 200).shows(t, fields{
			"policy": "quorum", "k": 2, "on_satisfied": "let_run", "n": 3, "satisfied": 1, "impossible": 1, "state": "pending", "decided_at": nil,
			"waiting.0.execution_id": g.member(t, "c"),
		}).lists(t, "waiting", "name", "c")
		decided := w.get(t, g.path+"/members/"+url.PathEscape(g.member(t, "e"))+"/join").wants(t, 200).shows(t, fields{"state": "satisfied", "satisfied": 1, "waiting": nil})
		if decided.text(t, "decided_at") == "" {
			t.Errorf("%s", decided.body)
		}
		w.get(t, g.path+"/members/missing/join").refuses(t, 404, "execution_not_in_flow")
	})
}

func TestF60_flows_are_listed_newest_first_by_every_filter(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		var ids []string
		for i := range 3 {
			g := w.flow(t, fmt.Sprintf(`{"kind":"k%d","tags":{"n":"%d","all":"yes"},"nodes":[%s]}`, i, i, nodes("a")))
			ids = append(ids, g.id)
			w.does(t, "a") // so that the next one is younger
			w.over(t, g.path, fields{"state": "completed"})
		}
		open := w.flow(t, line("", "x"))
		oldest, middle, newest := ids[0], ids[1], ids[2]
		made := url.QueryEscape(w.get(t, flowAt(newest)).wants(t, 200).text(t, "created_at"))
		for query, want := range map[string][]string{
			"":                                {open.id, newest, middle, oldest},
			"?kind=k1":                        {middle},
			"?state=completed":                {newest, middle, oldest},
			"?state=open":                     {open.id},
			"?tag.n=0":                        {oldest},
			"?tag.all=yes&state=completed":    {newest, middle, oldest},
			"?created_from=" + made:           {open.id, newest},
			"?created_to=" + made:             {middle, oldest},
			"?kind=k2&created_to=" + made:     {},
			"?kind=k0&state=failed":           {},
			"?tag.all=no":                     {},
			"?state=cancelled":                {},
			"?limit=2":                        {open.id, newest},
			"?state=completed&tag.n=1&kind=k": {},
		} {
			w.get(t, "/v1/flows"+query).wants(t, 200).lists(t, "items", "flow_id", want...)
		}
		first := w.get(t, "/v1/flows?limit=3").wants(t, 200)
		w.get(t, "/v1/flows?limit=3&cursor="+url.QueryEscape(first.text(t, "next_cursor"))).wants(t, 200).lists(t, "items", "flow_id", oldest).shows(t, fields{"next_cursor": nil})
		w.get(t, "/v1/flows?state=odd").refuses(t, 400, "invalid_argument")
	})
}

func TestF61_a_wait_ends_with_the_flow_or_its_time(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, line("", "a", "b"))
		w.get(t, g.path+"?wait_ms=20").wants(t, 200).shows(t, fields{"state": "open"})
		w.get(t, g.path+"?wait_ms=-1").refuses(t, 400, "invalid_argument")
		w.get(t, flowAt("0198f0a0-0000-7000-8000-000000000000")+"?wait_ms=20000").refuses(t, 404, "flow_not_found")
		done := make(chan reply, 1)
		go func() {
			defer close(done)
			done <- w.get(t, g.path+"?wait_ms=20000")
		}()
		w.does(t, "a", "b")
		(<-done).wants(t, 200).shows(t, fields{"state": "completed", "counts.completed": 2})
		if applied := w.preferring(t, "GET", g.path, "", "wait=90"); applied != "wait=60" {
			t.Errorf("it would have waited %q", applied)
		}
	})
}

func TestF61_tags_of_a_flow_are_set_as_those_of_executions(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, line(`,"tags":{"a":"1","b":"2"}`, "x"))
		w.send(t, "PATCH", g.path+"/tags", `{"a":null,"b":"3","c":"4"}`).wants(t, 200).shows(t, fields{"tags": map[string]any{"b": "3", "c": "4"}})
		w.send(t, "PATCH", g.path+"/tags", `{"ok":"1","":"bad"}`).refuses(t, 400, "invalid_tag_key") // all or nothing
		w.send(t, "PATCH", g.path+"/tags", `{"ok":"1","no tag":null}`).refuses(t, 400, "invalid_tag_key")
		w.send(t, "PATCH", g.path+"/tags", `{"ff.x":null}`).refuses(t, 400, "invalid_tag_key")
		w.get(t, g.path).wants(t, 200).shows(t, fields{"tags": map[string]any{"b": "3", "c": "4"}, "graph_revision": 1})
		w.get(t, "/v1/flows?tag.b=3").wants(t, 200).count(t, "items", 1)
		w.get(t, "/v1/flows?tag.a=1").wants(t, 200).count(t, "items", 0)
		w.does(t, "x")
		w.over(t, g.path, fields{"state": "completed"})
		w.send(t, "PUT", g.path+"/tags", `{"late":"yes"}`).wants(t, 200).shows(t, fields{"tags": map[string]any{"late": "yes"}}) // terminal too
		w.get(t, g.path).wants(t, 200).shows(t, fields{"tags": map[string]any{"late": "yes"}, "state": "completed"})
		w.send(t, "PATCH", flowAt("0198f0a0-0000-7000-8000-000000000000")+"/tags", `{"a":"b"}`).refuses(t, 404, "flow_not_found")
	})
}

func TestF62_explain_names_each_edge_that_a_blocked_member_waits_for(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","nodes":[`+nodes("done", "broken", "running", "ready")+`,{"name":"q","kind":"q","after":["done","broken","running","ready"],"join":{"policy":"quorum","k":3}}]}`)
		w.does(t, "done")
		w.breaks(t, "broken")
		w.take(t, "running")
		told := w.get(t, at(g.member(t, "q"))+"/explain").wants(t, 200).shows(t, fields{
			"status": "blocked", "reason": "waiting_for_children", "blockers.0.code": "dependencies", "blockers.0.data.policy": "quorum",
			"blockers.0.data.done": 1, "blockers.0.data.needed": 3, "blockers.0.data.impossible": 1,
		}).count(t, "blockers.0.data.open", 3)
		open := map[string]fields{}
		for i, name := range told.texts(t, "blockers.0.data.open", "name") {
			one := told.at(t, fmt.Sprintf("blockers.0.data.open.%d", i))
			open[name] = fields{"state": one.field(t, "state"), "public_state": one.field(t, "public_state"), "kind": one.field(t, "kind"), "id": one.field(t, "execution_id")}
		}
		for name, want := range map[string][2]string{"broken": {"impossible", "failed"}, "running": {"pending", "active"}, "ready": {"pending", "waiting"}} {
			if got := fmt.Sprint(open[name]); got != fmt.Sprint(fields{"state": want[0], "public_state": want[1], "kind": "success_only", "id": g.member(t, name)}) {
				t.Errorf("%s is %s: %s", name, got, told.body)
			}
		}
	})
}
