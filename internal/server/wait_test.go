package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

// waits sends a request that waits, and returns when the server has it.
func (w *world) waits(t *testing.T, r request) <-chan reply {
	t.Helper()
	before, claimsBefore := w.server.Waiting()
	answered := make(chan reply, 1)
	w.sendLater(t, r, answered)
	eventually(t, "the call waits", func() bool {
		readers, claims := w.server.Waiting()
		return readers > before || claims > claimsBefore
	})
	return answered
}

func TestU18_a_call_waits_for_the_end_of_an_execution(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	id := w.submitted(t)
	path := "/v1/executions/" + url.PathEscape(id)
	preferred := w.waits(t, request{method: "GET", path: path, header: map[string]string{"Prefer": "wait=30"}})
	asked := w.waits(t, request{method: "GET", path: path + "/result?wait_ms=30000"})
	_, lease := w.claimed(t)
	w.post(t, path+"/complete", `{"lease":`+lease+`,"result":42}`).wants(t, 200)
	if answer := <-preferred; answer.wants(t, 200).text(t, "status") != "succeeded" || answer.header.Get("Preference-Applied") != "wait=30" {
		t.Errorf("%s %v", answer.body, answer.header)
	}
	if answer := <-asked; string(answer.wants(t, 200).body) != "42" || answer.header.Get("Preference-Applied") != "" {
		t.Errorf("%s %v", answer.body, answer.header)
	}
	present := w.post(t, "/v1/executions?wait_ms=1", `{"kind":"job"}`).wants(t, 201)
	if present.text(t, "status") != "ready" {
		t.Errorf("%s", present.body)
	}
	w.get(t, path+"?wait_ms=-1").refuses(t, 400, "invalid_argument")
	capped := serveStore(t, sqliteStore(t), server.Config{Open: true, MaxWait: 1e9})
	answer := capped.send(t, request{method: "GET", path: "/v1/executions/" + url.PathEscape(capped.submitted(t)), header: map[string]string{"Prefer": "wait=3600"}})
	if answer.wants(t, 200).header.Get("Preference-Applied") != "wait=1" {
		t.Errorf("%v", answer.header)
	}
}

func TestU18_waiting_calls_end_at_once_with_the_present_state_when_the_server_drains(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.submitted(t)
		path := "/v1/executions/" + url.PathEscape(id)
		get := w.waits(t, request{method: "GET", path: path + "?wait_ms=60000"})
		result := w.waits(t, request{method: "GET", path: path + "/result?wait_ms=60000"})
		events := w.waits(t, request{method: "GET", path: "/v1/events?wait_ms=30000"})
		claim := w.waits(t, request{method: "POST", path: "/v1/work/claim", body: `{"worker_id":"w","worker_instance_id":"w-1","lanes":["empty"],"wait_ms":60000}`})
		w.get(t, "/readyz").wants(t, 200)
		w.post(t, "/v1/admin/drain", "").wants(t, 200)
		if answer := <-get; answer.wants(t, 200).text(t, "status") != "ready" {
			t.Errorf("%s", answer.body)
		}
		(<-result).refuses(t, 409, "execution_not_terminal")
		if answer := <-events; answer.wants(t, 200).text(t, "next") == "" {
			t.Errorf("%s", answer.body)
		}
		if answer := <-claim; len(answer.wants(t, 200).field(t, "tasks").([]any)) != 0 {
			t.Errorf("%s", answer.body)
		}
		if ready := w.get(t, "/readyz").wants(t, 503); ready.field(t, "checks.stopping.ok") != false || ready.field(t, "checks.store.ok") != true {
			t.Errorf("%s", ready.body)
		}
		w.get(t, "/healthz").wants(t, 200)
		w.get(t, path+"?wait_ms=60000").wants(t, 200)
		if none := w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"]}`).wants(t, 200); len(none.field(t, "tasks").([]any)) != 0 {
			t.Errorf("a server that drains claims: %s", none.body)
		}
	})
}

