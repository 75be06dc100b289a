package server_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/server"
)

func TestU10_claims_and_raw_routes_deliver_large_payloads(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		large := strings.Repeat("x", 64<<10+1)
		id := w.post(t, "/v1/executions", `{"kind":"job","input_text":"`+large+`"}`).wants(t, 201).text(t, "execution_id")
		path := "/v1/executions/" + bare(id)
		if shown := w.get(t, path).wants(t, 200); shown.field(t, "input_text") != nil || shown.field(t, "input_omitted") != true || shown.number(t, "input_size") != float64(len(large)) {
			t.Errorf("%.300s", shown.body)
		}
		if input := w.get(t, path+"/input").wants(t, 200); string(input.body) != large {
			t.Errorf("%d bytes", len(input.body))
		}
		task := w.claims(t, `"lanes":["default"],"wait_ms":20000`)
		if task.text(t, "tasks.0.input_text") != large || task.field(t, "tasks.0.input_omitted") != nil {
			t.Errorf("%.300s", task.body)
		}
		if events := w.get(t, "/v1/events?after=start").wants(t, 200); strings.Contains(string(events.body), "xxxxxxxx") {
			t.Errorf("events hold payloads: %.300s", events.body)
		}
		exact := w.post(t, "/v1/executions", `{"kind":"job","input_text":"`+large[1:]+`"}`).wants(t, 201).text(t, "execution_id")
		if shown := w.get(t, "/v1/executions/"+bare(exact)).wants(t, 200); shown.text(t, "input_text") != large[1:] {
			t.Errorf("64 KiB are shown: %.300s", shown.body)
		}
	})
}

func TestU32_a_submission_says_each_thing_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, twice := range []string{
			`"requires":["a"],"policy":{"routing_requirements":{"required_capabilities":["b"]}}`, `"fairness_key":"a","policy":{"fairness_key":"b"}`,
			`"delay_ms":1,"delay_until":"2030-01-01T00:00:00Z"`,
		} {
			w.post(t, "/v1/executions", `{"kind":"job",`+twice+`}`).refuses(t, 400, "invalid_argument")
		}
		full := w.get(t, "/v1/executions/"+bare(w.post(t, "/v1/executions", `{"kind":"job","requires":["a"],"fairness_key":"f"}`).wants(t, 201).text(t, "execution_id"))+"?view=full").wants(t, 200)
		if full.text(t, "policy.routing_requirements.required_capabilities.0") != "a" || full.text(t, "policy.fairness_key") != "f" {
			t.Errorf("%s", full.body)
		}
		w.post(t, "/v1/executions", `{}`).refuses(t, 400, "missing_field")
		raw := request{
			method: "POST", path: "/v1/executions?kind=raw&lane=mail&priority=7&idempotency_key=k&tag.a=b", body: "\x00raw", header: map[string]string{"Content-Type": "image/x"},
		}
		made := w.send(t, raw).wants(t, 201)
		again := w.send(t, raw).wants(t, 200)
		if again.text(t, "outcome") != "duplicate" || again.text(t, "execution_id") != made.text(t, "execution_id") || again.header.Get("Location") != made.header.Get("Location") {
			t.Errorf("%v %s", again.header, again.body)
		}
		for field, want := range map[string]any{"kind": "raw", "lane": "mail", "priority": 7.0, "idempotency_key": "k", "tags.a": "b", "input_content_type": "image/x", "input_size": 4.0} {
			if got := made.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
	})
}

func TestU112_info_tells_version_store_clock_features_and_limits(t *testing.T) {
	t.Parallel()
	w := serveStore(t, cluster.Database(t), server.Config{Version: "1.2.3", Commit: "abc"})
	for _, role := range []string{"read", "submit", "work", "operate", "admin"} { // any
		info := w.send(t, request{method: "GET", path: "/v1/info", key: w.key(t, "default", role)}).wants(t, 200)
		for field, want := range map[string]any{"version": "1.2.3", "commit": "abc", "api": "v1", "store.kind": "postgres"} {
			if got := info.field(t, field); got != want {
				t.Errorf("%s is %v, want %v", field, got, want)
			}
		}
		for _, field := range []string{"store.version", "store.schema", "server_time", "clock_skew_ms", "features", "limits"} {
			if info.field(t, field) == nil {
				t.Errorf("no %s in %s", field, info.body)
			}
		}
		if features, _ := info.field(t, "features").(map[string]any); len(features) == 0 {
			t.Errorf("%s", info.body)
		}
	}
	w.get(t, "/v1/info").refuses(t, 401, "missing_credentials")
}

func TestU114_readiness_names_its_checks_with_their_times(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		if health := w.get(t, "/healthz").wants(t, 200); string(health.body) != `{"status":"ok"}`+"\n" && string(health.body) != `{"status":"ok"}` {
			t.Errorf("%q", health.body)
		}
		ready := w.get(t, "/readyz").wants(t, 200)
		for _, check := range []string{"store", "schema", "clock", "queue", "stopping"} {
			if _, timed := ready.field(t, "checks."+check+".ms").(float64); ready.field(t, "checks."+check+".ok") != true || !timed {
				t.Errorf("%s: %s", check, ready.body)
			}
		}
		w.server.Drain()
		if stopping := w.get(t, "/readyz").wants(t, 503); stopping.field(t, "checks.stopping.ok") != false {
			t.Errorf("%s", stopping.body)
		}
		w.get(t, "/healthz").wants(t, 200)
	})
}

func TestU6_times_come_in_with_any_offset_and_go_out_in_utc_with_milliseconds(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	made := w.post(t, "/v1/executions", `{"kind":"job","delay_until":"2030-01-02T05:04:05.6789+02:00"}`).wants(t, 201)
	if got := made.text(t, "delay_until"); got != "2030-01-02T03:04:05.678Z" && got != "2030-01-02T03:04:05.679Z" {
		t.Errorf("%s", got)
	}
	for _, field := range []string{"created_at", "status_since", "last_mutation_at"} {
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", made.text(t, field)); err != nil {
			t.Error(err)
		}
	}
	between := "created_from=" + url.QueryEscape("2000-01-01T00:00:00+05:00") + "&created_to=2999-01-01T00:00:00Z"
	if list := w.get(t, "/v1/executions?"+between).wants(t, 200); len(list.field(t, "items").([]any)) != 1 {
		t.Errorf("%s", list.body)
	}
	w.get(t, "/v1/executions?created_from=yesterday").refuses(t, 400, "invalid_argument")
}
