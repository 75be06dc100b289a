package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestF63_every_step_of_a_flow_is_told(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, line(`,"seal":false,"tags":{"team":"blue"}`, "a", "b"))
		c := w.post(t, g.path+"/extend", `{"nodes":[{"name":"c","kind":"c","after":["b"]}]}`).wants(t, 200).text(t, "members.c")
		w.post(t, g.path+"/extend", `{"nodes":[{"name":"c","kind":"c","after":["b"]}]}`).wants(t, 200) // changes nothing, tells nothing
		w.post(t, g.path+"/seal", "").wants(t, 200)
		w.post(t, g.path+"/seal", "").wants(t, 200)
		w.breaks(t, "a")
		w.replay(t, g, "a", `,"cascade":"skipped"`).wants(t, 200)
		w.does(t, "a", "b", "c")
		w.post(t, at(c)+"/replay", `{}`).wants(t, 200)
		w.take(t, "c")
		w.post(t, g.path+"/cancel", `{"policy":"cancel_all","reason":"enough"}`).wants(t, 200)
		w.post(t, g.path+"/cancel", `{"reason":"again"}`).wants(t, 200)

		events := w.told(t, "kind=flow.&flow_id="+bare(g.id), "flow.cancelled", 1)
		want := []struct {
			kind string
			data fields
		}{
			{"flow.created", fields{"data.kind": "line", "data.graph_revision": 1, "data.nodes_added": 2, "data.edges_added": 1, "actor.type": "client", "actor.id": "tester"}},
			{"flow.extended", fields{"data.kind": "line", "data.graph_revision": 2, "data.nodes_added": 1, "data.edges_added": 1}},
			{"flow.sealed", fields{"data.kind": "line"}},
			{"flow.failed", fields{"data.counts.failed": 1, "data.counts.skipped": 2, "data.counts.completed": 0, "data.failures.0": "a"}},
			{"flow.reopened", fields{"data.member": "a", "data.cascade": "skipped"}},
			{"flow.completed", fields{"data.counts.completed": 3, "data.counts.failed": 0, "data.failures.0": nil}},
			{"flow.reopened", fields{"data.member": "c", "data.cascade": "none"}},
			{"flow.cancel_requested", fields{"data.policy": "cancel_all", "data.reason": "enough", "data.members": 1, "actor.id": "tester"}},
			{"flow.cancelled", fields{"data.counts.completed": 2, "data.counts.cancelled": 1}},
		}
		if len(events) != len(want) {
			t.Fatalf("events are %v", kinds(t, events))
		}
		for i, one := range events {
			one.shows(t, fields{"kind": want[i].kind, "flow_id": g.id, "root_flow_id": g.id, "execution_id": nil, "namespace": w.namespace, "tags.team": "blue"})
			one.shows(t, want[i].data)
		}
		own := w.get(t, g.path+"/events?after=start&limit=1000").wants(t, 200).texts(t, "items", "kind")
		if own = slices.DeleteFunc(own, func(kind string) bool { return !strings.HasPrefix(kind, "flow.") }); !slices.Equal(own, kinds(t, events)) {
			t.Errorf("the route of the flow tells %v", own)
		}
	})
}

func TestF63_what_a_join_did_is_told_by_the_event_of_the_member(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"outer","nodes":[`+nodes("a")+`,{"name":"skipped","kind":"skipped"},{"name":"n","after":["a"],"flow":{"nodes":[`+nodes("p")+`,{"name":"q","kind":"q","after":["p"]}]}}],
			"edges":[{"from":"a","to":"skipped","kind":"failure_only"}]}`)
		w.does(t, "a")
		p := w.take(t, "p")
		kid := w.under(t, p, "spawn", `"children":[`+nodes("kid")+`],"wait":{"names":["kid"],"timeout_ms":3600000}`).wants(t, 200).text(t, "children.kid")
		w.does(t, "kid", "p", "q")
		w.over(t, g.path, fields{"state": "completed"})
		id := func(execution string) string { return w.get(t, at(execution)).wants(t, 200).text(t, "flow_id") }
		sub, children := id(p.id), id(kid)
		w.over(t, flowAt(children), fields{"state": "completed"})

		events := w.told(t, "flow_id="+bare(g.id), "flow.completed", 3)
		for _, one := range events {
			one.shows(t, fields{"root_flow_id": g.id})
		}
		find := func(kind, execution, flow string) reply {
			t.Helper()
			i := slices.IndexFunc(events, func(one reply) bool {
				return one.text(t, "kind") == kind && one.text(t, "execution_id") == execution && one.text(t, "flow_id") == flow
			})
			if i < 0 {
				t.Fatalf("%s of %s in %s is not told", kind, execution, flow)
			}
			return events[i]
		}
		find("execution.completed", g.member(t, "a"), g.id).shows(t, fields{"data.status": "succeeded"})
		find("execution.completed", g.member(t, "skipped"), g.id).shows(t, fields{"data.status": "skipped", "data.reason": "dependency_impossible"})
		find("execution.completed", g.member(t, "n"), g.id).shows(t, fields{"data.status": "succeeded"})
		find("execution.waiting_children", p.id, sub).shows(t, fields{"data.policy": "all_of", "data.k": 1, "data.children.0": "kid", "data.lease_epoch": 1})
		find("execution.ready", p.id, sub).shows(t, fields{"data.cause": "children"})
		find("execution.completed", kid, children).shows(t, fields{"data.status": "succeeded"})
		q := w.get(t, flowAt(sub)+"/members").wants(t, 200).text(t, "items.1.execution_id")
		find("execution.ready", q, sub)
		for flow, kinds := range map[string][]string{
			g.id:     {"flow.created", "flow.completed"},
			sub:      {"flow.created", "flow.completed"},
			children: {"flow.created", "flow.extended", "flow.sealed", "flow.completed"},
		} {
			for _, kind := range kinds {
				find(kind, "", flow)
			}
		}
	})
}