func TestU21_too_many_waiting_calls_are_refused_and_ordinary_ones_are_not(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, MaxReaders: 1, MaxClaims: 1})
	const claim = `{"worker_id":"w","worker_instance_id":"w-1","lanes":["empty"],"wait_ms":60000}`
	reading := w.waits(t, request{method: "GET", path: "/v1/events?wait_ms=30000&kind=execution.submitted"})
	claiming := w.waits(t, request{method: "POST", path: "/v1/work/claim", body: claim})
	for _, refused := range []reply{w.get(t, "/v1/events?wait_ms=1000"), w.post(t, "/v1/work/claim", claim)} {
		if refused.refuses(t, 503, "overloaded").header.Get("Retry-After") == "" || refused.number(t, "current.limit") != 1 || refused.field(t, "retryable") != true {
			t.Errorf("%v %s", refused.header, refused.body)
		}
	}
	w.send(t, request{method: "GET", path: "/v1/events", header: map[string]string{"Accept": "text/event-stream"}}).refuses(t, 503, "overloaded")
	w.get(t, "/v1/events?after=start").wants(t, 200)
	w.submitted(t)
	(<-reading).wants(t, 200)
	metrics := string(w.get(t, "/metrics").wants(t, 200).body)
	for _, sample := range []string{`ff_http_rejected_total{reason="overload"} 3`, `ff_http_in_flight{group="poll"} 1`, `ff_http_in_flight{group="call"} 1`} {
		if !strings.Contains(metrics, sample) {
			t.Errorf("no %s in %s", sample, metrics)
		}
	}
	w.server.Drain()
	(<-claiming).wants(t, 200)
}

// pushed is a server-sent event.
type pushed struct{ id, event, data string }

// stream follows a route as server-sent events.
func (w *world) stream(t *testing.T, path string, header map[string]string) (next func() (pushed, bool), response *http.Response) {
	t.Helper()
	all := map[string]string{"Accept": "text/event-stream", "Accept-Encoding": "gzip"}
	for name, value := range header {
		all[name] = value
	}
	response = w.open(t, request{method: "GET", path: path, header: all})
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" ||
		response.Header.Get("Content-Encoding") != "" || response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	lines := bufio.NewScanner(response.Body)
	return func() (pushed, bool) {
		var event pushed
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				event.id = value
			case "event":
				event.event = value
			case "data":
				event.data = value
			case "":
				if event.data != "" {
					return event, true
				}
			}
		}
		return pushed{}, false
	}, response
}

func TestE36_events_are_pushed_and_resumed_by_id(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		next, response := w.stream(t, "/v1/events?kind=execution.submitted", nil)
		var seen []pushed
		for range 3 {
			w.submitted(t)
			event, ok := next()
			if !ok {
				t.Fatal("the stream ended")
			}
			seen = append(seen, event)
		}
		var envelope map[string]any
		if err := json.Unmarshal([]byte(seen[0].data), &envelope); err != nil || envelope["cursor"] != seen[0].id || envelope["kind"] != seen[0].event {
			t.Errorf("%v %v", err, seen[0])
		}
		_ = response.Body.Close()
		for _, resume := range []struct {
			path   string
			header map[string]string
		}{
			{"/v1/events?kind=execution.submitted&after=end", map[string]string{"Last-Event-ID": seen[0].id}},
			{"/v1/events?kind=execution.submitted&last_event_id=" + url.QueryEscape(seen[0].id), nil},
			{"/v1/events?kind=execution.submitted&after=" + url.QueryEscape(seen[0].id), nil},
		} {
			again, response := w.stream(t, resume.path, resume.header)
			for _, want := range seen[1:] {
				if got, ok := again(); !ok || got != want {
					t.Errorf("%v, want %v", got, want)
				}
			}
			_ = response.Body.Close()
		}
	})
}

func TestU19_a_stream_ends_when_the_server_drains(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	id := w.submitted(t)
	next, response := w.stream(t, "/v1/executions/"+url.PathEscape(id)+"/events?after=start", nil)
	if event, ok := next(); !ok || event.event != "execution.submitted" {
		t.Errorf("%v", event)
	}
	w.server.Drain()
	if event, ok := next(); ok {
		t.Errorf("%v came after the end", event)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
}

func TestU19_a_wrong_cursor_is_a_problem_and_not_a_stream(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.send(t, request{method: "GET", path: "/v1/events?after=nonsense", header: map[string]string{"Accept": "text/event-stream"}}).refuses(t, 400, "invalid_cursor")
	w.send(t, request{method: "GET", path: "/v1/executions/0198f0a0-0000-7000-8000-000000000000/events", header: map[string]string{"Accept": "text/event-stream"}}).refuses(t, 404, "execution_not_found")
}
