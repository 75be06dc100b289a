package server_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// named are requests about something of the caller's own whose bodies name what a tenant has. {mine} is a running execution of the caller, {lease}
// its lease, {graph} an open flow of it, {purse} a budget of it.
var named = []struct{ name, path, body string }{
	{"a budget of a policy", "/v1/executions", `{"kind":"k","policy":{"budget_ids":["{budget}"]}}`},
	{"a budget of a submission", "/v1/executions", `{"kind":"k","budget_ids":["{budgets name}"]}`},
	{"the parent of a budget of a submission", "/v1/executions", `{"kind":"k","budgets":[{"parent":"{budget}","dimensions":{"d":{"hard":1}}}]}`},
	{"a budget of an item", "/v1/executions/bulk", `{"items":[{"kind":"k","budget_ids":["{budget}"]}]}`},
	{"an idempotency key", "/v1/executions", `{"kind":"k","idempotency_key":"{order}"}`},
	{"a budget of a node", "/v1/flows", `{"kind":"k","nodes":[{"name":"n","kind":"k","budget_ids":["{budget}"]}]}`},
	{"the parent of a budget of a flow", "/v1/flows", `{"kind":"k","budgets":[{"parent":"{budget}","dimensions":{"d":{"hard":1}}}],"nodes":[{"name":"n","kind":"k"}]}`},
	{"a budget of a dry run", "/v1/flows", `{"dry_run":true,"kind":"k","nodes":[{"name":"n","kind":"k","budget_ids":["{budget}"]}]}`},
	{"a member", "/v1/flows/{graph}/extend", `{"members":[{"name":"m","execution_id":"{id}"}]}`},
	{"the end of an edge", "/v1/flows/{graph}/extend", `{"nodes":[{"name":"m","kind":"k"}],"edges":[{"from":"{id}","to":"m"}]}`},
	{"ids of a bulk job", "/v1/bulk", `{"action":"cancel","ids":["{id}"],"dry_run":true}`},
	{"a flow in a filter", "/v1/bulk", `{"action":"cancel","filter":{"flow_id":["{flow}"]},"dry_run":true}`},
	{"a parent in a filter", "/v1/bulk", `{"action":"cancel","filter":{"parent_id":["{id}"]},"dry_run":true}`},
	{"an instance in a filter", "/v1/bulk", `{"action":"cancel","filter":{"worker_instance_id":["{instance}"]},"dry_run":true}`},
	{"a creator in a filter", "/v1/bulk", `{"action":"cancel","filter":{"creator":["{principal}"]},"dry_run":true}`},
	{"a tag in a filter", "/v1/bulk", `{"action":"cancel","filter":{"tags":{"acme_tag":"{tag}"}},"dry_run":true}`},
	{"a budget of a child", "/v1/executions/{mine}/spawn", `{"lease":"{lease}","children":[{"name":"c","kind":"k","budget_ids":["{budget}"]}]}`},
	{"a waitpoint of a suspension", "/v1/executions/{mine}/suspend", `{"lease":"{lease}","waitpoints":[{"use_pending":{"waitpoint_id":"{waitpoint}"}}],"resume_condition":{"type":"single","name":"go"}}`},
	{"a waitpoint of a signal", "/v1/executions/{mine}/signals", `{"name":"go","waitpoint_id":"{waitpoint}","token":"k:{token}"}`},
	{"the parent of a budget", "/v1/budgets", `{"name":"child","parent":"{budget}","dimensions":{"d":{"hard":1}}}`},
	{"an execution as a scope", "/v1/budgets", `{"name":"of-execution","scope":{"type":"execution","value":"{id}"},"dimensions":{"d":{"hard":1}}}`},
	{"a flow as a scope", "/v1/budgets", `{"name":"of-flow","scope":{"type":"flow","value":"{flow}"},"dimensions":{"d":{"hard":1}}}`},
	{"an execution that is charged for", "/v1/budgets/{purse}/charge", `{"usage":{"d":1},"execution_id":"{id}"}`},
	{"an execution that is given back for", "/v1/budgets/{purse}/release", `{"execution_id":"{id}"}`},
	{"leases of a heartbeat", "/v1/workers/b-instance/heartbeat", `{"leases":[{"execution_id":"{id}","fence":"{fence}"}]}`},
	{"the lease of a command", "/v1/executions/{mine}/complete", `{"lease":"{fence}"}`},
	{"an execution of a batch", "/v1/work/batch", `{"items":[{"op":"progress","execution_id":"{id}","lease":"{lease}","percent":1}]}`},
	{"an execution of a grant", "/v1/work/grants", `{"worker_id":"b","worker_instance_id":"b-instance","execution_id":"{id}"}`},
	{"a lane that is looked at", "/v1/nudge", `{"lanes":["{lane}"]}`},
	{"a namespace of a key", "/v1/api-keys", `{"name":"k","roles":["read"],"namespaces":["{namespace}"]}`},
	{"an approver of a link", "/v1/waitpoints/{waitpoint}/links", `{"approver":"ana"}`},
}

