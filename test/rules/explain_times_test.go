package rules

import (
	"fmt"
	"testing"
	"time"
)

func TestS58_the_next_eligible_moment_is_the_latest_that_is_known_and_absent_beside_other_causes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.staff(t, `"max_concurrent":1`)
		q := w.limit(t, "q", `{"rate_limit":1,"window_ms":7200000}`)
		first := w.started(t, attached(q)) // the worker is busy from now on, which says nothing of moments
		at2h := w.ofAll().get(t, "/v1/quotas/"+q).text(t, "keys.0.next_free_at")
		eligible := func(id string, want any, codes ...string) reply {
			t.Helper()
			return w.keptBy(t, id, codes...).shows(t, fields{"next_eligible_at": want})
		}
		eligible(w.job(t, ""), nil, "workers_busy")
		soon, late := w.job(t, `"delay_ms":3600000,`+attached(q)), w.job(t, `"delay_ms":10800000,`+attached(q))
		eligible(soon, at2h, "delay", "rate", "workers_busy")
		eligible(late, w.get(t, at(late)).text(t, "delay_until"), "delay", "rate", "workers_busy")
		eligible(w.job(t, attached(q)), at2h, "rate", "workers_busy", "in_line")
		promised := w.granted(t, "")
		eligible(promised.id, promised.text(t, "grants.0.expires_at"), "grant", "workers_busy")

		anchor := time.Now().Add(12 * time.Hour).UTC().Format(time.RFC3339) // the reset is as far away as it can be
		w.post(t, "/v1/budgets", `{"name":"day","dimensions":{"tokens":{"hard":10}},"reset":{"type":"interval","every_ms":86400000,"anchor_at":"`+anchor+`"}}`).wants(t, 201)
		w.post(t, "/v1/budgets/day/charge", `{"usage":{"tokens":8}}`).wants(t, 200)
		reset := w.get(t, "/v1/budgets/day").text(t, "next_reset_at")
		costly := w.job(t, `"policy":{`+attached(q)+`,"budget_ids":["day"],"estimate":{"tokens":5}}`)
		eligible(costly, reset, "budget", "rate", "workers_busy", "in_line").shows(t, fields{
			"blockers.0.data.resets_at": reset, "blockers.0.until": reset, "blockers.0.data.used": 8, "blockers.0.data.limit": 10,
		})
		never := w.job(t, `"policy":{"budget_ids":["day"],"estimate":{"tokens":11}}`) // no reset makes room enough
		eligible(never, nil, "budget", "workers_busy", "in_line")

		w.post(t, at(soon)+"/hold", `{}`).wants(t, 200)
		eligible(soon, nil, "delay", "operator_hold", "rate", "workers_busy")
		s := w.limit(t, "s", `{"concurrency_limit":1}`)
		w.granted(t, attached(s))
		eligible(w.job(t, `"delay_ms":600000,`+attached(s)), nil, "delay", "concurrency", "workers_busy")
		w.post(t, "/v1/lanes/"+w.named("lane")+"/pause", `{}`).wants(t, 200)
		eligible(late, nil, "delay", "lane_state", "rate", "workers_busy")
		w.complete(t, first, `1`)
	})
}

func TestS59_the_five_nearest_live_workers_are_named_with_what_keeps_them_away(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		instance := func(name string) string { return w.namespace + "-" + name }
		here := `"lanes":[` + w.ownLane() + `],`
		able := `"capabilities":["gpu","eu"]`
		w.enlist(t, instance("f"), here+able+`,"max_concurrent":1`)
		w.job(t, "")
		w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"`+instance("f")+`",`+here+able+`}`).wants(t, 200)
		w.enlist(t, instance("f"), here+able+`,"max_concurrent":1`) // which a claim may have changed
		w.enlist(t, instance("z"), here+able)
		w.enlist(t, instance("b"), here+able)
		w.post(t, "/v1/workers/"+instance("b")+"/drain", "").wants(t, 200)
		w.enlist(t, instance("c"), here+able+`,"kinds":["other"]`)
		w.enlist(t, instance("d"), here+`"capabilities":["eu"]`)
		w.enlist(t, instance("e"), `"lanes":["elsewhere"],`+able)
		w.enlist(t, instance("a"), `"lanes":["elsewhere"],"kinds":["other"]`)
		id := w.job(t, `"policy":{"routing_requirements":{"required_capabilities":["gpu","eu"]}}`)

		unmet := map[string][]any{
			"z": {}, "b": {"draining"}, "c": {"kind"}, "d": {"capability:gpu"}, "e": {"lane"}, "f": {"no_free_place"},
			"a": {"lane", "kind", "capability:eu", "capability:gpu"},
		}
		near := func(live, onLane, matching int, names ...string) {
			t.Helper()
			want := fields{
				"workers.live": live, "workers.on_lane": onLane, "workers.matching": matching, fmt.Sprintf("workers.nearest.%d", len(names)): nil,
			}
			for i, name := range names {
				at := fmt.Sprintf("workers.nearest.%d.", i)
				want[at+"worker_id"], want[at+"worker_instance_id"], want[at+"unmet"] = "w", instance(name), unmet[name]
			}
			w.whyNot(t, id).shows(t, want)
		}
		near(7, 5, 3, "z", "b", "c", "d", "e")
		dead := func(name string) {
			w.post(t, "/v1/workers/"+instance(name)+"/dead", `{"reason":"gone","take_leases":false}`).wants(t, 200)
		}
		dead("z")
		near(6, 4, 2, "b", "c", "d", "e", "f")
		dead("c")
		dead("d")
		near(4, 2, 2, "b", "e", "f", "a")

		foreign := `"worker_id":"v","worker_instance_id":"` + instance("0") + `"`
		w.ofAll().post(t, "/v1/workers", `{`+foreign+`,"namespaces":["`+w.named("elsewhere")+`"],`+here+able+`}`).wants(t, 200)
		w.ofAll().whyNot(t, id).shows(t, fields{
			"workers.nearest.0.worker_id": "v", "workers.nearest.0.worker_instance_id": instance("0"), "workers.nearest.0.unmet": []any{"namespace"},
			"workers.nearest.5": nil,
		})
	})
}
