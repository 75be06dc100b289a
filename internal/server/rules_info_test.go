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
		for _, check := range []string{"store", "schema", "clock", "queue", "signing_key", "stopping"} {
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

func TestU112_the_routes_of_a_feature_that_is_not_built_answer_501(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	key := w.key(t, "default", "read")
	features, _ := w.send(t, request{method: "GET", path: "/v1/info", key: key}).wants(t, 200).field(t, "features").(map[string]any)
	reserved := map[string]int{"schedules": 1} // those are rows of the table: U109
	for _, r := range server.Unbuilt() {
		reserved[r.Feature]++
		if built, known := features[r.Feature]; built != false || !known {
			t.Errorf("%s %s is for %s, which /v1/info tells as %v", r.Method, r.Path, r.Feature, built)
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(r.Path)
		answer := w.send(t, request{method: r.Method, path: path, key: key}).refuses(t, 501, "not_implemented")
		if hint := answer.text(t, "hint"); !strings.HasPrefix(hint, r.Feature+":") {
			t.Errorf("%s %s: %s", r.Method, r.Path, hint)
		}
		if open := w.send(t, request{method: r.Method, path: path}); open.status != 501 && open.status != 401 {
			t.Errorf("%s %s without a key: %d %s", r.Method, r.Path, open.status, open.body)
		}
	}
	for feature, built := range features {
		if built == false && reserved[feature] == 0 {
			t.Errorf("%s is not built, and no route says so", feature)
		}
	}
	if document := string(server.Document()); strings.Contains(document, "/v1/session") {
		t.Error("the document promises what is not built")
	}
	w.send(t, request{method: "PUT", path: "/v1/session", key: key}).refuses(t, 405, "method_not_allowed")
}

func TestL6_a_nudge_of_a_lane_that_cannot_be_is_refused(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for _, name := range []string{"no lane", "", strings.Repeat("x", 65)} {
		if refused := w.post(t, "/v1/nudge", `{"lanes":["default","`+name+`"]}`).refuses(t, 400, "invalid_argument"); refused.text(t, "field") != "/lanes/1" {
			t.Errorf("%s", refused.body)
		}
	}
	w.post(t, "/v1/nudge", `{"lanes":["never-used"]}`).wants(t, 204)
	w.post(t, "/v1/nudge", `{}`).wants(t, 204)
}

func TestU11_a_problem_says_what_would_be_right(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true})
	const statuses = "ready, delayed, blocked, granted, running, suspended, succeeded, failed, cancelled, expired, skipped"
	const unknown = "0198f0a0-0000-7000-8000-000000000000"
	for name, c := range map[string]struct {
		answer      reply
		field, want string
	}{
		"a status of a filter":   {w.get(t, "/v1/executions?status=done"), "hint", statuses},
		"a status that is hoped": {w.post(t, "/v1/executions/"+unknown+"/hold", `{"expect":{"status":"done"}}`), "hint", statuses},
		"a public state":         {w.get(t, "/v1/executions?public_state=done"), "hint", "completed"},
		"an id":                  {w.get(t, "/v1/executions/17"), "hint", "give the UUID"},
		"an unused id":           {w.get(t, "/v1/executions/"+unknown), "detail", "no execution " + unknown},
		"its full form":          {w.get(t, "/v1/executions/{fp:7}:"+unknown), "detail", "no execution " + unknown},
		"what is no JSON":        {w.post(t, "/v1/executions", `{`), "title", "Invalid JSON"},
		"too large an input":     {w.post(t, "/v1/executions", `{"kind":"job","input_text":"`+strings.Repeat("x", 4<<20+1)+`"}`), "hint", "at most 4194304 bytes"},
		"too large a body":       {w.post(t, "/v1/nudge", `{"lanes":["`+strings.Repeat("x", 1<<20)+`"]}`), "hint", "at most 65536 bytes"},
		"too large a head":       {w.get(t, "/v1/executions?q="+strings.Repeat("x", 40<<10)), "hint", "at most 32768 bytes"},
		"an unknown instance":    {w.get(t, "/problems/worker_not_registered"), "", "GET /v1/workers"},
	} {
		shown := string(c.answer.body)
		if c.field != "" {
			shown = c.answer.text(t, c.field)
		}
		if !strings.Contains(shown, c.want) {
			t.Errorf("%s: %q, want %q in %s", name, shown, c.want, c.answer.body)
		}
	}
}
