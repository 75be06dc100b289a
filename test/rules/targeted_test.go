package rules

import (
	"net/http"
	"testing"
)

// once is a world whose requests carry this idempotency key.
func (w *world) once(key string) *world {
	with := &serving{client: w.client, url: w.url, routes: w.routes, http: &http.Client{Transport: keyed{w.http.Transport, key}}}
	return &world{with, w.namespace, w.leases}
}

// keyed puts an idempotency key on requests.
type keyed struct {
	http.RoundTripper
	key string
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Idempotency-Key", k.key)
	return k.RoundTripper.RoundTrip(r)
}

// targets are the two targeted claims of workers: how an execution comes to wait for one, and as what it is taken.
var targets = map[string]struct {
	leave, how string
	attempt    int
	fresh      string // code for one that does not wait for it
	ended      string // code for one that is over
	running    string // code for one that runs
	suspended  string // code for one that is suspended
}{
	"claim-resumed": {"release", "resumed", 0, "not_a_resumed_execution", "not_a_resumed_execution", "not_a_resumed_execution", "not_a_resumed_execution"},
	"reclaim":       {"revoke", "reclaimed", 1, "execution_not_reclaimable", "execution_not_active", "lease_conflict", "execution_not_reclaimable"},
}

// leaves ends a lease so that the execution waits for a targeted claim.
func (w *world) leaves(t testing.TB, k task, how string) {
	t.Helper()
	if how == "revoke" {
		w.post(t, at(k.id)+"/revoke", `{}`).wants(t, 200)
		return
	}
	w.under(t, k, how, "").wants(t, 200)
}

func TestS34_targeted_claims_test_lane_state_capabilities_and_admission_in_that_order(t *testing.T) {
	t.Parallel()
	for call, target := range targets {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				q := w.limit(t, "q", `{"concurrency_limit":1}`)
				able := `"capabilities":["gpu","x","y"]`
				id := w.job(t, `"policy":{`+attached(q)+`,"routing_requirements":{"required_capabilities":["x","gpu"]}}`)
				got := w.claims(t, `"lanes":[`+w.ownLane()+`],`+able)
				w.leaves(t, got[0], target.leave)
				holder := w.started(t, `"priority":9,`+attached(q))
				lane := "/v1/lanes/" + w.named("lane")
				w.post(t, lane+"/pause", `{}`).wants(t, 200)
				before := w.shown(t, id)
				claim := func(more string) reply {
					t.Helper()
					return w.post(t, at(id)+"/"+call, `{`+w.me()+and(more)+`}`)
				}
				w.leavesAlone(t, id, claim(`"lane":"elsewhere"`), 400, "lane_mismatch", before)
				w.leavesAlone(t, id, claim(`"lane":`+w.ownLane()), 409, "lane_not_claimable", before)
				w.post(t, lane+"/resume", `{}`).wants(t, 200)
				before = w.shown(t, id)
				lacks := claim(`"capabilities":["y"]`)
				w.leavesAlone(t, id, lacks, 409, "capability_mismatch", before)
				lacks.shows(t, fields{"current.missing": []any{"gpu", "x"}})
				full := claim(able)
				w.leavesAlone(t, id, full, 429, "admission_refused", before)
				full.shows(t, fields{"current.key": "slots:" + q, "retryable": true})
				w.complete(t, holder, `1`)
				taken := claim(able+`,"lease_ttl_ms":7000,"lane":`+w.ownLane()).wants(t, 200)
				taken.shows(t, fields{"how": target.how, "attempt.attempt_index": target.attempt, "lease.lease_epoch": 2, "lease.ttl_ms": 7000})
				w.inUse(t, q, 1, 0, 0).shows(t, fields{"keys.0.holders.0": id})
				if told := w.lastTold(t, id, "lease.acquired"); told["how"] != target.how || told["forced"] != nil {
					t.Errorf("told %v", told)
				}
			})
		})
	}
}

