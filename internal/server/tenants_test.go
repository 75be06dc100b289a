package server_test

import (
	"bufio"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// marker stands in every name and text of the tenant that another must learn nothing of.
const marker = "acme"

// pair is the name of something of that tenant, and of something that never was.
type pair struct{ theirs, absent string }

func void(n int) string { return fmt.Sprintf("0198f0a0-0000-7000-8000-%012d", n) }

// tenant is what the marked tenant has, by what paths, queries and bodies call it.
type tenant map[string]pair

// furnish gives the marked tenant one of everything, under names that are recognised.
func (w *world) furnish(t *testing.T) tenant {
	t.Helper()
	roles := []string{"read", "submit", "work", "operate", "admin"}
	key := w.key(t, marker, roles...)
	send := func(method, path, body string) reply {
		t.Helper()
		answer := w.send(t, request{method: method, path: path, key: key, body: body})
		if answer.status > 299 {
			t.Fatalf("%s %s: %d %s", method, path, answer.status, answer.body)
		}
		return answer
	}
	const lane = marker + "-lane"
	all := w.key(t, "*", "admin")
	// Quotas are the platform's, and everybody may use them: each tenant sees its own use (TestI14_a_quota_shows_each_tenant_its_own_use).
	w.send(t, request{method: "PUT", path: "/v1/quotas/shared-quota", key: all, body: `{"concurrency_limit":5}`}).wants(t, 200)
	budget := send("POST", "/v1/budgets", `{"name":"acme-budget","dimensions":{"acme_calls":{"hard":9}}}`).text(t, "budget_id")
	submit := func(more string) string {
		return send("POST", "/v1/executions", `{"kind":"acme-kind","lane":"`+lane+`","input":"acme-input","tags":{"acme_tag":"acme-value"}`+more+`}`).text(t, "execution_id")
	}
	send("POST", "/v1/workers", `{"worker_id":"acme-worker","worker_instance_id":"acme-instance","lanes":["`+lane+`"],"version":"acme-version","labels":{"acme-label":"acme"},"liveness_ttl_ms":3600000}`)
	claim := func() reply {
		return send("POST", "/v1/work/claim", `{"worker_id":"acme-worker","worker_instance_id":"acme-instance","lanes":["`+lane+`"],"lease_ttl_ms":3600000,"wait_ms":20000}`)
	}
	fenced := func(method string, task reply, verb, fields string) reply {
		return send(method, "/v1/executions/"+task.text(t, "tasks.0.execution_id")+verb, `{"lease":"`+task.text(t, "tasks.0.lease.fence")+`",`+fields+`}`)
	}
	submit("")
	// Operators change the lane of the tenant, and weigh it in a lane that all see.
	for _, verb := range []string{"/pause", "/resume"} {
		w.send(t, request{method: "POST", path: "/v1/lanes/" + lane + verb, key: all, body: `{}`}).wants(t, 200)
	}
	w.send(t, request{method: "PUT", path: "/v1/lanes/shared-lane", key: all, body: `{"fairness":"namespace","fairness_weights":{"acme":3}}`}).wants(t, 200)
	done := claim()
	fenced("PUT", done, "/steps/acme-step", `"result":"acme-result"`)
	fenced("POST", done, "/progress", `"percent":5,"message":"acme-progress"`)
	fenced("POST", done, "/frames", `"frames":[{"payload_text":"acme-frame"},{"mode":"summary","payload":{"acme":1}}]`)
	fenced("POST", done, "/complete", `"result":"acme-result"`)
	submit("")
	fenced("POST", claim(), "/fail", `"class":"permanent","category":"acme-category","message":"acme-failure"`)
	submit("")
	asleep := claim()
	waitpoint := fenced("POST", asleep, "/suspend", `"waitpoints":[{"fresh":{"waitpoint_key":"acme-point"}}],"reason_code":"waiting_for_approval","resume_condition":{"type":"single","waitpoint_key":"acme-point"}`).text(t, "waitpoints.0.waitpoint_id")
	link := send("POST", "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"acme-approver","title":"acme-title"}`).text(t, "link_id")
	running := submit(`,"idempotency_key":"acme-order","policy":{"budget_ids":["` + budget + `"],"quotas":[{"quota":"shared-quota"}]}`)
	held := claim()
	fenced("POST", held, "/spawn", `"children":[{"name":"acme-child","kind":"acme-kind","delay_ms":3600000}]`)
	flow := send("POST", "/v1/flows", `{"kind":"acme-flow","seal":false,"tags":{"acme_tag":"acme-value"},"nodes":[{"name":"acme-node","kind":"acme-kind","delay_ms":3600000},{"name":"acme-next","kind":"acme-kind","after":["acme-node"]}]}`).text(t, "flow_id")
	edge := send("GET", "/v1/flows/"+flow+"/edges", "").text(t, "items.0.edge_id")
	job := send("POST", "/v1/bulk", `{"action":"tag","filter":{"kind":["acme-kind"]},"args":{"tags":{"acme_bulk":"acme"}},"reason":"acme-reason"}`).text(t, "job_id")
	eventually(t, "the job is over", func() bool { return send("GET", "/v1/bulk/"+job, "").text(t, "ended_at") != "" })
	send("POST", "/v1/executions/"+submit("")+"/hold", `{"reason":"acme-hold"}`)
	keyID := send("POST", "/v1/api-keys", `{"name":"acme-key","roles":["read"],"namespaces":["acme"]}`).text(t, "key_id")
	hook := send("POST", "/v1/webhooks", `{"url":"https://acme.invalid/","filter":{"kinds":["acme"]}}`).text(t, "endpoint_id")
	delivery := send("POST", "/v1/webhooks/"+hook+"/test", "").text(t, "delivery_id")
	return tenant{
		"webhook": {hook, void(9)}, "delivery": {delivery, void(10)},
		"id": {running, void(1)}, "flow": {flow, void(2)}, "budget": {budget, void(3)}, "bulk": {job, void(4)}, "key": {keyID, "aaaaaaaaaaaa"},
		"waitpoint": {waitpoint, void(5)}, "link": {link, void(6)}, "edge": {edge, void(7)}, "lane": {lane, "void-lane"}, "quota": {"shared-quota", "shared-quota"},
		"instance": {"acme-instance", "void-instance"}, "worker": {"acme-worker", "void-worker"}, "kid": {"acme-kid", "void-kid"}, "namespace": {marker, "void"},
		"name": {"acme-node", "void-node"}, "kind": {"acme-kind", "void-kind"}, "token": {strings.Repeat("0", 64), strings.Repeat("1", 64)}, "n": {"0", "0"}, "code": {"internal", "internal"},
		"text": {marker, "void"}, "tag": {"acme-value", "void-value"}, "order": {"acme-order", "void-order"}, "point": {"acme-point", "void-point"}, "asleep": {asleep.text(t, "tasks.0.execution_id"), void(8)},
		"fence": {held.text(t, "tasks.0.lease.fence"), held.text(t, "tasks.0.lease.fence")}, "principal": {strings.Join(roles, "+") + "@" + marker, "void-principal"},
	}
}

// placed says what a placeholder of a path is called in tenant.
func placed(o *wire.Operation, name string) string {
	switch first := strings.Split(o.Path, "/")[min(2, strings.Count(o.Path, "/"))]; {
	case name == "id" && first == "flows":
		return "flow"
	case name == "id" && first == "budgets":
		return "budget"
	case name == "id" && first == "bulk":
		return "bulk"
	case name == "id" && first == "api-keys":
		return "key"
	case name == "id" && first == "webhooks":
		return "webhook"
	case name == "id" && first == "quotas":
		return "quota"
	case name == "name" && first == "namespaces":
		return "namespace"
	default:
		return name
	}
}

// asked says what the value of a query parameter is called in tenant; "": it names nothing that a tenant has.
var asked = map[string]string{
	"lane": "lane", "kind": "kind", "worker_instance_id": "instance", "worker_id": "worker", "flow_id": "flow", "parent_id": "id", "creator": "principal",
	"idempotency_key": "order", "q": "text", "tag.": "tag", "execution_id": "id", "execution": "id", "waitpoint_key": "point", "principal": "principal",
	"entity_id": "id", "approver": "text", "capability": "text", "from": "", "to": "", "name": "name", "suspension": "asleep", "actor": "",
	"action": "", "after": "", "attempt": "", "by": "", "completed_from": "", "completed_to": "", "created_from": "", "created_to": "", "cursor": "",
	"empty": "", "encoding": "", "entity": "", "epoch": "", "exhausted": "", "expect_lease_epoch": "", "expect_lease_id": "", "expect_status": "",
	"force": "", "include": "", "include_closed": "", "include_retired": "", "inline": "", "last_event_id": "", "leaving": "", "limit": "", "next": "",
	"ok": "", "order": "", "outcome": "", "priority": "", "priority_max": "", "priority_min": "", "public_state": "", "reason": "", "reason_code": "",
	"run": "", "scope": "", "shared": "", "since": "", "state": "", "status": "", "updated_from": "", "updated_to": "", "view": "", "wait_ms": "",
	"client_seq": "", "follow": "", "mode": "", "modes": "", "type": "", "types": "", "wait_version": "",
}

// shown are queries without which a list shows little.
var shown = map[string]string{
	wire.ListEvents.ID: "?after=start", wire.CountExecutions.ID: "?by=kind", wire.ListWorkers.ID: "?state=all", wire.ListExecutionWaitpoints.ID: "?include_closed=true",
	wire.ExportExecutions.ID: "?include=input,result,attempts,signals,events,frames", wire.DrainWorkers.ID: "?worker_id={worker}", wire.UndrainWorkers.ID: "?worker_id={worker}",
}

// said are bodies of requests about things in their path, or of workers.
var said = map[string]string{
	wire.RetainExecution.ID: `{"reason":"r"}`, wire.SetPriority.ID: `{"priority":1}`, wire.FailExecution.ID: `{"message":"m"}`, wire.DelayExecution.ID: `{"delay_ms":1}`,
	wire.ClaimResumed.ID: `{"worker_id":"w","worker_instance_id":"i"}`, wire.ReclaimExecution.ID: `{"worker_id":"w","worker_instance_id":"i"}`,
	wire.ClaimExecution.ID: `{"worker_id":"w"}`, wire.PatchTags.ID: `{"a":"b"}`, wire.PatchFlowTags.ID: `{"a":"b"}`, wire.PutFlowTags.ID: `{"a":"b"}`,
	wire.SuspendExecution.ID: `{"resume_condition":{"type":"operator_only"}}`, wire.CreateWaitpoint.ID: `{"waitpoint_key":"k"}`, wire.ReportUsage.ID: `{"usage":{"tokens":1}}`,
	wire.SpawnChildren.ID: `{"children":[{"name":"c","kind":"k"}]}`, wire.CreateLink.ID: `{"approver":"ana"}`, wire.ExtendFlow.ID: `{"nodes":[{"name":"c","kind":"k"}]}`,
	wire.CancelFlow.ID: `{"reason":"r"}`, wire.SetJoin.ID: `{"policy":"any_of"}`, wire.ChargeBudget.ID: `{"usage":{"acme_calls":1}}`, wire.ReleaseBudget.ID: `{"execution_id":"{id}"}`,
	wire.MarkWorkerDead.ID: `{"reason":"r"}`, wire.PutStep.ID: `{"result":1}`, wire.AppendFrames.ID: `{"frames":[{}]}`, wire.ApproveExecution.ID: `{"name":"approved"}`, wire.DeleteExecution.ID: `{"reason":"r"}`,
	wire.SendSignal.ID: `{"name":"go","token":"k:{token}"}`, wire.SendExecutionSignal.ID: `{"name":"go","waitpoint_id":"{waitpoint}","token":"k:{token}"}`,
	wire.DecideLink.ID: `{"decision":"approve"}`, wire.DeliverCallback.ID: `{}`, wire.SendWork.ID: `{"items":[{"op":"complete","execution_id":"{id}","lease":"{fence}"},{"op":"cancel","execution_id":"{id}","lease":"{fence}"}]}`,
	wire.HeartbeatWorker.ID: `{}`, wire.UpdateBudget.ID: `{"on_hard":"fail"}`, wire.PatchAPIKey.ID: `{"max_in_flight":3}`, wire.HoldExecution.ID: `{"reason":"r"}`,
	wire.GrantWork.ID: `{"worker_id":"v","worker_instance_id":"v","execution_id":"{id}"}`, wire.ClaimWork.ID: `{"worker_id":"v","worker_instance_id":"v-{lane}","lanes":["{lane}"]}`,
	wire.DeleteFlow.ID: `{"reason":"r"}`, wire.ReplayExecution.ID: `{}`, wire.ReplayWebhook.ID: `{"after":"start"}`, wire.UpdateWebhook.ID: `{"max_in_flight":3}`,
}

// makesOwn are the operations that make something of the caller's own, or concern the process: they name nothing of another tenant, but for an id
// that is in use, of which docs/security.md tells.
var makesOwn = []string{
	wire.SubmitExecution.ID, wire.SubmitExecutions.ID, wire.SubmitFlow.ID, wire.StartBulk.ID, wire.RegisterWorker.ID, wire.CreateBudget.ID, wire.CreateAPIKey.ID, wire.CreateWebhook.ID,
	wire.ClaimGrant.ID, wire.VerifyGrant.ID, wire.ReturnGrant.ID, // their keys are signed, and name what they are for: TestS29_
	wire.SeedSigningKey.ID, wire.RotateSigningKey.ID, wire.AcknowledgeRollbacks.ID, wire.MakeBackup.ID, wire.DrainServer.ID, wire.Nudge.ID,
}

// fill puts names into a text; which chooses whose.
func (x tenant) fill(text string, which func(pair) string) string {
	for name, value := range x {
		text = strings.ReplaceAll(text, "{"+name+"}", which(value))
	}
	return text
}

// plain is an answer without the names that the request gave, and what differs between two answers without a meaning.
func (x tenant) plain(text string) string {
	names := slices.SortedFunc(maps.Values(x), func(a, b pair) int { return len(b.theirs) - len(a.theirs) })
	for _, p := range names {
		if len(p.theirs) > len(marker) {
			text = strings.NewReplacer(p.theirs, "NAME", url.QueryEscape(p.theirs), "NAME", p.absent, "NAME", url.QueryEscape(p.absent), "NAME").Replace(text)
		}
	}
	return passing.ReplaceAllString(text, "T")
}

var passing = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|"(clock_skew_ms|ms)":[-0-9.e]+|"(next_cursor|next|cursor|server_time|audit_id|hash|prev_hash)":"[^"]*"`)

// parameters are the query parameters of an operation.
func parameters(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		switch f := of.Field(i); {
		case f.Tag.Get("query") != "":
			names = append(names, f.Tag.Get("query"))
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			names = append(names, parameters(f.Type)...)
		}
	}
	return names
}

