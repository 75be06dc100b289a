package rules

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// obstacle is a cause of the table of S57: how it comes about, the numbers that it carries and how it goes.
type obstacle struct {
	staff  string // more fields of the worker that is there; "none": no worker
	make   func(t *testing.T, w *world) (id string)
	carry  func(w *world, why reply, t *testing.T) fields // of the blocker
	remove func(t *testing.T, w *world, id string)
}

// nothing more is said of a cause.
func plainly(more fields) func(*world, reply, *testing.T) fields {
	return func(*world, reply, *testing.T) fields { return more }
}

// ownCauses are the causes that lie in the execution itself, rows 1 to 6, but for the delay, which takes a clock of its own.
var ownCauses = map[string]obstacle{
	"suspended": {make: func(t *testing.T, w *world) string {
		k := w.started(t, "")
		w.under(t, k, "suspend", `"waitpoints":[{"fresh":{"waitpoint_key":"boss"}}],"timeout_ms":600000,"reason_code":"waiting_for_approval",`+
			`"resume_condition":{"type":"count","n":2,"count_kind":"distinct_signals","waitpoints":["boss"],"name":"go"}`).wants(t, 200)
		return k.id
	}, carry: func(_ *world, why reply, t *testing.T) fields {
		until := why.text(t, "blockers.0.until")
		return fields{
			"data.reason_code": "waiting_for_approval", "data.waitpoints.0.waitpoint_key": "boss", "data.waitpoints.1": nil,
			"data.signals.0.name": "go", "data.signals.0.present": 0, "data.signals.0.missing": 2, "data.timeout_at": until, "since": why.text(t, "since"),
		}
	}, remove: func(t *testing.T, w *world, id string) { w.post(t, at(id)+"/resume", `{}`).wants(t, 200) }},
	"dependencies": {make: func(t *testing.T, w *world) string {
		node := func(name, more string) string {
			return `{"name":"` + name + `","kind":"job","lane":` + w.ownLane() + and(more) + `}`
		}
		g := w.flow(t, `{"kind":"trio","nodes":[`+node("a", "")+`,`+`{"name":"b","kind":"job"}`+`,`+
			node("c", `"after":["a","b"],"join":{"policy":"quorum","k":2}`)+`]}`)
		w.complete(t, w.takes(t, g.member(t, "a")), `1`)
		return g.member(t, "c")
	}, carry: func(_ *world, why reply, t *testing.T) fields {
		return fields{
			"data.policy": "quorum", "data.needed": 2, "data.done": 1, "data.impossible": 0, "data.pending": 1, "data.open.0.name": "b",
			"data.open.0.kind": "success_only", "data.open.0.state": "pending", "data.open.0.public_state": "waiting", "data.open.1": nil, "until": nil,
		}
	}, remove: func(t *testing.T, w *world, _ string) { w.complete(t, w.claim(t, "default"), `1`) }},
	"children": {make: func(t *testing.T, w *world) string {
		k := w.started(t, "")
		w.under(t, k, "spawn", `"children":[{"name":"x","kind":"job","lane":"default"},{"name":"y","kind":"job","lane":"missing"}],`+
			`"wait":{"policy":"any_of","timeout_ms":600000}`).wants(t, 200)
		return k.id
	}, carry: func(_ *world, why reply, t *testing.T) fields {
		return fields{
			"data.policy": "any_of", "data.done": 0, "data.needed": 1, "data.impossible": 0, "data.open.0.name": "x", "data.open.0.state": "pending",
			"data.open.0.public_state": "waiting", "data.open.1.name": "y", "data.open.2": nil, "data.timeout_at": why.text(t, "blockers.0.until"),
		}
	}, remove: func(t *testing.T, w *world, _ string) { w.complete(t, w.claim(t, "default"), `1`) }},
	"operator_hold": {make: func(t *testing.T, w *world) string {
		id := w.job(t, "")
		w.post(t, at(id)+"/hold", `{"reason":"not today"}`).wants(t, 200)
		return id
	}, carry: func(w *world, why reply, t *testing.T) fields {
		return fields{"data.by": "tester", "data.reason": "not today", "since": w.get(t, at(why.text(t, "execution_id"))).text(t, "held.at"), "until": nil}
	}, remove: func(t *testing.T, w *world, id string) { w.send(t, "DELETE", at(id)+"/hold", "").wants(t, 200) }},
	"grant": {make: func(t *testing.T, w *world) string {
		return w.granted(t, "").id
	}, carry: func(w *world, why reply, t *testing.T) fields {
		return fields{
			"data.worker_id": "w", "data.worker_instance_id": w.namespace, "since": why.text(t, "since"),
			"until": why.moment(t, "since").Add(time.Minute).Format("2006-01-02T15:04:05.000Z"),
		}
	}, remove: func(t *testing.T, w *world, id string) { // which voids it
		w.post(t, at(id)+"/hold", `{}`).wants(t, 200)
		w.send(t, "DELETE", at(id)+"/hold", "").wants(t, 200)
	}},
}

