package server_test

import (
	"bytes"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/server"
)

// bare is the UUID of an id.
func bare(id string) string { return id[strings.LastIndex(id, ":")+1:] }

func TestU7_an_execution_goes_by_its_full_name_and_by_its_bare_uuid(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const brought = "0198f0a0-0000-7000-8000-00000000beef"
		made := w.post(t, "/v1/executions", `{"kind":"job","execution_id":"`+brought+`"}`).wants(t, 201)
		id := made.text(t, "execution_id")
		if id != brought || made.header.Get("Location") != "/v1/executions/"+brought {
			t.Errorf("%s at %s", id, made.header.Get("Location"))
		}
		full := w.full(t, id)
		for _, form := range []string{full, url.PathEscape(full), id} {
			if got := w.get(t, "/v1/executions/"+form).wants(t, 200).text(t, "execution_id"); got != id {
				t.Errorf("%s names %s, not %s", form, got, id)
			}
		}
		again := w.post(t, "/v1/executions", `{"kind":"job","execution_id":"`+full+`"}`).wants(t, 200)
		if again.text(t, "outcome") != "duplicate" || again.text(t, "execution_id") != id {
			t.Errorf("a create under an id that is known: %s", again.body)
		}
		minted := w.submitted(t)
		if minted == id || strings.Contains(minted, ":") {
			t.Errorf("the server made %s", minted)
		}
	})
}

func TestU14_the_key_of_the_work_is_not_the_key_of_the_call(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		submit := func(call, work string) reply {
			t.Helper()
			return w.send(t, request{
				method: "POST", path: "/v1/executions", body: `{"kind":"job","idempotency_key":"` + work + `"}`, header: map[string]string{"Idempotency-Key": call},
			})
		}
		first := submit("call-1", "order-1").wants(t, 201)
		other := submit("call-2", "order-1").wants(t, 200) // another call about the same work
		if other.text(t, "outcome") != "duplicate" || other.text(t, "execution_id") != first.text(t, "execution_id") || other.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%v %s", other.header, other.body)
		}
		repeat := submit("call-1", "order-1").wants(t, 201) // the same call once more
		if repeat.text(t, "outcome") != "created" || repeat.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v %s", repeat.header, repeat.body)
		}
		submit("call-1", "order-2").refuses(t, 409, "idempotency_conflict")
		submit("call-2", "order-2").refuses(t, 409, "idempotency_conflict") // it was answered, though it made nothing
		if again := submit("call-2", "order-1").wants(t, 200); again.text(t, "outcome") != "duplicate" || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v %s", again.header, again.body)
		}
		if same := submit("order-1", "call-1").wants(t, 201); same.text(t, "execution_id") == first.text(t, "execution_id") {
			t.Error("the two sorts of keys are one")
		}
		long := strings.Repeat("ü", 128) // 256 bytes: longer than the key of a call may be, and no ASCII (L6)
		submit("call-3", long).wants(t, 201)
		for _, bad := range []string{long + "x", `a\u0007`} {
			if refused := submit("call-4", bad).refuses(t, 400, "invalid_argument"); refused.text(t, "field") != "/idempotency_key" {
				t.Errorf("%s", refused.body)
			}
		}
		for range 2 { // an empty one counts as absent
			if none := w.post(t, "/v1/executions", `{"kind":"job","idempotency_key":""}`).wants(t, 201); none.field(t, "idempotency_key") != nil {
				t.Errorf("%s", none.body)
			}
		}
	})
}

