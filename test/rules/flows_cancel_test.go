package rules

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// motley is a flow with a member in every status, named after it, and what runs of it.
func (w *world) motley(t testing.TB) (graph, task) {
	t.Helper()
	const never = `"policy":{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":3600000}}}`
	g := w.flow(t, `{"kind":"motley","nodes":[`+nodes("ready", "running", "granted", "suspended", "parent", "succeeded", "failed", "stopped")+`,
		{"name":"delayed","kind":"delayed","delay_ms":3600000},{"name":"retrying","kind":"retrying",`+never+`},
		{"name":"blocked","kind":"blocked","after":["running"]},{"name":"skipped","kind":"skipped","after":["failed"]},
		{"name":"heir","kind":"heir","after":["ready"]},
		{"name":"expired","kind":"expired","delay_ms":3600000,"policy":{"timeout_policy":{"execution_deadline_ms":1}}}]}`)
	w.over(t, at(g.member(t, "expired")), fields{"status": "expired"})
	w.does(t, "succeeded")
	w.breaks(t, "failed")
	w.post(t, at(g.member(t, "stopped"))+"/cancel", `{"reason":"early"}`).wants(t, 200)
	w.under(t, w.take(t, "retrying"), "fail", `"class":"transient","message":"later"`).wants(t, 200)
	w.under(t, w.take(t, "suspended"), "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
	w.under(t, w.take(t, "parent"), "spawn", `"children":[{"name":"kid","kind":"kid","lane":"below"}],"wait":{}`).wants(t, 200)
	w.post(t, "/v1/work/grants", `{"worker_id":"v","worker_instance_id":"`+w.named("v")+`","execution_id":"`+g.member(t, "granted")+`","grant_ttl_ms":60000}`).wants(t, 200).count(t, "grants", 1)
	return g, w.take(t, "running")
}

func TestF49_F50_F53_each_policy_with_members_in_every_status(t *testing.T) {
	t.Parallel()
	before := map[string]string{
		"ready": "ready", "running": "running", "granted": "granted", "suspended": "suspended", "parent": "blocked", "delayed": "delayed", "retrying": "delayed",
		"blocked": "blocked", "heir": "blocked", "succeeded": "succeeded", "failed": "failed", "stopped": "cancelled", "skipped": "skipped", "expired": "expired",
	}
	for _, c := range []struct {
		policy, state string
		reaches       []string
		status        int
		remaining     int
	}{
		{"cancel_all", "cancelled", []string{"ready", "running", "granted", "suspended", "parent", "delayed", "retrying", "blocked", "heir"}, 200, 0},
		{"cancel_pending", "cancelling", []string{"ready", "granted", "delayed", "blocked", "heir"}, 202, 4},
		{"flow_only", "cancelled", nil, 200, 0},
	} {
		onEveryStore(t, func(t *testing.T, w *world) {
			g, running := w.motley(t)
			want := maps.Clone(before)
			if got := w.statuses(t, g.path); !maps.Equal(got, want) {
				t.Fatalf("members are %v", got)
			}
			w.post(t, g.path+"/cancel", `{"policy":"`+c.policy+`","reason":"no more"}`).wants(t, c.status).shows(t, fields{
				"state": c.state, "policy": c.policy, "reason": "no more", "cancelled": len(c.reaches), "finished_before": 5, "remaining": c.remaining, "already_terminal": nil,
			})
			for _, name := range c.reaches {
				want[name] = "cancelled"
				w.state(t, g.member(t, name), fields{
					"reason": "flow_cancelled", "cancellation.source": "flow", "cancellation.by": "tester", "cancellation.reason": "no more", "lease": nil,
				})
			}
			if got := w.statuses(t, g.path); !maps.Equal(got, want) {
				t.Errorf("members are %v, want %v", got, want)
			}
			w.state(t, g.member(t, "stopped"), fields{"cancellation.source": "operator", "cancellation.reason": "early"})
			shown := w.get(t, g.path).wants(t, 200).shows(t, fields{"state": c.state, "cancel.policy": c.policy, "cancel.reason": "no more", "cancel.by": "tester", "counts.total": 14})
			if shown.text(t, "cancel.requested_at") == "" {
				t.Errorf("%s", shown.body)
			}
			w.post(t, g.path+"/extend", `{"nodes":[`+nodes("more")+`]}`).refuses(t, 409, "flow_already_terminal")
			w.afterCancel(t, g, c.policy, running)
		})
	}
}

// afterCancel shows what a cancel means for running members, for edges and for readers of events.
func (w *world) afterCancel(t testing.TB, g graph, policy string, running task) {
	t.Helper()
	switch policy {
	case "cancel_all":
		w.under(t, running, "renew", "").refuses(t, 409, "execution_not_active") // so workers are told
		w.under(t, running, "complete", `"result":1`).refuses(t, 409, "execution_not_active")
		w.get(t, g.path+"/edges?from=ready").wants(t, 200).shows(t, fields{"items.0.state": "impossible", "items.0.upstream_outcome": "cancelled"})
		w.over(t, at(w.get(t, at(g.member(t, "parent"))+"/children").wants(t, 200).text(t, "items.0.execution_id")), fields{"status": "cancelled", "cancellation.source": "parent"})
		seen := map[string]int{}
		for _, one := range w.told(t, "kind=execution.completed,flow.cancelled&flow_id="+bare(g.id), "flow.cancelled", 1) {
			seen[one.text(t, "execution_id")]++
		}
		for name := range w.statuses(t, g.path) {
			if id := g.member(t, name); seen[id] != 1 {
				t.Errorf("the end of %s was told %d times", name, seen[id])
			}
		}
	case "cancel_pending":
		w.complete(t, running, `1`)
		w.state(t, g.member(t, "blocked"), fields{"status": "cancelled"})
		w.complete(t, w.claim(t, "below"), `1`) // the parent goes on to its own end
		w.does(t, "parent")
		w.claimsNothing(t, "default")
	case "flow_only":
		w.complete(t, running, `1`)
		w.does(t, "blocked", "ready", "heir") // edges go on working
		w.state(t, g.member(t, "heir"), fields{"status": "succeeded"})
	}
}

func TestF49_F53_more_than_256_members_are_cancelled_in_batches_without_the_caller(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		names := make([]string, 299)
		for i := range names {
			names[i] = fmt.Sprintf(`{"name":"n%d"}`, i)
		}
		g := w.flow(t, `{"kind":"many","defaults":{"kind":"other"},"nodes":[`+strings.Join(names, ",")+`,`+node("z")+`]}`)
		w.does(t, "z") // none of those that the transaction looks at
		first := w.post(t, g.path+"/cancel", `{"reason":"all"}`).shows(t, fields{"policy": "cancel_all", "reason": "all", "finished_before": 1})
		cancelled, _ := first.field(t, "cancelled").(float64)
		remaining, _ := first.field(t, "remaining").(float64)
		if cancelled+remaining != 299 || cancelled < 256 { // in the one transaction
			t.Errorf("of 299: %s", first.body)
		}
		if done := remaining == 0; done != (first.status == 200) || done != (first.text(t, "state") == "cancelled") || first.status != 200 && first.status != 202 {
			t.Errorf("status %d: %s", first.status, first.body)
		}
		w.over(t, g.path, fields{"state": "cancelled", "counts.cancelled": 299, "counts.completed": 1})
		w.post(t, g.path+"/cancel?wait_ms=20000", `{"reason":"other"}`).wants(t, 200).
			shows(t, fields{"state": "cancelled", "reason": "all", "cancelled": 299, "finished_before": 1, "remaining": 0})
	})
}