// requests are what another tenant asks about the marked one, by every route.
func (x tenant) requests(t *testing.T, o *wire.Operation) (all []request) {
	t.Helper()
	path := regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(o.Path, func(place string) string {
		name := placed(o, strings.Trim(place, "{}"))
		if _, known := x[name]; !known {
			t.Errorf("%s: name something for %s", o.ID, place)
		}
		return "{" + name + "}"
	})
	plain := request{method: o.Method, path: path + shown[o.ID], body: said[o.ID]}
	all = append(all, plain)
	for _, parameter := range parameters(o.Request) {
		name, known := asked[parameter]
		if !known {
			t.Errorf("%s: say what %s names", o.ID, parameter)
		}
		if name == "" || o.Method != http.MethodGet {
			continue
		}
		if parameter == "tag." {
			parameter = "tag.acme_tag"
		}
		separator := "?"
		if strings.Contains(plain.path, "?") {
			separator = "&"
		}
		all = append(all, request{method: o.Method, path: plain.path + separator + parameter + "={" + name + "}"})
	}
	return all
}

// A tenant asks by every route for what another has, and for what never was: nothing of the other is in any answer, and both answers are the
// same (I14, U121).
func TestI14_U121_every_route_answers_about_another_tenant_as_about_one_that_never_was(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		x := w.furnish(t)
		keys := map[string]string{"all": w.key(t, "b", "read", "submit", "work", "operate", "admin")}
		for _, role := range []string{"read", "submit", "work"} { // operators and administrators see everything
			keys[role] = w.key(t, "b", role)
		}
		all := wire.Operations()
		slices.SortStableFunc(all, func(a, b *wire.Operation) int { // before the audit log names what this tenant has asked for itself
			return strings.Index(b.Path, "/audit") - strings.Index(a.Path, "/audit")
		})
		for _, o := range all {
			if o.Reserved || slices.Contains(makesOwn, o.ID) {
				continue
			}
			for i, r := range x.requests(t, o) {
				for role, key := range keys {
					if i > 0 && role != "all" && role != "submit" {
						continue // the filters are the same for all who may list
					}
					ask := func(which func(pair) string) string {
						t.Helper()
						header := map[string]string{"X-Request-Id": "same"}
						if strings.Contains(o.Path, "{id}/") && o.Roles&wire.Work != 0 && o.Method != http.MethodGet {
							header["FlowFabric-Lease"] = x["fence"].theirs
						}
						answer := w.send(t, request{method: r.method, path: escaped(x.fill(r.path, which)), body: x.fill(r.body, which), key: key, header: header})
						if code := problemCode(answer); code == "missing_field" || code == "invalid_json" || code == "unknown_field" {
							t.Errorf("%s with role %s asks nothing: %s", o.ID, role, answer.body)
						}
						answer.header.Del("Date")
						answer.header.Del("Content-Length")
						answer.header.Del("ETag")
						return x.plain(fmt.Sprint(answer.status, " ", answer.header, " ", string(answer.body)))
					}
					theirs, absent := ask(func(p pair) string { return p.theirs }), ask(func(p pair) string { return p.absent })
					if theirs != absent && o.ID != wire.GetMetrics.ID && o.ID != wire.ListAudit.ID {
						t.Errorf("%s %s with role %s: of another tenant\n%s\nthat does not exist\n%s", r.method, r.path, role, theirs, absent)
					}
					if strings.Contains(strings.ToLower(theirs), marker) {
						t.Errorf("%s %s with role %s tells of another tenant: %s", r.method, r.path, role, theirs)
					}
				}
			}
		}
	})
}

