package server_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

func TestU59_the_whole_life_of_a_worker_goes_over_http(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/workers", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"max_concurrent":2}`).wants(t, 200)
		submitted := w.post(t, "/v1/executions", `{"kind":"job","input":{"n": 1},"tags":{"tenant":"7"},"policy":{"retry_policy":{"max_retries":2,"backoff":{"strategy":"fixed","delay_ms":0}}}}`).wants(t, 201)
		id := submitted.text(t, "execution_id")
		if location := submitted.header.Get("Location"); location != "/v1/executions/"+id[strings.LastIndex(id, ":")+1:] || submitted.text(t, "outcome") != "created" {
			t.Errorf("%s %s", location, submitted.body)
		}
		path := "/v1/executions/" + url.PathEscape(id)
		w.get(t, path+"/state").wants(t, 200)
		claimed, lease := w.claimed(t)
		if claimed != id {
			t.Fatalf("claimed %s", claimed)
		}
		w.post(t, path+"/renew", `{"lease":`+lease+`,"ttl_ms":60000}`).wants(t, 200)
		w.post(t, path+"/progress", `{"lease":`+lease+`,"percent":50,"message":"half"}`).wants(t, 200)
		step := w.send(t, request{method: "PUT", path: path + "/steps/charge", body: `{"lease":` + lease + `,"result":{"ok":true}}`}).wants(t, 201)
		if step.text(t, "outcome") != "stored" {
			t.Errorf("%s", step.body)
		}
		again := w.send(t, request{method: "PUT", path: path + "/steps/charge", body: `{"lease":` + lease + `,"result":{"ok":false}}`}).wants(t, 200)
		if again.text(t, "outcome") != "exists" || again.field(t, "result.ok") != true {
			t.Errorf("%s", again.body)
		}
		beat := w.post(t, "/v1/workers/w-1/heartbeat", `{"leases":[`+lease+`]}`).wants(t, 200)
		if beat.field(t, "registered") != true || beat.field(t, "leases.items.0.ok") != true {
			t.Errorf("%s", beat.body)
		}
		failed := w.post(t, path+"/fail", `{"lease":`+lease+`,"message":"no luck","detail":{"why":"rain"}}`).wants(t, 200)
		if failed.text(t, "outcome") != "retry_scheduled" {
			t.Errorf("%s", failed.body)
		}
		w.post(t, path+"/complete", `{"lease":`+lease+`}`).wants(t, 409)
		_, lease = w.claimed(t)
		suspended := w.post(t, path+"/suspend", `{"lease":`+lease+`,`+anySignal+`}`).wants(t, 200)
		w.signals(t, suspended.text(t, "waitpoints.0.waitpoint_id"), suspended.text(t, "waitpoints.0.token"), `{"name":"paid"}`).wants(t, 200)
		_, lease = w.claimed(t)
		w.post(t, path+"/suspend", `{"lease":`+lease+`,"resume_condition":{"type":"operator_only"}}`).wants(t, 200)
		w.post(t, path+"/resume", `{"reason":"go on"}`).wants(t, 200)
		_, lease = w.claimed(t)
		completed := w.post(t, path+"/complete", `{"lease":`+lease+`,"result_text":"done"}`).wants(t, 200)
		if completed.text(t, "status") != "succeeded" || completed.field(t, "late") != false {
			t.Errorf("%s", completed.body)
		}
		result := w.get(t, path+"/result").wants(t, 200)
		if string(result.body) != "done" || result.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s %v", result.body, result.header)
		}
		shown := w.get(t, path+"?view=full&encoding=bytes").wants(t, 200)
		if shown.text(t, "result_bytes") != "ZG9uZQ==" || shown.text(t, "state_vector.public_state") == "" || shown.field(t, "policy") == nil {
			t.Errorf("%s", shown.body)
		}
		for _, list := range []string{"/attempts", "/leases", "/steps", "/events?after=start", "/signals", "/suspensions", "/waitpoints?include_closed=true"} {
			if answer := w.get(t, path+list).wants(t, 200); answer.field(t, "items.0") == nil {
				t.Errorf("%s: %s", list, answer.body)
			}
		}
		w.get(t, path+"/attempts/latest").wants(t, 200)
		w.get(t, path+"/attempts/9").refuses(t, 404, "attempt_not_found")
	})
}