func TestU16_lists_are_walked_by_cursors_that_belong_to_their_filter(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for range 5 {
			w.submitted(t)
		}
		first := w.get(t, "/v1/executions?kind=job&limit=2").wants(t, 200)
		cursor := first.text(t, "next_cursor")
		seen := map[string]int{first.text(t, "items.0.execution_id"): 1, first.text(t, "items.1.execution_id"): 1}
		w.submitted(t) // what comes in between moves nothing
		for page := cursor; page != ""; {
			answer := w.get(t, "/v1/executions?kind=job&limit=2&cursor="+url.QueryEscape(page)).wants(t, 200)
			items, _ := answer.field(t, "items").([]any)
			for i := range items {
				seen[answer.text(t, "items."+strconv.Itoa(i)+".execution_id")]++
			}
			page = answer.text(t, "next_cursor")
		}
		if len(seen) < 5 {
			t.Errorf("%d executions were seen", len(seen))
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("%s was seen %d times", id, times)
			}
		}
		for _, other := range []string{"kind=other", "kind=job&status=ready", "kind=job&order=created_asc", "kind=job&order=id_asc"} {
			w.get(t, "/v1/executions?"+other+"&limit=2&cursor="+url.QueryEscape(cursor)).refuses(t, 400, "invalid_cursor")
		}
		if most := w.get(t, "/v1/executions?limit=100000").wants(t, 200); len(most.field(t, "items").([]any)) != 6 {
			t.Errorf("a limit above 1000 counts as 1000: %s", most.body)
		}
		events := w.get(t, "/v1/events?after=start&limit=4").wants(t, 200)
		if len(events.field(t, "items").([]any)) != 4 || events.field(t, "at_end") != false || events.text(t, "next") == "" || events.field(t, "next_cursor") != nil {
			t.Errorf("%s", events.body)
		}
		rest := w.get(t, "/v1/events?limit=1000&after="+url.QueryEscape(events.text(t, "next"))).wants(t, 200)
		if rest.field(t, "at_end") != true || rest.text(t, "items.0.cursor") == events.text(t, "items.3.cursor") {
			t.Errorf("%s", rest.body)
		}
	})
}

func TestL121_L122_L125_U37_U38_U39_U40_one_execution_its_state_its_input_and_its_result(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.submitted(t)
		path := "/v1/executions/" + bare(id)
		shown := w.get(t, path).wants(t, 200) // U37
		if shown.text(t, "kind") != "job" || shown.text(t, "status") != "ready" || shown.field(t, "input.n") != 1.0 || shown.field(t, "has_result") != false {
			t.Errorf("%s", shown.body)
		}
		if state := objectOf(t, w.get(t, path+"/state").wants(t, 200)); len(state) != 2 || state["status"] != "ready" || state["public_state"] != "waiting" { // U38
			t.Errorf("%v", state)
		}
		if input := w.get(t, path+"/input").wants(t, 200); string(input.body) != `{"n":1}` || input.header.Get("Content-Type") != "application/json" { // U39
			t.Errorf("%s %v", input.body, input.header)
		}
		w.get(t, path+"/result").refuses(t, 409, "execution_not_terminal") // U40
		_, lease := w.claimed(t)
		w.post(t, path+"/complete", `{"lease":`+lease+`}`).wants(t, 200)
		if none := w.get(t, path+"/result").wants(t, 204); len(none.body) > 0 {
			t.Errorf("succeeded without a result: %s", none.body)
		}
		if ended := w.get(t, path+"/state").wants(t, 200); ended.text(t, "status") != "succeeded" || ended.text(t, "public_state") != "completed" {
			t.Errorf("%s", ended.body)
		}
		bytes := w.finished(t, `"result_bytes":"AAH/","result_content_type":"image/x"`)
		if result := w.get(t, bytes+"/result").wants(t, 200); string(result.body) != "\x00\x01\xff" || result.header.Get("Content-Type") != "image/x" {
			t.Errorf("%q %v", result.body, result.header)
		}
		empty := w.finished(t, `"result_text":""`) // not the same as none
		if result := w.get(t, empty+"/result").wants(t, 200); len(result.body) > 0 {
			t.Errorf("%q", result.body)
		}
		for _, below := range []string{"", "/state", "/input", "/result"} {
			w.get(t, "/v1/executions/0198f0a0-0000-7000-8000-000000000000"+below).refuses(t, 404, "execution_not_found")
		}
	})
}

