package server_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

// anySignal waits at one new waitpoint for any signal.
const anySignal = `"waitpoints":[{"fresh":{"waitpoint_key":"answer"}}],"resume_condition":{"type":"single"}`

// suspended submits something and suspends it with these fields; what it is and the answer of the suspend.
func (w *world) suspended(t *testing.T, fields string) (path, id string, answer reply) {
	t.Helper()
	w.submitted(t)
	id, lease := w.claimed(t)
	path = "/v1/executions/" + bare(id)
	return path, id, w.post(t, path+"/suspend", `{"lease":`+lease+`,`+fields+`}`).wants(t, 200)
}

// handedOut are the fields of a waitpoint in the answer to a suspend that has a timeout.
var handedOut = []string{"callback_url", "expires_at", "token", "waitpoint_id", "waitpoint_key"}

// hasExactly wants an object to have these fields and no other.
func (a reply) hasExactly(t testing.TB, path string, fields ...string) {
	t.Helper()
	object, _ := a.field(t, path).(map[string]any)
	if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, fields) {
		t.Errorf("%s has %v, want %v", path, got, fields)
	}
}

// signals sends a signal with a token.
func (w *world) signals(t *testing.T, waitpoint, token, body string) reply {
	t.Helper()
	return w.send(t, request{method: "POST", path: "/v1/waitpoints/" + waitpoint + "/signals", body: body, header: map[string]string{"FlowFabric-Token": token}})
}

func TestU72_a_waitpoint_made_again_is_shown_with_what_came_to_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path, body := "/v1/executions/"+bare(id)+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"answer","idempotency_key":"k"}`
		made := w.post(t, path, body).wants(t, 201)
		waitpoint := made.text(t, "waitpoint_id")
		w.signals(t, waitpoint, made.text(t, "token"), `{"name":"go"}`).wants(t, 200)
		w.post(t, "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"ann"}`).wants(t, 201)
		again := w.post(t, path, body)
		if again.text(t, "waitpoint_id") != waitpoint || again.text(t, "last_signal_at") == "" {
			t.Errorf("made again: %s", again.body)
		}
		for field, want := range map[string]float64{"signal_count": 1, "links": 1} {
			if before, got := made.field(t, field), again.field(t, field); before != 0.0 || got != want {
				t.Errorf("%s was %v and is %v, want %v", field, before, got, want)
			}
		}
	})
}

func TestU71_a_suspended_execution_goes_on_when_its_signal_has_come(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, id, answer := w.suspended(t, anySignal+`,"reason_code":"waiting_for_callback","timeout_ms":3600000,"continuation":{"at": 3},"idempotency_key":"wait-1"`)
		for field, want := range map[string]any{
			"outcome": "suspended", "waitpoints.0.waitpoint_key": "answer", "cause": nil, "signals": nil,
		} {
			if got := answer.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, answer.body)
			}
		}
		answer.hasExactly(t, "waitpoints.0", handedOut...)
		if answer.header.Get("Cache-Control") != "no-store" || answer.text(t, "timeout_at") == "" || answer.text(t, "timeout_at") != answer.text(t, "waitpoints.0.expires_at") {
			t.Errorf("%v %s", answer.header, answer.body)
		}
		waitpoint, token := answer.text(t, "waitpoints.0.waitpoint_id"), answer.text(t, "waitpoints.0.token")
		if callback := answer.text(t, "waitpoints.0.callback_url"); callback != w.url+"/v1/callbacks/"+waitpoint+"/"+token {
			t.Errorf("the callback is at %s", callback)
		}
		open := w.get(t, path+"/suspension").wants(t, 200)
		for field, want := range map[string]any{
			"suspension_id": answer.text(t, "suspension_id"), "reason_code": "waiting_for_callback", "timeout_behavior": "fail", "cause": nil,
			"resume_condition.type": "single", "resume_condition.waitpoint_key": "answer", "waitpoints.0.waitpoint_id": waitpoint, "continuation.at": 3.0,
		} {
			if got := open.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, open.body)
			}
		}
		if told := w.signals(t, waitpoint, token, `{"name":"paid","payload":{"eur":7}}`).wants(t, 200); told.text(t, "effect") != "resume_condition_satisfied" {
			t.Errorf("%s", told.body)
		}
		task := w.claims(t, `"lanes":["default"],"wait_ms":20000`)
		for field, want := range map[string]any{
			"execution_id": id, "how": "resumed", "attempt.resumed_from": "suspended", "attempt.attempt_index": 0.0, "lease.lease_epoch": 2.0,
			"resumed.suspension_id": answer.text(t, "suspension_id"), "resumed.cause": "signal", "resumed.continuation.at": 3.0,
			"resumed.signals.0.name": "paid", "resumed.signals.0.payload.eur": 7.0, "resumed.signals.0.waitpoint_key": "answer", "resumed.signals.0.matched": true,
		} {
			if got := task.field(t, "tasks.0."+field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, task.body)
			}
		}
		if history := w.get(t, path+"/suspensions").wants(t, 200); history.text(t, "items.0.cause") != "signal" || history.field(t, "items.0.signals.0.payload_omitted") != true {
			t.Errorf("%s", history.body)
		}
		if full := w.get(t, "/v1/executions/export?include=signals,input").wants(t, 200); !strings.Contains(string(full.body), `"name":"paid"`) { // U36
			t.Errorf("%s", full.body)
		}
	})
}

