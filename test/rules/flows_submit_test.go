package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

func TestF8_F10_a_graph_is_submitted_in_one_call_and_members_without_edges_are_ready(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"pair","nodes":[{"name":"a","kind":"job"},{"name":"b","kind":"job","after":["a"]}]}`)
		g.shows(t, fields{"graph_revision": 1, "created": true, "sealed": true})
		w.state(t, g.member(t, "a"), fields{"status": "ready", "flow_id": g.id})
		w.state(t, g.member(t, "b"), fields{"status": "blocked", "reason": "waiting_for_children"})
		first := w.claim(t, "default")
		first.shows(t, fields{first.of("execution_id"): g.member(t, "a")})
		w.complete(t, first, `1`)
		if second := w.claim(t, "default"); second.id != g.member(t, "b") {
			t.Errorf("claimed %s", second.body)
		}
	})
}

func TestF8_a_submit_is_taken_whole_or_not_at_all(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		budget := `"budgets":[{"name":"own-` + w.namespace + `","dimensions":{"tokens":{"hard":10}}}]`
		good := []string{nodes("a"), node("b", after("a")), edge("b", "c"), node("c")}
		w.post(t, "/v1/flows", `{"kind":"k",`+budget+`,`+drawn(append(good, node("bad", `"lane":"no lane"`))...)+`}`).refuses(t, 400, "invalid_argument")
		w.post(t, "/v1/flows", `{"kind":"k",`+budget+`,`+drawn(append(good, edge("c", "a"))...)+`}`).refuses(t, 409, "cycle_detected")
		w.get(t, "/v1/flows").wants(t, 200).shows(t, fields{"items.0": nil})
		if n := w.counted(t); n != 0 {
			t.Errorf("%d executions were made", n)
		}
		w.get(t, "/v1/budgets").wants(t, 200).shows(t, fields{"items.0": nil})
		w.post(t, "/v1/flows", `{"dry_run":true,"kind":"k",`+drawn(good...)+`}`).wants(t, 200).shows(t, fields{"ok": true, "order.0": "a", "order.1": "b", "order.2": "c"})
		w.get(t, "/v1/flows").wants(t, 200).shows(t, fields{"items.0": nil})
		g := w.flow(t, `{"kind":"k",`+budget+`,`+drawn(good...)+`}`)
		g.shows(t, fields{"node_count": 3, "edge_count": 2})
		w.get(t, "/v1/budgets").wants(t, 200).shows(t, fields{"items.0.name": "own-" + w.namespace, "items.1": nil})
	})
}

func TestF8_F12_ids_that_a_caller_brings_carry_the_number_of_the_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		flow := w.fresh(t, "{fp:77}:x")
		own, plain := w.fresh(t, flow), bare(w.fresh(t, flow))
		body := `{"kind":"k","flow_id":"` + flow + `",` + drawn(node("a", `"execution_id":"`+own+`"`), node("b", `"execution_id":"`+plain+`"`), nodes("c")) + `}`
		g := w.flow(t, body)
		g.shows(t, fields{"flow_id": bare(flow), "partition": 77, "members.a": bare(own), "members.b": plain})
		for _, name := range []string{"a", "b", "c"} {
			w.state(t, g.member(t, name), fields{"partition": 77})
		}
		other := w.fresh(t, "{fp:78}:x")
		w.post(t, "/v1/flows", `{"kind":"k","flow_id":"`+w.fresh(t, flow)+`",`+drawn(nodes("a"), node("b", `"execution_id":"`+other+`"`))+`}`).
			refuses(t, 400, "partition_mismatch").shows(t, fields{"field": "/nodes/1/execution_id"})
		w.post(t, "/v1/flows", whole(node("a", `"execution_id":"`+bare(own)+`"`))).refuses(t, 409, "id_conflict").shows(t, fields{"field": "/nodes/0/execution_id"})
		w.get(t, at(other)).wants(t, 404)
	})
}

// nextYear is a moment so many years ahead.
func nextYear(n int) string {
	return time.Now().UTC().AddDate(n, 0, 0).Truncate(time.Second).Format("2006-01-02T15:04:05.000Z")
}

func TestF9_a_node_has_the_fields_of_a_single_submit_and_takes_the_rest_from_the_defaults(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const policy = `"policy":{"retry_policy":{"max_retries":7}}`
		soon, later := nextYear(1), nextYear(2)
		own := `"kind":"own","lane":"fast","input_text":"hi","input_content_type":"text/x-own","priority":9,"delay_ms":600000,"deadline_at":"` + soon + `","tags":{"a":"1"},` + policy
		defaults := `"defaults":{"kind":"usual","lane":"slow","input":{"n":1},"priority":3,"deadline_at":"` + later + `","tags":{"b":"2"},"policy":{"retry_policy":{"max_retries":5}}}`
		g := w.flow(t, `{"kind":"k",`+defaults+`,"nodes":[{"name":"own",`+own+`},{"name":"usual"},{"name":"mixed","kind":"mixed","tags":{"c":"3"}},{"name":"bare","tags":{},"priority":0}]}`)
		w.state(t, g.member(t, "own"), fields{
			"kind": "own", "lane": "fast", "input_text": "hi", "input_content_type": "text/x-own", "priority": 9, "status": "delayed",
			"deadline_at": soon, "tags.a": "1", "tags.b": nil,
		})
		w.get(t, at(g.member(t, "own"))+"?view=full").shows(t, fields{"policy.retry_policy.max_retries": 7})
		w.state(t, g.member(t, "usual"), fields{
			"kind": "usual", "lane": "slow", "input.n": 1, "input_content_type": "application/json", "priority": 3, "status": "ready",
			"deadline_at": later, "tags.b": "2",
		})
		w.get(t, at(g.member(t, "usual"))+"?view=full").shows(t, fields{"policy.retry_policy.max_retries": 5})
		w.state(t, g.member(t, "mixed"), fields{"kind": "mixed", "lane": "slow", "priority": 3, "tags.b": nil, "tags.c": "3"})
		w.state(t, g.member(t, "bare"), fields{"kind": "usual", "lane": "slow", "priority": 0, "tags": nil}) // it left out neither
		w.post(t, "/v1/flows", `{"kind":"k","nodes":[{"name":"neither"}]}`).refuses(t, 400, "invalid_flow").shows(t, fields{"field": "/nodes/0/kind"})
		w.post(t, "/v1/flows", `{"kind":"k","nodes":[`+node("both", `"flow":{"nodes":[]}`)+`]}`).refuses(t, 400, "invalid_flow").shows(t, fields{"field": "/nodes/0/flow"})
	})
}

func TestF9_after_and_edges_say_who_waits_for_whom(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a", "b"), node("c", after("a", "b")), nodes("d"), edge("a", "d"), edge("b", "d", `"kind":"any_terminal","pass":"x"`),
			`{"name":"sub","flow":{"nodes":[`+node("inner")+`]},"after":["a"],"may_fail":true}`))
		g.shows(t, fields{"node_count": 5, "edge_count": 5})
		w.edgeOf(t, g, "a", "c").shows(t, fields{"kind": "success_only"})
		w.edgeOf(t, g, "b", "c").shows(t, fields{"kind": "success_only"})
		w.edgeOf(t, g, "a", "d").shows(t, fields{"kind": "success_only", "pass": nil})
		w.edgeOf(t, g, "b", "d").shows(t, fields{"kind": "any_terminal", "pass": "x"})
		w.joinIs(t, g, "c", fields{"policy": "all_of", "on_satisfied": "let_run", "n": 2, "waiting.0.name": "a", "waiting.1.name": "b"})
		w.get(t, g.path+"/members").wants(t, 200).shows(t, fields{"items.4.name": "sub", "items.4.sub_flow": true, "items.4.may_fail": true, "items.4.join.n": 1})
	})
}

func TestF10_the_answer_names_every_member_and_waiting_claimers_are_woken(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		claimed := w.seeks(t, "claim", `"lanes":["default"],"kinds":["a"]`)
		g := w.flow(t, whole(nodes("a"), node("late", `"delay_ms":600000`), node("b", after("a")), node("later", after("a"), `"delay_ms":600000`)))
		g.shows(t, fields{"graph_revision": 1, "created": true, "state": "open", "counts": nil})
		if members, _ := g.field(t, "members").(map[string]any); len(members) != 4 {
			t.Errorf("%s", g.body)
		}
		w.state(t, g.member(t, "late"), fields{"status": "delayed"})
		w.state(t, g.member(t, "b"), fields{"status": "blocked", "reason": "waiting_for_children", "public_state": "waiting_children"})
		w.state(t, g.member(t, "later"), fields{"status": "blocked", "reason": "waiting_for_children"})
		(<-claimed).wants(t, 200).shows(t, fields{"tasks.0.execution_id": g.member(t, "a"), "tasks.1": nil})
	})
}

func TestF11_a_key_or_an_id_names_one_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		flow := w.fresh(t, "{fp:9}:x")
		for name, c := range map[string]struct{ head, refusal, field string }{
			"key": {`"idempotency_key":"once"`, "idempotency_conflict", "/idempotency_key"},
			"id":  {`"flow_id":"` + flow + `"`, "flow_already_exists", "/flow_id"},
		} {
			body := func(kind string, parts ...string) string {
				return `{` + c.head + `,"kind":"` + kind + `",` + drawn(parts...) + `}`
			}
			first := w.flow(t, body(name, nodes("a", "b"), edge("a", "b")))
			// Order, priority, delay and tags do not make another graph.
			again := w.post(t, "/v1/flows", body(name, node("b", `"priority":5`), node("a", `"tags":{"x":"y"}`), edge("a", "b"))).wants(t, 200)
			again.shows(t, fields{"created": false, "flow_id": first.id, "members.a": first.member(t, "a"), "members.b": first.member(t, "b"), "graph_revision": 1})
			if again.header.Get("Location") != first.path {
				t.Errorf("Location %s", again.header.Get("Location"))
			}
			for what, other := range map[string]string{
				"kind":  body("other", nodes("a", "b"), edge("a", "b")),
				"nodes": body(name, nodes("a", "b", "c"), edge("a", "b")),
				"input": body(name, node("a", `"input":1`), node("b"), edge("a", "b")),
				"edges": body(name, nodes("a", "b"), edge("a", "b", `"kind":"any_terminal"`)),
				"join":  body(name, node("a"), node("b", join("any_of")), edge("a", "b")),
				"seal":  strings.Replace(body(name, nodes("a", "b"), edge("a", "b")), `"kind"`, `"seal":false,"kind"`, 1),
			} {
				if got := w.post(t, "/v1/flows", other); got.status != 409 {
					t.Errorf("%s: %d %s", what, got.status, got.body)
				} else {
					got.shows(t, fields{"code": c.refusal, "field": c.field})
				}
			}
			w.get(t, "/v1/flows?kind="+name).wants(t, 200).shows(t, fields{"items.0.flow_id": first.id, "items.1": nil})
		}
		elsewhere := &world{w.serving, w.namespace + "-other", w.leases}
		elsewhere.flow(t, `{"idempotency_key":"once","kind":"another",`+drawn(nodes("z"))+`}`).shows(t, fields{"created": true})
		elsewhere.post(t, "/v1/flows", `{"flow_id":"`+flow+`","kind":"id",`+drawn(nodes("a", "b"), edge("a", "b"))+`}`).refuses(t, 409, "flow_already_exists")
	})
}

func TestF11_the_key_of_a_flow_holds_for_a_day(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) {
		body := `{"idempotency_key":"once","kind":"k",` + drawn(nodes("a")) + `}`
		first := w.flow(t, body)
		hand.TurnTo(hand.Now().Add(24*time.Hour - time.Millisecond))
		w.post(t, "/v1/flows", body).wants(t, 200).shows(t, fields{"created": false, "flow_id": first.id})
		hand.TurnTo(hand.Now().Add(time.Millisecond))
		second := w.flow(t, `{"idempotency_key":"once","kind":"other",`+drawn(nodes("b"))+`}`)
		if second.id == first.id {
			t.Errorf("%s", second.body)
		}
		w.flowIs(t, first, fields{"state": "open", "kind": "k"})
	})
}

func TestF8_F11_of_many_submits_at_once_under_one_key_one_makes_the_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		made, ids := 0, map[string]bool{}
		for _, got := range atOnce(8, func(n int) reply {
			return w.post(t, "/v1/flows", fmt.Sprintf(`{"idempotency_key":"once","kind":"k",%s}`, drawn(node("a", fmt.Sprintf(`"priority":%d`, n)))))
		}) {
			if ids[got.text(t, "flow_id")] = true; got.status == 201 {
				made++
			} else {
				got.wants(t, 200)
			}
		}
		if made != 1 || len(ids) != 1 {
			t.Errorf("%d made %d flows", made, len(ids))
		}
	})
}
