package server_test

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// onStoppedStores runs a test against a server without credentials on each store, whose clock stands still: nothing gets old.
func onStoppedStores(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks := engine.Hooks{UnsafeDurability: true, Clock: clock.NewManual(time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC))}
			client, err := embedded.Open(engine.WithHooks(t.Context(), hooks), address(t), embedded.Config{})
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			test(t, serveClient(t, client, server.Config{Open: true}))
		})
	}
}

func TestU101_the_bounds_of_a_namespace_are_set_shown_and_told_in_refusals(t *testing.T) {
	t.Parallel()
	onStoppedStores(t, func(t *testing.T, w *world) {
		path := "/v1/namespaces/default"
		w.send(t, request{method: "PUT", path: path, body: `{"max_lanes":1,"max_classes":2,"max_ready":3,"max_priority":4,"max_requests_per_second":5,"max_readers":6,"max_audit_rows_per_minute":7,"max_workers":8}`}).wants(t, 200)
		shown := w.get(t, path).wants(t, 200)
		for i, field := range []string{"max_lanes", "max_classes", "max_ready", "max_priority", "max_requests_per_second", "max_readers", "max_audit_rows_per_minute", "max_workers"} {
			if shown.number(t, field) != float64(i+1) {
				t.Errorf("%s: %s", field, shown.body)
			}
		}
		for _, wrong := range []string{`{"max_priority":9001}`, `{"max_requests_per_second":1000001}`, `{"max_readers":-1}`, `{"max_workers":1000001}`, `{"max_audit_rows_per_minute":1000001}`} {
			w.send(t, request{method: "PUT", path: path, body: wrong}).refuses(t, 400, "invalid_argument")
		}
		if made := w.post(t, "/v1/executions", `{"kind":"a","priority":9}`).wants(t, 201); made.number(t, "priority") != 4 {
			t.Errorf("%s", made.body)
		}
		refused := w.post(t, "/v1/executions", `{"kind":"a","lane":"second"}`).refuses(t, 429, "namespace_limit_exceeded")
		if refused.number(t, "current.limit") != 1 || refused.number(t, "current.in_use") != 1 {
			t.Errorf("%s", refused.body)
		}
		w.get(t, "/v1/lanes/second").refuses(t, 404, "lane_not_found")
		w.post(t, "/v1/executions", `{"kind":"b"}`).wants(t, 201)
		w.post(t, "/v1/executions", `{"kind":"c"}`).refuses(t, 429, "namespace_limit_exceeded")
		w.post(t, "/v1/executions", `{"kind":"b"}`).wants(t, 201)
		if full := w.post(t, "/v1/executions", `{"kind":"b"}`).refuses(t, 429, "rate_limited"); full.number(t, "retry_after_ms") <= 0 {
			t.Errorf("%s", full.body)
		}
	})
}

func TestU101_U103_a_worker_beyond_the_bound_of_its_namespace_is_refused_and_told_why(t *testing.T) {
	t.Parallel()
	onStoppedStores(t, func(t *testing.T, w *world) {
		w.send(t, request{method: "PUT", path: "/v1/namespaces/default", body: `{"max_workers":1}`}).wants(t, 200)
		w.post(t, "/v1/workers", `{"worker_id":"w","worker_instance_id":"w-1"}`).wants(t, 200)
		for path, body := range map[string]string{
			"/v1/workers": `{"worker_id":"w","worker_instance_id":"w-2"}`, "/v1/work/claim": `{"worker_id":"w","worker_instance_id":"w-2","lanes":["default"]}`,
		} {
			refused := w.post(t, path, body).refuses(t, 429, "namespace_limit_exceeded")
			if refused.text(t, "current.setting") != "max_workers" || refused.number(t, "current.limit") != 1 || refused.number(t, "current.in_use") != 1 || refused.text(t, "field") != "/worker_instance_id" {
				t.Errorf("%s: %s", path, refused.body)
			}
		}
		w.get(t, "/v1/workers/w-2").refuses(t, 404, "worker_not_registered")
		w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"]}`).wants(t, 200)
	})
}
