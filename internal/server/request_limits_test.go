package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// stopped is a server with API keys on a store whose clock stands still: what was used of a rate does not come back.
func stopped(t *testing.T, address string) *world {
	t.Helper()
	hooks := engine.Hooks{UnsafeDurability: true, Clock: clock.NewManual(time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC))}
	client, err := embedded.Open(engine.WithHooks(t.Context(), hooks), address, embedded.Config{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return serveClient(t, client, server.Config{})
}

func (w *world) boundRequests(t *testing.T, namespace string, perSecond int) {
	t.Helper()
	settings := api.NamespaceSettings{MaxRequestsPerSecond: perSecond}
	if _, err := w.Admin().Namespaces().Put(t.Context(), namespace, settings); err != nil {
		t.Fatal(err)
	}
}

func TestU101_U129_a_namespace_sends_as_many_requests_as_it_may_and_others_go_on(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := stopped(t, address(t))
			const most = 3
			w.boundRequests(t, "red", most)
			keys := []string{w.key(t, "red", "read", "submit"), w.key(t, "red", "submit")}
			for i := range most {
				w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"job"}`, key: keys[i%2]}).wants(t, 201)
			}
			for _, key := range keys { // before the body is read: it is not JSON
				refused := w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind`, key: key}).refuses(t, 429, "rate_limited")
				if refused.text(t, "current.setting") != "max_requests_per_second" || refused.number(t, "current.limit") != most ||
					refused.number(t, "retry_after_ms") <= 0 || refused.header.Get("Retry-After") == "" || refused.text(t, "hint") == "" {
					t.Errorf("%v %s", refused.header, refused.body)
				}
			}
			w.send(t, request{method: "GET", path: "/v1/whoami", key: w.key(t, "red,blue", "read")}).refuses(t, 429, "rate_limited")
			blue, all := w.key(t, "blue", "submit"), w.key(t, "*", "admin")
			for range 2 * most {
				w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"job"}`, key: blue}).wants(t, 201)
				w.send(t, request{method: "GET", path: "/v1/executions", key: all, header: map[string]string{"FlowFabric-Namespace": "red"}}).wants(t, 200)
			}
		})
	}
}

// Every route that takes a key is bounded; what needs none answers as it would without one, and so does /metrics.
func TestU129_the_bound_of_requests_holds_on_every_route_that_takes_a_key(t *testing.T) {
	t.Parallel()
	w := stopped(t, sqliteStore(t))
	const most = 2
	w.boundRequests(t, "red", most)
	key := w.key(t, "red", "read", "submit", "work", "operate", "admin")
	for range most {
		w.send(t, request{method: "GET", path: "/v1/whoami", key: key}).wants(t, 200)
	}
	for range most * server.RunningShare {
		w.send(t, request{method: "POST", path: "/v1/workers", body: `{"worker_id":"w","worker_instance_id":"w-1"}`, key: key}).wants(t, 200)
	}
	for _, o := range wire.Operations() {
		answer := w.send(t, request{method: o.Method, path: somePath(o, void(1)), key: key})
		limited := answer.status == http.StatusTooManyRequests
		free := o.Roles&(wire.Open|wire.Token) != 0 || o.ID == wire.GetMetrics.ID
		forAll := answer.status == http.StatusForbidden // only keys for all namespaces may
		if limited == free && !forAll {
			t.Errorf("%s: %d %s", o.ID, answer.status, answer.body)
		}
	}
}

// A worker whose namespace has used up its requests keeps its leases and brings its work to an end (U129).
func TestU129_the_bound_of_requests_costs_no_lease(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := stopped(t, address(t))
			const most = 3
			key := w.key(t, "red", "submit", "work")
			send := func(path, body string) reply {
				return w.send(t, request{method: "POST", path: path, body: body, key: key})
			}
			send("/v1/executions", `{"kind":"job"}`).wants(t, 201)
			task := send("/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"wait_ms":20000}`).wants(t, 200)
			id, lease := task.text(t, "tasks.0.execution_id"), task.text(t, "tasks.0.lease.fence")
			w.boundRequests(t, "red", most)
			for range most {
				w.send(t, request{method: "GET", path: "/v1/whoami", key: key}).wants(t, 200)
			}
			send("/v1/executions", `{"kind":"job"}`).refuses(t, 429, "rate_limited")
			send("/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"]}`).refuses(t, 429, "rate_limited")
			at := "/v1/executions/" + id
			send("/v1/workers", `{"worker_id":"w","worker_instance_id":"w-1"}`).wants(t, 200)
			send("/v1/workers/w-1/heartbeat", `{}`).wants(t, 200)
			send(at+"/renew", `{"lease":"`+lease+`"}`).wants(t, 200)
			send(at+"/progress", `{"lease":"`+lease+`","percent":1}`).wants(t, 200)
			send("/v1/work/batch", `{"items":[{"op":"renew","execution_id":"`+id+`","lease":"`+lease+`"}]}`).wants(t, 200)
			send(at+"/complete", `{"lease":"`+lease+`","result":1}`).wants(t, 200)
			for range most*server.RunningShare - 6 {
				send("/v1/workers/w-1/heartbeat", `{}`).wants(t, 200)
			}
			refused := send("/v1/workers/w-1/heartbeat", `{}`).refuses(t, 429, "rate_limited")
			if refused.number(t, "current.limit") != most*server.RunningShare {
				t.Errorf("%s", refused.body)
			}
		})
	}
}

// Calls that are made under a lease, or keep an instance alive, are those that a bound of requests must not end work by.
func TestU129_whatever_ends_or_keeps_running_work_is_counted_apart(t *testing.T) {
	t.Parallel()
	apart := strings.Fields(`register_worker heartbeat_worker send_work renew_lease report_progress complete_execution fail_execution release_execution
		delay_execution put_step suspend_execution wait_for_children`)
	for _, id := range apart {
		if !server.KeepsWork(id) {
			t.Errorf("%s is not counted apart", id)
		}
	}
}

func TestU129_a_namespace_alone_sends_any_number_of_requests_and_has_a_bound_beside_others(t *testing.T) {
	t.Parallel()
	w := stopped(t, sqliteStore(t))
	const most = 4
	by := clock.NewManual(time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC))
	w.server.BoundRequests(most, by)
	passes := func() { by.TurnTo(by.Now().Add(time.Second)) }
	red, blue := w.key(t, "red", "read", "work"), w.key(t, "blue", "read")
	ask := func(key string) reply { return w.send(t, request{method: "GET", path: "/v1/whoami", key: key}) }
	for range 3 * most {
		ask(red).wants(t, 200)
	}
	ask(blue).wants(t, 200)
	for range most {
		ask(red).wants(t, 200)
	}
	refused := ask(red).refuses(t, 429, "rate_limited")
	if refused.text(t, "current.setting") != "max_requests_per_second" || refused.number(t, "current.limit") != most {
		t.Errorf("%s", refused.body)
	}
	w.send(t, request{method: "POST", path: "/v1/workers", body: `{"worker_id":"w","worker_instance_id":"w-1"}`, key: red}).wants(t, 200)
	ask(blue).wants(t, 200)
	passes()
	for range most {
		ask(red).wants(t, 200)
	}
	ask(red).refuses(t, 429, "rate_limited")
	for range 10 { // the other sends nothing more
		ask(red)
		passes()
	}
	for range 3 * most {
		ask(red).wants(t, 200)
	}
	if n := w.server.Active(); n != 1 {
		t.Errorf("%d namespaces are remembered", n)
	}
}

func TestU129_what_is_remembered_of_a_rate_is_given_back(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	w.boundRequests(t, "red", 2)
	key := w.key(t, "red", "read")
	eventually(t, "the namespace has used up its rate", func() bool {
		return w.send(t, request{method: "GET", path: "/v1/whoami", key: key}).status == http.StatusTooManyRequests
	})
	eventually(t, "nothing is remembered of it", func() bool { return w.server.Limited() == 0 })
	w.send(t, request{method: "GET", path: "/v1/whoami", key: key}).wants(t, 200)
}
