package rules

import (
	"net/url"
	"strings"
	"testing"
)

func TestS36_put_quota_states_the_whole_record_within_its_bounds(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path := "/v1/quotas/" + w.named("q")
		put := func(settings string) reply { t.Helper(); return w.send(t, "PUT", path, settings) }
		put(`{}`).wants(t, 200).shows(t, fields{
			"quota_id": w.named("q"), "rate_limit": nil, "window_ms": 60_000, "concurrency_limit": nil, "per_key": nil, "revision": 1, "keys": nil,
		})
		put(`{"rate_limit":1000000,"window_ms":86400000,"concurrency_limit":1000000,"per_key":true}`).wants(t, 200).shows(t, fields{
			"rate_limit": 1_000_000, "window_ms": 86_400_000, "concurrency_limit": 1_000_000, "per_key": true, "revision": 2,
		})
		last := put(`{"window_ms":1000}`).wants(t, 200).shows(t, fields{"rate_limit": nil, "window_ms": 1000, "concurrency_limit": nil, "per_key": nil, "revision": 3})
		if again := put(`{"window_ms":1000}`).wants(t, 200); string(again.body) != string(last.body) {
			t.Errorf("the same again changes something: %s\n%s", last.body, again.body)
		}
		for settings, field := range map[string]string{
			`{"rate_limit":-1}`: "/rate_limit", `{"rate_limit":1000001}`: "/rate_limit", `{"rate_limit":"many"}`: "/rate_limit",
			`{"window_ms":999}`: "/window_ms", `{"window_ms":86400001}`: "/window_ms",
			`{"concurrency_limit":-1}`: "/concurrency_limit", `{"concurrency_limit":1000001}`: "/concurrency_limit", `{"per_key":1}`: "/per_key",
		} {
			put(settings).refuses(t, 400, "invalid_argument").shows(t, fields{"field": field})
		}
		if after := w.get(t, path).wants(t, 200); string(after.body) != string(last.body) {
			t.Errorf("a refusal changes something: %s\n%s", last.body, after.body)
		}
		told := 0
		for _, one := range w.toldByNow(t, "quota.changed") { // of every test
			if one.text(t, "data.quota") == w.named("q") {
				told++
			}
		}
		if told != 3 {
			t.Errorf("%d events", told)
		}
	})
}

func TestS36_ids_of_quotas(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for id, status := range map[string]int{
			w.named("A0_.:-z"): 200, w.named(strings.Repeat("x", 128-len(w.named("")))): 200, w.named(strings.Repeat("x", 129-len(w.named("")))): 400,
			"-a": 400, ".a": 400, "_a": 400, ":a": 400, w.named("a b"): 400, w.named("ä"): 400, w.named("a+b"): 400,
		} {
			if got := w.send(t, "PUT", "/v1/quotas/"+url.PathEscape(id), `{}`).wants(t, status); status == 400 {
				got.shows(t, fields{"code": "invalid_argument"})
			}
		}
	})
}

func TestS37_work_is_attached_to_quotas_that_exist_with_a_key_iff_they_count_by_key(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		plain, byKey := w.limit(t, "plain", `{"rate_limit":9}`), w.limit(t, "keyed", `{"rate_limit":9,"per_key":true}`)
		for field, quotas := range map[string]string{
			"/quotas/1/quota": attached(plain, w.named("none")), "/quotas/0/key": attached(byKey), "/quotas/1/key": attached(byKey+"/a", plain+"/a"),
		} {
			w.post(t, "/v1/executions", `{"kind":"job","lane":`+w.ownLane()+`,`+quotas+`}`).refuses(t, 400, "invalid_policy").shows(t, fields{"field": field})
			w.post(t, "/v1/executions", `{"kind":"job","lane":`+w.ownLane()+`,"policy":{`+quotas+`}}`).refuses(t, 400, "invalid_policy").shows(t, fields{"field": "/policy" + field})
		}
		w.takesNothing(t)
		id := w.job(t, attached(byKey+"/a", plain))
		w.shown(t, id).shows(t, fields{
			"policy.quotas.0.quota": byKey, "policy.quotas.0.key": "a", "policy.quotas.1.quota": plain, "policy.quotas.1.key": nil, "policy.quotas.2": nil,
		})
	})
}