func TestU40_the_result_of_what_did_not_succeed_is_refused_with_how_it_ended(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	path := "/v1/executions/" + bare(w.submitted(t))
	w.post(t, path+"/cancel", `{"reason":"enough"}`).wants(t, 200)
	if refused := w.get(t, path+"/result"); refused.status < 400 || refused.text(t, "current.status") != "cancelled" {
		t.Errorf("%d %s", refused.status, refused.body)
	}
}

func TestU41_attempts_and_leases_tell_the_history(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/executions", `{"kind":"job","policy":{"retry_policy":{"max_retries":2,"backoff":{"strategy":"fixed","delay_ms":0}}}}`).wants(t, 201)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + bare(id)
		w.post(t, path+"/fail", `{"lease":`+lease+`,"category":"rain","message":"wet"}`).wants(t, 200)
		_, lease = w.claimed(t)
		w.post(t, path+"/complete", `{"lease":`+lease+`}`).wants(t, 200)
		attempts := w.get(t, path+"/attempts").wants(t, 200)
		for field, want := range map[string]any{
			"items.0.attempt_index": 0.0, "items.0.type": "initial", "items.0.state": "ended_failure", "items.0.failure.category": "rain", "items.0.failure.message": "wet",
			"items.0.worker_id": "w", "items.0.worker_instance_id": "w-1", "items.0.first_lease_epoch": 1.0, "items.0.last_lease_epoch": 1.0,
			"items.1.attempt_index": 1.0, "items.1.type": "retry", "items.1.state": "ended_success", "items.1.lineage.previous_index": 0.0, "items.1.lineage.category": "rain",
		} {
			if got := attempts.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
		for _, time := range []string{"items.0.started_at", "items.0.ended_at", "items.1.started_at", "items.1.ended_at"} {
			if attempts.text(t, time) == "" {
				t.Errorf("no %s in %s", time, attempts.body)
			}
		}
		for name, index := range map[string]float64{"0": 0, "1": 1, "latest": 1} {
			if one := w.get(t, path+"/attempts/"+name).wants(t, 200); one.number(t, "attempt_index") != index || one.field(t, "attempt_id") != attempts.field(t, "items."+strconv.Itoa(int(index))+".attempt_id") {
				t.Errorf("%s: %s", name, one.body)
			}
		}
		leases := w.get(t, path+"/leases").wants(t, 200)
		for field, want := range map[string]any{
			"items.0.lease_epoch": 1.0, "items.0.attempt_index": 0.0, "items.0.end": "fail", "items.1.lease_epoch": 2.0, "items.1.attempt_index": 1.0, "items.1.end": "complete",
		} {
			if got := leases.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, leases.body)
			}
		}
	})
}

