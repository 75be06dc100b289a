package rules

import (
	"strings"
	"testing"
)

func TestS31_a_grant_is_claimed_once_by_its_worker_and_shown_again_to_it_alone(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.granted(t, `"input":{"n":1}`)
		before := w.shown(t, g.id)
		for name, worker := range map[string]string{
			"worker":   `"worker_id":"v","worker_instance_id":"` + w.namespace + `"`,
			"instance": `"worker_id":"w","worker_instance_id":"` + w.namespace + `x"`,
			"swapped":  `"worker_id":"` + w.namespace + `","worker_instance_id":"w"`,
		} {
			t.Run("another "+name, func(t *testing.T) {
				w.leavesAlone(t, g.id, w.presentAs(t, "claim", g.key, worker), 403, "grant_signature_mismatch", before)
			})
		}
		w.leavesAlone(t, g.id, w.presentAs(t, "claim", g.key, w.me()+`,"lease_ttl_ms":499`), 400, "invalid_argument", before)
		first := w.presentAs(t, "claim", g.key, w.me()+`,"lease_ttl_ms":45000`).wants(t, 200).shows(t, fields{
			"execution_id": g.id, "how": "fresh", "input.n": 1, "lease.ttl_ms": 45000, "lease.lease_epoch": 1, "lease.worker_id": "w",
			"lease.worker_instance_id": w.namespace, "attempt.attempt_index": 0, "attempt.type": "initial",
		})
		w.state(t, g.id, fields{"status": "running", "lease.lease_id": first.text(t, "lease.lease_id")})
		again := w.present(t, "claim", g.key).wants(t, 200)
		if again.text(t, "lease.fence") != first.text(t, "lease.fence") {
			t.Errorf("another lease: %s\n%s", first.body, again.body)
		}
		running := w.shown(t, g.id)
		w.leavesAlone(t, g.id, w.presentAs(t, "claim", g.key, w.thief()), 404, "grant_unknown", running)
		w.leavesAlone(t, g.id, w.present(t, "verify", g.key), 404, "grant_unknown", running)
		w.leavesAlone(t, g.id, w.present(t, "return", g.key), 404, "grant_unknown", running)
		w.complete(t, task{id: g.id, fence: first.text(t, "lease.fence")}, `1`)
		w.present(t, "claim", g.key).refuses(t, 404, "grant_unknown")
	})
}

func TestS31_resumed_and_reclaimed_work_comes_by_a_grant_as_fresh_work_does(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		first := w.started(t, "")
		w.under(t, first, "release", "").wants(t, 200)
		g := w.asks(t, forAMinute).given(t)
		resumed := w.redeem(t, g.key)
		resumed.shows(t, fields{"how": "resumed", "attempt.attempt_index": 0, "attempt.resumed_from": "released", "lease.lease_epoch": 2})
		w.post(t, at(g.id)+"/revoke", `{}`).wants(t, 200)
		reclaimed := w.redeem(t, w.asksFor(t, g.id, forAMinute).given(t).key)
		reclaimed.shows(t, fields{"how": "reclaimed", "attempt.attempt_index": 1, "attempt.type": "reclaim", "lease.lease_epoch": 3})
		w.complete(t, reclaimed, `1`)
	})
}

func TestS31_neither_lane_nor_limits_are_asked_a_second_time(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"rate_limit":2,"concurrency_limit":2}`)
		g, other := w.granted(t, attached(q)), w.granted(t, attached(q))
		w.limit(t, "q", `{"rate_limit":1,"concurrency_limit":1}`)
		w.post(t, "/v1/lanes/"+w.named("lane")+"/disable", `{}`).wants(t, 200)
		w.inUse(t, q, 2, 2, 0)
		w.redeem(t, g.key)
		w.redeem(t, other.key)
		w.inUse(t, q, 2, 2, 0) // and nothing was taken twice
	})
}

func TestS32_whatever_moves_the_execution_voids_its_grant_and_returns_what_was_admitted(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"rate_limit":9,"concurrency_limit":1}`)
		policy := `"policy":{` + attached(q) + `,` + w.purse(t, "team", 8, 8) + `}`
		for _, void := range []struct{ call, status, event, says string }{
			{"cancel", "cancelled", "execution.completed", "cancelled"}, {"hold", "blocked", "grant.ended", "void"},
		} {
			t.Run(void.call, func(t *testing.T) {
				g := w.granted(t, policy)
				w.inUse(t, q, 1, 1, 0)
				w.post(t, at(g.id)+"/"+void.call, `{}`).wants(t, 200)
				ended := w.shown(t, g.id).shows(t, fields{"status": void.status})
				for _, call := range []string{"verify", "return", "claim"} {
					w.leavesAlone(t, g.id, w.present(t, call, g.key), 404, "grant_unknown", ended)
				}
				if told := w.lastTold(t, g.id, void.event); told["cause"] != void.says && told["status"] != void.says {
					t.Errorf("told %v", told)
				}
				w.inUse(t, q, 0, 0, 0)
				w.get(t, "/v1/budgets/team").shows(t, fields{"dimensions.tokens.reserved": 0, "live_holds": 0})
			})
		}
	})
}

func TestS32_an_execution_has_at_most_one_grant_and_a_failed_use_leaves_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.granted(t, "")
		before := w.shown(t, g.id)
		w.leavesAlone(t, g.id, w.asksFor(t, g.id, ""), 409, "grant_outstanding", before)
		w.leavesAlone(t, g.id, w.post(t, at(g.id)+"/claim", `{"force":true}`), 409, "grant_outstanding", before)
		if got := w.asks(t, "").wants(t, 200); len(got.items(t, "grants")) != 0 {
			t.Errorf("granted twice: %s", got.body)
		}
		w.takesNothing(t)
		for range 3 {
			w.presentAs(t, "claim", g.key, w.thief()).refuses(t, 403, "grant_signature_mismatch")
			w.present(t, "verify", g.key+"0").refuses(t, 403, "grant_signature_mismatch")
		}
		w.present(t, "verify", g.key).wants(t, 200)
		w.redeem(t, g.key)
	})
}

func TestS32_a_worker_at_its_capacity_keeps_its_grant(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/workers", `{`+w.me()+`,"lanes":[`+w.ownLane()+`],"max_concurrent":1}`).wants(t, 200)
		busy := w.started(t, "")
		g := w.granted(t, "")
		w.present(t, "verify", g.key).wants(t, 200)
		w.state(t, g.id, fields{"status": "granted"})
		w.complete(t, busy, `1`)
		w.complete(t, w.redeem(t, g.key), `1`)
	})
}

func TestS33_a_returned_grant_is_over_at_once_and_the_execution_passes_the_gate(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"rate_limit":1,"concurrency_limit":1}`)
		g := w.granted(t, attached(q))
		queued := w.shown(t, g.id).text(t, "queued_at")
		if got := w.present(t, "return", g.key).wants(t, 204); len(got.body) != 0 {
			t.Errorf("%s", got.body)
		}
		ready := w.shown(t, g.id).shows(t, fields{"status": "ready", "reason": "waiting_for_worker", "queued_at": queued, "total_attempts": 0})
		if told := w.lastTold(t, g.id, "grant.ended"); told["cause"] != "returned" {
			t.Errorf("told %v", told)
		}
		w.inUse(t, q, 0, 0, 0)
		for _, call := range strings.Fields("return verify claim") {
			w.leavesAlone(t, g.id, w.present(t, call, g.key), 404, "grant_unknown", ready)
		}
		w.takes(t, g.id)
	})
}
