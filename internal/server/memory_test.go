package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

func TestU20_U21_the_bodies_of_all_requests_share_a_bound_of_memory(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, open := gatedWorld(t, address(t), embedded.Config{}, server.Config{BodyMemory: 4 << 20})
			defer open() // else the client would never be closed
			large := fmt.Sprintf(`{"kind":"job","input":%q}`, strings.Repeat("x", 900<<10))
			const sent, fit = 8, 4
			answers := make(chan reply, sent)
			for range sent {
				w.sendLater(t, request{method: "POST", path: "/v1/executions", body: large}, answers)
			}
			for range sent - fit { // the others hold the memory while nothing commits
				refused := (<-answers).refuses(t, 503, "overloaded")
				if refused.header.Get("Retry-After") != "1" || refused.field(t, "retryable") != true {
					t.Errorf("%v %s", refused.header, refused.body)
				}
			}
			w.get(t, "/v1/executions").wants(t, 200)
			w.refusesWhole(t, large)
			open()
			for range fit {
				(<-answers).wants(t, 201)
			}
			for range 2 * fit { // what was held is given back
				w.post(t, "/v1/executions", large).wants(t, 201)
			}
		})
	}
}

// refusesWhole sends a body for which there is no memory. It is read to its end before the answer: the connection of a client that is still sending
// when the handler returns is cut, and the client never sees the answer.
func (w *world) refusesWhole(t *testing.T, body string) {
	t.Helper()
	rest := strings.NewReader(body)
	r := httptest.NewRequest(http.MethodPost, w.url+"/v1/executions", rest)
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(answer, r)
	if answer.Code != http.StatusServiceUnavailable || rest.Len() != 0 {
		t.Errorf("status %d, %d bytes of the body were not read", answer.Code, rest.Len())
	}
}

func TestU20_U21_one_key_has_a_share_of_the_memory_for_bodies(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := gate{make(chan struct{})}
			open := sync.OnceFunc(func() { close(gate.open) })
			client, err := embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{Probe: gate, UnsafeDurability: true}), address(t), embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: slog.New(slog.DiscardHandler)}})
			if err != nil {
				t.Fatal(err)
			}
			w := serveClient(t, client, server.Config{BodyMemory: 8 << 20, Logger: slog.New(slog.DiscardHandler)})
			defer open()                                                                  // else the client would never be closed
			greedy, other := w.key(t, "default", "submit"), w.key(t, "default", "submit") // of one name: the ids of keys count
			for _, key := range []string{greedy, other} {
				w.send(t, request{method: "GET", path: "/v1/whoami", key: key}).wants(t, 200) // the first use of a key is noted, which waits for no submit
			}
			large := fmt.Sprintf(`{"kind":"job","input":%q}`, strings.Repeat("x", 900<<10))
			const sent, fit = 8, 5 // of a share of 5 MiB: the largest body has 4, and what is read from it a quarter of that
			answers, others := make(chan reply, sent), make(chan reply, 1)
			for range sent {
				w.sendLater(t, request{method: "POST", path: "/v1/executions", key: greedy, body: large}, answers)
			}
			for range sent - fit {
				refused := (<-answers).refuses(t, 429, "rate_limited")
				if refused.header.Get("Retry-After") != "1" || refused.field(t, "retryable") != true {
					t.Errorf("%v %s", refused.header, refused.body)
				}
			}
			faulty := strings.Replace(large, `"job"`, `"no kind"`, 1) // answered once it is read, whatever the store does
			w.send(t, request{method: "POST", path: "/v1/executions", key: greedy, body: faulty}).refuses(t, 429, "rate_limited")
			w.send(t, request{method: "POST", path: "/v1/executions", key: other, body: faulty}).refuses(t, 400, "invalid_argument")
			w.sendLater(t, request{method: "POST", path: "/v1/executions", key: other, body: large}, others)
			open()
			(<-others).wants(t, 201)
			for range fit {
				(<-answers).wants(t, 201)
			}
			for range 2 * fit { // what was held is given back
				w.send(t, request{method: "POST", path: "/v1/executions", key: greedy, body: large}).wants(t, 201)
			}
		})
	}
}

func TestU20_U33_a_line_for_which_there_is_no_memory_is_refused_alone(t *testing.T) {
	t.Parallel()
	onStores(t, server.Config{Open: true, BodyMemory: 1 << 20, Logger: slog.New(slog.DiscardHandler)}, func(t *testing.T, w *world) {
		line := func(size int) string { return fmt.Sprintf(`{"kind":"job","input":%q}`+"\n", strings.Repeat("x", size)) }
		answers := strings.Split(strings.TrimSpace(string(w.send(t, request{
			method: "POST", path: "/v1/executions/bulk", body: line(10) + line(1<<20) + line(10), header: map[string]string{"Content-Type": "application/x-ndjson"},
		}).wants(t, 200).body)), "\n")
		if len(answers) != 3 || !strings.Contains(answers[1], `"overloaded"`) || strings.Contains(answers[0]+answers[2], "error") {
			t.Errorf("%q", answers)
		}
		if total := w.get(t, "/v1/executions/count").wants(t, 200).number(t, "total"); total != 2 {
			t.Errorf("%v are there", total)
		}
	})
}