func TestU8_payloads_arrive_bit_for_bit(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, c := range []struct{ body, contentType, want, wantType string }{
			{`{"kind":"job","input":{"a": [1,  2]}}`, "application/json", `{"a": [1,  2]}`, "application/json"},
			{`{"kind":"job","input_text":"grüß"}`, "application/json", "grüß", "text/plain; charset=utf-8"},
			{`{"kind":"job","input_bytes":"AAH/","input_content_type":"image/x"}`, "application/json", "\x00\x01\xff", "image/x"},
			{"\x00raw\xff", "application/octet-stream", "\x00raw\xff", "application/octet-stream"},
			{`<script>`, "text/html", `<script>`, "text/html"},
		} {
			path := "/v1/executions"
			if c.contentType != "application/json" {
				path += "?kind=job&tag.a=b&priority=7"
			}
			answer := w.send(t, request{method: "POST", path: path, body: c.body, header: map[string]string{"Content-Type": c.contentType}}).wants(t, 201)
			input := w.get(t, "/v1/executions/"+url.PathEscape(answer.text(t, "execution_id"))+"/input").wants(t, 200)
			if string(input.body) != c.want || input.header.Get("Content-Type") != c.wantType {
				t.Errorf("%q came back as %q %v", c.body, input.body, input.header)
			}
			if !strings.Contains(input.header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("a browser may run %s", c.body)
			}
		}
		w.send(t, request{method: "POST", path: "/v1/executions", body: "x", header: map[string]string{"Content-Type": "text/plain"}}).refuses(t, 400, "missing_field")
	})
}

func TestU77_a_batch_does_the_items_of_an_execution_in_order_and_refuses_each_for_itself(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		item := func(op, fields string) string {
			return `{"op":"` + op + `","execution_id":"` + id + `","lease":` + lease + fields + `}`
		}
		answer := w.post(t, "/v1/work/batch?encoding=bytes", `{"items":[`+strings.Join([]string{
			item("progress", `,"percent":10`), item("step", `,"name":"s","result":{"n":1}`), item("renew", ""), item("complete", `,"result":1`), item("progress", `,"percent":20`),
		}, ",")+`]}`).wants(t, 200)
		if answer.number(t, "failed") != 1 || answer.text(t, "items.3.status") != "succeeded" || answer.text(t, "items.4.error.code") != "execution_not_active" {
			t.Errorf("%s", answer.body)
		}
		if answer.text(t, "items.1.step.result_bytes") == "" || answer.text(t, "items.2.lease.expires_at") == "" {
			t.Errorf("%s", answer.body)
		}
		w.post(t, "/v1/work/batch", `{"items":[{"op":"fly","execution_id":"x"}]}`).refuses(t, 400, "invalid_argument")
		w.post(t, "/v1/work/batch", `{"items":[`+strings.Repeat(item("renew", "")+",", 1000)+item("renew", "")+`]}`).refuses(t, 413, "batch_too_large")
	})
}

func TestU45_operators_steer_executions(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.submitted(t)
		path := "/v1/executions/" + url.PathEscape(id)
		if held := w.post(t, path+"/hold", `{"reason":"wait"}`).wants(t, 200); held.text(t, "held.reason") != "wait" {
			t.Errorf("%s", held.body)
		}
		w.post(t, path+"/hold", `{"expect":{"status":"running"}}`).refuses(t, 412, "precondition_failed")
		w.send(t, request{method: "DELETE", path: path + "/hold"}).wants(t, 200)
		w.send(t, request{method: "PUT", path: path + "/priority", body: `{"priority":99999}`}).wants(t, 200)
		tags := w.send(t, request{method: "PATCH", path: path + "/tags?reason=r", body: `{"a":"1","b":null}`}).wants(t, 200)
		if tags.text(t, "tags.a") != "1" {
			t.Errorf("%s", tags.body)
		}
		w.post(t, path+"/claim", `{"lease_ttl_ms":60000}`).wants(t, 200)
		w.post(t, path+"/revoke", `{"reason":"mine"}`).wants(t, 200)
		w.post(t, path+"/cancel", `{"expect":{"status":"running"}}`).refuses(t, 412, "precondition_failed")
		cancelled := w.post(t, path+"/cancel", `{"reason":"enough","expect":{"lease_epoch":1}}`).wants(t, 200)
		if cancelled.text(t, "status") != "cancelled" || cancelled.text(t, "cancellation.reason") != "enough" {
			t.Errorf("%s", cancelled.body)
		}
		w.send(t, request{method: "PUT", path: path + "/retain", body: `{"reason":"law"}`}).wants(t, 200)
		w.send(t, request{method: "DELETE", path: path}).refuses(t, 409, "retained")
		w.send(t, request{method: "DELETE", path: path + "/retain"}).wants(t, 200)
		w.post(t, path+"/replay", `{}`).wants(t, 200)
		w.send(t, request{method: "DELETE", path: path}).refuses(t, 409, "execution_not_terminal")
		w.post(t, path+"/cancel", `{}`).wants(t, 200)
		w.send(t, request{method: "DELETE", path: path}).wants(t, 204)
		w.get(t, path).refuses(t, 404, "execution_not_found")
	})
}

