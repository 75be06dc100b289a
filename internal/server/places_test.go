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

func TestU11_a_refused_field_of_a_policy_is_told_where_the_request_gives_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/budgets", `{"name":"taken","scope":{"type":"namespace"},"dimensions":{"tokens":{"hard":1}}}`).wants(t, 201)
		open := "/v1/flows/" + bare(w.post(t, "/v1/flows", `{"kind":"k","seal":false}`).wants(t, 201).text(t, "flow_id"))
		for _, c := range []struct{ code, member, at string }{ // of what may stand in a policy and beside it
			{"invalid_policy", `"budgets":[{"dimensions":{"tokens":{"hard":-1}}}]`, "budgets/0/dimensions/tokens/hard"},
			{"invalid_policy", `"budgets":[{"parent":"missing","dimensions":{"tokens":{"hard":1}}}]`, "budgets/0/parent"},
			{"budget_already_exists", `"budgets":[{"name":"taken","dimensions":{"tokens":{"hard":1}}}]`, "budgets/0/name"},
			{"invalid_policy", `"quotas":[{"quota":"missing"}]`, "quotas/0/quota"},
			{"invalid_policy", `"budget_ids":["missing"]`, "budget_ids/0"},
			{"invalid_policy", `"estimate":{"tokens":-1}`, "estimate/tokens"},
			{"invalid_policy", `"fairness_key":"\u0001"`, "fairness_key"},
		} {
			w.policyRefusals(t, open, c.code, c.member, "/"+c.at)
			w.policyRefusals(t, open, c.code, `"policy":{`+c.member+`}`, "/policy/"+c.at)
		}
		w.policyRefusals(t, open, "invalid_capabilities", `"requires":["a b"]`, "/requires")
		w.policyRefusals(t, open, "invalid_capabilities", `"policy":{"routing_requirements":{"required_capabilities":["a b"]}}`,
			"/policy/routing_requirements/required_capabilities")
		w.policyRefusals(t, open, "invalid_policy", `"quotas":[],"policy":{"retry_policy":{"max_retries":-1}}`, "/policy/retry_policy/max_retries")
		w.policyRefusals(t, open, "invalid_policy", `"requires":["a"],"policy":{"nothing":1}`, "/policy/nothing")
		w.policyRefusals(t, open, "invalid_budget", `"policy":{"budgets":[{"dimensions":{"tokens":{}},"reset":{"type":"none","unit":"day"}}]}`, "/policy/budgets/0/reset")
	})
}

// policyRefusals sends a submission with a faulty part in all ways: its place is named in each of them.
func (w *world) policyRefusals(t *testing.T, flow, code, part, at string) {
	t.Helper()
	const good = `{"name":"good","kind":"k","policy":{"max_replay_count":1}},`
	node := `{"name":"n","kind":"k",` + part + `}`
	for _, c := range []struct{ path, body, field string }{
		{"/v1/executions", `{"kind":"k",` + part + `}`, at},
		{"/v1/executions/bulk", `{"atomic":true,"items":[{"kind":"k"},{"kind":"k",` + part + `}]}`, "/items/1" + at},
		{"/v1/flows", `{"kind":"k","nodes":[` + good + node + `]}`, "/nodes/1" + at},
		{"/v1/flows", `{"kind":"k","nodes":[` + good + `{"name":"n","kind":"k"}],"defaults":{` + part + `}}`, "/defaults" + at},
		{flow + "/extend", `{"nodes":[` + node + `]}`, "/nodes/0" + at},
	} {
		if got := w.post(t, c.path, c.body); got.text(t, "code") != code || got.text(t, "field") != c.field {
			t.Errorf("%s %s: %s, want %s of %q", c.path, c.body, got.body, code, c.field)
		}
	}
	if !strings.HasSuffix(at, "/parent") && code != "budget_already_exists" { // those are judged when the budgets are made
		inner := w.post(t, "/v1/flows", `{"kind":"k","dry_run":true,"nodes":[`+good+`{"name":"sub","flow":{"nodes":[`+node+`]}}]}`).refuses(t, 400, code)
		if inner.text(t, "field") != "/nodes/1/flow/nodes/0"+at {
			t.Errorf("%s: %s", part, inner.body)
		}
	}
	items := w.post(t, "/v1/executions/bulk", `{"items":[{"kind":"k"},{"kind":"k",`+part+`}]}`).wants(t, 200)
	if items.text(t, "items.1.error.code") != code || items.text(t, "items.1.error.field") != at {
		t.Errorf("%s: %s", part, items.body)
	}
}

func TestU75_U77_a_child_that_is_refused_is_told_by_its_place_and_takes_no_other_command_with_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/executions", `{"kind":"parent"}`).wants(t, 201)
		claimed := w.tookOne(t)
		id, lease := claimed.text(t, "tasks.0.execution_id"), leaseOf(t, claimed)
		head := `"execution_id":"` + id + `","lease":` + lease
		const good = `{"name":"good","kind":"k","lane":"below"},`
		for _, c := range []struct{ code, part, at string }{
			{"invalid_policy", `"policy":{"retry_policy":{"max_retries":-1}}`, "/policy/retry_policy/max_retries"},
			{"invalid_policy", `"policy":{"nothing":1}`, "/policy/nothing"},
			{"invalid_capabilities", `"requires":["a b"]`, "/requires"},
			{"invalid_budget", `"budgets":[{"dimensions":{"tokens":{}},"reset":{"type":"none","unit":"day"}}]`, "/budgets/0/reset"},
		} {
			children := `"children":[` + good + `{"name":"n","kind":"k",` + c.part + `}]`
			alone := w.post(t, "/v1/executions/"+bare(id)+"/spawn", `{"lease":`+lease+`,`+children+`}`).refuses(t, 400, c.code)
			if alone.text(t, "field") != "/children/1"+c.at {
				t.Errorf("%s: %s", c.part, alone.body)
			}
			batch := w.post(t, "/v1/work/batch", `{"items":[{"op":"spawn",`+head+`,`+children+`},{"op":"progress",`+head+`,"percent":3}]}`).wants(t, 200)
			if batch.text(t, "items.0.error.code") != c.code || batch.text(t, "items.0.error.field") != "/children/1"+c.at || batch.field(t, "items.1.ok") != true {
				t.Errorf("%s: %s", c.part, batch.body)
			}
		}
	})
}
