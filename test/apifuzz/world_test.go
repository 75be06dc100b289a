package apifuzz

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
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
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

func onSQLite(t testing.TB) string   { return "sqlite:" + filepath.Join(t.TempDir(), "app.db") }
func onPostgres(t testing.TB) string { return cluster.Again(t).URL }

// The bounds of one request: how long the server may take, and when a caller that asked to wait gives up.
const (
	patience = 5 * time.Minute
	givesUp  = 150 * time.Millisecond
)

// world is a server on a store of its own, with those who call it.
type world struct {
	*flowfabric.Client
	server  *server.Server
	url     string
	http    *http.Client
	log     *faults
	callers []caller // the first may do everything
	open    bool     // no caller needs a key
}

// caller is a caller with a key, or an anonymous one.
type caller struct {
	name, key  string
	everywhere bool
}

// faults is what the server logged as an error.
type faults struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (f *faults) Write(part []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(part)
}

func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

// newWorld serves a new store. The sizes are small so that huge is not far away.
func newWorld(t testing.TB, address string, open bool) *world {
	t.Helper()
	w := &world{log: &faults{}, open: open}
	logger := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelError}))
	client, err := embedded.Open(cluster.Keeping(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), address), address, embedded.Config{EngineConfig: flowfabric.EngineConfig{
		Logger: logger, Webhooks: api.WebhookTargets{AllowHTTP: true, AllowLoopback: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.Client = client
	on, _ := inprocess.BackendOf(client)
	if w.server, err = server.New(on, server.Config{Open: open, MaxPayload: 64 << 10, MaxWait: 50 * time.Millisecond, Logger: logger}); err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewUnstartedServer(w.server.Handler())
	listener.Config, listener.Listener = w.server.HTTPServer(), w.server.Listener(listener.Listener)
	listener.Start()
	transport := &http.Transport{DisableCompression: true}
	w.url, w.http = listener.URL, &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		w.server.Drain()
		transport.CloseIdleConnections()
		listener.Close()
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	w.callers = []caller{{name: "anybody"}}
	return w
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   []byte
	cut    bool // it was left unread: it lasts for as long as the caller wants
}

// errGaveUp is the outcome of a request whose caller did not wait any longer.
var errGaveUp = errors.New("the caller gave up")

// send sends a request and reads the answer.
func (w *world) send(ctx context.Context, r *request, who caller) (answer, error) {
	bound := patience
	if r.waits {
		bound = givesUp
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	a, err := w.exchange(ctx, r, who)
	if err != nil && r.waits && ctx.Err() != nil {
		return a, errGaveUp
	}
	return a, err
}

func (w *world) exchange(ctx context.Context, r *request, who caller) (answer, error) {
	if r.raw != nil {
		return w.crude(ctx, r)
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, r.url(w.url), r.reader())
	if err != nil {
		return answer{}, errors.Join(errUnsendable, err)
	}
	if r.reader() != nil {
		sent.Header.Set("Content-Type", jsonContent)
	}
	for name, values := range r.header {
		sent.Header[name] = values
	}
	if host := r.header.Get("Host"); host != "" {
		sent.Host = host
	}
	if who.key != "" {
		sent.Header.Set("Authorization", "Bearer "+who.key)
	}
	response, err := w.http.Do(sent)
	if err != nil {
		return answer{}, unsendable(err)
	}
	defer response.Body.Close()
	return read(response)
}

// errUnsendable is the outcome of a request that Go's client refuses to send.
var errUnsendable = errors.New("the client does not send this")

func unsendable(err error) error {
	for _, text := range []string{"invalid header field", "invalid method", "invalid URL", "net/http: invalid", "invalid Host header"} {
		if strings.Contains(err.Error(), text) {
			return errors.Join(errUnsendable, err)
		}
	}
	return err
}

// largestAnswer is more than any answer here has; a backup is the largest.
const largestAnswer = 256 << 20

func read(response *http.Response) (answer, error) {
	a := answer{status: response.StatusCode, header: response.Header}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		a.cut = true
		return a, nil
	}
	var err error
	a.body, err = io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if response.Header.Get("Content-Encoding") == "gzip" && err == nil {
		a.body, err = unzip(a.body)
	}
	return a, err
}

func (r *request) reader() io.Reader {
	switch {
	case r.bare:
		return strings.NewReader(r.text)
	case r.body != nil:
		return strings.NewReader(textOf(r.body))
	default:
		return nil
	}
}

// dial opens a connection of its own.
func (w *world) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(w.url, "http://"))
}
