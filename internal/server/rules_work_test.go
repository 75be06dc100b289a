package server_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// claims sends a claim of one worker with more fields.
func (w *world) claims(t *testing.T, fields string) reply {
	t.Helper()
	return w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1",`+fields+`}`).wants(t, 200)
}

// tasks is how many tasks an answer has.
func tasks(t *testing.T, a reply) int {
	t.Helper()
	all, ok := a.field(t, "tasks").([]any)
	if !ok {
		t.Fatalf("no tasks: %s", a.body)
	}
	return len(all)
}

// instant is a moment of an answer.
func instant(t *testing.T, a reply, field string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, a.text(t, field))
	if err != nil {
		t.Fatalf("%s: %v in %s", field, err, a.body)
	}
	return at
}

func TestU28_a_task_has_what_its_worker_needs(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.post(t, "/v1/executions", `{"kind":"job","lane":"mail","priority":7,"tags":{"a":"b"},"input":{"n": 1},"deadline_at":"2030-01-02T03:04:05Z",
			"policy":{"timeout_policy":{"attempt_timeout_ms":60000},"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":0}}}}`).wants(t, 201).text(t, "execution_id")
		first := w.claims(t, `"lanes":["mail"],"wait_ms":20000`)
		for field, want := range map[string]any{
			"execution_id": id, "kind": "job", "lane": "mail", "namespace": "default", "priority": 7.0, "tags.a": "b", "input.n": 1.0, "how": "fresh", "run_index": 0.0,
			"attempt.type": "initial", "attempt.attempt_index": 0.0, "lease.execution_id": id, "lease.lease_epoch": 1.0, "lease.ttl_ms": 30000.0,
			"deadline_at": "2030-01-02T03:04:05.000Z", "policy.timeout_policy.attempt_timeout_ms": 60000.0,
		} {
			if got := first.field(t, "tasks.0."+field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
		if ends := instant(t, first, "tasks.0.attempt_deadline_at").Sub(instant(t, first, "server_time")); ends <= 0 || ends > time.Minute {
			t.Errorf("the attempt ends %s after the claim", ends)
		}
		fence := first.text(t, "tasks.0.lease.fence")
		if fence != first.text(t, "tasks.0.lease.lease_id")+".1."+first.text(t, "tasks.0.lease.attempt_id") { // U27
			t.Errorf("the fence is %s", fence)
		}
		w.post(t, "/v1/executions/"+bare(id)+"/fail", `{"lease":"`+fence+`","message":"no"}`).wants(t, 200)
		second := w.claims(t, `"lanes":["mail"],"wait_ms":20000,"encoding":"bytes"`)
		if second.text(t, "tasks.0.effect_key") == "" || second.text(t, "tasks.0.effect_key") != first.text(t, "tasks.0.effect_key") {
			t.Errorf("effect keys %q and %q", first.text(t, "tasks.0.effect_key"), second.text(t, "tasks.0.effect_key"))
		}
		if second.text(t, "tasks.0.attempt.type") != "retry" || second.field(t, "tasks.0.attempt.lineage.previous_index") != 0.0 || second.text(t, "tasks.0.input_bytes") != "eyJuIjogMX0=" {
			t.Errorf("%s", second.body)
		}
	})
}

func TestU60_U61_an_instance_registers_and_keeps_itself_and_its_leases_alive(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const register = `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"kinds":["job"],"capabilities":["gpu"],"max_concurrent":2,"version":"1.2","labels":{"zone":"a"}}`
		first := w.post(t, "/v1/workers", register).wants(t, 200)
		if first.text(t, "outcome") != "registered" || first.field(t, "drain") != false {
			t.Errorf("%s", first.body)
		}
		again := w.post(t, "/v1/workers", register).wants(t, 200)
		if again.text(t, "outcome") != "refreshed" || instant(t, again, "expires_at").Before(instant(t, first, "expires_at")) {
			t.Errorf("%s after %s", again.body, first.body)
		}
		w.post(t, "/v1/workers", `{"worker_id":"w"}`).refuses(t, 400, "missing_field")
		shown := w.get(t, "/v1/workers/w-1").wants(t, 200)
		for field, want := range map[string]any{"worker_id": "w", "version": "1.2", "labels.zone": "a", "capabilities.0": "gpu", "kinds.0": "job", "max_concurrent": 2.0, "state": "live"} {
			if got := shown.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, shown.body)
			}
		}
		w.submitted(t)
		id, lease := w.claimed(t)
		gone := `{"execution_id":"` + id + `","lease_id":"` + bare(id) + `","lease_epoch":9,"attempt_id":"` + bare(id) + `"}`
		w.post(t, "/v1/workers/w-1/drain", "").wants(t, 200)
		beat := w.post(t, "/v1/workers/w-1/heartbeat", `{"leases":[`+lease+`,`+gone+`]}`).wants(t, 200) // U61
		for field, want := range map[string]any{
			"registered": true, "drain": true, "leases.failed": 1.0, "leases.items.0.ok": true, "leases.items.0.index": 0.0, "leases.items.1.ok": false, "leases.items.1.error.code": "invalid_handle",
		} {
			if got := beat.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, beat.body)
			}
		}
		if unknown := w.post(t, "/v1/workers/missing/heartbeat", `{}`).wants(t, 200); unknown.field(t, "registered") != false {
			t.Errorf("%s", unknown.body)
		}
	})
}