func TestS34_a_targeted_claim_takes_what_waits_for_it_and_nothing_else(t *testing.T) {
	t.Parallel()
	for call, target := range targets {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				ended, suspended, waiting, other := w.started(t, ""), w.started(t, ""), w.started(t, ""), w.started(t, "")
				w.complete(t, ended, `1`)
				w.under(t, suspended, "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
				w.leaves(t, other, map[string]string{"release": "revoke", "revoke": "release"}[target.leave])
				w.leaves(t, waiting, target.leave)
				promised := w.asksFor(t, waiting.id, forAMinute).given(t)
				running := w.started(t, `"priority":9`)
				claim := func(w *world, id string) reply {
					t.Helper()
					return w.post(t, at(id)+"/"+call, `{`+w.me()+`}`)
				}
				for name, c := range map[string]struct{ id, code string }{
					"fresh": {w.job(t, ""), target.fresh}, "delayed": {w.job(t, `"delay_ms":600000`), target.fresh},
					"the other sort": {other.id, target.fresh}, "running": {running.id, target.running},
					"over": {ended.id, target.ended}, "suspended": {suspended.id, target.suspended}, "granted": {promised.id, "grant_outstanding"},
				} {
					t.Run(name, func(t *testing.T) { w.leavesAlone(t, c.id, claim(w, c.id), 409, c.code, w.shown(t, c.id)) })
				}
				claim(w, "0190f0c2-1111-7aaa-8bbb-0123456789ab").refuses(t, 404, "execution_not_found")
				w.present(t, "return", promised.key).wants(t, 204)
				first := claim(w.once("a"), waiting.id).wants(t, 200)
				again := claim(w.once("a"), waiting.id).wants(t, 200)
				if first.text(t, "lease.fence") != again.text(t, "lease.fence") {
					t.Errorf("a repeat has another lease: %s", again.body)
				}
				claim(w.once("b"), waiting.id).refuses(t, 409, target.running)
			})
		})
	}
}

func TestS35_an_operators_claim_skips_capabilities_and_nothing_else(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"rate_limit":2,"concurrency_limit":1}`)
		policy := `"policy":{` + attached(q) + `,` + w.purse(t, "team", 10, 4) + `,"routing_requirements":{"required_capabilities":["never"]}}`
		claim := func(id, more string) reply { t.Helper(); return w.post(t, at(id)+"/claim", `{`+more+`}`) }
		first := claim(w.job(t, policy), `"lease_ttl_ms":5000`).wants(t, 200)
		first.shows(t, fields{"how": "fresh", "lease.worker_id": "operator", "lease.worker_instance_id": "operator", "lease.ttl_ms": 5000})
		w.inUse(t, q, 1, 1, 0)
		if told := w.lastTold(t, first.text(t, "execution_id"), "lease.acquired"); told["forced"] != nil {
			t.Errorf("told %v", told)
		}
		id := w.job(t, policy)
		before := w.shown(t, id)
		full := claim(id, "")
		w.leavesAlone(t, id, full, 429, "admission_refused", before)
		full.shows(t, fields{"current.key": "slots:" + q})
		w.post(t, "/v1/lanes/"+w.named("lane")+"/disable", `{}`).wants(t, 200)
		w.leavesAlone(t, id, claim(id, ""), 409, "lane_not_claimable", w.shown(t, id))
		if w.lastTold(t, id, "grant.issued") != nil {
			t.Error("a refusal left a grant behind")
		}
		desk := w.named("desk")
		forced := claim(id, `"force":true,"worker_id":"ann","worker_instance_id":"`+desk+`"`).wants(t, 200)
		forced.shows(t, fields{"lease.worker_id": "ann", "lease.worker_instance_id": desk})
		if told := w.lastTold(t, id, "lease.acquired"); told["forced"] != true {
			t.Errorf("told %v", told)
		}
		shown := w.ofAll().get(t, "/v1/quotas/"+q).shows(t, fields{"keys.0.slots": 2})
		if len(shown.items(t, "keys.0.holders")) != 2 {
			t.Errorf("above the limit: %s", shown.body)
		}
		w.get(t, "/v1/admin/integrity").wants(t, 200).shows(t, fields{"ok": true})
	})
}

func TestS35_force_never_skips_the_gate(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		suspended, running := w.started(t, ""), w.started(t, "")
		w.under(t, suspended, "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
		held := w.job(t, "")
		w.post(t, at(held)+"/hold", `{}`).wants(t, 200)
		line := w.flow(t, `{"kind":"pair","nodes":[{"name":"a","kind":"job"},{"name":"b","kind":"job","after":["a"]}]}`)
		for name, c := range map[string]struct{ id, code string }{
			"dependencies": {line.member(t, "b"), "execution_not_eligible"}, "delay": {w.job(t, `"delay_ms":600000`), "execution_not_eligible"},
			"hold": {held, "execution_not_eligible"}, "suspension": {suspended.id, "execution_not_eligible"}, "lease": {running.id, "lease_conflict"},
		} {
			t.Run(name, func(t *testing.T) {
				w.leavesAlone(t, c.id, w.post(t, at(c.id)+"/claim", `{"force":true}`), 409, c.code, w.shown(t, c.id))
			})
		}
		id := w.job(t, "")
		first := w.once("a").post(t, at(id)+"/claim", `{"force":true}`).wants(t, 200)
		again := w.once("a").post(t, at(id)+"/claim", `{"force":true}`).wants(t, 200)
		if first.text(t, "lease.fence") != again.text(t, "lease.fence") {
			t.Errorf("a repeat has another lease: %s", again.body)
		}
	})
}
