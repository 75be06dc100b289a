package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

// boundsOf are minimum and maximum of a number in the document, by the names on the way to it.
func boundsOf(t *testing.T, at string) (least, most int64) {
	t.Helper()
	var document struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(server.Document(), &document); err != nil {
		t.Fatal(err)
	}
	names := strings.Split(at, ".")
	schema := document.Components.Schemas[names[0]]
	for _, name := range names[1:] {
		if name == "*" {
			schema, _ = schema["additionalProperties"].(map[string]any)
			continue
		}
		properties, _ := schema["properties"].(map[string]any)
		schema, _ = properties[name].(map[string]any)
	}
	low, hasLow := schema["minimum"].(float64)
	high, hasHigh := schema["maximum"].(float64)
	if !hasLow || !hasHigh {
		t.Fatalf("%s has no bounds: %v", at, schema)
	}
	return int64(low), int64(high)
}

func TestU116_the_document_tells_the_bounds_of_numbers(t *testing.T) {
	t.Parallel()
	const execution = "/v1/executions/0198f0a0-0000-7000-8000-000000000000/"
	const fence = `"lease":"0198f0a0-0000-7000-8000-000000000000.1.0198f0a0-0000-7000-8000-000000000000"`
	for _, c := range []struct{ at, method, path, body, field string }{
		{"BudgetLimits.hard", "POST", "/v1/budgets", `{"name":"a","dimensions":{"d":{"hard":%d}}}`, "/dimensions/d/hard"},
		{"BudgetLimits.soft", "POST", "/v1/budgets", `{"name":"a","dimensions":{"d":{"soft":%d}}}`, "/dimensions/d/soft"},
		{"BudgetLimits.default_reserve", "POST", "/v1/budgets", `{"name":"a","dimensions":{"d":{"default_reserve":%d}}}`, "/dimensions/d/default_reserve"},
		{"BudgetApproval.timeout_ms", "POST", "/v1/budgets", `{"name":"a","dimensions":{"d":{"hard":1}},"approval":{"timeout_ms":%d}}`, "/approval/timeout_ms"},
		{"BudgetApproval.default_raise.*", "POST", "/v1/budgets", `{"name":"a","dimensions":{"d":{"hard":1}},"approval":{"default_raise":{"d":%d}}}`, "/approval/default_raise/d"},
		{"ChargeBudgetRequestBody.usage.*", "POST", "/v1/budgets/b/charge", `{"dedup_key":"k","usage":{"d":%d}}`, "/usage/d"},
		{"CreateAPIKeyRequestBody.max_in_flight", "POST", "/v1/api-keys", `{"name":"a","roles":["read"],"namespaces":["a"],"max_in_flight":%d}`, "/max_in_flight"},
		{"CreateAPIKeyRequestBody.max_requests_per_second", "POST", "/v1/api-keys", `{"name":"a","roles":["read"],"namespaces":["a"],"max_requests_per_second":%d}`, "/max_requests_per_second"},
		{"RotateSigningKeyRequestBody.grace_ms", "POST", "/v1/keys/rotate", `{"kid":"next","grace_ms":%d}`, "/grace_ms"},
		{"BulkRequest.max_affected", "POST", "/v1/bulk", `{"action":"cancel","all":true,"dry_run":true,"max_affected":%d}`, "/max_affected"},
		{"BulkRequest.rate_per_second", "POST", "/v1/bulk", `{"action":"cancel","all":true,"dry_run":true,"rate_per_second":%d}`, "/rate_per_second"},
		{"Submission.delay_ms", "POST", "/v1/executions", `{"kind":"k","delay_ms":%d}`, "/delay_ms"},
		{"Submission.estimate.*", "POST", "/v1/executions", `{"kind":"k","estimate":{"d":%d}}`, "/estimate/d"},
		{"FlowNode.delay_ms", "POST", "/v1/flows", `{"kind":"f","nodes":[{"name":"n","kind":"k","delay_ms":%d}]}`, "/nodes/0/delay_ms"},
		{"DelayRequestBody.delay_ms", "POST", execution + "delay", `{` + fence + `,"delay_ms":%d}`, "/delay_ms"},
		{"FailRequestBody.retry_after_ms", "POST", execution + "fail", `{` + fence + `,"message":"m","retry_after_ms":%d}`, "/retry_after_ms"},
		{"CompleteRequestBody.usage.*", "POST", execution + "complete", `{` + fence + `,"usage":{"d":%d}}`, "/usage/d"},
		{"PutLaneRequestBody.fairness_weights.*", "PUT", "/v1/lanes/l", `{"fairness_weights":{"d":%d}}`, "/fairness_weights"},
	} {
		t.Run(c.at, func(t *testing.T) {
			t.Parallel()
			w := openWorld(t)
			least, most := boundsOf(t, c.at)
			for n, taken := range map[int64]bool{least - 1: false, least: true, most: true, most + 1: false} {
				answer := w.send(t, request{method: c.method, path: c.path, body: fmt.Sprintf(c.body, n)})
				named := strings.Contains(string(answer.body), `"`+c.field)
				if refused := answer.status >= 400 && named; refused == taken {
					t.Errorf("%d, within %d..%d: %d %s", n, least, most, answer.status, answer.body)
				}
			}
		})
	}
}

// Arguments come before what they are about (L76): an id of nothing makes no difference.
func TestU116_numbers_of_queries_below_their_least_are_refused(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Schema   struct{ Minimum *int64 }
			}
		}
	}
	if err := json.Unmarshal(server.Document(), &document); err != nil {
		t.Fatal(err)
	}
	ids, numbers := regexp.MustCompile(`\{[^}]*\}`), 0
	w := openWorld(t)
	for path, operations := range document.Paths {
		for _, p := range operations["get"].Parameters {
			if p.In != "query" || p.Schema.Minimum == nil {
				continue
			}
			numbers++
			answer := w.get(t, fmt.Sprintf("%s?%s=%d", ids.ReplaceAllString(path, "0198f0a0-0000-7000-8000-000000000000"), p.Name, *p.Schema.Minimum-1))
			if answer.status != http.StatusBadRequest && answer.status != http.StatusUnprocessableEntity || !strings.Contains(string(answer.body), p.Name) {
				t.Errorf("%s?%s: %d %s", path, p.Name, answer.status, answer.body)
			}
		}
	}
	if numbers < 20 {
		t.Errorf("only %d numbers were found", numbers)
	}
}

func TestU100_L139_a_retention_below_minus_one_is_refused_and_changes_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, server.Config{Open: true}, func(t *testing.T, w *world) {
		put := func(body string) reply { return w.send(t, request{method: "PUT", path: "/v1/lanes/kept", body: body}) }
		put(`{"retention_ms":{"failed":-1}}`).wants(t, 200)
		refused := put(`{"retention_ms":{"failed":-2}}`).refuses(t, 400, "invalid_argument")
		if field := refused.text(t, "field"); field != "retention_ms.failed" && field != "/retention_ms/failed" {
			t.Errorf("field %s", field)
		}
		if kept := w.get(t, "/v1/lanes/kept").wants(t, 200).number(t, "retention_ms.failed"); kept != -1 {
			t.Errorf("kept for %v", kept)
		}
	})
}
