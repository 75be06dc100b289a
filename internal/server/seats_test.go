package server_test

import (
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
			w := keyedWorld(t, c.cfg)
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
	}
}

func TestU21_one_namespace_leaves_waiting_readers_to_others(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{MaxReaders: 4})
	var waiting []<-chan reply
	for range 3 {
		waiting = append(waiting, w.waits(t, request{method: "GET", path: "/v1/events?wait_ms=60000", key: w.key(t, "red", "read")}))
	}
	w.send(t, request{method: "GET", path: "/v1/events?wait_ms=1", key: w.key(t, "red", "read")}).refuses(t, 429, "rate_limited")
	w.send(t, request{method: "GET", path: "/v1/events?wait_ms=1", key: w.key(t, "blue", "read")}).wants(t, 200)
	w.server.Drain()
	for _, one := range waiting {
		(<-one).wants(t, 200)
	}
}
