package flowfabric_test

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/service"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

// world is an open client on a store of its own.
type world struct {
	*flowfabric.Client
	url string
	who string // the principal of its calls

	workers func(t testing.TB) *flowfabric.Client // what workers of this world work with; nil: what all have
}

// stores are what a client can run on.
var stores = map[string]func(t testing.TB) string{
	"sqlite":   func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "app.db") },
	"postgres": func(t testing.TB) string { return cluster.Again(t).URL },
}

// everyStore is all of them; in a short run those that need no server.
func everyStore() map[string]func(t testing.TB) string {
	if testing.Short() {
		return map[string]func(t testing.TB) string{"sqlite": stores["sqlite"]}
	}
	return stores
}

// onEveryStore runs a test on each store, unchanged: with the engine in this process, and with a client of a server.
func onEveryStore(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	onEveryStoreEmbedded(t, test)
	for name, address := range everyStore() {
		t.Run(name+" over http", func(t *testing.T) {
			t.Parallel()
			test(t, openWorld(t, address(t), engine.Hooks{}).overHTTP(t))
		})
	}
}

// onEveryStoreEmbedded runs a test that needs the engine in this process.
func onEveryStoreEmbedded(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, openWorld(t, address(t), engine.Hooks{}))
		})
	}
}

// overHTTP is the same world through a server. Its workers have a key with the role work and no other (U122).
func (w *world) overHTTP(t testing.TB) *world {
	t.Helper()
	keyed := sync.OnceValue(func() *keyed { return w.keyed(t) })
	return &world{
		Client: connect(t, w.serve(t, server.Config{Open: true}), flowfabric.ConnectConfig{}), url: w.url, who: "dev",
		workers: func(t testing.TB) *flowfabric.Client { return keyed().with(t, "worker", "work") },
	}
}

// backend is what a server of a client needs.
func backend(c *flowfabric.Client) service.Backend {
	on, ok := inprocess.BackendOf(c)
	if !ok {
		panic("the engine of the client is in another process")
	}
	return on
}

// as is the world with a client that acts for another caller.
func (w *world) as(who service.Caller) *world {
	acting, _ := inprocess.As(w.Client, who)
	return &world{Client: acting, url: w.url, who: who.Name}
}

// serve starts a server on the client of the world and returns its address.
func (w *world) serve(t testing.TB, cfg server.Config) string {
	t.Helper()
	cfg.Logger = silent()
	s, err := server.New(backend(w.Client), cfg)
	if err != nil {
		t.Fatalf("server.New: %v", err)
	}
	listener := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.Drain()
		listener.Close()
	})
	return listener.URL
}

// keyed is a server that asks for API keys.
type keyed struct {
	*world  // what it serves
	address string
	mu      sync.Mutex
	secrets map[string]string // by name
}

func (w *world) keyed(t testing.TB) *keyed {
	t.Helper()
	return &keyed{world: w, address: w.serve(t, server.Config{}), secrets: map[string]string{}}
}

// key is the secret of an API key of that name in the namespace default, which is made with these roles if there is none.
func (k *keyed) key(t testing.TB, name string, roles ...string) string {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.secrets[name] == "" {
		k.secrets[name] = must[*api.NewAPIKey](t)(k.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
			Name: name, Roles: roles, Namespaces: []string{"default"},
		})).Secret
	}
	return k.secrets[name]
}

// with is a client that has the key of that name.
func (k *keyed) with(t testing.TB, name string, roles ...string) *flowfabric.Client {
	t.Helper()
	return connect(t, k.address, flowfabric.ConnectConfig{APIKey: k.key(t, name, roles...)})
}

// openWorld opens a client and closes it when the test ends.
func openWorld(t testing.TB, url string, hooks engine.Hooks) *world {
	t.Helper()
	hooks.UnsafeDurability = true
	client, err := embedded.Open(cluster.Keeping(engine.WithHooks(t.Context(), hooks), url), url, embedded.Config{EngineConfig: flowfabric.EngineConfig{
		Logger: silent(), Webhooks: api.WebhookTargets{AllowLoopback: true}, // receivers of tests
	}})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &world{Client: client, url: url, who: "local"}
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

const (
	patience = 30 * time.Second // how long a call of a test waits, at most
	giveUp   = 5 * time.Minute  // bounds everything that a test waits for, also on a busy machine
)

// inTime is a context that ends when a test gives up.
func inTime(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), giveUp)
	t.Cleanup(cancel)
	return ctx
}

// work runs a worker with these handlers until the test ends, or until stop is called, which waits for it.
func (w *world) work(t testing.TB, cfg flowfabric.WorkerConfig, register func(*flowfabric.Worker)) (worker *flowfabric.Worker, stop func()) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = silent()
	}
	client := w.Client
	if w.workers != nil {
		client = w.workers(t)
	}
	worker = flowfabric.NewWorker(client, cfg)
	register(worker)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(giveUp):
			t.Error("Run did not return")
		}
	}
	t.Cleanup(stop)
	return worker, stop
}

// must takes the value of a call that may not fail.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// receive takes a value that must come in time.
func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(giveUp):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