func TestU62_a_brief_claim_leaves_out_what_a_worker_need_not_know(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, beside := range []string{``, `,"brief":true`} {
			w.post(t, "/v1/executions", `{"kind":"a","lane":"one"}`).wants(t, 201)
			body := string(w.claims(t, `"lanes":["one"]`+beside).body)
			for _, field := range []string{`"policy":`, `"effect_key":`} {
				if strings.Contains(body, field) != (beside == "") {
					t.Errorf("%q with %s: %s", beside, field, body)
				}
			}
			if !strings.Contains(body, `"lease_id":`) {
				t.Errorf("%q without a lease: %s", beside, body)
			}
		}
	})
}

func TestU62_a_claim_takes_what_its_worker_may_and_no_more_than_it_asks_for(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, body := range []string{
			`{"kind":"a","lane":"one"}`, `{"kind":"a","lane":"one"}`, `{"kind":"a","lane":"one"}`, `{"kind":"b","lane":"one"}`, `{"kind":"a","lane":"two"}`, `{"kind":"c","lane":"two","requires":["gpu"]}`,
		} {
			w.post(t, "/v1/executions", body).wants(t, 201)
		}
		w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1"}`).refuses(t, 400, "missing_field") // lanes
		if none := w.claims(t, `"lanes":["empty"]`); tasks(t, none) != 0 || none.field(t, "drain") != false || none.text(t, "server_time") == "" {
			t.Errorf("%s", none.body)
		}
		if one := w.claims(t, `"lanes":["one"],"kinds":["a"]`); tasks(t, one) != 1 { // max is 1 unless it is given
			t.Errorf("%s", one.body)
		}
		if two := w.claims(t, `"lanes":["one"],"kinds":["a"],"max":10,"lease_ttl_ms":45000`); tasks(t, two) != 2 || two.number(t, "tasks.0.lease.ttl_ms") != 45000 {
			t.Errorf("%s", two.body)
		}
		if other := w.claims(t, `"lanes":["two","one"],"max":10`); tasks(t, other) != 2 { // b of one, a of two; c needs more
			t.Errorf("%s", other.body)
		}
		if able := w.claims(t, `"lanes":["two"],"capabilities":["gpu"]`); tasks(t, able) != 1 || able.text(t, "tasks.0.kind") != "c" {
			t.Errorf("%s", able.body)
		}
		waiting := w.waits(t, request{method: "POST", path: "/v1/work/claim", body: `{"worker_id":"v","worker_instance_id":"v-1","lanes":["late"],"wait_ms":30000}`})
		w.post(t, "/v1/executions", `{"kind":"d","lane":"late"}`).wants(t, 201)
		if came := <-waiting; tasks(t, came.wants(t, 200)) != 1 {
			t.Errorf("%s", came.body)
		}
		for i := range 4 { // the lanes in the order of the list, if that is asked for
			w.post(t, "/v1/executions", `{"kind":"e","lane":"`+[]string{"x", "y"}[i%2]+`"}`).wants(t, 201)
		}
		for _, lane := range []string{"y", "y", "x", "x"} {
			if next := w.claims(t, `"lanes":["y","x"],"lane_order":"listed"`); next.text(t, "tasks.0.lane") != lane {
				t.Errorf("%s, want lane %s", next.body, lane)
			}
		}
	})
}