// What a tenant is pushed as it happens is its own too: what another did before and meanwhile is not in the stream (I14).
func TestI14_U19_a_stream_pushes_nothing_of_another_tenant(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		key := w.key(t, "b", "read", "submit", "operate")
		pushed := map[string]string{"Accept": "text/event-stream"}
		live := w.open(t, request{method: "GET", path: "/v1/events?after=start", key: key, header: pushed})
		defer live.Body.Close()
		x := w.furnish(t)
		later := w.open(t, request{method: "GET", path: "/v1/events?after=start", key: key, header: pushed})
		defer later.Body.Close()
		w.send(t, request{method: "POST", path: "/v1/executions", key: key, body: `{"kind":"last-of-all"}`}).wants(t, 201)
		for name, stream := range map[string]*http.Response{"before": live, "after": later} {
			lines := bufio.NewScanner(stream.Body)
			for last := false; !last && lines.Scan(); {
				if strings.Contains(strings.ToLower(lines.Text()), marker) {
					t.Errorf("a stream opened %s tells of another tenant: %s", name, lines.Text())
				}
				last = strings.Contains(lines.Text(), "last-of-all")
			}
			if err := lines.Err(); err != nil {
				t.Error(err)
			}
		}
		for _, o := range []*wire.Operation{wire.ListExecutionEvents.Operation, wire.ListFlowEvents.Operation} {
			plain := x.requests(t, o)[0]
			ask := func(which func(pair) string) string {
				header := map[string]string{"Accept": "text/event-stream", "X-Request-Id": "same"}
				answer := w.send(t, request{method: "GET", path: x.fill(plain.path, which), key: key, header: header})
				return x.plain(fmt.Sprint(answer.status, " ", string(answer.body)))
			}
			theirs, absent := ask(func(p pair) string { return p.theirs }), ask(func(p pair) string { return p.absent })
			if theirs != absent || !strings.HasPrefix(theirs, "404 ") {
				t.Errorf("%s: of another tenant\n%s\nthat does not exist\n%s", o.ID, theirs, absent)
			}
		}
	})
}

