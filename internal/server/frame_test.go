package server_test

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU12_the_id_of_a_request_is_taken_over_or_made_and_stands_in_problems(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	named := w.send(t, request{method: "GET", path: "/v1/lanes/none", header: map[string]string{"X-Request-Id": "mine 7"}}).refuses(t, 404, "lane_not_found")
	if named.header.Get("X-Request-Id") != "mine 7" || named.text(t, "request_id") != "mine 7" {
		t.Errorf("%v %s", named.header, named.body)
	}
	for _, bad := range []string{strings.Repeat("x", 129), "ümlaut"} {
		made := w.send(t, request{method: "GET", path: "/healthz", header: map[string]string{"X-Request-Id": bad}})
		if id := made.header.Get("X-Request-Id"); id == bad || len(id) < 20 {
			t.Errorf("%q was answered with %q", bad, id)
		}
	}
	w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"job"}`, header: map[string]string{"X-Request-Id": "in-events"}}).wants(t, 201)
	if events := w.get(t, "/v1/events?after=start"); events.text(t, "items.0.request_id") != "in-events" {
		t.Errorf("%s", events.body)
	}
}

func TestU11_a_problem_has_what_explains_it(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	problem := w.post(t, "/v1/executions", `{"kind":"job","lan":"x","prioritty":1}`).refuses(t, 400, "unknown_field")
	for field, want := range map[string]string{
		"type": "/problems/unknown_field", "title": "Unknown field", "class": "invalid", "field": "/lan", "hint": `did you mean "lane"?`,
		"errors.1.field": "/prioritty", "errors.1.code": "unknown_field",
	} {
		if got := problem.text(t, field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	w.get(t, problem.text(t, "type")).wants(t, 200)
	if field := w.post(t, "/v1/executions", `{"kind":""}`).wants(t, 400).text(t, "field"); field != "/kind" {
		t.Errorf("the field of a rule is %q", field)
	}
	if field := w.get(t, "/v1/executions?order=up").wants(t, 400).text(t, "field"); field != "query.order" {
		t.Errorf("the field of a query is %q", field)
	}
	if field := w.get(t, "/v1/executions/nonsense").refuses(t, 400, "invalid_id").text(t, "field"); field != "path.id" && field != "" {
		t.Errorf("the field of a path is %q", field)
	}
}

func TestU11_a_failure_tells_nothing_of_its_cause(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.server.FailHealth(errors.New("pq: password of the database"))
	failed := w.get(t, "/healthz").refuses(t, 500, "internal")
	if failed.text(t, "detail") != "internal error" || strings.Contains(string(failed.body), "database") {
		t.Errorf("%s", failed.body)
	}
	if log := w.log.String(); !strings.Contains(log, "password of the database") || !strings.Contains(log, failed.header.Get("X-Request-Id")) {
		t.Errorf("the log does not say it: %s", log)
	}
	w.server.BreakHealth(false)
	panicked := w.get(t, "/healthz").refuses(t, 500, "internal")
	if strings.Contains(string(panicked.body), "secret") || !strings.Contains(w.log.String(), "secret of the handler") {
		t.Errorf("%s", panicked.body)
	}
}

func TestU11_half_an_answer_does_not_look_whole_when_the_handler_panics(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.server.BreakHealth(true)
	response, err := w.http.Get(w.url + "/healthz")
	if err == nil {
		defer response.Body.Close()
		if _, err = io.ReadAll(response.Body); err == nil {
			t.Error("the answer looks whole")
		}
	}
}

func TestU20_a_head_over_32_KiB_is_refused(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.send(t, request{method: "GET", path: "/healthz", header: map[string]string{"X-Large": strings.Repeat("x", 31<<10)}}).wants(t, 200)
	large := w.send(t, request{method: "GET", path: "/nowhere", header: map[string]string{"X-Large": strings.Repeat("x", 33<<10)}})
	if large.refuses(t, 413, "payload_too_large").number(t, "current.limit") != 32<<10 {
		t.Errorf("%s", large.body)
	}
}

func TestU13_a_request_with_the_key_of_another_does_nothing_twice(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		keyed := func(method, path, key, body string) reply {
			return w.send(t, request{method: method, path: path, body: body, header: map[string]string{"Idempotency-Key": key}})
		}
		first := keyed("POST", "/v1/executions", "k1", `{"kind":"job"}`).wants(t, 201)
		again := keyed("POST", "/v1/executions", "k1", `{"kind":"job"}`).wants(t, 201)
		if first.text(t, "execution_id") != again.text(t, "execution_id") {
			t.Errorf("%s and %s", first.body, again.body)
		}
		keyed("POST", "/v1/executions", "k1", `{"kind":"other"}`).refuses(t, 409, "idempotency_conflict")
		for _, bad := range []string{"with blank", strings.Repeat("k", 129), "ü"} {
			if field := keyed("POST", "/v1/executions", bad, `{"kind":"job"}`).refuses(t, 400, "invalid_argument").text(t, "field"); field != "header.Idempotency-Key" {
				t.Errorf("%q: %s", bad, field)
			}
		}
		id := first.text(t, "execution_id")
		keyed("PUT", "/v1/executions/"+id+"/priority", "k2", `{"priority":7}`).wants(t, 200)
		before := w.count(t)
		keyed("PUT", "/v1/executions/"+id+"/priority", "k2", `{"priority":7}`).wants(t, 200)
		if w.count(t) != before {
			t.Error("the repeat wrote an event")
		}
		keyed("PUT", "/v1/executions/"+id+"/priority", "k2", `{"priority":8}`).refuses(t, 409, "idempotency_conflict")
	})
}

func TestU17_an_object_has_a_tag_and_is_not_sent_again(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.submitted(t)
		w.send(t, request{method: "PUT", path: "/v1/namespaces/acme", body: `{}`}).wants(t, 200)
		for _, path := range []string{"/v1/executions/" + id, "/v1/executions/" + id + "/state", "/v1/namespaces/acme"} {
			tag := w.get(t, path).wants(t, 200).header.Get("ETag")
			if !strings.HasPrefix(tag, `W/"`) {
				t.Fatalf("%s: tag %q", path, tag)
			}
			same := w.send(t, request{method: "GET", path: path, header: map[string]string{"If-None-Match": `"other", ` + tag}})
			if same.wants(t, 304); len(same.body) > 0 || same.header.Get("ETag") != tag {
				t.Errorf("%s: %v %s", path, same.header, same.body)
			}
		}
		tag := w.get(t, "/v1/executions/"+id).header.Get("ETag")
		w.send(t, request{method: "PUT", path: "/v1/executions/" + id + "/priority", body: `{"priority":5}`}).wants(t, 200)
		w.send(t, request{method: "GET", path: "/v1/executions/" + id, header: map[string]string{"If-None-Match": tag}}).wants(t, 200)
	})
}