func TestF50_F51_a_cancelling_flow_is_cancelled_with_its_last_member_whose_outcome_stands(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","seal":false,"nodes":[`+nodes("a", "b", "c")+`]}`)
		a, b := w.take(t, "a"), w.take(t, "b")
		w.post(t, g.path+"/cancel", `{"policy":"cancel_pending","reason":"r"}`).wants(t, 202).shows(t, fields{"state": "cancelling", "cancelled": 1, "remaining": 2})
		w.get(t, g.path).wants(t, 200).shows(t, fields{"state": "cancelling", "phase": "running", "ended_at": nil})
		w.complete(t, a, `1`)
		w.get(t, g.path).wants(t, 200).shows(t, fields{"state": "cancelling"})
		w.fail(t, b)
		ended := w.get(t, g.path).wants(t, 200).shows(t, fields{"state": "cancelled", "phase": nil})
		if ended.text(t, "ended_at") == "" {
			t.Errorf("%s", ended.body)
		}
		w.stand(t, g.path, "a:succeeded", "b:failed", "c:cancelled")
		w.post(t, g.path+"/cancel", `{"reason":"again"}`).wants(t, 200).shows(t, fields{"state": "cancelled", "policy": "cancel_pending", "reason": "r", "cancelled": 1, "finished_before": 2, "remaining": 0})
		w.get(t, g.path).wants(t, 200).shows(t, fields{"cancel": ended.field(t, "cancel")})
	})
}