func TestU28_encoding_bytes_shows_the_payloads_of_a_wait_as_base64(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, id, answer := w.suspended(t, anySignal+`,"continuation":{"at": 3}`)
		w.signals(t, answer.text(t, "waitpoints.0.waitpoint_id"), answer.text(t, "waitpoints.0.token"), `{"name":"paid","payload":{"eur": 7}}`).wants(t, 200)
		signals := w.get(t, path+"/signals?encoding=bytes").wants(t, 200)
		observed := w.get(t, path+"/suspension?encoding=bytes").wants(t, 200)
		task := w.post(t, path+"/claim-resumed", `{"worker_id":"v","worker_instance_id":"v-1","encoding":"bytes"}`).wants(t, 200) // U63
		for what, got := range map[string]string{
			"a signal": signals.text(t, "items.0.payload_bytes"), "an observed signal": observed.text(t, "signals.0.payload_bytes"), "a task": task.text(t, "resumed.signals.0.payload_bytes"),
		} {
			if got != "eyJldXIiOiA3fQ==" {
				t.Errorf("%s shows %s", what, got)
			}
		}
		if task.text(t, "execution_id") != id || task.text(t, "resumed.continuation_bytes") != "eyJhdCI6IDN9" || observed.text(t, "continuation_bytes") != "eyJhdCI6IDN9" {
			t.Errorf("%s\n%s", task.body, observed.body)
		}
	})
}

