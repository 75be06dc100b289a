package rules

import (
	"testing"
)

func TestS44_admission_asks_budgets_then_rates_then_slots_and_takes_everything_or_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		full := `{"rate_limit":1,"concurrency_limit":1}`
		b, a := w.limit(t, "b", full), w.limit(t, "a", full) // b is the first in the policy
		policy := `"policy":{` + attached(b, a) + `,` + w.purse(t, "team", 10, 6) + `}`
		budget := w.get(t, "/v1/budgets/team").wants(t, 200).text(t, "budget_id")
		holder := w.started(t, policy)
		id := w.job(t, policy)
		w.takesNothing(t)
		w.isBlocked(t, id, "waiting_for_budget", "budget:"+budget)
		refuses := func(reason, key string) {
			t.Helper()
			w.leavesAlone(t, id, w.asksFor(t, id, ""), 429, "admission_refused", w.shown(t, id))
			w.asksFor(t, id, "").shows(t, fields{"current.key": key, "current.reason": reason, "current.blocked_on": key})
			w.takesNothing(t) // which is then blocked on that
			w.state(t, id, fields{"status": "blocked", "reason": reason})
		}
		refuses("waiting_for_budget", "budget:"+budget)
		w.send(t, "PATCH", "/v1/budgets/team", `{"dimensions":{"tokens":{"hard":20}}}`).wants(t, 200)
		refuses("waiting_for_quota", "rate:"+b)
		w.limit(t, "b", `{"rate_limit":2,"concurrency_limit":1}`)
		refuses("waiting_for_quota", "rate:"+a)
		w.limit(t, "a", `{"rate_limit":2,"concurrency_limit":1}`)
		refuses("waiting_for_quota", "slots:"+b)
		w.limit(t, "b", `{"rate_limit":2,"concurrency_limit":2}`)
		refuses("waiting_for_quota", "slots:"+a) // everything before that has room, and none of it is taken
		w.get(t, "/v1/budgets/team").shows(t, fields{"dimensions.tokens.reserved": 6, "live_holds": 1})
		w.inUse(t, b, 1, 1, 0)
		w.inUse(t, a, 1, 1, 1)
		w.complete(t, holder, `1`)
		w.takes(t, id)
		w.get(t, "/v1/budgets/team").shows(t, fields{"dimensions.tokens.reserved": 6, "live_holds": 1})
		w.inUse(t, b, 1, 2, 0)
		w.inUse(t, a, 1, 2, 0)
	})
}