func TestU17_a_write_with_an_old_revision_is_refused(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		put := func(match, body string) reply {
			header := map[string]string{}
			if match != "" {
				header["If-Match"] = match
			}
			return w.send(t, request{method: "PUT", path: "/v1/lanes/fast", body: body, header: header})
		}
		put("", `{"max_concurrent":1}`).wants(t, 200)
		current := w.get(t, "/v1/lanes/fast").number(t, "revision")
		put(`"`+strconv.Itoa(int(current))+`"`, `{"max_concurrent":2}`).wants(t, 200)
		if refused := put(`"`+strconv.Itoa(int(current))+`"`, `{"max_concurrent":3}`).refuses(t, 412, "precondition_failed"); refused.field(t, "current") == nil {
			t.Errorf("%s", refused.body)
		}
		put(`"x"`, `{}`).refuses(t, 400, "invalid_argument")
		w.send(t, request{method: "POST", path: "/v1/lanes/fast/pause", header: map[string]string{"If-Match": `"0"`}}).refuses(t, 412, "precondition_failed")
		if state := w.get(t, "/v1/lanes/fast").text(t, "state"); state != "active" && state != "" {
			t.Errorf("the lane is %s", state)
		}
	})
}

// A write that depends on a condition must not be done as if there were none.
func TestU17_a_condition_that_a_route_does_not_check_is_refused(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.submitted(t)
		for _, o := range wire.Operations() {
			if o.Roles&wire.Token != 0 || o.Reserved { // there is nothing to change without a token, or at all
				continue
			}
			revision := slices.ContainsFunc(reflect.VisibleFields(o.Request), func(f reflect.StructField) bool { return f.Tag.Get("header") == "If-Match" })
			for name, refused := range map[string]bool{"If-Match": !revision, "If-None-Match": o.Method != http.MethodGet} {
				for _, condition := range []string{"*", `"7"`} {
					if !refused {
						continue
					}
					why := w.send(t, request{method: o.Method, path: somePath(o, id), body: `{}`, header: map[string]string{name: condition}}).refuses(t, 400, "unknown_field")
					if why.text(t, "field") != "header."+name {
						t.Errorf("%s: %s", o.ID, why.body)
					}
				}
			}
		}
		w.send(t, request{method: "PUT", path: "/v1/executions/" + id + "/priority", body: `{"priority":5}`, header: map[string]string{"If-Match": `"99"`}}).refuses(t, 400, "unknown_field")
		if priority := w.get(t, "/v1/executions/"+id).number(t, "priority"); priority != 0 {
			t.Errorf("the priority is %v", priority)
		}
	})
}