// What a request about things of its own names in its body is answered as what never was, too, if another tenant has it (I14, U121). An id that the
// caller chooses itself for something new is not among this: docs/security.md says what is revealed of one that is in use.
func TestI14_U121_what_a_body_names_of_another_tenant_is_as_what_never_was(t *testing.T) {
	t.Parallel()
	ids := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|"partition":\d+`)
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		x := w.furnish(t)
		x["budgets name"] = pair{"acme-budget", "void-budget"}
		key := w.key(t, "b", "read", "submit", "work", "operate", "admin")
		send := func(method, path, body string, status int) reply {
			t.Helper()
			return w.send(t, request{method: method, path: path, key: key, body: body}).wants(t, status)
		}
		send("POST", "/v1/workers", `{"worker_id":"b","worker_instance_id":"b-instance","lanes":["b-lane"],"liveness_ttl_ms":3600000}`, 200)
		n := 0
		own := func() *strings.Replacer {
			n++
			lane := "b-lane-" + strconv.Itoa(n)
			mine := send("POST", "/v1/executions", `{"kind":"k","lane":"`+lane+`"}`, 201).text(t, "execution_id")
			held := send("POST", "/v1/work/claim", `{"worker_id":"b","worker_instance_id":"b-instance","lanes":["`+lane+`"],"lease_ttl_ms":3600000,"wait_ms":20000}`, 200)
			graph := send("POST", "/v1/flows", `{"kind":"g","seal":false,"nodes":[{"name":"a","kind":"k","delay_ms":3600000}]}`, 201).text(t, "flow_id")
			purse := send("POST", "/v1/budgets", `{"name":"purse-`+strconv.Itoa(n)+`","dimensions":{"d":{"hard":9}}}`, 201).text(t, "budget_id")
			return strings.NewReplacer("{mine}", mine, "{lease}", held.text(t, "tasks.0.lease.fence"), "{graph}", graph, "{purse}", purse)
		}
		for _, c := range named {
			ask := func(which func(pair) string) string {
				t.Helper()
				about := own()
				fill := func(text string) string { return x.fill(about.Replace(text), which) }
				answer := w.send(t, request{method: "POST", path: fill(c.path), key: key, body: fill(c.body), header: map[string]string{"X-Request-Id": "same"}})
				if code := problemCode(answer); code == "missing_field" || code == "invalid_json" || code == "unknown_field" {
					t.Errorf("%s asks nothing: %s", c.name, answer.body)
				}
				return ids.ReplaceAllString(x.plain(fmt.Sprint(answer.status, " ", string(answer.body))), "ID")
			}
			theirs := ask(func(p pair) string { return p.theirs })
			absent := ask(func(p pair) string { return p.absent })
			if theirs != absent {
				t.Errorf("%s: of another tenant\n%s\nthat does not exist\n%s", c.name, theirs, absent)
			}
		}
	})
}

// chosen are requests for something new under an id that another tenant uses. {mine} and {lease} are a running execution of the caller and its lease. The
// lease of an operator may name any instance, whether there is one or not.
var chosen = []struct{ name, path, body, code string }{
	{"an execution", "/v1/executions", `{"kind":"k","execution_id":"{id}"}`, "id_conflict"},
	{"an execution of another state", "/v1/executions", `{"kind":"k","execution_id":"{asleep}"}`, "id_conflict"},
	{"an item", "/v1/executions/bulk", `{"items":[{"kind":"k","execution_id":"{id}"}]}`, "id_conflict"},
	{"a node", "/v1/flows", `{"kind":"k","nodes":[{"name":"n","kind":"k","execution_id":"{id}"}]}`, "id_conflict"},
	{"a flow", "/v1/flows", `{"kind":"k","flow_id":"{flow}","nodes":[{"name":"n","kind":"k"}]}`, "flow_already_exists"},
	{"a budget", "/v1/budgets", `{"name":"b","budget_id":"{budget}","dimensions":{"d":{"hard":1}}}`, "budget_already_exists"},
	{"a waitpoint", "/v1/executions/{mine}/waitpoints", `{"lease":"{lease}","waitpoint_key":"k","waitpoint_id":"{waitpoint}"}`, "waitpoint_already_exists"},
	{"an instance", "/v1/workers", `{"worker_id":"b","worker_instance_id":"{instance}","lanes":["b"]}`, "instance_id_taken"},
	{"an instance of the same worker", "/v1/workers", `{"worker_id":"{worker}","worker_instance_id":"{instance}"}`, "instance_id_taken"},
	{"the instance of a claim", "/v1/work/claim", `{"worker_id":"b","worker_instance_id":"{instance}","lanes":["b"]}`, "instance_id_taken"},
	{"the instance of a grant", "/v1/work/grants", `{"worker_id":"b","worker_instance_id":"{instance}","lanes":["b"]}`, "instance_id_taken"},
	{"the instance of a reclaim", "/v1/executions/{mine}/reclaim", `{"worker_id":"b","worker_instance_id":"{instance}"}`, "instance_id_taken"},
	{"the instance of a hand-over", "/v1/executions/{mine}/revoke", `{"reason":"r","hand_to":{"worker_id":"b","worker_instance_id":"{instance}"}}`, "instance_id_taken"},
}

// The refusal of an id that another tenant uses says that it is in use, and nothing else: neither names of the other tenant, nor its state (I14, U121).
func TestI14_U121_of_an_id_that_another_tenant_uses_nothing_else_is_told(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		x := w.furnish(t)
		key := w.key(t, "b", "read", "submit", "work", "operate", "admin")
		send := func(path, body string, status int) reply {
			t.Helper()
			return w.send(t, request{method: "POST", path: path, key: key, body: body}).wants(t, status)
		}
		mine := send("/v1/executions", `{"kind":"k","lane":"b"}`, 201).text(t, "execution_id")
		held := send("/v1/work/claim", `{"worker_id":"b","worker_instance_id":"b-1","lanes":["b"],"lease_ttl_ms":3600000,"wait_ms":20000}`, 200)
		about := strings.NewReplacer("{mine}", mine, "{lease}", held.text(t, "tasks.0.lease.fence"))
		for _, c := range chosen {
			fill := func(text string) string { return x.fill(about.Replace(text), func(p pair) string { return p.theirs }) }
			answer := w.send(t, request{method: "POST", path: fill(c.path), key: key, body: fill(c.body)})
			told := strings.ToLower(string(answer.body))
			if !strings.Contains(told, `"code":"`+c.code+`"`) {
				t.Errorf("%s: %d %s, want %s", c.name, answer.status, answer.body, c.code)
			}
			for _, name := range []string{"worker", "namespace", "kind", "lane", "principal"} {
				if theirs := x[name].theirs; strings.Contains(told, strings.ToLower(theirs)) && !strings.Contains(fill(c.body), theirs) {
					t.Errorf("%s tells %q: %s", c.name, theirs, answer.body)
				}
			}
			for _, state := range []string{"running", "suspended", "succeeded", "live", "dead"} {
				if strings.Contains(told, state) {
					t.Errorf("%s tells a state: %s", c.name, answer.body)
				}
			}
		}
	})
}