func TestU57_a_bulk_job_acts_on_what_matches(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for range 3 {
			w.submitted(t)
		}
		dry := w.post(t, "/v1/bulk", `{"action":"cancel","filter":{"kind":["job"]},"dry_run":true}`).wants(t, 200)
		if dry.number(t, "matched") != 3 {
			t.Errorf("%s", dry.body)
		}
		started := w.post(t, "/v1/bulk", `{"action":"cancel","filter":{"kind":["job"]},"reason":"all"}`).wants(t, 202)
		job := "/v1/bulk/" + started.text(t, "job_id")
		if started.header.Get("Location") != job {
			t.Errorf("%v", started.header)
		}
		done := w.send(t, request{method: "GET", path: job, header: map[string]string{"Prefer": "wait=20"}}).wants(t, 200)
		if done.text(t, "state") != "done" || done.number(t, "done") != 3 || done.header.Get("Preference-Applied") != "wait=20" {
			t.Errorf("%s %v", done.body, done.header)
		}
		if items := w.get(t, job+"/items?ok=true").wants(t, 200); items.field(t, "items.2.ok") != true {
			t.Errorf("%s", items.body)
		}
		w.post(t, job+"/stop", `{}`).wants(t, 200)
		if list := w.get(t, "/v1/bulk").wants(t, 200); list.field(t, "items.0") == nil {
			t.Errorf("%s", list.body)
		}
		w.post(t, "/v1/bulk", `{"action":"priority","all":true}`).refuses(t, 400, "missing_field")
		w.get(t, "/v1/bulk/0198f0a0-0000-7000-8000-000000000000").refuses(t, 404, "job_not_found")
	})
}

func TestU34_lists_go_page_by_page_and_say_how_much_they_show(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for range 5 {
			w.submitted(t)
		}
		seen := map[string]bool{}
		for cursor := ""; ; {
			page := w.get(t, "/v1/executions?limit=2&view=ids&cursor="+url.QueryEscape(cursor)).wants(t, 200)
			items, _ := page.field(t, "items").([]any)
			for i := range items {
				seen[page.text(t, "items."+string(rune('0'+i))+".execution_id")] = true
			}
			if cursor = page.text(t, "next_cursor"); cursor == "" {
				break
			}
		}
		if len(seen) != 5 {
			t.Errorf("%d executions were listed", len(seen))
		}
		summary := w.get(t, "/v1/executions?kind=job&limit=1").wants(t, 200)
		if summary.field(t, "items.0.input") != nil || summary.field(t, "items.0.input_omitted") != true || summary.field(t, "items.0.state_vector") != nil {
			t.Errorf("%s", summary.body)
		}
		for _, path := range []string{"/v1/executions?limit=0", "/v1/lanes?limit=0", "/v1/workers?limit=0", "/v1/events?limit=0&after=start"} {
			if empty := w.get(t, path).wants(t, 200); len(empty.field(t, "items").([]any)) != 0 {
				t.Errorf("%s: %s", path, empty.body)
			}
		}
		w.get(t, "/v1/executions?cursor=nonsense").refuses(t, 400, "invalid_cursor")
		w.get(t, "/v1/executions?view=full").refuses(t, 400, "invalid_argument")
		count := w.get(t, "/v1/executions/count?by=status").wants(t, 200)
		if count.number(t, "total") != 5 || count.number(t, "counts.ready") != 5 {
			t.Errorf("%s", count.body)
		}
	})
}