func TestU63_work_that_a_worker_lost_is_taken_over_by_name(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.post(t, "/v1/executions", `{"kind":"job","requires":["gpu"],"input":7}`).wants(t, 201).text(t, "execution_id")
		path := "/v1/executions/" + bare(id)
		const by = `"worker_id":"v","worker_instance_id":"v-1"`
		if fresh := w.post(t, path+"/reclaim", `{`+by+`}`); fresh.status != 409 {
			t.Errorf("what was not held: %d %s", fresh.status, fresh.body)
		}
		w.claims(t, `"lanes":["default"],"capabilities":["gpu"],"wait_ms":20000`)
		w.post(t, path+"/revoke", `{}`).wants(t, 200)
		w.post(t, path+"/claim-resumed", `{`+by+`,"capabilities":["gpu"]}`).wants(t, 409)
		if refused := w.post(t, path+"/reclaim", `{`+by+`}`).wants(t, 409); refused.text(t, "code") != "capability_mismatch" {
			t.Errorf("%s", refused.body)
		}
		w.post(t, path+"/reclaim", `{`+by+`,"capabilities":["gpu"],"lane":"other"}`).refuses(t, 400, "lane_mismatch")
		task := w.post(t, path+"/reclaim", `{`+by+`,"capabilities":["gpu"],"lane":"default","lease_ttl_ms":45000,"encoding":"bytes"}`).wants(t, 200)
		for field, want := range map[string]any{
			"execution_id": id, "how": "reclaimed", "attempt.type": "reclaim", "attempt.lineage.cause": "lease_revoked", "lease.lease_epoch": 2.0, "lease.ttl_ms": 45000.0, "input_bytes": "Nw==",
		} {
			if got := task.field(t, field); got != want {
				t.Errorf("%s is %v, want %v in %s", field, got, want, task.body)
			}
		}
	})
}

func TestU67_progress_shows_and_what_is_absent_stays(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + bare(id)
		w.post(t, path+"/progress", `{"lease":`+lease+`,"percent":40,"message":"half"}`).wants(t, 200)
		w.post(t, path+"/progress", `{"lease":`+lease+`,"percent":60}`).wants(t, 200)
		if shown := w.get(t, path).wants(t, 200); shown.number(t, "progress.percent") != 60 || shown.text(t, "progress.message") != "half" || shown.text(t, "progress.updated_at") == "" {
			t.Errorf("%s", shown.body)
		}
		w.post(t, path+"/progress", `{"lease":`+lease+`,"percent":101}`).refuses(t, 400, "invalid_argument")
		w.post(t, path+"/progress", `{"percent":1}`).refuses(t, 400, "fence_required")
	})
}

func TestU69_a_failure_is_retried_as_the_policy_says_or_ends_the_work(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		submit := func(retries int) (path, lease string) {
			w.post(t, "/v1/executions", `{"kind":"job","policy":{"retry_policy":{"max_retries":`+strconv.Itoa(retries)+`,"backoff":{"strategy":"fixed","delay_ms":600000}}}}`).wants(t, 201)
			id, lease := w.claimed(t)
			return "/v1/executions/" + bare(id), lease
		}
		path, lease := submit(1)
		w.post(t, path+"/fail", `{"lease":`+lease+`}`).refuses(t, 400, "missing_field") // message
		later := w.post(t, path+"/fail", `{"lease":`+lease+`,"category":"rain","message":"wet","retry_after_ms":1200000}`).wants(t, 200)
		if later.text(t, "outcome") != "retry_scheduled" || later.field(t, "reason") != nil {
			t.Errorf("%s", later.body)
		}
		shown := w.get(t, path).wants(t, 200)
		if wait := instant(t, later, "retry_at").Sub(instant(t, shown, "failure.at")); wait != 20*time.Minute { // retry_after_ms instead of the policy's
			t.Errorf("tried again after %s", wait)
		}
		if shown.text(t, "status") != "delayed" || shown.text(t, "failure.class") != "transient" || shown.text(t, "failure.category") != "rain" {
			t.Errorf("%s", shown.body)
		}
		for retries, body := range map[int]string{0: `"message":"m"`, 3: `"class":"permanent","message":"m"`} {
			path, lease := submit(retries)
			failed := w.post(t, path+"/fail", `{"lease":`+lease+`,`+body+`}`).wants(t, 200)
			if failed.text(t, "outcome") != "failed" || failed.text(t, "reason") == "" || failed.field(t, "retry_at") != nil {
				t.Errorf("%s", failed.body)
			}
		}
		path, _ = submit(3)
		w.post(t, path+"/fail", `{"override":true,"class":"permanent","message":"by hand","reason":"stuck"}`).wants(t, 200) // an operator
		if shown := w.get(t, path).wants(t, 200); shown.text(t, "status") != "failed" {
			t.Errorf("%s", shown.body)
		}
	})
}

func TestU70_work_is_given_back_at_once_or_for_later(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + bare(id)
		if released := w.post(t, path+"/release", `{"lease":`+lease+`}`).wants(t, 200); released.text(t, "status") != "ready" {
			t.Errorf("%s", released.body)
		}
		again, lease := w.claimed(t)
		if again != id {
			t.Fatalf("%s was taken", again)
		}
		w.post(t, path+"/delay", `{"lease":`+lease+`}`).wants(t, 400) // until when?
		w.post(t, path+"/delay", `{"lease":`+lease+`,"delay_ms":1,"until":"2030-01-02T03:04:05Z"}`).wants(t, 400)
		if delayed := w.post(t, path+"/delay", `{"lease":`+lease+`,"until":"2030-01-02T03:04:05Z"}`).wants(t, 200); delayed.text(t, "status") != "delayed" {
			t.Errorf("%s", delayed.body)
		}
		shown := w.get(t, path).wants(t, 200)
		if shown.text(t, "delay_until") != "2030-01-02T03:04:05.000Z" || shown.number(t, "total_attempts") != 1 || shown.number(t, "retry_count") != 0 {
			t.Errorf("%s", shown.body)
		}
	})
}