func TestU43_U106_events_are_read_of_one_execution_and_of_all(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		other := w.submitted(t)
		made := w.post(t, "/v1/executions", `{"kind":"job","lane":"mail","tags":{"team":"blue"}}`).wants(t, 201)
		id := made.text(t, "execution_id")
		path := "/v1/executions/" + bare(id)
		w.post(t, path+"/cancel", `{"reason":"enough"}`).wants(t, 200)
		kinds := func(path string) (all []string) {
			t.Helper()
			answer := w.get(t, path).wants(t, 200)
			items, _ := answer.field(t, "items").([]any)
			for i := range items {
				at := "items." + strconv.Itoa(i)
				if of := answer.text(t, at+".execution_id"); of != id && of != other && !strings.HasPrefix(answer.text(t, at+".kind"), "lane.") {
					t.Errorf("%s: an event of %q", path, of)
				}
				all = append(all, answer.text(t, at+".kind"))
			}
			return all
		}
		const story = "execution.submitted execution.cancel_requested execution.completed"
		own := kinds(path + "/events?after=start") // U43: those of this one alone
		if strings.Join(own, " ") != story {
			t.Errorf("%v", own)
		}
		for _, filter := range []string{ // U106: each filter finds the same three, or one of them
			"execution_id=" + url.QueryEscape(id), "lane=mail&kind=execution", "tag.team=blue&kind=execution", "kind=execution.&tag.team=blue",
		} {
			if got := kinds("/v1/events?after=start&" + filter); strings.Join(got, " ") != story {
				t.Errorf("%s finds %v", filter, got)
			}
		}
		for filter, want := range map[string]string{
			"outcome=cancelled": "execution.completed", "kind=execution.cancel_requested": "execution.cancel_requested", "execution_id=" + bare(other): "execution.submitted",
			"tag.team=red": "", "lane=nowhere": "", "worker_instance_id=missing": "", "since=2999-01-01T00:00:00Z": "",
		} {
			if got := kinds("/v1/events?after=start&" + filter); strings.Join(got, " ") != want {
				t.Errorf("%s finds %v, want %s", filter, got, want)
			}
		}
		if operators := kinds("/v1/events?after=start&actor=operator"); !strings.Contains(strings.Join(operators, " "), "execution.cancel_requested") || strings.Contains(strings.Join(operators, " "), "submitted") {
			t.Errorf("operators did %v", operators)
		}
		if none := kinds("/v1/events?after=end"); len(none) > 0 {
			t.Errorf("after the end: %v", none)
		}
		waiting := w.waits(t, request{method: "GET", path: path + "/events?after=end&wait_ms=30000"})
		w.submitted(t) // concerns another
		w.post(t, path+"/replay", `{}`).wants(t, 200)
		if came := <-waiting; came.wants(t, 200).text(t, "items.0.execution_id") != id || came.text(t, "items.0.kind") != "execution.replayed" {
			t.Errorf("%s", came.body)
		}
	})
}

func TestU111_whoami_tells_who_asks_and_what_it_may(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	key := w.key(t, "acme,globex", "submit", "read")
	who := w.send(t, request{method: "GET", path: "/v1/whoami", key: key}).wants(t, 200)
	if who.text(t, "principal") != "submit+read@acme,globex" || who.text(t, "key_id") != strings.Split(key, "_")[1] || who.field(t, "open") != false {
		t.Errorf("%s", who.body)
	}
	for field, want := range map[string]int{"roles": 2, "namespaces": 2} {
		if got, _ := who.field(t, field).([]any); len(got) != want {
			t.Errorf("%s are %v", field, got)
		}
	}
	for _, role := range []string{"read", "submit", "work", "operate", "admin"} { // any role may ask
		w.send(t, request{method: "GET", path: "/v1/whoami", key: w.key(t, "acme", role)}).wants(t, 200)
	}
	w.get(t, "/v1/whoami").refuses(t, 401, "missing_credentials")
	if open := openWorld(t).get(t, "/v1/whoami").wants(t, 200); open.text(t, "principal") != "dev" || open.field(t, "open") != true || open.field(t, "key_id") != nil {
		t.Errorf("%s", open.body)
	}
}