func TestU71_what_is_wrong_with_a_suspend_is_told_by_the_words_of_the_rules(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + bare(id) + "/suspend"
		const fresh = `"waitpoints":[{"fresh":{"waitpoint_key":"a"}}],`
		for reason, fields := range map[string]string{ // W46
			"waitpoints_empty":                          `"resume_condition":{"type":"single"}`,
			"duplicate_binding":                         `"waitpoints":[{"fresh":{"waitpoint_key":"a"}},{"fresh":{"waitpoint_key":"a"}}],"resume_condition":{"type":"single"}`,
			"waitpoint_key_empty":                       `"waitpoints":[{"fresh":{"waitpoint_key":""}}],"resume_condition":{"type":"single"}`,
			"allof_empty_members":                       fresh + `"resume_condition":{"type":"all_of","members":[]}`,
			"count_n_zero":                              fresh + `"resume_condition":{"type":"count","n":0,"count_kind":"distinct_signals","waitpoints":["a"]}`,
			"count_waitpoints_empty":                    fresh + `"resume_condition":{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":[]}`,
			"count_exceeds_waitpoint_set":               fresh + `"resume_condition":{"type":"count","n":2,"count_kind":"distinct_waitpoints","waitpoints":["a"]}`,
			"matcher_name_empty":                        fresh + `"resume_condition":{"type":"single","name":""}`,
			"timeout_ambiguous":                         fresh + `"resume_condition":{"type":"single"},"timeout_ms":1,"timeout_at":"2030-01-02T03:04:05Z"`,
			"bad_number":                                fresh + `"resume_condition":{"type":"single"},"timeout_ms":-1`,
			"unknown_reason_code":                       fresh + `"resume_condition":{"type":"single"},"reason_code":"bored"`,
			"timeout_only_without_deadline":             `"resume_condition":{"type":"timeout_only"}`,
			"referenced_waitpoint_key_missing_binding":  fresh + `"resume_condition":{"type":"single","waitpoint_key":"b"}`,
			"extra_binding_not_referenced_by_condition": `"waitpoints":[{"fresh":{"waitpoint_key":"a"}},{"fresh":{"waitpoint_key":"b"}}],"resume_condition":{"type":"single","waitpoint_key":"a"}`,
		} {
			if refused := w.post(t, path, `{"lease":`+lease+`,`+fields+`}`).refuses(t, 400, "invalid_suspend"); refused.text(t, "current.reason") != reason {
				t.Errorf("want %s: %s", reason, refused.body)
			}
		}
		for code, fields := range map[string]string{ // U5
			"missing_field":    fresh + `"reason_code":"waiting_for_signal"`,
			"unknown_field":    fresh + `"resume_condition":{"type":"operator_only","name":"x"}`,
			"invalid_argument": fresh + `"resume_condition":{"type":"sometimes"}`,
		} {
			w.post(t, path, `{"lease":`+lease+`,`+fields+`}`).refuses(t, 400, code)
		}
		w.post(t, path, `{"lease":`+lease+`,"waitpoints":[{}],"resume_condition":{"type":"single"}}`).refuses(t, 400, "missing_field")
		noSource := w.post(t, path, `{"lease":`+lease+`,`+fresh+`"resume_condition":{"type":"count","n":1,"count_kind":"distinct_sources","source_types":[],"waitpoints":["a"]}}`)
		if noSource.refuses(t, 400, "invalid_argument").text(t, "field") != "/resume_condition/source_types" {
			t.Errorf("%s", noSource.body)
		}
		w.post(t, path, `{`+anySignal+`}`).refuses(t, 400, "fence_required")
		w.post(t, path, `{"lease":`+lease+`,"waitpoints":[{"use_pending":{"waitpoint_id":"`+bare(id)+`"}}],"resume_condition":{"type":"single"}}`).refuses(t, 404, "waitpoint_not_found")
		first := w.post(t, path, `{"lease":`+lease+`,`+anySignal+`}`).wants(t, 200)
		if again := w.post(t, path, `{"lease":`+lease+`,`+anySignal+`}`).wants(t, 200); string(again.body) != string(first.body) { // W56
			t.Errorf("%s after %s", again.body, first.body)
		}
		w.post(t, "/v1/executions/"+bare(id)+"/complete", `{"lease":`+lease+`}`).refuses(t, 409, "execution_not_active")
	})
}