func TestS46_the_best_of_ready_and_blocked_rows_is_taken_and_a_class_without_workers_keeps_no_room(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"concurrency_limit":1}`)
		holder := w.started(t, attached(q))
		idle := w.submit(t, `{"kind":"job","lane":"`+w.named("idle")+`","priority":9000,`+attached(q)+`}`)
		w.claimsNothing(t, w.named("idle")) // from now on no worker comes there
		unable := w.job(t, `"priority":900,"policy":{`+attached(q)+`,"routing_requirements":{"required_capabilities":["gpu"]}}`)
		if got := w.claims(t, `"lanes":[`+w.ownLane()+`],"capabilities":["gpu"]`); len(got) != 0 {
			t.Fatalf("claimed %s", got[0].body)
		}
		first, second := w.job(t, `"priority":5,`+attached(q)), w.job(t, `"priority":7,`+attached(q))
		w.takesNothing(t)
		ready, low := w.job(t, `"priority":6`), w.job(t, "")
		for _, id := range []string{idle, unable, second} {
			w.isBlocked(t, id, "waiting_for_quota", "slots:"+q)
		}
		w.complete(t, holder, `1`)
		w.isBlocked(t, idle, "waiting_for_quota", "slots:"+q) // nothing is moved
		w.complete(t, w.takes(t, second), `1`)
		w.takes(t, ready)
		w.takes(t, first)
		w.takes(t, low)
		w.takesNothing(t)
	})
}

func TestS47_what_frees_raises_or_removes_a_key_wakes_the_claims_of_lanes_that_wait_for_it(t *testing.T) {
	t.Parallel()
	limits := map[string]string{"slots": `{"concurrency_limit":1}`, "rate": `{"rate_limit":1,"window_ms":86400000}`}
	for name, c := range map[string]struct {
		limit string
		free  func(t *testing.T, w *world, holder task)
	}{
		"a slot is free":   {"slots", func(t *testing.T, w *world, holder task) { w.complete(t, holder, `1`) }},
		"slots are raised": {"slots", func(t *testing.T, w *world, _ task) { w.limit(t, "q", `{"concurrency_limit":2}`) }},
		"slots are off":    {"slots", func(t *testing.T, w *world, _ task) { w.limit(t, "q", `{"concurrency_limit":0}`) }},
		"a rate is raised": {"rate", func(t *testing.T, w *world, _ task) { w.limit(t, "q", `{"rate_limit":2,"window_ms":86400000}`) }},
		"the quota is gone": {"rate", func(t *testing.T, w *world, _ task) {
			w.send(t, "DELETE", "/v1/quotas/"+w.named("q")+"?force=true", "").wants(t, 204)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				q := w.limit(t, "q", limits[c.limit])
				holder := w.started(t, attached(q))
				id := w.job(t, attached(q))
				answer := w.waitsFor(t)
				comes(t, "the claim has found it without room", func() bool { return w.get(t, at(id)).text(t, "status") != "ready" })
				c.free(t, w, holder)
				(<-answer).wants(t, 200).shows(t, fields{"tasks.0.execution_id": id, "tasks.1": nil})
			})
		})
	}
}

func TestS48_while_blocked_everything_else_still_acts(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"concurrency_limit":1}`)
		holder := w.started(t, attached(q))
		blocked := func(kind string) string { // of one class the best alone is blocked (S19)
			t.Helper()
			id := w.submit(t, `{"kind":"`+kind+`","lane":`+w.ownLane()+`,`+attached(q)+`}`)
			w.takesNothing(t)
			w.isBlocked(t, id, "waiting_for_quota", "slots:"+q)
			w.send(t, "PUT", at(id)+"/priority", `{"priority":1}`).wants(t, 200).shows(t, fields{"status": "blocked", "priority": 1})
			return id
		}
		held, cancelled, tagged, urgent := blocked("b"), blocked("c"), blocked("d"), blocked("e")
		w.post(t, at(held)+"/hold", `{}`).wants(t, 200).shows(t, fields{"status": "blocked", "reason": "paused_by_operator"})
		w.post(t, at(cancelled)+"/cancel", `{}`).wants(t, 200).shows(t, fields{"status": "cancelled"})
		w.send(t, "PATCH", at(tagged)+"/tags", `{"a":"b"}`).wants(t, 200)
		w.state(t, tagged, fields{"status": "blocked", "reason": "waiting_for_quota", "tags.a": "b"})
		w.send(t, "PUT", at(urgent)+"/priority", `{"priority":100}`).wants(t, 200)
		w.complete(t, holder, `1`)
		w.complete(t, w.takes(t, urgent), `1`)
		w.complete(t, w.takes(t, tagged), `1`)
		w.takesNothing(t)
		w.send(t, "DELETE", at(held)+"/hold", "").wants(t, 200)
		w.takes(t, held)
	})
}

func TestS48_a_row_blocked_on_one_key_that_meets_another_full_one_is_then_blocked_on_that(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k1, k2 := w.limit(t, "k1", `{"concurrency_limit":1}`), w.limit(t, "k2", `{"concurrency_limit":1}`)
		first := w.started(t, attached(k1))
		both := w.job(t, attached(k1, k2))
		w.takesNothing(t)
		w.isBlocked(t, both, "waiting_for_quota", "slots:"+k1)
		w.inUse(t, k1, 1, 0, 1)
		second := w.started(t, attached(k2))
		w.inUse(t, k2, 1, 0, 0)
		w.complete(t, first, `1`)
		w.takesNothing(t)
		w.inUse(t, k1, 0, 0, 0)
		w.inUse(t, k2, 1, 0, 1) // now it waits there
		w.complete(t, second, `1`)
		w.takes(t, both)
		w.toldOnce(t, both, "execution.blocked")
	})
}