// ages are the metrics whose value is how long ago something was.
var ages = regexp.MustCompile(`(?m)^(\w+_seconds\S*) .*$`)

// What another tenant does, also in the lanes and with the kinds of a tenant, changes no metric that this one sees (I14, U115).
func TestI14_U115_what_another_tenant_does_changes_no_metric_of_a_tenant(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		submit := func(namespace string) {
			t.Helper()
			w.send(t, request{method: "POST", path: "/v1/budgets", key: w.key(t, namespace, "operate"), body: `{"name":"shared","dimensions":{"calls":{"hard":9}}}`}).wants(t, 201)
			w.send(t, request{method: "POST", path: "/v1/executions", key: w.key(t, namespace, "submit"), body: `{"kind":"shared","lane":"acme-lane"}`}).wants(t, 201)
		}
		reader := w.key(t, "b", "read")
		page := func() string {
			return ages.ReplaceAllString(string(w.send(t, request{method: "GET", path: "/metrics", key: reader}).wants(t, 200).body), "$1")
		}
		submit("b")
		var before string
		eventually(t, "the metrics tell of the tenant's own work", func() bool {
			before = page()
			return strings.Contains(before, `ff_executions{lane="acme-lane",status="ready"} 1`) && strings.Contains(before, `budget="shared"`)
		})
		submit(marker)
		w.furnish(t)
		all := w.key(t, "*", "read")
		eventually(t, "the metrics of all tell of the other's work", func() bool {
			return strings.Contains(string(w.send(t, request{method: "GET", path: "/metrics", key: all}).wants(t, 200).body), `ff_executions{lane="acme-lane",status="succeeded"} 1`)
		})
		if after := page(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})
}

func problemCode(a reply) string {
	found := regexp.MustCompile(`"code":"(\w+)"`).FindSubmatch(a.body)
	if a.status != http.StatusBadRequest || found == nil {
		return ""
	}
	return string(found[1])
}

// escaped makes names fit for an address.
func escaped(path string) string { return strings.NewReplacer("+", "%2B", "@", "%40").Replace(path) }