func TestU41_a_list_that_the_server_cuts_into_pages_has_cursors_of_its_own(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.submitted(t)
		id, lease := w.claimed(t)
		path := "/v1/executions/" + url.PathEscape(id)
		for _, name := range []string{"a", "b", "c"} {
			w.send(t, request{method: "PUT", path: path + "/steps/" + name, body: `{"lease":` + lease + `,"result":1}`}).wants(t, 201)
		}
		first := w.get(t, path+"/steps?limit=2").wants(t, 200)
		cursor := first.text(t, "next_cursor")
		second := w.get(t, path+"/steps?limit=2&cursor="+cursor).wants(t, 200)
		if second.text(t, "items.0.name") != "c" || second.text(t, "next_cursor") != "" {
			t.Errorf("%s then %s", first.body, second.body)
		}
		w.get(t, path+"/attempts?cursor="+cursor).refuses(t, 400, "invalid_cursor")
		w.get(t, path+"/steps?limit=-1").refuses(t, 400, "invalid_argument")
	})
}

func TestU102_the_fleet_is_shown_and_steered(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/workers", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"]}`).wants(t, 200)
		w.submitted(t)
		w.claimed(t)
		if list := w.get(t, "/v1/workers").wants(t, 200); list.text(t, "items.0.worker_instance_id") != "w-1" {
			t.Errorf("%s", list.body)
		}
		if leases := w.get(t, "/v1/workers/w-1/leases").wants(t, 200); leases.text(t, "items.0.kind") != "job" {
			t.Errorf("%s", leases.body)
		}
		if drained := w.post(t, "/v1/workers/w-1/drain", "").wants(t, 200); drained.text(t, "state") != "draining" {
			t.Errorf("%s", drained.body)
		}
		w.post(t, "/v1/workers/w-1/undrain", "").wants(t, 200)
		w.send(t, request{method: "POST", path: "/v1/workers/drain?worker_id=w"}).wants(t, 200)
		w.post(t, "/v1/workers/w-1/dead", `{}`).refuses(t, 400, "missing_field")
		if dead := w.post(t, "/v1/workers/w-1/dead", `{"reason":"gone"}`).wants(t, 200); dead.text(t, "state") != "dead" {
			t.Errorf("%s", dead.body)
		}
		w.get(t, "/v1/workers/none").refuses(t, 404, "worker_not_registered")
	})
}

func TestU113_administrators_see_and_copy_the_server(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, Version: "1.2.3", Settings: []server.Setting{{Name: "LISTEN", Value: "127.0.0.1:0", Source: "flag"}}})
	w.submitted(t)
	if info := w.get(t, "/v1/info").wants(t, 200); info.text(t, "version") != "1.2.3" || info.text(t, "store.kind") != "sqlite" || info.field(t, "features") == nil {
		t.Errorf("%s", info.body)
	}
	if settings := w.get(t, "/v1/admin/settings").wants(t, 200); settings.text(t, "settings.0.value") != "127.0.0.1:0" {
		t.Errorf("%s", settings.body)
	}
	if doctor := w.get(t, "/v1/admin/doctor").wants(t, 200); doctor.field(t, "ok") != true {
		t.Errorf("%s", doctor.body)
	}
	if integrity := w.get(t, "/v1/admin/integrity").wants(t, 200); integrity.field(t, "ok") != true {
		t.Errorf("%s", integrity.body)
	}
	if copied := w.post(t, "/v1/admin/backup", "").wants(t, 200); !strings.HasPrefix(string(copied.body), "SQLite format 3") {
		t.Errorf("%d bytes that are no database", len(copied.body))
	}
	w.send(t, request{method: "PUT", path: "/v1/namespaces/acme", body: `{"description":"x"}`}).wants(t, 200)
	w.get(t, "/v1/namespaces/acme").wants(t, 200)
	w.get(t, "/v1/namespaces").wants(t, 200)
	w.send(t, request{method: "DELETE", path: "/v1/namespaces/acme"}).wants(t, 204)
	w.post(t, "/v1/nudge", `{"lanes":["default"]}`).wants(t, 204)
	if audit := w.get(t, "/v1/audit").wants(t, 200); audit.field(t, "items") == nil {
		t.Errorf("%s", audit.body)
	}
}