// shownElsewhere are the fields of an execution that need more than one execution, or a wait, to be there, with the tests that look at them.
var shownElsewhere = map[string]string{
	"flow_id": "TestU28_a_task_of_a_flow_has_its_name_and_what_came_from_others", "root_flow_id": "TestU28_a_task_of_a_flow_has_its_name_and_what_came_from_others",
	"name": "TestU28_a_task_of_a_flow_has_its_name_and_what_came_from_others", "inputs": "TestU28_a_task_of_a_flow_has_its_name_and_what_came_from_others",
	"join": "TestU89_a_flow_is_submitted_made_empty_or_checked", "parent_id": "TestU75_a_worker_spawns_and_waits_over_http",
	"suspension": "TestU71_a_suspended_execution_goes_on_when_its_signal_has_come", "budgets": "TestU74_usage_is_reported_under_the_lease",
	"blocking_detail": "TestSC15_numbers_holders_and_the_next_claim_agree", "retained": "TestU45_operators_steer_executions",
	"input_bytes": "TestU32_the_answer_to_a_submit_is_the_execution_as_a_reader_sees_it", "input_text": "TestU32_the_answer_to_a_submit_is_the_execution_as_a_reader_sees_it",
	"result_bytes":  "TestL121_L122_L125_U37_U38_U39_U40_one_execution_its_state_its_input_and_its_result",
	"result":        "TestL121_L122_L125_U37_U38_U39_U40_one_execution_its_state_its_input_and_its_result",
	"input_omitted": "TestU10_claims_and_raw_routes_deliver_large_payloads", "result_omitted": "TestU10_claims_and_raw_routes_deliver_large_payloads",
	"traceparent": "TestU215_a_malformed_trace_context_is_ignored",
}

