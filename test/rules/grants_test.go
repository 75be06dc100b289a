package rules

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestS27_a_grant_promises_work_and_takes_slot_rate_and_reservation_for_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"rate_limit":5,"concurrency_limit":2}`)
		id := w.job(t, `"policy":{`+attached(q)+`,`+w.purse(t, "team", 10, 4)+`}`)
		g := w.asks(t, forAMinute).given(t)
		g.shows(t, fields{"grants.0.execution_id": id, "grants.0.partition_key": w.tag(t, id)})
		if g.header.Get("Cache-Control") != "no-store" {
			t.Errorf("Cache-Control: %q", g.header.Get("Cache-Control"))
		}
		now := w.state(t, id, fields{"status": "granted", "reason": "waiting_for_worker", "total_attempts": 0, "lease": nil})
		if ttl := g.moment(t, "grants.0.expires_at").Sub(now.moment(t, "status_since")); ttl != time.Minute {
			t.Errorf("it lasts %s", ttl)
		}
		w.inUse(t, q, 1, 1, 0).shows(t, fields{"keys.0.holders.0": id})
		w.get(t, "/v1/budgets/team").wants(t, 200).shows(t, fields{"dimensions.tokens.reserved": 4})
		told := w.lastTold(t, id, "grant.issued")
		if told["worker_id"] != "w" || told["worker_instance_id"] != w.namespace || told["expires_at"] != g.text(t, "grants.0.expires_at") {
			t.Errorf("told %v", told)
		}
		w.takesNothing(t)
	})
}

func TestS27_a_pick_for_grants_matches_as_a_claim_does_and_no_candidate_is_an_empty_list(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		empty := func(more string) {
			t.Helper()
			if got := w.asks(t, more).wants(t, 200); strings.TrimSpace(string(got.body)) != `{"grants":[]}` {
				t.Errorf("%s: %s", got.asked, got.body)
			}
		}
		empty("")
		first := w.job(t, `"policy":{"routing_requirements":{"required_capabilities":["gpu"]}}`)
		second := w.job(t, `"priority":9,"policy":{"routing_requirements":{"required_capabilities":["gpu"]}}`)
		empty("")
		empty(`"capabilities":["gpu"],"kinds":["other"]`)
		empty(`"capabilities":["cpu","gpu2"]`)
		w.asks(t, `"capabilities":["gpu"],"kinds":["job"],"max":3,"lane_order":"listed"`).wants(t, 200).shows(t, fields{
			"grants.0.execution_id": second, "grants.1.execution_id": first, "grants.2": nil,
		})
	})
}

func TestS27_a_call_for_grants_that_waits_is_woken(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.takesNothing(t)
		answer := w.seeks(t, "grants", `"lanes":[`+w.ownLane()+`],"grant_ttl_ms":60000`)
		id := w.job(t, "")
		if g := (<-answer).given(t); g.id != id {
			t.Errorf("granted %s", g.body)
		}
	})
}

func TestS27_the_arguments_of_a_grant_have_bounds(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.job(t, "")
		before := w.shown(t, id)
		for more, want := range map[string]struct{ code, field string }{
			`"grant_ttl_ms":60001`:     {"invalid_argument", "/grant_ttl_ms"},
			`"grant_ttl_ms":-1`:        {"invalid_argument", "/grant_ttl_ms"},
			`"lease_ttl_ms":30000`:     {"unknown_field", "/lease_ttl_ms"},
			`"max":1001`:               {"invalid_argument", "/max"},
			`"wait_ms":60001`:          {"invalid_argument", "/wait_ms"},
			`"capabilities":["a,b"]`:   {"invalid_capabilities", "/capabilities"},
			`"lane_order":"backwards"`: {"invalid_argument", "/lane_order"},
			`"grant_ttl_ms":"a while"`: {"invalid_argument", "/grant_ttl_ms"},
		} {
			refusal := w.asks(t, more)
			w.leavesAlone(t, id, refusal, 400, want.code, before)
			if field := refusal.text(t, "field"); !strings.HasPrefix(field, want.field) {
				t.Errorf("%s: field %q", more, field)
			}
		}
		w.post(t, "/v1/work/grants", `{`+w.me()+`}`).refuses(t, 400, "invalid_argument")
		for _, ttl := range []int{1, 60_000} {
			g := w.asks(t, `"grant_ttl_ms":`+strconv.Itoa(ttl)).given(t)
			lasts := g.moment(t, "grants.0.expires_at").Sub(w.grantedAt(t, id))
			if lasts != time.Duration(ttl)*time.Millisecond {
				t.Errorf("it lasts %s, want %d ms", lasts, ttl)
			}
			comes(t, "the short one is over", func() bool { return ttl > 1 || w.get(t, at(id)).text(t, "status") == "ready" })
		}
	})
}

// grantedAt is when the last grant of an execution was issued.
func (w *world) grantedAt(t testing.TB, id string) time.Time {
	t.Helper()
	issued := w.toldOf(t, id, "grant.issued")
	if len(issued) == 0 {
		t.Fatalf("%s was never granted", id)
	}
	return issued[len(issued)-1].moment(t, "at")
}

func TestS27_a_grant_of_one_id_is_judged_by_its_status(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		suspended, ended := w.started(t, ""), w.started(t, "")
		w.under(t, suspended, "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
		w.complete(t, ended, `1`)
		running := w.started(t, "")
		held := w.job(t, "")
		w.post(t, at(held)+"/hold", `{}`).wants(t, 200)
		for status, c := range map[string]struct {
			id   string
			code string
		}{
			"delayed":   {w.job(t, `"delay_ms":600000`), "execution_not_eligible"},
			"blocked":   {held, "execution_not_eligible"},
			"granted":   {w.granted(t, "").id, "grant_outstanding"},
			"running":   {running.id, "lease_conflict"},
			"suspended": {suspended.id, "execution_not_eligible"},
			"succeeded": {ended.id, "execution_not_active"},
		} {
			before := w.shown(t, c.id).shows(t, fields{"status": status})
			w.leavesAlone(t, c.id, w.asksFor(t, c.id, ""), 409, c.code, before)
		}
		w.asksFor(t, "0190f0c2-1111-7aaa-8bbb-0123456789ab", "").refuses(t, 404, "execution_not_found")
		ready := w.job(t, "")
		if g := w.asksFor(t, ready, `"max":9,"kinds":["other"]`).given(t); g.id != ready {
			t.Errorf("granted %s", g.body)
		}
	})
}

func TestS28_a_grant_key_is_made_of_tag_uuid_expiry_kid_and_digits(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		shape := regexp.MustCompile(`^pg:(\{fp:(0|[1-9][0-9]*)\}):([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}):([1-9][0-9]*):([A-Za-z0-9._-]+):([0-9a-f]{64})$`)
		g := w.granted(t, "")
		parts := shape.FindStringSubmatch(g.key)
		if parts == nil {
			t.Fatalf("%s", g.key)
		}
		expires := strconv.FormatInt(g.moment(t, "grants.0.expires_at").UnixMilli(), 10)
		kid := w.get(t, "/v1/keys").wants(t, 200).text(t, "current_kid")
		if parts[3] != g.id || parts[1] != g.text(t, "grants.0.partition_key") || parts[5] != expires || parts[6] != kid {
			t.Errorf("%s, until %s, kid %s: %s", g.id, expires, kid, g.key)
		}
		if other := w.granted(t, ""); other.key[len(other.key)-64:] == parts[7] {
			t.Error("two grants have the same digits")
		}
	})
}