func TestU72_a_waitpoint_is_made_before_anything_waits_at_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + bare(id)
		made := w.post(t, path+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"early","expires_in_ms":60000,"idempotency_key":"k"}`).wants(t, 201)
		waitpoint, token := made.text(t, "waitpoint_id"), made.text(t, "token")
		if made.text(t, "state") != "pending" || made.header.Get("Cache-Control") != "no-store" || made.header.Get("Location") != "/v1/waitpoints/"+waitpoint || !strings.Contains(made.text(t, "callback_url"), token) {
			t.Errorf("%v %s", made.header, made.body)
		}
		if again := w.post(t, path+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"early","expires_in_ms":60000,"idempotency_key":"k"}`).wants(t, 201); again.text(t, "token") != token {
			t.Errorf("%s after %s", again.body, made.body)
		}
		w.post(t, path+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"other","idempotency_key":"k"}`).refuses(t, 409, "idempotency_conflict")
		w.post(t, path+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"x","expires_in_ms":0}`).refuses(t, 400, "invalid_waitpoint")
		w.post(t, path+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":""}`).refuses(t, 400, "invalid_waitpoint")
		w.post(t, path+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"__x"}`).refuses(t, 400, "reserved_name")
		w.post(t, path+"/waitpoints", `{"waitpoint_key":"x"}`).refuses(t, 400, "fence_required")
		if early := w.signals(t, waitpoint, token, `{"name":"paid"}`).wants(t, 200); early.text(t, "effect") != "buffered_for_pending_waitpoint" {
			t.Errorf("%s", early.body)
		}
		passed := w.post(t, path+"/suspend", `{"lease":`+lease+`,"waitpoints":[{"use_pending":{"waitpoint_id":"`+waitpoint+`"}}],"resume_condition":{"type":"single","name":"paid"}}`).wants(t, 200)
		for field, want := range map[string]any{"outcome": "already_satisfied", "cause": "early_signals", "signals.0.name": "paid"} {
			if got := passed.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, passed.body)
			}
		}
		w.post(t, path+"/complete", `{"lease":`+lease+`}`).wants(t, 200) // the lease stayed
	})
}

func TestU77_a_batch_suspends_and_makes_waitpoints(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		item := func(op, fields string) string {
			return `{"op":"` + op + `","execution_id":"` + id + `","lease":` + lease + fields + `}`
		}
		answer := w.post(t, "/v1/work/batch", `{"items":[`+strings.Join([]string{
			item("waitpoint", `,"waitpoint_key":"a"`), item("waitpoint", `,"waitpoint_key":"a","expires_in_ms":0`), item("suspend", ","+anySignal+`,"timeout_ms":60000`), item("progress", `,"percent":1`),
		}, ",")+`]}`).wants(t, 200)
		for field, want := range map[string]any{
			"failed": 2.0, "items.0.ok": true, "items.0.waitpoint.waitpoint_key": "a", "items.0.waitpoint.state": "pending", "items.0.waitpoints": nil, "items.1.error.code": "invalid_waitpoint",
			"items.2.outcome": "suspended", "items.2.waitpoints.0.waitpoint_key": "answer", "items.3.error.code": "execution_not_active",
		} {
			if got := answer.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, answer.body)
			}
		}
		answer.hasExactly(t, "items.2.waitpoints.0", handedOut...)
		if answer.text(t, "items.0.waitpoint.token") == "" || answer.text(t, "items.2.waitpoints.0.callback_url") == "" || answer.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v %s", answer.header, answer.body)
		}
		w.post(t, "/v1/work/batch", `{"items":[`+item("suspend", "")+`]}`).refuses(t, 400, "missing_field")
		w.post(t, "/v1/work/batch", `{"items":[`+item("waitpoint", `,"waitpoint_key":"a","percent":1`)+`]}`).refuses(t, 400, "unknown_field")
	})
}

func TestU42_the_waits_of_an_execution_are_read(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		never := "/v1/executions/" + bare(w.submitted(t))
		if none := w.get(t, never+"/suspension").wants(t, 200); string(none.body) != "{}" {
			t.Errorf("%s", none.body)
		}
		for _, list := range []string{"/waitpoints", "/signals", "/suspensions"} {
			if empty := w.get(t, never+list).wants(t, 200); string(empty.body) != `{"items":[]}` {
				t.Errorf("%s: %s", list, empty.body)
			}
			w.get(t, "/v1/executions/0198f0a0-0000-7000-8000-000000000000"+list).refuses(t, 404, "execution_not_found")
		}
		w.get(t, "/v1/executions/0198f0a0-0000-7000-8000-000000000000/suspension").refuses(t, 404, "execution_not_found")
		w.post(t, never+"/cancel", `{}`).wants(t, 200)
		path, _, answer := w.suspended(t, `"waitpoints":[{"fresh":{"waitpoint_key":"a"}},{"fresh":{"waitpoint_key":"b"}}],
			"resume_condition":{"type":"all_of","members":[{"type":"single","waitpoint_key":"a"},{"type":"single","waitpoint_key":"b","name":"go"}]}`)
		large, _ := json.Marshal(strings.Repeat("x", 64<<10))
		for _, body := range []string{`{"name":"one","payload":1}`, `{"name":"two","payload":` + string(large) + `}`} {
			w.signals(t, answer.text(t, "waitpoints.0.waitpoint_id"), answer.text(t, "waitpoints.0.token"), body).wants(t, 200)
		}
		open := w.get(t, path+"/waitpoints?limit=1").wants(t, 200)
		rest := w.get(t, path+"/waitpoints?cursor="+url.QueryEscape(open.text(t, "next_cursor"))).wants(t, 200)
		if len(open.field(t, "items").([]any)) != 1 || len(rest.field(t, "items").([]any)) != 1 || strings.Contains(string(open.body), "callback_url") {
			t.Errorf("%s\n%s", open.body, rest.body)
		}
		signals := w.get(t, path+"/signals").wants(t, 200)
		for field, want := range map[string]any{
			"items.0.name": "one", "items.0.ordinal": 1.0, "items.0.payload": 1.0, "items.0.source_verified": false, "items.0.effect": "appended_to_waitpoint",
			"items.1.payload_omitted": true, "items.1.payload_size": 64<<10 + 2.0, "items.1.effect": "appended_to_waitpoint_duplicate", "items.1.payload": nil, // U10
		} {
			if got := signals.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
		for _, whole := range []reply{w.get(t, path+"/signals?inline=true"), w.get(t, path+"/suspension?inline=true")} {
			if !strings.Contains(string(whole.wants(t, 200).body), strings.Repeat("x", 64<<10)) {
				t.Errorf("%.300s", whole.body)
			}
		}
		if brief := w.get(t, path+"/suspension").wants(t, 200); brief.field(t, "signals.1.payload_omitted") != true || brief.field(t, "signals.0.payload") != 1.0 {
			t.Errorf("%.300s", brief.body)
		}
		if some := w.get(t, path+"/signals?suspension="+answer.text(t, "suspension_id")).wants(t, 200); len(some.field(t, "items").([]any)) != 2 {
			t.Errorf("%.300s", some.body)
		}
		w.post(t, path+"/cancel", `{}`).wants(t, 200)
		if closed := w.get(t, path+"/waitpoints").wants(t, 200); string(closed.body) != `{"items":[]}` {
			t.Errorf("%s", closed.body)
		}
		if all := w.get(t, path+"/waitpoints?include_closed=true").wants(t, 200); all.text(t, "items.0.close_reason") != "ended" {
			t.Errorf("%s", all.body)
		}
	})
}

func TestU49_an_operator_ends_a_wait(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, id, answer := w.suspended(t, `"resume_condition":{"type":"operator_only"},"reason_code":"manual_pause"`)
		if list := answer.field(t, "waitpoints"); list == nil || len(list.([]any)) != 0 {
			t.Errorf("%s", answer.body)
		}
		suspension := answer.text(t, "suspension_id")
		w.post(t, path+"/resume", `{"expected_suspension_id":"`+bare(id)+`"}`).refuses(t, 409, "suspension_mismatch")
		w.post(t, path+"/resume", `{"expect":{"status":"running"}}`).refuses(t, 412, "precondition_failed")
		w.post(t, path+"/resume", `{"delay_ms":-1}`).refuses(t, 400, "invalid_argument")
		if resumed := w.post(t, path+"/resume", `{"expected_suspension_id":"`+suspension+`","delay_ms":3600000,"reason":"go"}`).wants(t, 200); resumed.text(t, "status") != "delayed" || resumed.text(t, "reason") != "waiting_for_resume_delay" {
			t.Errorf("%s", resumed.body)
		}
		w.post(t, path+"/resume", `{"expected_suspension_id":"`+suspension+`"}`).wants(t, 200)
		w.post(t, path+"/resume", `{}`).refuses(t, 409, "execution_not_suspended")
		if history := w.get(t, path+"/suspension").wants(t, 200); history.text(t, "cause") != "operator" || history.text(t, "by") != "dev" {
			t.Errorf("%s", history.body)
		}
	})
}

func TestU52_an_operator_approves_without_a_token(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, id, answer := w.suspended(t, `"waitpoints":[{"fresh":{"waitpoint_key":"q"}}],"reason_code":"waiting_for_approval",
			"resume_condition":{"type":"any_of","members":[{"type":"count","n":2,"count_kind":"distinct_sources","name":"approved","source_types":["operator","approver"],"waitpoints":["q"]},
			{"type":"single","waitpoint_key":"q","name":"rejected"}]}`)
		w.post(t, path+"/approve", `{}`).refuses(t, 400, "missing_field")
		w.post(t, path+"/approve", `{"name":""}`).refuses(t, 400, "invalid_signal")
		w.post(t, path+"/approve", `{"name":"approved","lane":"other"}`).refuses(t, 400, "lane_mismatch")
		w.post(t, path+"/approve", `{"name":"approved","waitpoint_id":"`+bare(id)+`"}`).refuses(t, 404, "waitpoint_not_found")
		first := w.post(t, path+"/approve", `{"name":"approved","comment":"fine"}`).wants(t, 200)
		if first.text(t, "outcome") != "accepted" || first.text(t, "effect") != "appended_to_waitpoint" {
			t.Errorf("%s", first.body)
		}
		again := w.post(t, path+"/approve", `{"name":"approved","comment":"fine"}`).wants(t, 200)
		if again.text(t, "outcome") != "duplicate" || again.text(t, "signal_id") != first.text(t, "signal_id") || again.field(t, "same_request") != true {
			t.Errorf("%s", again.body)
		}
		inbox := w.get(t, "/v1/approvals").wants(t, 200)
		for field, want := range map[string]any{
			"items.0.suspension_id": answer.text(t, "suspension_id"), "items.0.needed": 2.0, "items.0.decisions.0.by": "dev", "items.0.decisions.0.decision": "approved",
			"items.0.decisions.0.comment": "fine", "items.0.execution.status": "suspended", "items.0.execution.input": nil, "items.0.progress.0.progress": 1.0, "items.0.progress.0.needed": 2.0,
			"items.0.waitpoints.0.waitpoint_key": "q", "items.0.progress.0.node.type": "count",
		} {
			if got := inbox.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, inbox.body)
			}
		}
		if last := w.post(t, path+"/approve", `{"name":"rejected","payload":{"why":"no"}}`).wants(t, 200); last.text(t, "effect") != "resume_condition_satisfied" {
			t.Errorf("%s", last.body)
		}
		w.post(t, path+"/approve", `{"name":"later"}`).refuses(t, 400, "waitpoint_ambiguous")
		if repeat := w.post(t, path+"/approve", `{"name":"rejected","payload":{"why":"no"}}`).wants(t, 200); repeat.text(t, "outcome") != "duplicate" {
			t.Errorf("W66: the vote that closed the wait, sent again because its answer was lost: %s", repeat.body)
		}
		if empty := w.get(t, "/v1/approvals").wants(t, 200); string(empty.body) != `{"items":[]}` {
			t.Errorf("%s", empty.body)
		}
	})
}

func TestU13_W37_the_items_of_a_batch_with_a_key_are_repeated_each_for_itself(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		batch := func(items ...string) reply {
			t.Helper()
			all := make([]string, len(items))
			for i, fields := range items {
				all[i] = `{"execution_id":"` + id + `","lease":` + lease + `,` + fields + `}`
			}
			return w.send(t, request{method: "POST", path: "/v1/work/batch", body: `{"items":[` + strings.Join(all, ",") + `]}`, header: map[string]string{"Idempotency-Key": "one"}}).wants(t, 200)
		}
		items := []string{
			`"op":"waitpoint","waitpoint_key":"a"`, `"op":"waitpoint","waitpoint_key":"a"`, `"op":"waitpoint","waitpoint_key":"b"`, `"op":"waitpoint","waitpoint_key":"c","idempotency_key":"own"`,
		}
		first := batch(items...)
		seen := map[string]bool{}
		for i := range items {
			seen[first.text(t, "items."+strconv.Itoa(i)+".waitpoint.waitpoint_id")] = true
		}
		if first.number(t, "failed") != 0 || len(seen) != len(items) {
			t.Errorf("W37: each makes its own: %s", first.body)
		}
		suspend := `"op":"suspend",` + anySignal
		if ended := batch(append(items, suspend)...); ended.number(t, "failed") != 0 || ended.text(t, "items.1.waitpoint.waitpoint_id") != first.text(t, "items.1.waitpoint.waitpoint_id") || ended.text(t, "items.4.outcome") != "suspended" {
			t.Errorf("%s after %s", ended.body, first.body)
		}
	})
}

func TestU13_another_batch_under_the_key_of_one_is_a_conflict_of_its_items(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		make := func(key string) reply {
			t.Helper()
			return w.send(t, request{
				method: "POST", path: "/v1/work/batch", header: map[string]string{"Idempotency-Key": "one"},
				body: `{"items":[{"op":"waitpoint","execution_id":"` + id + `","lease":` + lease + `,"waitpoint_key":"` + key + `"}]}`,
			}).wants(t, 200)
		}
		make("a")
		if other := make("b"); other.text(t, "items.0.error.code") != "idempotency_conflict" || other.text(t, "items.0.error.field") != "header.Idempotency-Key" {
			t.Errorf("%s", other.body)
		}
	})
}

func TestU13_a_wait_is_ended_once_under_one_key(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, _, _ := w.suspended(t, anySignal)
		resume := request{method: "POST", path: path + "/resume", body: `{"reason":"r"}`, header: map[string]string{"Idempotency-Key": "one"}}
		w.send(t, resume).wants(t, 200)
		if again := w.send(t, resume).wants(t, 200); again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v", again.header)
		}
		resume.body = `{"reason":"other"}`
		w.send(t, resume).refuses(t, 409, "idempotency_conflict")
	})
}

func TestU71_addresses_are_made_absolute_by_the_public_url(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, PublicURL: "https://flow.example.com/engine/"})
	_, _, answer := w.suspended(t, anySignal)
	waitpoint := answer.text(t, "waitpoints.0.waitpoint_id")
	if callback := answer.text(t, "waitpoints.0.callback_url"); callback != "https://flow.example.com/engine/v1/callbacks/"+waitpoint+"/"+answer.text(t, "waitpoints.0.token") {
		t.Errorf("%s", callback)
	}
	link := w.post(t, "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"ann@example.com"}`).wants(t, 201)
	if !strings.HasPrefix(link.text(t, "url"), "https://flow.example.com/engine/approve/"+link.text(t, "link_id")+"/") {
		t.Errorf("%s", link.body)
	}
}