func TestU23_a_large_answer_is_compressed_for_who_asks(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	zipped := w.send(t, request{method: "GET", path: "/openapi.json", header: map[string]string{"Accept-Encoding": "br, gzip;q=0.5"}}).wants(t, 200)
	plain := w.get(t, "/openapi.json")
	if zipped.header.Get("Content-Encoding") != "gzip" || string(zipped.body) != string(plain.body) || plain.header.Get("Content-Encoding") != "" {
		t.Error("the compressed answer is another one")
	}
	for path, accept := range map[string]string{"/healthz": "gzip", "/openapi.json": "gzip;q=0"} {
		small := w.send(t, request{method: "GET", path: path, header: map[string]string{"Accept-Encoding": accept}})
		if small.header.Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed for %s", path, accept)
		}
	}
}

func TestU127_pages_of_other_origins_may_call_only_when_they_are_listed(t *testing.T) {
	t.Parallel()
	const listed = "https://console.example.com"
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, CORSOrigins: []string{listed}})
	preflight := map[string]string{"Origin": listed, "Access-Control-Request-Method": "PUT"}
	allowed := w.send(t, request{method: "OPTIONS", path: "/v1/lanes/x", header: preflight}).wants(t, 204)
	if allowed.header.Get("Access-Control-Allow-Origin") != listed || !strings.Contains(allowed.header.Get("Access-Control-Allow-Methods"), "PUT") {
		t.Errorf("%v", allowed.header)
	}
	preflight["Origin"] = "https://evil.example.com"
	other := w.send(t, request{method: "OPTIONS", path: "/v1/lanes/x", header: preflight})
	if other.status == 204 || other.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", other.status, other.header)
	}
	if got := w.send(t, request{method: "GET", path: "/healthz", header: map[string]string{"Origin": listed}}).wants(t, 200); got.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%v", got.header)
	}
	for _, bad := range []string{"*", "https://a.example.com/", "console.example.com"} {
		if _, err := server.New(backend(w.Client), server.Config{CORSOrigins: []string{bad}}); err == nil {
			t.Errorf("%s is taken as an origin", bad)
		}
	}
}

func TestU123_in_open_mode_only_this_machine_and_its_own_pages_may_call(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	port := w.url[strings.LastIndex(w.url, ":"):]
	for host, status := range map[string]int{
		"localhost" + port: 200, "127.0.0.1" + port: 200, "[::1]" + port: 200,
		"localhost:1": 403, "evil.example.com" + port: 403, "localhost": 403,
	} {
		answer := w.send(t, request{method: "GET", path: "/v1/whoami", header: map[string]string{"Host": host}})
		if answer.status != status {
			t.Errorf("Host %s: %d, want %d", host, answer.status, status)
		}
	}
	for origin, status := range map[string]int{w.url: 200, "http://localhost" + port: 403, "https://evil.example.com": 403, "null": 403} {
		answer := w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"job"}`, header: map[string]string{"Origin": origin}})
		if (answer.status == 403) != (status == 403) {
			t.Errorf("Origin %s: %d, want %d", origin, answer.status, status)
		}
	}
	who := w.get(t, "/v1/whoami").wants(t, 200)
	if who.text(t, "principal") != "dev" || who.text(t, "namespaces.0") != "default" || who.field(t, "open") != true {
		t.Errorf("%s", who.body)
	}
	w.send(t, request{method: "GET", path: "/v1/whoami", header: map[string]string{"FlowFabric-Namespace": "other"}}).refuses(t, 403, "namespace_forbidden")
}

func TestU23_what_holds_a_secret_is_not_cached(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	made := w.post(t, "/v1/api-keys", `{"name":"x","roles":["read"],"namespaces":["default"]}`).wants(t, http.StatusCreated)
	if made.header.Get("Cache-Control") != "no-store" || made.text(t, "secret") == "" {
		t.Errorf("%v %s", made.header, made.body)
	}
	shown := w.get(t, "/v1/api-keys/"+made.text(t, "key_id")).wants(t, 200)
	if shown.header.Get("Cache-Control") != "no-cache" || shown.text(t, "secret") != "" || strings.Contains(string(shown.body), made.text(t, "secret")) {
		t.Errorf("%v %s", shown.header, shown.body)
	}
}

func TestAConfigurationThatCannotWorkIsRefusedWithAllItsProblems(t *testing.T) {
	t.Parallel()
	_, err := server.New(nil, server.Config{PublicURL: "nowhere", TrustedProxies: []string{"10.0.0.0"}, MaxReaders: -1, Settings: []server.Setting{{Name: "f", Value: func() {}}}})
	for _, part := range []string{"PublicURL", "10.0.0.0", "negative", "Settings: f"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}

func TestU217_a_failure_that_comes_again_is_logged_once_a_minute(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.server.FailHealth(errors.New("the disk is gone"))
	for range 5 {
		w.get(t, "/healthz").refuses(t, 500, "internal")
	}
	if n := strings.Count(w.log.String(), "the disk is gone"); n != 1 {
		t.Errorf("%d lines:\n%s", n, w.log)
	}
}