// othersCauses are the causes around the execution, rows 7 to 12.
var othersCauses = map[string]obstacle{
	"lane_state": {make: func(t *testing.T, w *world) string {
		id := w.job(t, "")
		w.post(t, "/v1/lanes/"+w.named("lane")+"/pause", `{}`).wants(t, 200)
		return id
	}, carry: func(w *world, why reply, t *testing.T) fields {
		if since := why.moment(t, "blockers.0.since"); since.Before(why.moment(t, "since")) {
			t.Errorf("paused since %s: %s", since, why.body)
		}
		return fields{"data.lane": w.named("lane"), "data.state": "paused"}
	}, remove: func(t *testing.T, w *world, _ string) {
		w.post(t, "/v1/lanes/"+w.named("lane")+"/resume", `{}`).wants(t, 200)
	}},
	"lane_cap": {make: func(t *testing.T, w *world) string {
		w.send(t, "PUT", "/v1/lanes/"+w.named("lane"), `{"max_concurrent":2}`).wants(t, 200)
		w.started(t, "")
		w.granted(t, "")
		return w.job(t, "")
	}, carry: func(w *world, _ reply, _ *testing.T) fields {
		return fields{"data.lane": w.named("lane"), "data.in_use": 2, "data.limit": 2}
	}, remove: func(t *testing.T, w *world, _ string) {
		w.send(t, "PUT", "/v1/lanes/"+w.named("lane"), `{"max_concurrent":3}`).wants(t, 200)
	}},
	"no_live_worker": {
		staff: "none", make: func(t *testing.T, w *world) string { return w.job(t, "") },
		carry: func(w *world, _ reply, _ *testing.T) fields {
			return fields{"data.lane": w.named("lane"), "data.on_lane": 0}
		},
		remove: func(t *testing.T, w *world, _ string) { w.staff(t, "") },
	},
	"no_capable_worker": {staff: `"capabilities":["eu"]`, make: func(t *testing.T, w *world) string {
		w.enlist(t, w.namespace+"k", `"lanes":[`+w.ownLane()+`],"kinds":["other"],"capabilities":["eu"]`)
		w.enlist(t, w.namespace+"n", `"lanes":[`+w.ownLane()+`],"kinds":["other"]`)
		return w.job(t, `"policy":{"routing_requirements":{"required_capabilities":["gpu","eu"]}}`)
	}, carry: func(w *world, _ reply, _ *testing.T) fields {
		return fields{
			"data.lane": w.named("lane"), "data.on_lane": 3, "data.match_namespace": 3, "data.match_kind": 1, "data.match_capabilities": 0,
			"data.missing_capabilities": []any{"gpu"},
		}
	}, remove: func(t *testing.T, w *world, _ string) { w.staff(t, `"capabilities":["eu","gpu"]`) }},
	"budget": {make: func(t *testing.T, w *world) string {
		policy := `"policy":{` + w.purse(t, "team", 10, 6) + `}`
		w.started(t, policy)
		return w.job(t, policy)
	}, carry: func(w *world, _ reply, t *testing.T) fields {
		return fields{
			"data.budget_id": w.get(t, "/v1/budgets/team").text(t, "budget_id"), "data.dimension": "tokens", "data.need": 6, "data.available": 4,
			"data.used": 0, "data.reserved": 6, "data.limit": 10, "until": nil,
		}
	}, remove: func(t *testing.T, w *world, _ string) {
		w.send(t, "PATCH", "/v1/budgets/team", `{"dimensions":{"tokens":{"hard":20}}}`).wants(t, 200)
	}},
	"rate": {make: func(t *testing.T, w *world) string {
		q := w.limit(t, "q", `{"rate_limit":1,"window_ms":86400000,"per_key":true}`)
		w.started(t, attached(q+"/a"))
		return w.job(t, attached(q+"/a"))
	}, carry: func(w *world, why reply, t *testing.T) fields {
		return fields{
			"data.key": "rate:" + w.named("q") + "/a", "data.quota": w.named("q"), "data.quota_key": "a", "data.admissions": 1, "data.limit": 1,
			"data.window_ms": 86_400_000, "data.next_free": why.text(t, "blockers.0.until"),
		}
	}, remove: func(t *testing.T, w *world, _ string) {
		w.limit(t, "q", `{"rate_limit":2,"window_ms":86400000,"per_key":true}`)
	}},
	"concurrency": {make: func(t *testing.T, w *world) string {
		q := w.limit(t, "q", `{"concurrency_limit":1}`)
		w.started(t, attached(q))
		return w.job(t, attached(q))
	}, carry: func(w *world, _ reply, t *testing.T) fields {
		holders := w.ofAll().get(t, "/v1/quotas/"+w.named("q")).items(t, "keys.0.holders")
		return fields{"data.key": "slots:" + w.named("q"), "data.in_use": 1, "data.limit": 1, "data.holders": holders}
	}, remove: func(t *testing.T, w *world, _ string) { w.limit(t, "q", `{"concurrency_limit":2}`) }},
	"workers_busy": {
		staff: `"max_concurrent":1`, make: func(t *testing.T, w *world) string {
			w.started(t, "")
			return w.job(t, "")
		}, carry: plainly(fields{"data.matching": 1, "data.max_concurrent": 1, "data.leases": 1}),
		remove: func(t *testing.T, w *world, _ string) { w.staff(t, `"max_concurrent":2`) },
	},
}

