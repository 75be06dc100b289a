package server_test

import (
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// gate lets no submit commit until it is open.
type gate struct{ open chan struct{} }

func (g gate) BeforeCommit(commands []string) error {
	if slices.Contains(commands, "submit") {
		<-g.open
	}
	return nil
}

func (gate) AfterCommit([]string) error { return nil }

// gatedWorld is an open server on which no submit commits until open is called.
func gatedWorld(t *testing.T, address string, how embedded.Config, cfg server.Config) (w *world, open func()) {
	t.Helper()
	gate := gate{make(chan struct{})}
	how.Logger = slog.New(slog.DiscardHandler)
	client, err := embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{Probe: gate, UnsafeDurability: true}), address, how)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Open, cfg.Logger = true, slog.New(slog.DiscardHandler)
	return serveClient(t, client, cfg), sync.OnceFunc(func() { close(gate.open) })
}

func TestU21_S72_a_full_queue_of_commands_answers_overloaded_and_says_when_to_come_back(t *testing.T) {
	t.Parallel()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, open := gatedWorld(t, address(t), embedded.Config{EngineConfig: flowfabric.EngineConfig{QueueLimit: 1}}, server.Config{})
			defer open() // else the client would never be closed
			const sent = 8
			answers := make(chan reply, sent)
			for range sent {
				w.sendLater(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"job"}`}, answers)
			}
			for range sent - 2 { // one is under way and one waits: these are answered while nothing commits
				refused := (<-answers).refuses(t, 503, "overloaded")
				if refused.header.Get("Retry-After") != "1" || refused.number(t, "retry_after_ms") <= 0 || refused.field(t, "retryable") != true {
					t.Errorf("%v %s", refused.header, refused.body)
				}
			}
			open()
			accepted := 0
			for range 2 {
				if answer := <-answers; answer.status == 201 {
					accepted++
				} else {
					answer.refuses(t, 503, "overloaded")
				}
			}
			if total := w.get(t, "/v1/executions/count").wants(t, 200).number(t, "total"); accepted == 0 || int(total) != accepted {
				t.Errorf("%d were accepted, %v are there", accepted, total)
			}
		})
	}
}