func TestF52_a_stronger_policy_replaces_a_weaker_one_and_nothing_else_does(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			first, second string
			replaces      bool
			first2        string // state after the first
			second2       string
		}{
			{"flow_only", "flow_only", false, "cancelled", "cancelled"},
			{"flow_only", "cancel_pending", true, "cancelled", "cancelled"},
			{"flow_only", "cancel_all", true, "cancelled", "cancelled"},
			{"cancel_pending", "flow_only", false, "cancelling", "cancelling"},
			{"cancel_pending", "cancel_pending", false, "cancelling", "cancelling"},
			{"cancel_pending", "cancel_all", true, "cancelling", "cancelled"},
			{"cancel_all", "flow_only", false, "cancelled", "cancelled"},
			{"cancel_all", "cancel_pending", false, "cancelled", "cancelled"},
			{"cancel_all", "cancel_all", false, "cancelled", "cancelled"},
		} {
			g := w.flow(t, `{"kind":"f","nodes":[`+nodes("a", "b")+`]}`)
			a := w.take(t, "a")
			cancel := func(policy, reason string) reply {
				return w.post(t, g.path+"/cancel", `{"policy":"`+policy+`","reason":"`+reason+`"}`)
			}
			cancel(c.first, "one").shows(t, fields{"state": c.first2, "policy": c.first, "reason": "one"})
			shown := w.get(t, g.path).wants(t, 200)
			policy, reason := c.first, "one"
			if c.replaces {
				policy, reason = c.second, "two"
			}
			cancel(c.second, "two").shows(t, fields{"state": c.second2, "policy": policy, "reason": reason})
			again := w.get(t, g.path).wants(t, 200).shows(t, fields{"state": c.second2, "cancel.policy": policy, "cancel.reason": reason})
			if !c.replaces {
				again.shows(t, fields{"last_mutation_at": shown.field(t, "last_mutation_at"), "cancel": shown.field(t, "cancel")})
			}
			statuses := map[string][]string{
				"flow_only": {"a:running", "b:ready"}, "cancel_pending": {"a:running", "b:cancelled"}, "cancel_all": {"a:cancelled", "b:cancelled"},
			}
			w.stand(t, g.path, statuses[policy]...)
			if policy != "cancel_all" {
				w.complete(t, a, `1`)
			}
			if policy == "flow_only" {
				w.does(t, "b")
			}
			w.over(t, g.path, fields{"state": "cancelled"})
			cancel("cancel_all", "three").wants(t, 200).shows(t, fields{"policy": policy, "reason": reason, "state": "cancelled"}) // none is left
		}
	})
}

func TestF52_a_flow_that_ended_by_itself_stays_as_it_is(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for state, end := range map[string]func(testing.TB, ...string){"completed": w.does, "failed": w.breaks} {
			g := w.flow(t, `{"kind":"f","nodes":[`+nodes("a")+`]}`)
			end(t, "a")
			before := w.over(t, g.path, fields{"state": state})
			for _, policy := range []string{"cancel_all", "cancel_pending", "flow_only"} {
				w.post(t, g.path+"/cancel", `{"policy":"`+policy+`","reason":"late"}`).wants(t, 200).
					shows(t, fields{"already_terminal": true, "state": state, "policy": nil, "reason": nil, "cancelled": 0, "remaining": 0})
			}
			w.get(t, g.path).wants(t, 200).shows(t, fields{"state": state, "cancel": nil, "last_mutation_at": before.field(t, "last_mutation_at")})
		}
		w.post(t, flowAt("0198f0a0-0000-7000-8000-000000000000")+"/cancel", `{"reason":"r"}`).refuses(t, 404, "flow_not_found")
	})
}

func TestF53_a_cancel_waits_until_nothing_remains_or_the_time_is_over(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","nodes":[`+nodes("a", "b")+`]}`)
		a := w.take(t, "a")
		const pending = `{"policy":"cancel_pending","reason":"r"}`
		for body, code := range map[string]string{`{}`: "missing_field", `{"reason":"r","policy":"most"}`: "invalid_argument", `{"reason":"` + strings.Repeat("x", 1025) + `"}`: "invalid_argument"} {
			w.post(t, g.path+"/cancel", body).refuses(t, 400, code)
		}
		w.post(t, g.path+"/cancel?wait_ms=-1", pending).refuses(t, 400, "invalid_argument")
		w.get(t, g.path).wants(t, 200).shows(t, fields{"state": "open", "cancel": nil})

		over := w.post(t, g.path+"/cancel?wait_ms=20", pending).wants(t, 202)
		over.shows(t, fields{"state": "cancelling", "cancelled": 1, "finished_before": 0, "remaining": 1})
		done := make(chan reply, 1)
		go func() {
			defer close(done)
			done <- w.post(t, g.path+"/cancel?wait_ms=20000", pending)
		}()
		w.complete(t, a, `1`)
		(<-done).wants(t, 200).shows(t, fields{"state": "cancelled", "cancelled": 1, "finished_before": 1, "remaining": 0})
		if applied := w.preferring(t, "POST", g.path+"/cancel", pending, "wait=900"); applied != "wait=300" {
			t.Errorf("it would have waited %q", applied)
		}
	})
}
