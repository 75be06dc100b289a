package server_test

import "testing"

func TestU11_the_field_of_an_entry_of_a_map_is_its_json_pointer(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	id := w.submitted(t)
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "/v1/executions", `{"kind":"a","tags":{"ff.x":"1"}}`, "/tags/ff.x"},
		{"POST", "/v1/executions", `{"kind":"a","tags":{"a/b~c":"1"}}`, "/tags/a~1b~0c"},
		{"POST", "/v1/executions", `{"kind":"a","tags":{"Team":"1"}}`, "/tags/Team"},
		{"POST", "/v1/executions", `{"kind":"a","tags":{"":"1"}}`, "/tags/"},
		{"POST", "/v1/executions", `{"kind":"a","tags":{"a[\"b\"]":"1"}}`, `/tags/a["b"]`},
		{"PATCH", "/v1/executions/" + id + "/tags", `{"No.tag":"1"}`, "/No.tag"},
		{"PATCH", "/v1/executions/" + id + "/tags", `{"Tag":null}`, "/Tag"},
		{"POST", "/v1/budgets", `{"name":"b","dimensions":{"a.b":{"hard":1}}}`, "/dimensions/a.b"},
		{"POST", "/v1/budgets", `{"name":"b","dimensions":{"a.b":{"hard":0}}}`, "/dimensions/a.b/hard"},
		{"POST", "/v1/workers/w/heartbeat", `{"leases":[{"execution_id":"x"}]}`, "/leases/0/execution_id"},
		{"POST", "/v1/workers/w/heartbeat", `{"leases":[{"execution_id":"` + id + `","lease_id":"x"}]}`, "/leases/0/lease_id"},
	} {
		answer := w.send(t, request{method: c.method, path: c.path, body: c.body}).wants(t, 400)
		if got := answer.field(t, "field"); got != c.field {
			t.Errorf("%s %s %s: the field is %q, want %q", c.method, c.path, c.body, got, c.field)
		}
	}
}