func TestS56_S57_each_cause_carries_its_numbers_and_to_remove_it_makes_the_execution_claimable(t *testing.T) {
	t.Parallel()
	for _, causes := range []map[string]obstacle{ownCauses, othersCauses} {
		for code, o := range causes {
			t.Run(code, func(t *testing.T) {
				t.Parallel()
				onEveryStore(t, func(t *testing.T, w *world) { w.stands(t, code, o) })
			})
		}
	}
}

func TestS56_S57_a_delay_carries_its_end_and_to_wait_for_it_makes_the_execution_claimable(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) {
		w.stands(t, "delay", obstacle{make: func(t *testing.T, w *world) string {
			k := w.started(t, `"policy":{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":60000}}}`)
			w.under(t, k, "fail", `"class":"transient","message":"no"`).wants(t, 200)
			return k.id
		}, carry: func(w *world, why reply, t *testing.T) fields {
			until := w.get(t, at(why.text(t, "execution_id"))).text(t, "delay_until")
			return fields{"until": until, "data.reason": "waiting_for_retry_backoff", "data.retry": 1}
		}, remove: func(t *testing.T, w *world, id string) {
			hand.TurnTo(hand.Now().Add(time.Minute))
			comes(t, "the delay is over", func() bool { return w.get(t, at(id)).text(t, "status") == "ready" })
		}})
	})
}

// stands checks an obstacle from its coming to its going.
func (w *world) stands(t *testing.T, code string, o obstacle) {
	t.Helper()
	if o.staff != "none" {
		w.staff(t, o.staff)
	}
	id := o.make(t, w)
	before := w.shown(t, id)
	why := w.keptBy(t, id, code)
	want := fields{}
	for path, value := range o.carry(w, why, t) {
		want["blockers.0."+path] = value
	}
	why.shows(t, want).shows(t, fields{
		"execution_id": id, "status": before.text(t, "status"), "reason": before.text(t, "reason"), "since": before.text(t, "status_since"),
		"summary": why.text(t, "blockers.0.message"), "holder": nil, "outcome": nil,
	})
	if after := w.shown(t, id); string(after.body) != string(before.body) {
		t.Errorf("to look changed it:\n%s\n%s", before.body, after.body)
	}
	o.remove(t, w, id)
	w.keptBy(t, id, "in_line").shows(t, fields{"blockers.0.data.ahead": 0, "position.ahead": 0})
	got := w.claims(t, `"lanes":[`+w.ownLane()+`],"wait_ms":60000,"capabilities":["eu","gpu"]`)
	if len(got) != 1 || got[0].id != id {
		t.Fatalf("not claimed: %v", got)
	}
	w.keptBy(t, id)
}
