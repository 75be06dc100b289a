package server_test

import (
	"net/http"
	"testing"
)

func TestU99_quotas_are_set_shown_and_removed(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.get(t, "/v1/quotas/mail").refuses(t, 404, "quota_not_found")
		put := func(body string) reply {
			t.Helper()
			return w.send(t, request{method: http.MethodPut, path: "/v1/quotas/mail", body: body})
		}
		made := put(`{"rate_limit":100,"concurrency_limit":1}`).wants(t, 200)
		if made.number(t, "window_ms") != 60_000 || made.number(t, "revision") != 1 || made.text(t, "quota_id") != "mail" {
			t.Errorf("made: %s", made.body)
		}
		put(`{"rate_limit":-1}`).refuses(t, 400, "invalid_argument")
		put(`{"per_kee":true}`).refuses(t, 400, "unknown_field")
		w.send(t, request{method: http.MethodPut, path: "/v1/quotas/mail", body: `{}`, header: map[string]string{"If-Match": "7"}}).refuses(t, 412, "precondition_failed")

		w.post(t, "/v1/executions", `{"kind":"job","quotas":[{"quota":"nope"}]}`).refuses(t, 400, "invalid_policy")
		w.post(t, "/v1/executions", `{"kind":"job","quotas":[{"quota":"mail"}],"policy":{"quotas":[{"quota":"mail"}]}}`).refuses(t, 400, "invalid_argument")
		first := w.post(t, "/v1/executions", `{"kind":"job","quotas":[{"quota":"mail"}]}`).wants(t, 201).text(t, "execution_id")
		w.post(t, "/v1/executions", `{"kind":"job","policy":{"quotas":[{"quota":"mail"}]}}`).wants(t, 201)
		w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"max":2}`).wants(t, 200)

		shown := w.get(t, "/v1/quotas/mail").wants(t, 200)
		if shown.number(t, "keys.0.slots") != 1 || shown.number(t, "keys.0.admissions") != 1 || shown.text(t, "keys.0.holders.0") != first || shown.number(t, "keys.0.blocked") != 1 {
			t.Errorf("shown: %s", shown.body)
		}
		if listed := w.get(t, "/v1/quotas").wants(t, 200); listed.text(t, "items.0.quota_id") != "mail" {
			t.Errorf("listed: %s", listed.body)
		}
		remove := func(query string) reply {
			t.Helper()
			return w.send(t, request{method: http.MethodDelete, path: "/v1/quotas/mail" + query})
		}
		remove("").refuses(t, 409, "quota_in_use")
		remove("?force=true").wants(t, 204)
		w.get(t, "/v1/quotas/mail").refuses(t, 404, "quota_not_found")
	})
}