func TestU76_U78_the_first_write_of_a_step_wins_and_needs_the_lease(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/executions", `{"kind":"job","policy":{"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":0}}}}`).wants(t, 201)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + bare(id)
		put := func(name, body string) reply {
			return w.send(t, request{method: "PUT", path: path + "/steps/" + name, body: body})
		}
		before := w.count(t)
		if stored := put("charge", `{"lease":`+lease+`,"result_text":"a"}`).wants(t, 201); stored.text(t, "outcome") != "stored" {
			t.Errorf("%s", stored.body)
		}
		if exists := put("charge", `{"lease":`+lease+`,"result_text":"b"}`).wants(t, 200); exists.text(t, "outcome") != "exists" || exists.text(t, "result_text") != "a" {
			t.Errorf("%s", exists.body)
		}
		put("other", `{"result_text":"a"}`).refuses(t, 400, "fence_required")
		put("large", `{"lease":`+lease+`,"result_text":"`+strings.Repeat("x", 1<<20+1)+`"}`).refuses(t, 413, "payload_too_large") // U20: 1 MiB
		put("large", `{"lease":`+lease+`,"result_text":"`+strings.Repeat("x", 1<<20)+`"}`).wants(t, 201)
		if now := w.count(t); now != before { // U78: steps emit nothing
			t.Errorf("%d events", now-before)
		}
		w.post(t, path+"/fail", `{"lease":`+lease+`,"message":"no"}`).wants(t, 200)
		put("late", `{"lease":`+lease+`,"result_text":"x"}`).wants(t, 409)
		_, lease = w.claimed(t)
		if seen := put("charge", `{"lease":`+lease+`,"result_text":"c"}`).wants(t, 200); seen.text(t, "result_text") != "a" { // U78: later attempts see it
			t.Errorf("%s", seen.body)
		}
		steps := w.get(t, path+"/steps").wants(t, 200) // U42
		for field, want := range map[string]any{"items.0.name": "charge", "items.0.attempt_index": 0.0, "items.0.lease_epoch": 1.0, "items.0.result_text": "a", "items.1.name": "large", "items.1.result_size": float64(1 << 20)} {
			if got := steps.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
	})
}

func TestU10_a_list_of_steps_leaves_out_what_is_large_unless_all_is_asked_for(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + bare(id) + "/steps"
		put := func(name string, size int) {
			t.Helper()
			body := `{"lease":` + lease + `,"result_text":"` + strings.Repeat("x", size) + `"}`
			w.send(t, request{method: "PUT", path: path + "/" + name, body: body}).wants(t, 201)
		}
		put("small", 64<<10)
		put("large", 64<<10+1)
		list := w.get(t, path).wants(t, 200)
		if list.field(t, "items.0.result_omitted") != nil || len(list.text(t, "items.0.result_text")) != 64<<10 {
			t.Errorf("64 KiB are shown: %.300s", list.body)
		}
		for field, want := range map[string]any{
			"items.1.name": "large", "items.1.result_omitted": true, "items.1.result_size": 64<<10 + 1.0, "items.1.result_text": nil, "items.1.result_content_type": "text/plain; charset=utf-8",
		} {
			if got := list.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
		whole := w.get(t, path+"?inline=true").wants(t, 200)
		if whole.field(t, "items.1.result_omitted") != nil || len(whole.text(t, "items.1.result_text")) != 64<<10+1 {
			t.Errorf("%.300s", whole.body)
		}
		for i := range 9 {
			put("huge-"+strconv.Itoa(i), 1<<20)
		}
		first := w.get(t, path+"?inline=true").wants(t, 200) // a page ends before 8 MiB are passed
		rest := w.get(t, path+"?inline=true&cursor="+url.QueryEscape(first.text(t, "next_cursor"))).wants(t, 200)
		if a, b := len(first.field(t, "items").([]any)), len(rest.field(t, "items").([]any)); a != 9 || b != 2 || rest.field(t, "next_cursor") != nil {
			t.Errorf("pages of %d and %d", a, b)
		}
		if short := w.get(t, path).wants(t, 200); len(short.field(t, "items").([]any)) != 11 {
			t.Errorf("%.300s", short.body)
		}
	})
}