// fieldsOf are the names of the fields that a type has in JSON.
func fieldsOf(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		field := of.Field(i)
		if field.Anonymous {
			names = append(names, fieldsOf(field.Type)...)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// describeLimited looks at what is shown of executions that wait for a quota, for a grant or for a delay.
func (w *world) describeLimited(t *testing.T, submit func(more string) string, describe func(id string, want map[string]any) reply) {
	t.Helper()
	w.send(t, request{method: "PUT", path: "/v1/quotas/one", body: `{"concurrency_limit":1}`}).wants(t, 200)
	const limited = `,"quotas":[{"quota":"one"}],"policy":{"timeout_policy":{"attempt_timeout_ms":600000}}`
	slow, behind := submit(limited), submit(limited)
	describe(slow, map[string]any{"next": "initial", "lease_epoch": nil, "last_lease": nil, "grant": nil, "run_started_at": nil})
	id, lease := w.claimed(t)
	if id != slow {
		t.Fatalf("%s was claimed", id)
	}
	if shown := describe(slow, map[string]any{"next": nil, "slots.0": "slots:one", "lease_epoch": 1.0}); shown.text(t, "run_started_at") != shown.text(t, "started_at") ||
		shown.text(t, "attempt_deadline_at") == "" || shown.text(t, "wake_at") == "" {
		t.Errorf("%s", shown.body)
	}
	w.post(t, "/v1/work/claim", `{`+renderWorker+`,"lanes":["default"]}`).wants(t, 200)
	describe(behind, map[string]any{"status": "blocked", "blocked_on": "slots:one"})
	w.post(t, "/v1/executions/"+bare(slow)+"/delay", `{"lease":`+lease+`,"delay_ms":600000}`).wants(t, 200)
	if shown := describe(slow, map[string]any{"next": "resume", "delay_reason": "waiting_for_delay"}); shown.number(t, "attempt_remaining_ms") <= 0 {
		t.Errorf("%s", shown.body)
	}
	w.post(t, "/v1/work/grants", grantBody).wants(t, 200)
	granted := describe(behind, map[string]any{"status": "granted", "grant.worker_id": "render", "grant.worker_instance_id": "render-1"})
	if granted.text(t, "grant.kid") == "" || granted.text(t, "grant.issued_at") == "" || granted.text(t, "grant.expires_at") == "" || bytes.Contains(granted.body, []byte("pg:")) {
		t.Errorf("%s", granted.body)
	}
	for _, brief := range []string{"/v1/executions/" + bare(behind), "/v1/executions?status=granted"} {
		if shown := w.get(t, brief).wants(t, 200); bytes.Contains(shown.body, []byte(`"grant":`)) || bytes.Contains(shown.body, []byte(`"slots":`)) {
			t.Errorf("%s shows what the full view alone has: %s", brief, shown.body)
		}
	}
}

func TestL120_L121_describe_shows_every_field_over_http(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		seen := map[string]bool{}
		describe := func(id string, want map[string]any) reply {
			t.Helper()
			shown := w.get(t, "/v1/executions/"+bare(id)+"?view=full").wants(t, 200)
			for name := range objectOf(t, shown) {
				seen[name] = true
			}
			for field, value := range want {
				if got := shown.field(t, field); got != value {
					t.Errorf("%s is %v, want %v in %s", field, got, value, shown.body)
				}
			}
			return shown
		}
		submit := func(more string) string {
			t.Helper()
			return w.post(t, "/v1/executions", `{"kind":"job","input":{"n":1}`+more+`}`).wants(t, 201).text(t, "execution_id")
		}
		ended := func(how, body string) string {
			t.Helper()
			submit("")
			id, lease := w.claimed(t)
			w.post(t, "/v1/executions/"+bare(id)+"/"+how, `{"lease":`+lease+body+`}`).wants(t, 200)
			return id
		}

		first := submit(`,"priority":7,"tags":{"team":"x"},"idempotency_key":"k","policy":{"timeout_policy":{"execution_deadline_ms":600000}}`)
		describe(first, map[string]any{
			"execution_id": first, "namespace": "default", "kind": "job", "lane": "default", "status": "ready", "reason": "waiting_for_worker", "public_state": "waiting",
			"priority": 7.0, "tags.team": "x", "idempotency_key": "k", "run_index": 0.0, "total_attempts": 0.0, "retry_count": 0.0, "reclaim_count": 0.0,
			"replay_count": 0.0, "input.n": 1.0, "input_content_type": "application/json", "has_result": false,
			"state_vector.lifecycle_phase": "runnable", "state_vector.ownership_state": "unowned", "policy.timeout_policy.execution_deadline_ms": 600000.0,
		})
		id, lease := w.claimed(t)
		if answer := w.post(t, "/v1/executions/"+bare(id)+"/progress", `{"lease":`+lease+`,"percent":40}`); answer.status >= 300 {
			t.Fatalf("%s", answer.body)
		}
		running := describe(id, map[string]any{"status": "running", "public_state": "active", "total_attempts": 1.0, "attempt.attempt_index": 0.0, "lease.lease_epoch": 1.0})
		if moment := running.text(t, "created_at"); moment == "" || running.text(t, "queued_at") != moment || running.text(t, "started_at") < moment ||
			running.text(t, "status_since") != running.text(t, "started_at") || running.text(t, "deadline_at") <= moment || running.text(t, "last_mutation_at") < moment {
			t.Errorf("moments: %s", running.body)
		}
		w.post(t, "/v1/executions/"+bare(id)+"/complete", `{"lease":`+lease+`,"result_text":"done"}`).wants(t, 200)
		describe(id, map[string]any{"status": "succeeded", "public_state": "completed", "has_result": true})

		delayed := submit(`,"delay_ms":600000`)
		w.post(t, "/v1/executions/"+bare(delayed)+"/hold", `{"reason":"wait"}`).wants(t, 200)
		if shown := describe(delayed, map[string]any{"status": "delayed", "held.reason": "wait"}); shown.text(t, "delay_until") == "" {
			t.Errorf("%s", shown.body)
		}
		w.post(t, "/v1/executions/"+bare(delayed)+"/cancel", `{"reason":"enough"}`).wants(t, 200)
		describe(delayed, map[string]any{"status": "cancelled", "cancellation.reason": "enough"})
		failed := ended("fail", `,"class":"permanent","category":"odd","message":"no"`)
		describe(failed, map[string]any{"status": "failed", "failure.category": "odd", "failure.message": "no", "last_lease.end": "fail", "last_lease.lease_epoch": 1.0})

		w.describeLimited(t, submit, describe)

		for _, name := range fieldsOf(reflect.TypeFor[api.Execution]()) {
			if !seen[name] && shownElsewhere[name] == "" {
				t.Errorf("no execution of this test shows %s", name)
			}
		}
	})
}
