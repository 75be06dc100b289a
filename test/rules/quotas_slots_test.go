package rules

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// lettings are the ways in which an execution lets go of its slot: its policy, and what happens to its lease.
var lettings = map[string]struct {
	policy string
	happen func(t *testing.T, w *world, k task)
}{
	"complete": {"", func(t *testing.T, w *world, k task) { w.complete(t, k, `1`) }},
	"fail":     {"", func(t *testing.T, w *world, k task) { w.fail(t, k) }},
	"retry": {`"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":600000}}`, func(t *testing.T, w *world, k task) {
		w.under(t, k, "fail", `"class":"transient","message":"no"`).wants(t, 200)
	}},
	"cancel": {"", func(t *testing.T, w *world, k task) { w.post(t, at(k.id)+"/cancel", `{}`).wants(t, 200) }},
	"suspend": {"", func(t *testing.T, w *world, k task) {
		w.under(t, k, "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
	}},
	"delay": {"", func(t *testing.T, w *world, k task) { w.under(t, k, "delay", `"delay_ms":600000`).wants(t, 200) }},
	"children": {"", func(t *testing.T, w *world, k task) {
		w.under(t, k, "spawn", `"children":[{"name":"c","kind":"other","lane":"missing"}],"wait":{}`).wants(t, 200)
	}},
	"release": {`"slots_while_waiting":"hold"`, func(t *testing.T, w *world, k task) {
		w.under(t, k, "release", "").wants(t, 200)
		w.post(t, at(k.id)+"/hold", `{}`).wants(t, 200)
	}},
	"revoke": {`"slots_while_waiting":"hold"`, func(t *testing.T, w *world, k task) {
		w.post(t, at(k.id)+"/revoke", `{"hold":true}`).wants(t, 200)
	}},
	"dead worker": {`"slots_while_waiting":"hold","max_reclaim_count":0`, func(t *testing.T, w *world, _ task) {
		w.post(t, "/v1/workers/"+w.namespace+"/dead", `{"reason":"it burns"}`).wants(t, 200)
	}},
}

func TestS41_S47_whatever_ends_the_run_frees_one_slot_and_the_best_that_waits_starts(t *testing.T) {
	t.Parallel()
	for name, way := range lettings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				q := w.limit(t, "q", `{"concurrency_limit":1}`)
				held := w.started(t, `"policy":{`+attached(q)+and(way.policy)+`}`)
				w.job(t, attached(q))
				best := w.job(t, `"priority":9,`+attached(q))
				answer := w.waitsFor(t)
				comes(t, "the best waits", func() bool { return w.get(t, at(best)).text(t, "status") != "ready" })
				way.happen(t, w, held)
				if next := (<-answer).wants(t, 200); next.text(t, "tasks.0.execution_id") != best {
					t.Errorf("claimed %s, want %s", next.body, best)
				}
				w.ofAll().get(t, "/v1/quotas/"+q).wants(t, 200).shows(t, fields{"keys.0.slots": 1, "keys.0.holders": []any{best}})
			})
		})
	}
}

func TestS41_a_lapse_a_deadline_and_a_timeout_free_one_slot_each(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) {
		q := w.limit(t, "q", `{"concurrency_limit":1}`)
		for name, policy := range map[string]string{
			"lapse":           `"slots_while_waiting":"hold","max_reclaim_count":0`,
			"deadline":        `"timeout_policy":{"execution_deadline_ms":30000}`,
			"attempt timeout": `"timeout_policy":{"attempt_timeout_ms":30000},"retry_policy":{"max_retries":0}`,
		} {
			held := w.started(t, `"policy":{`+attached(q)+and(policy)+`}`)
			best := w.job(t, `"priority":9,`+attached(q))
			hand.TurnTo(hand.Now().Add(29_999 * time.Millisecond))
			w.takesNothing(t)
			w.inUse(t, q, 1, 0, 1).shows(t, fields{"keys.0.holders": []any{held.id}})
			hand.TurnTo(hand.Now().Add(time.Millisecond))
			next := w.takes(t, best)
			w.inUse(t, q, 1, 0, 0).shows(t, fields{"keys.0.holders": []any{best}})
			if ended := w.state(t, held.id, fields{"lease": nil}); ended.text(t, "completed_at") == "" {
				t.Errorf("%s: %s", name, ended.body)
			}
			w.complete(t, next, `1`)
		}
	})
}