func TestS37_each_key_has_a_window_and_slots_of_its_own(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		rate, slots := w.limit(t, "rate", `{"rate_limit":1,"per_key":true}`), w.limit(t, "slots", `{"concurrency_limit":1,"per_key":true}`)
		blocked := map[string]string{}
		for _, quota := range []string{rate, slots} {
			for _, key := range []string{"a", "b"} {
				w.started(t, `"priority":9,`+attached(quota+"/"+key))
				blocked[quota+"/"+key] = w.job(t, attached(quota+"/"+key))
				w.takesNothing(t)
			}
		}
		for _, key := range []string{"a", "b"} {
			w.isBlocked(t, blocked[rate+"/"+key], "waiting_for_quota", "rate:"+rate+"/"+key)
			w.isBlocked(t, blocked[slots+"/"+key], "waiting_for_quota", "slots:"+slots+"/"+key)
		}
		w.state(t, blocked[slots+"/a"], fields{"blocking_detail.limit": 1, "blocking_detail.in_use": 1})
		w.ofAll().get(t, "/v1/quotas/"+rate).wants(t, 200).shows(t, fields{
			"keys.0.key": "a", "keys.0.admissions": 1, "keys.0.blocked": 1, "keys.1.key": "b", "keys.1.admissions": 1, "keys.2": nil,
		})
		w.ofAll().get(t, "/v1/quotas/"+slots).wants(t, 200).shows(t, fields{"keys.0.key": "a", "keys.0.slots": 1, "keys.0.admissions": 0, "keys.1.slots": 1})
	})
}

func TestS38_a_quota_in_use_is_deleted_by_force_alone_and_its_blocked_rows_are_released(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		remove := func(query string) reply { t.Helper(); return w.send(t, "DELETE", "/v1/quotas/"+w.named("q")+query, "") }
		remove("").refuses(t, 404, "quota_not_found")
		q := w.limit(t, "q", `{"concurrency_limit":1}`)
		running, waiting := w.started(t, attached(q)), w.job(t, attached(q))
		w.takesNothing(t)
		w.isBlocked(t, waiting, "waiting_for_quota", "slots:"+q)
		remove("").refuses(t, 409, "quota_in_use")
		w.inUse(t, q, 1, 0, 1)
		if got := remove("?force=true").wants(t, 204); len(got.body) != 0 {
			t.Errorf("%s", got.body)
		}
		w.get(t, "/v1/quotas/"+q).refuses(t, 404, "quota_not_found")
		comes(t, "what was blocked is ready", func() bool { return w.get(t, at(waiting)).text(t, "status") == "ready" })
		w.state(t, waiting, fields{"reason": "waiting_for_worker", "blocking_detail": nil})
		w.complete(t, w.takes(t, waiting), `1`) // it limits nothing
		w.post(t, "/v1/executions", `{"kind":"job",`+attached(q)+`}`).refuses(t, 400, "invalid_policy")
		w.complete(t, running, `1`)

		w.limit(t, "q", `{"concurrency_limit":1}`)
		last := w.started(t, attached(q))
		remove("").refuses(t, 409, "quota_in_use")
		w.complete(t, last, `1`)
		remove("").wants(t, 204) // what has ended needs it no more
	})
}

func TestS39_a_quota_shows_for_each_key_who_holds_slots_what_counts_who_waits_and_when_there_is_room(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		q := w.limit(t, "q", `{"rate_limit":2,"window_ms":3600000,"concurrency_limit":5,"per_key":true}`)
		w.get(t, "/v1/quotas/"+q).wants(t, 200).shows(t, fields{"rate_limit": 2, "window_ms": 3_600_000, "concurrency_limit": 5, "per_key": true, "keys": nil})
		first, second := w.started(t, attached(q+"/a")), w.started(t, attached(q+"/a"))
		w.complete(t, second, `1`)
		other := w.started(t, attached(q+"/b"))
		w.job(t, attached(q+"/a"))
		w.takesNothing(t)
		shown := w.ofAll().get(t, "/v1/quotas/"+q).wants(t, 200).shows(t, fields{
			"keys.0.key": "a", "keys.0.slots": 1, "keys.0.holders": []any{first.id}, "keys.0.admissions": 2, "keys.0.blocked": 1,
			"keys.1.key": "b", "keys.1.slots": 1, "keys.1.holders": []any{other.id}, "keys.1.admissions": 1, "keys.1.blocked": 0, "keys.1.next_free_at": nil,
		})
		if want := first.moment(t, first.of("lease.acquired_at")).Add(3_600_000_000_000); !shown.moment(t, "keys.0.next_free_at").Equal(want) {
			t.Errorf("room at %s, want %s", shown.text(t, "keys.0.next_free_at"), want)
		}
		w.limit(t, "p", `{}`)
		var ids []string
		cursor, pages := "", 0
		for ; pages == 0 || cursor != ""; pages++ {
			page := w.ofAll().get(t, "/v1/quotas?limit=1&cursor="+url.QueryEscape(cursor)).wants(t, 200)
			if id := page.text(t, "items.0.quota_id"); strings.HasPrefix(id, w.named("")) {
				ids = append(ids, id)
				if id == q {
					page.shows(t, fields{"items.0.keys.0.admissions": 2, "items.0.keys.1.key": "b", "items.1": nil})
				}
			}
			cursor = page.text(t, "next_cursor")
		}
		if strings.Join(ids, " ") != w.named("p")+" "+q {
			t.Errorf("%v in %d pages", ids, pages)
		}
		w.get(t, "/v1/quotas/"+w.named("none")).refuses(t, 404, "quota_not_found")
	})
}