func TestU57_a_bulk_job_signals_and_resumes_what_waits(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		first, id, _ := w.suspended(t, `"waitpoints":[{"fresh":{"waitpoint_key":"q"}}],"resume_condition":{"type":"single","name":"approved"}`)
		second, other, _ := w.suspended(t, `"resume_condition":{"type":"operator_only"}`)
		run := func(fields string) reply {
			t.Helper()
			started := w.post(t, "/v1/bulk", `{`+fields+`,"ids":["`+id+`","`+other+`"],"reason":"all of them"}`).wants(t, 202)
			return w.get(t, started.header.Get("Location")+"?wait_ms=20000").wants(t, 200)
		}
		w.post(t, "/v1/bulk", `{"action":"signal","all":true}`).refuses(t, 400, "missing_field")
		w.post(t, "/v1/bulk", `{"action":"resume","all":true,"args":{"delay_ms":-1}}`).refuses(t, 400, "invalid_argument")
		if signalled := run(`"action":"signal","args":{"name":"approved","comment":"fine","suffix":"1"}`); signalled.number(t, "done") != 1 || signalled.number(t, "refused.waitpoint_ambiguous") != 1 {
			t.Errorf("%s", signalled.body)
		}
		if told := w.get(t, first+"/signals").wants(t, 200); told.text(t, "items.0.payload.comment") != "fine" || told.text(t, "items.0.source_identity") != "dev" {
			t.Errorf("%s", told.body)
		}
		if resumed := run(`"action":"resume","args":{"delay_ms":3600000}`); resumed.number(t, "done") != 1 || resumed.number(t, "refused.execution_not_suspended") != 1 {
			t.Errorf("%s", resumed.body)
		}
		if late := w.get(t, second).wants(t, 200); late.text(t, "status") != "delayed" {
			t.Errorf("%s", late.body)
		}
	})
}
