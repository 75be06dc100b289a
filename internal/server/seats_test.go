package server_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

func TestU21_one_key_holds_a_share_of_the_waiting_readers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  server.Config
		most int
	}{"a quarter": {server.Config{MaxReaders: 8}, 2}, "as set": {server.Config{MaxReaders: 8, MaxReadersPerKey: 3}, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, c.cfg, func(t *testing.T, w *world) {
				greedy, other := w.key(t, "red", "read"), w.key(t, "blue", "read")
				read := request{method: "GET", path: "/v1/events?wait_ms=60000", key: greedy}
				var waiting []<-chan reply
				for range c.most {
					waiting = append(waiting, w.waits(t, read))
				}
				refused := w.send(t, read).refuses(t, 429, "rate_limited")
				if refused.header.Get("Retry-After") == "" || refused.number(t, "current.limit") != float64(c.most) || refused.text(t, "hint") == "" {
					t.Errorf("%v %s", refused.header, refused.body)
				}
				w.send(t, request{method: "GET", path: "/v1/events", key: greedy, header: map[string]string{"Accept": "text/event-stream"}}).refuses(t, 429, "rate_limited")
				w.send(t, request{method: "GET", path: "/v1/lanes", key: greedy}).wants(t, 200)
				w.send(t, request{method: "GET", path: "/v1/events?wait_ms=1", key: other}).wants(t, 200)
				w.server.Drain()
				for _, one := range waiting {
					(<-one).wants(t, 200)
				}
			})
		})
	}
}

func TestU21_one_namespace_leaves_waiting_calls_to_others(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(wait int) request{
		"readers": func(wait int) request {
			return request{method: "GET", path: "/v1/events?wait_ms=" + strconv.Itoa(wait)}
		},
		"claims": func(wait int) request {
			return request{method: "POST", path: "/v1/work/claim", body: `{"worker_id":"w","worker_instance_id":"w-#","lanes":["default"],"wait_ms":` + strconv.Itoa(wait) + `}`}
		},
		"grants": func(wait int) request {
			return request{method: "POST", path: "/v1/work/grants", body: `{"worker_id":"w","worker_instance_id":"w-#","lanes":["default"],"wait_ms":` + strconv.Itoa(wait) + `}`}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, server.Config{MaxReaders: 4, MaxClaims: 4}, func(t *testing.T, w *world) {
				n := 0
				of := func(namespace string, wait int) request {
					n++
					r := call(wait)
					r.key, r.body = w.key(t, namespace, "read", "work"), strings.ReplaceAll(r.body, "#", strconv.Itoa(n))
					return r
				}
				var waiting []<-chan reply
				for range 3 {
					waiting = append(waiting, w.waits(t, of("red", 60_000)))
				}
				refused := w.send(t, of("red", 60_000)).refuses(t, 429, "rate_limited")
				if refused.header.Get("Retry-After") == "" || refused.number(t, "current.limit") != 3 || refused.text(t, "hint") == "" {
					t.Errorf("%v %s", refused.header, refused.body)
				}
				if name == "readers" {
					w.send(t, of("blue", 1)).wants(t, 200)
				} else {
					waiting = append(waiting, w.waits(t, of("blue", 60_000)))
				}
				w.server.Drain()
				for _, one := range waiting {
					if answer := <-one; answer.status >= 300 && answer.text(t, "code") != "shutting_down" {
						t.Errorf("%s", answer.body)
					}
				}
			})
		})
	}
}

func TestU101_U21_a_namespace_has_as_many_waiting_readers_as_are_set(t *testing.T) {
	t.Parallel()
	onStores(t, server.Config{MaxReaders: 8}, func(t *testing.T, w *world) {
		root := w.key(t, "*", "admin")
		set := func(most int) {
			t.Helper()
			w.send(t, request{method: "PUT", path: "/v1/namespaces/red", key: root, body: `{"max_readers":` + strconv.Itoa(most) + `}`}).wants(t, 200)
		}
		read := func(namespace string, wait int) request {
			return request{method: "GET", path: "/v1/events?wait_ms=" + strconv.Itoa(wait), key: w.key(t, namespace, "read")}
		}
		set(1)
		waiting := []<-chan reply{w.waits(t, read("red", 60_000))}
		refused := w.send(t, read("red", 60_000)).refuses(t, 429, "rate_limited")
		if refused.text(t, "current.setting") != "max_readers" || refused.number(t, "current.limit") != 1 || refused.text(t, "hint") == "" {
			t.Errorf("%s", refused.body)
		}
		w.send(t, read("blue", 1)).wants(t, 200)
		set(2)
		waiting = append(waiting, w.waits(t, read("red", 60_000)))
		w.send(t, read("red", 60_000)).refuses(t, 429, "rate_limited")
		w.server.Drain()
		for _, one := range waiting {
			(<-one).wants(t, 200)
		}
	})
}
