package rules

import (
	"strings"
	"testing"
)

func TestS57_a_sub_flow_is_told_by_its_members(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"outer","nodes":[{"name":"sub","flow":{"nodes":[{"name":"x","kind":"job"},{"name":"y","kind":"job","lane":"missing"}]}}]}`)
		id := g.member(t, "sub")
		w.complete(t, w.claim(t, "default"), `1`)
		w.keptBy(t, id, "subflow").shows(t, fields{
			"status": "blocked", "reason": "waiting_for_subflow", "blockers.0.data.done": 1, "blockers.0.data.needed": 2, "blockers.0.data.state": "open",
			"position": nil, "next_eligible_at": nil,
		})
		w.complete(t, w.claim(t, "missing"), `1`)
		comes(t, "the node has ended", func() bool { return w.get(t, at(id)).text(t, "status") == "succeeded" })
		w.keptBy(t, id)
	})
}

func TestS57_all_causes_that_stand_are_listed_in_the_order_of_the_table(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"rate_limit":1,"concurrency_limit":1}`)
		policy := `"policy":{` + attached(q) + `,` + w.purse(t, "team", 10, 6) + `,"routing_requirements":{"required_capabilities":["gpu"]}}`
		w.send(t, "PUT", "/v1/lanes/"+w.named("lane"), `{"max_concurrent":1}`).wants(t, 200)
		running := w.job(t, policy)
		comes(t, "what runs under the new cap is counted, and it is claimed", func() bool {
			return w.post(t, at(running)+"/claim", `{}`).status == 200
		})
		w.post(t, "/v1/lanes/"+w.named("lane")+"/pause", `{}`).wants(t, 200)
		id := w.job(t, policy+`,"delay_ms":600000`)
		w.post(t, at(id)+"/hold", `{}`).wants(t, 200)
		lane := []string{"lane_state", "lane_cap", "no_live_worker", "budget", "rate", "concurrency"}
		why := w.keptBy(t, id, append([]string{"delay", "operator_hold"}, lane...)...)
		if want := why.text(t, "blockers.0.message") + " And 7 other causes keep it waiting."; why.text(t, "summary") != want {
			t.Errorf("in short: %q, want %q", why.text(t, "summary"), want)
		}
		w.staff(t, "")
		lane[2] = "no_capable_worker"
		w.keptBy(t, id, append([]string{"delay", "operator_hold"}, lane...)...)

		w.send(t, "PUT", "/v1/lanes/"+w.named("lane"), `{}`).wants(t, 200) // open, without a cap
		w.staff(t, `"max_concurrent":1`)
		asleep := w.started(t, `"priority":9`)
		w.under(t, asleep, "spawn", `"children":[{"name":"c","kind":"job","lane":"missing"}],"wait":{}`).wants(t, 200)
		w.post(t, at(asleep.id)+"/hold", `{}`).wants(t, 200)
		w.keptBy(t, asleep.id, "children", "operator_hold")
		promised := w.granted(t, "")
		w.job(t, `"priority":9`)
		busy, last := w.takeJob(t), w.job(t, "")
		w.job(t, `"priority":9`)
		w.keptBy(t, last, "workers_busy", "in_line").shows(t, fields{"blockers.1.data.ahead": 1, "position.ahead": 1})
		w.post(t, "/v1/lanes/"+w.named("lane")+"/pause", `{}`).wants(t, 200)
		w.keptBy(t, promised.id, "grant", "lane_state", "workers_busy")
		w.state(t, busy.id, fields{"status": "running"})
	})
}

func TestS57_what_runs_tells_its_holder_and_what_is_over_its_outcome(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.started(t, "")
		running := w.keptBy(t, k.id).shows(t, fields{
			"status": "running", "reason": "none", "holder.worker_id": "w", "holder.worker_instance_id": w.namespace, "holder.lease_epoch": 1,
			"holder.attempt_index": 0, "outcome": nil, "position": nil, "next_eligible_at": nil,
		})
		for shown, claimed := range map[string]string{"lease_id": "lease_id", "acquired_at": "acquired_at", "renewed_at": "last_renewed_at", "expires_at": "expires_at"} {
			running.shows(t, fields{"holder." + shown: k.text(t, k.of("lease."+claimed))})
		}
		w.under(t, k, "fail", `"class":"permanent","message":"no"`).wants(t, 200)
		over := w.keptBy(t, k.id).shows(t, fields{"status": "failed", "reason": w.get(t, at(k.id)).text(t, "reason"), "outcome": "failed", "holder": nil})
		if !strings.HasPrefix(over.text(t, "summary"), "It failed at ") {
			t.Errorf("%s", over.body)
		}
		w.get(t, at("0190f0c2-1111-7aaa-8bbb-0123456789ab")+"/explain").refuses(t, 404, "execution_not_found")
	})
}

func TestS57_the_history_has_the_last_twenty_changes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.staff(t, "")
		id := w.job(t, "")
		comes(t, "the history begins", func() bool { return w.whyNot(t, id).text(t, "history.0.event") != "" })
		w.whyNot(t, id).shows(t, fields{"history.0.event": "execution.submitted", "history.0.status": "ready", "history.0.reason": "waiting_for_worker", "history.1": nil})
		for range 11 {
			w.under(t, w.takes(t, id), "release", "").wants(t, 200)
		}
		w.post(t, at(id)+"/hold", `{}`).wants(t, 200)
		comes(t, "the history is known", func() bool {
			return w.whyNot(t, id).text(t, "history.19.reason") == "paused_by_operator"
		})
		why := w.whyNot(t, id).shows(t, fields{
			"history.20": nil, "history.18.status": "ready", "history.17.status": "running", "history.17.event": "lease.acquired",
			"history.0.event": "lease.released", "history.19.status": "blocked", "history.19.at": w.get(t, at(id)).text(t, "status_since"),
		})
		if first, last := why.moment(t, "history.0.at"), why.moment(t, "history.19.at"); last.Before(first) {
			t.Errorf("not the oldest first: %s", why.body)
		}
	})
}

func TestS57_the_line_counts_who_comes_before_in_the_lane_and_under_the_own_key(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.staff(t, "")
		w.send(t, "PUT", "/v1/lanes/"+w.named("lane"), `{"fairness":"key","fairness_weights":{"a":3}}`).wants(t, 200)
		keyed := func(key string) string { return `"policy":{"fairness_key":"` + key + `"}` }
		for _, key := range []string{"a", "b", "a", "c", "b", "b"} {
			w.job(t, `"priority":9,`+keyed(key))
		}
		id := w.job(t, keyed("a"))
		w.job(t, `"priority":8,`+keyed("a")+`,"delay_ms":600000`) // not ready
		want := fields{}
		for name, value := range map[string]any{"ahead": 6, "at_least": nil, "fairness_key": "a", "ahead_of_key": 2, "keys": 3, "weight": 3} {
			want["position."+name], want["blockers.0.data."+name] = value, value
		}
		w.keptBy(t, id, "in_line").shows(t, want).shows(t, fields{"blockers.0.data.lane": w.named("lane")})
	})
}