func TestS41_slots_that_are_held_while_waiting_are_kept_until_the_next_lease_ends(t *testing.T) {
	t.Parallel()
	waits := map[string][2]string{
		"suspended": {`suspend "resume_condition":{"type":"operator_only"}`, ""},
		"delayed":   {`delay "delay_ms":1`, ""},
		"children":  {`spawn "children":[{"name":"c","kind":"child"}],"wait":{}`, "child"},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				q := w.limit(t, "q", `{"concurrency_limit":1}`)
				k := w.started(t, `"policy":{`+attached(q)+`,"slots_while_waiting":"hold"}`)
				behind := w.job(t, `"priority":9,`+attached(q))
				w.leavesBy(t, k, wait[0])
				w.inUse(t, q, 1, 0, 0).shows(t, fields{"keys.0.holders": []any{k.id}})
				if wait[1] != "" {
					w.takesNothing(t)
					w.complete(t, w.claim(t, "default"), `1`)
				}
				again := w.takes(t, k.id) // before the other, which comes first and has no slot
				again.shows(t, fields{again.of("how"): "resumed"})
				w.inUse(t, q, 1, 0, 1)
				w.complete(t, again, `1`)
				w.takes(t, behind)
			})
		})
	}
}

func TestS41_without_hold_a_slot_is_needed_again_to_resume(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"concurrency_limit":1}`)
		k := w.started(t, attached(q))
		w.under(t, k, "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
		w.inUse(t, q, 0, 0, 0)
		other := w.started(t, attached(q))
		w.post(t, at(k.id)+"/resume", `{}`).wants(t, 200)
		w.takesNothing(t)
		w.isBlocked(t, k.id, "waiting_for_quota", "slots:"+q)
		w.complete(t, other, `1`)
		w.takes(t, k.id)
	})
}

func TestS42_slots_in_use_are_the_executions_that_hold_them_and_a_recount_finds_no_difference(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"concurrency_limit":12}`)
		for range 20 {
			w.job(t, `"policy":{`+attached(q)+`,"slots_while_waiting":"hold","max_reclaim_count":0}`)
		}
		taken := w.claims(t, `"lanes":[`+w.ownLane()+`],"max":20`)
		if len(taken) != 12 {
			t.Fatalf("%d were taken", len(taken))
		}
		w.under(t, taken[0], "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
		w.under(t, taken[1], "delay", `"delay_ms":600000`).wants(t, 200)
		w.complete(t, taken[2], `1`)
		g := w.asks(t, `"wait_ms":60000,"grant_ttl_ms":60000`).given(t)
		w.post(t, "/v1/workers/"+w.namespace+"/dead", `{"reason":"it burns"}`).wants(t, 200)
		comes(t, "the leases have lapsed", func() bool {
			shown := w.ofAll().get(t, "/v1/quotas/"+q)
			return shown.field(t, "keys.0.slots") == 3.0 && len(shown.items(t, "keys.0.holders")) == 3
		})
		holders := map[any]bool{}
		for _, id := range w.ofAll().get(t, "/v1/quotas/"+q).items(t, "keys.0.holders") {
			holders[id] = true
		}
		if !holders[taken[0].id] || !holders[taken[1].id] || !holders[g.id] {
			t.Errorf("held by %v", holders)
		}
		sound := w.get(t, "/v1/admin/integrity").wants(t, 200).shows(t, fields{"ok": true, "differences": nil})
		counted := map[any]bool{}
		for _, what := range sound.items(t, "checked") {
			counted[what] = true
		}
		if !counted["quota_slots"] || !counted["lane_places"] || !counted["budgets"] {
			t.Errorf("%s", sound.body)
		}
	})
}

func TestS36_S43_a_limit_acts_from_its_commit_and_a_lower_one_revokes_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"concurrency_limit":3}`)
		first, second, third := w.started(t, attached(q)), w.started(t, attached(q)), w.started(t, attached(q))
		w.limit(t, "q", `{"concurrency_limit":2}`)
		next := w.job(t, attached(q))
		for _, k := range []task{first, second, third} {
			w.state(t, k.id, fields{"status": "running"})
		}
		w.takesNothing(t)
		w.inUse(t, q, 3, 0, 1)
		w.complete(t, first, `1`)
		w.takesNothing(t) // two are in use, and that is the limit
		w.complete(t, second, `1`)
		w.takes(t, next)
		last := w.job(t, attached(q))
		w.takesNothing(t)
		w.limit(t, "q", `{"concurrency_limit":0}`) // off
		w.takes(t, last)
	})
}
