package server_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/server"
)

const (
	parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	state  = "rojo=00f067aa0ba902b7"
)

// traced are the headers of a request that is part of a trace.
func traced() map[string]string {
	return map[string]string{"traceparent": parent, "tracestate": state, "baggage": "user=7"}
}

const claimAll = `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"max":10,"wait_ms":20000}`

func TestU215_the_trace_context_of_a_request_is_stored_with_what_it_submits(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]struct{ path, text string }{
		"single": {"/v1/executions", `{"kind":"job"}`},
		"bulk":   {"/v1/executions/bulk", `{"items":[{"kind":"job"},{"kind":"job"}]}`},
		"lines":  {"/v1/executions/bulk", "{\"kind\":\"job\"}\n{\"kind\":\"job\"}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWorld(t)
			head := traced()
			if name == "lines" {
				head["Content-Type"] = "application/x-ndjson"
			}
			if answer := w.send(t, request{method: "POST", path: body.path, body: body.text, header: head}); answer.status > 299 {
				t.Fatalf("%d %s", answer.status, answer.body)
			}
			claimed := w.post(t, "/v1/work/claim", claimAll).wants(t, 200)
			tasks, _ := claimed.field(t, "tasks").([]any)
			if want := strings.Count(body.text, "kind"); len(tasks) != want {
				t.Fatalf("%d tasks, want %d", len(tasks), want)
			}
			for _, task := range tasks {
				got, _ := task.(map[string]any)
				if got["traceparent"] != parent || got["tracestate"] != state || got["baggage"] != "user=7" {
					t.Errorf("the task has %v, %v, %v", got["traceparent"], got["tracestate"], got["baggage"])
				}
			}
		})
	}
}

func TestU217_the_log_line_of_a_request_tells_its_trace(t *testing.T) {
	t.Parallel()
	log := &logged{}
	client, err := embedded.Open(t.Context(), sqliteStore(t), embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	debug := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := serveClient(t, client, server.Config{Open: true, Logger: debug})
	for _, c := range []struct {
		id, path, parent, want string
		status                 int
	}{
		{"r-1", "/healthz", parent, "0af7651916cd43dd8448eb211c80319c", 200},
		{"r-2", "/v1/nowhere", parent, "0af7651916cd43dd8448eb211c80319c", 404},
		{"r-3", "/healthz", "00-xyz", `""`, 200},
		{"r-4", "/healthz", "", `""`, 200},
	} {
		head := map[string]string{"X-Request-Id": c.id, "traceparent": c.parent}
		w.send(t, request{method: "GET", path: c.path, header: head}).wants(t, c.status)
		line := "request_id=" + c.id + " trace_id=" + c.want + " "
		eventually(t, line, func() bool { return strings.Contains(log.String(), line) }) // it is written when the answer is
	}
}

func TestU26_the_full_view_alone_shows_the_traceparent(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"job"}`, header: traced()}).wants(t, 201).text(t, "execution_id")
		for query, want := range map[string]string{"": "", "?view=summary": "", "?view=full": parent} {
			if got := w.get(t, "/v1/executions/"+id+query).wants(t, 200).text(t, "traceparent"); got != want {
				t.Errorf("%q shows %q, want %q", query, got, want)
			}
		}
	})
}

func TestU215_a_malformed_trace_context_is_ignored(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for name, head := range map[string]map[string]string{
		"malformed": {"traceparent": "00-xyz", "tracestate": state}, "zero": {"traceparent": "00-00000000000000000000000000000000-b7ad6b7169203331-01"},
		"a tracestate alone": {"tracestate": state}, "none": {},
	} {
		id := w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"job"}`, header: head}).wants(t, 201).text(t, "execution_id")
		if got := w.get(t, "/v1/executions/"+id+"?view=full").text(t, "traceparent"); got != "" {
			t.Errorf("%s: stored as %q", name, got)
		}
	}
	for _, task := range w.post(t, "/v1/work/claim", claimAll).wants(t, 200).field(t, "tasks").([]any) {
		got, _ := task.(map[string]any)
		if got["traceparent"] != nil || got["tracestate"] != nil || got["baggage"] != nil {
			t.Errorf("the task has %v", got)
		}
	}
}
