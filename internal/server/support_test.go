package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/flowfabric/flowfabric/internal/server/apitest"
	"github.com/flowfabric/flowfabric/internal/service"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

// patience bounds what a test waits for.
const patience = 5 * time.Minute

// world is a server on a store of its own, reached over the network.
type world struct {
	*flowfabric.Client
	server *server.Server
	url    string
	http   *http.Client
	log    *logged

	callers atomic.Int64 // see from
}

// logged is what the server wrote into its log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(part []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(part)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func sqliteStore(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "app.db") }

// openWorld serves a new store without credentials.
func openWorld(t testing.TB) *world { return serveStore(t, sqliteStore(t), server.Config{Open: true}) }

// keyedWorld serves a new store to those who have API keys.
func keyedWorld(t testing.TB, cfg server.Config) *world { return serveStore(t, sqliteStore(t), cfg) }

// stores are what a server can run on.
var stores = map[string]func(t testing.TB) string{
	"sqlite": sqliteStore, "postgres": func(t testing.TB) string { return cluster.Again(t).URL },
}

// onStores runs a test against a server on each store.
func onStores(t *testing.T, cfg server.Config, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, serveStore(t, address(t), cfg))
		})
	}
}

// onEveryStore runs a test against a server without credentials on each store.
func onEveryStore(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	onStores(t, server.Config{Open: true}, test)
}

// keyedOnEveryStore runs a test against a server with API keys on each store.
func keyedOnEveryStore(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	onStores(t, server.Config{}, test)
}

func serveStore(t testing.TB, address string, cfg server.Config) *world {
	t.Helper()
	return serveLogged(t, address, cfg, slog.LevelInfo)
}

// loudWorld is an open world whose log tells of every request.
func loudWorld(t testing.TB) *world {
	return serveLogged(t, sqliteStore(t), server.Config{Open: true}, slog.LevelDebug)
}

func serveLogged(t testing.TB, address string, cfg server.Config, level slog.Level) *world {
	t.Helper()
	hooks := engine.Hooks{UnsafeDurability: true}
	log := &logged{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	client, err := embedded.Open(cluster.Keeping(engine.WithHooks(t.Context(), hooks), address), address, embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: cfg.Logger}})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	w := serveClient(t, client, cfg)
	w.log = log
	return w
}

// backend is what a server of a client needs.
func backend(c *flowfabric.Client) service.Backend {
	on, _ := inprocess.BackendOf(c)
	return on
}

// serveClient serves a client, which is closed when the test ends.
func serveClient(t testing.TB, client *flowfabric.Client, cfg server.Config) *world {
	t.Helper()
	s, err := server.New(backend(client), cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	listener := httptest.NewUnstartedServer(s.Handler())
	listener.Config, listener.Listener = s.HTTPServer(), s.Listener(listener.Listener)
	listener.Start()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(func() {
		s.Drain()
		transport.CloseIdleConnections()
		listener.Close()
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &world{Client: client, server: s, url: listener.URL, http: &http.Client{Transport: transport}}
}

// request is a request to be.
type request struct {
	method, path string
	body         string
	header       map[string]string
	key          string // API key
}

// reply is a whole answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request and reads the whole answer, which must be as the OpenAPI document says.
func (w *world) send(t testing.TB, r request) reply {
	t.Helper()
	response := w.open(t, r)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	answer := reply{response.StatusCode, response.Header, body}
	if response.Header.Get("Content-Encoding") == "gzip" {
		answer.body = unzip(t, body)
	}
	conforms(t, r.method, r.path, answer)
	return answer
}

// sendLater sends a request beside the test. If it fails the test, an empty reply comes.
func (w *world) sendLater(t testing.TB, r request, answers chan<- reply) {
	go func() {
		var got reply
		defer func() { answers <- got }()
		got = w.send(t, r)
	}()
}

// open sends a request and leaves the answer to be read.
func (w *world) open(t testing.TB, r request) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, w.url+r.path, body)
	if err != nil {
		t.Fatal(err)
	}
	if r.body != "" {
		sent.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		sent.Header.Set("Authorization", "Bearer "+r.key)
	}
	for name, value := range r.header {
		if name == "Host" {
			sent.Host = value
			continue
		}
		sent.Header.Set(name, value)
	}
	response, err := w.http.Do(sent)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	return response
}

func (w *world) get(t testing.TB, path string) reply {
	t.Helper()
	return w.send(t, request{method: "GET", path: path})
}

func (w *world) post(t testing.TB, path, body string) reply {
	t.Helper()
	return w.send(t, request{method: "POST", path: path, body: body})
}

// wants checks the status.
func (a reply) wants(t testing.TB, status int) reply {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// refuses checks the code of a problem.
func (a reply) refuses(t testing.TB, status int, code string) reply {
	t.Helper()
	a.wants(t, status)
	if got := a.text(t, "code"); got != code {
		t.Fatalf("code %s, want %s: %s", got, code, a.body)
	}
	return a
}

// field is a value of the answer, by names and indexes with dots between.
func (a reply) field(t testing.TB, path string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(a.body, &value); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	for part := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				t.Fatalf("%s of %s", path, a.body)
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// text is a text of the answer; "" when it is not there.
func (a reply) text(t testing.TB, path string) string {
	t.Helper()
	text, _ := a.field(t, path).(string)
	return text
}

func (a reply) number(t testing.TB, path string) float64 {
	t.Helper()
	number, _ := a.field(t, path).(float64)
	return number
}

func unzip(t testing.TB, body []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// submitted submits something and returns its id.
func (w *world) submitted(t testing.TB) string {
	t.Helper()
	return w.post(t, "/v1/executions", `{"kind":"job","input":{"n":1}}`).wants(t, 201).text(t, "execution_id")
}

// claimed claims one execution and returns its id and its lease as JSON.
func (w *world) claimed(t testing.TB) (id, lease string) {
	t.Helper()
	answer := w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"wait_ms":20000}`).wants(t, 200)
	text, err := json.Marshal(answer.field(t, "tasks.0.lease"))
	if err != nil {
		t.Fatal(err)
	}
	return answer.text(t, "tasks.0.execution_id"), string(text)
}

// key makes an API key.
func (w *world) key(t testing.TB, namespaces string, roles ...string) string {
	t.Helper()
	key, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
		Name: strings.Join(roles, "+") + "@" + namespaces, Roles: roles, Namespaces: strings.Split(namespaces, ","),
	})
	if err != nil {
		t.Fatal(err)
	}
	return key.Secret
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// described is the document of the server.
var described = sync.OnceValue(func() *apitest.Routes {
	routes, err := apitest.ReadRoutes(server.Document())
	if err != nil {
		panic(err)
	}
	return routes
})

// conforms checks an answer against the OpenAPI document (U116), and against what every answer has.
func conforms(t testing.TB, method, path string, a reply) {
	t.Helper()
	if err := described().Conforms(apitest.Answer{Method: method, Path: path, Status: a.status, Header: a.header, Body: a.body}); err != nil {
		t.Errorf("%s %s: %v\n%s", method, path, err, a.body)
	}
}
