package server_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestU11_the_field_of_a_refusal_is_its_place_in_the_request(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.submitted(t)
		execution, lease, attempt := "/v1/executions/"+bare(id), "0198f0a0-0000-7000-8000-000000000001", "0198f0a0-0000-7000-8000-000000000002"
		partial := fmt.Sprintf(`{"lease_id":%q,"attempt_id":%q}`, lease, attempt)
		budget := w.post(t, "/v1/budgets", `{"name":"b","dimensions":{"tokens":{"hard":9}}}`).wants(t, 201).text(t, "budget_id")
		w.send(t, request{method: "PUT", path: "/v1/quotas/q", body: `{"concurrency_limit":1}`}).wants(t, 200)
		flow := w.post(t, "/v1/flows?empty=true", `{"kind":"growing"}`).wants(t, 201).header.Get("Location")
		stale := map[string]string{"If-Match": `"77"`}
		for _, c := range []struct {
			request
			field string
		}{
			{request{method: "PUT", path: "/v1/lanes/default", body: `{"max_concurrent":1}`, header: stale}, "header.If-Match"},
			{request{method: "POST", path: "/v1/lanes/default/pause", body: `{}`, header: stale}, "header.If-Match"},
			{request{method: "PUT", path: "/v1/quotas/q", body: `{"concurrency_limit":2}`, header: stale}, "header.If-Match"},
			{request{method: "DELETE", path: "/v1/quotas/q", header: stale}, "header.If-Match"},
			{request{method: "PATCH", path: "/v1/budgets/" + budget, body: `{"name":"c"}`, header: stale}, "header.If-Match"},
			{request{method: "POST", path: "/v1/budgets/" + budget + "/close", body: `{}`, header: stale}, "header.If-Match"},
			{request{method: "POST", path: flow + "/seal", body: `{}`, header: stale}, "header.If-Match"},
			{request{method: "PATCH", path: execution + "/tags?expect_status=running", body: `{"a":"b"}`}, "query.expect_status"},
			{request{method: "GET", path: "/v1/executions?tag.A=1"}, "query.tag.A"},
			{request{method: "POST", path: "/v1/bulk", body: `{"action":"cancel","filter":{"status":["x"]}}`}, "/filter/status"},
			{request{method: "POST", path: "/v1/bulk", body: `{"action":"cancel","filter":{"lane":["a\u0000"]}}`}, "/filter/lane"},
			{request{method: "POST", path: "/v1/bulk", body: `{"action":"cancel","filter":{"tags":{"a/B":null}}}`}, "/filter/tags/a~1B"},
			{request{method: "POST", path: "/v1/bulk", body: `{"action":"cancel","ids":["` + id + `","x"]}`}, "/ids/1"},
			{request{method: "POST", path: "/v1/bulk", body: `{"action":"resume","all":true,"args":{"delay_ms":-1}}`}, "/args/delay_ms"},
			{request{method: "POST", path: "/v1/bulk", body: `{"action":"replay","all":true,"args":{"cascade":"x"}}`}, "/args/cascade"},
			{request{method: "POST", path: "/v1/bulk", body: `{"action":"tag","all":true,"args":{"tags":{"A":"b"}}}`}, "/args/tags/A"},
			{request{method: "POST", path: "/v1/bulk", body: `{"action":"signal","all":true,"args":{"name":"n","comment":"` + strings.Repeat("x", 5000) + `"}}`}, "/args/comment"},
			{request{method: "POST", path: execution + "/complete", body: `{"lease":` + partial + `}`}, "/lease/lease_epoch"},
			{request{method: "POST", path: execution + "/complete", body: `{}`, header: map[string]string{"FlowFabric-Lease": lease + ".0." + attempt}}, "header.FlowFabric-Lease"},
			{request{method: "POST", path: execution + "/complete", body: `{"lease":{"lease_id":"x","lease_epoch":1,"attempt_id":"y"}}`}, "/lease/lease_id"},
			{request{method: "POST", path: "/v1/executions", body: `{"kind":"k","budgets":[{"dimensions":{"tokens":{}}},{"dimensions":{"tokens":{"hard":0}}}]}`}, "/budgets/1/dimensions/tokens/hard"},
			{request{method: "POST", path: "/v1/executions", body: `{"kind":"k","budgets":[{"dimensions":{"tokens":{}}},{"dimensions":{"tokens":{}},"reset":{"type":"none","unit":"day"}}]}`}, "/budgets/1/reset"},
			{request{method: "POST", path: "/v1/flows", body: `{"kind":"k","budgets":[{"dimensions":{"tokens":{}}},{"dimensions":{"tokens":{}},"reset":{"type":"none","unit":"day"}}]}`}, "/budgets/1/reset"},
			{request{method: "POST", path: "/v1/flows", body: `{"kind":"k","nodes":[{"name":"a","kind":"k","budgets":[{"dimensions":{"tokens":{}},"reset":{"type":"none","unit":"day"}}]}]}`}, "/nodes/0/budgets/0/reset"},
			{request{method: "POST", path: "/v1/flows", body: `{"kind":"k","nodes":[{"name":"a","kind":"k"}],"defaults":{"budgets":[{"dimensions":{"tokens":{}},"reset":{"type":"none","unit":"day"}}]}}`}, "/defaults/budgets/0/reset"},
			{request{method: "POST", path: "/v1/executions/bulk", body: `{"atomic":true,"items":[{"kind":"k"},{"kind":"k","lane":"a b"}]}`}, "/items/1/lane"},
			{request{method: "POST", path: "/v1/executions/bulk", body: `{"atomic":true,"items":[{"kind":"k"},{"kind":"k","budgets":[{"dimensions":{"tokens":{"hard":0}}}]}]}`}, "/items/1/budgets/0/dimensions/tokens/hard"},
		} {
			if got := w.send(t, c.request); got.status < 400 || got.text(t, "field") != c.field {
				t.Errorf("%s %s %s: field %q, want %q: %s", c.method, c.path, c.body, got.text(t, "field"), c.field, got.body)
			}
		}
		for _, c := range []struct{ path, body, at, field string }{
			{"/v1/work/batch", `{"items":[{"op":"complete","execution_id":"` + id + `","lease":` + partial + `}]}`, "items.0.error.field", "/lease/lease_epoch"},
			{"/v1/workers/w-1/heartbeat", `{"leases":[{"execution_id":"` + id + `",` + partial[1:] + `]}`, "leases.items.0.error.field", "/lease_epoch"},
			{"/v1/executions/bulk", `{"items":[{"kind":"k"},{"kind":"k","lane":"a b"}]}`, "items.1.error.field", "/lane"},
		} {
			if got := w.post(t, c.path, c.body).wants(t, 200); got.text(t, c.at) != c.field {
				t.Errorf("%s %s: %s is not %q: %s", c.path, c.body, c.at, c.field, got.body)
			}
		}
	})
}
