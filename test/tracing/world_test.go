package tracing

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/flowfabricotel"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/server"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

// patience bounds what a test waits for.
const patience = 5 * time.Minute

var stores = map[string]func(t testing.TB) string{
	"sqlite":   func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "app.db") },
	"postgres": func(t testing.TB) string { return cluster.Database(t) },
}

// world is a client whose spans, and those of its server, are kept.
type world struct {
	*flowfabric.Client
	t     *testing.T
	http  bool
	host  *clock.Manual // the clock of the store; nil: its own
	seen  *tracetest.SpanRecorder
	spans trace.Tracer // of the program that uses the client
	log   *lines
}

// onEveryStore runs a test on each store, with the engine in this process and over HTTP.
func onEveryStore(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, address := range stores {
		for form, overHTTP := range map[string]bool{name: false, name + " over http": true} {
			t.Run(form, func(t *testing.T) {
				t.Parallel()
				test(t, newWorld(t, address(t), nil, overHTTP))
			})
		}
	}
}

// onTurnedStores is onEveryStore with a clock that only the test turns.
func onTurnedStores(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, address := range stores {
		for form, overHTTP := range map[string]bool{name: false, name + " over http": true} {
			t.Run(form, func(t *testing.T) {
				t.Parallel()
				test(t, newWorld(t, address(t), clock.NewManual(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)), overHTTP))
			})
		}
	}
}

func newWorld(t *testing.T, address string, host *clock.Manual, overHTTP bool) *world {
	t.Helper()
	w := &world{t: t, http: overHTTP, host: host, seen: tracetest.NewSpanRecorder(), log: &lines{}}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.seen))
	w.spans = provider.Tracer("test")
	tracer := flowfabricotel.New(provider)
	hooks := engine.Hooks{UnsafeDurability: true}
	if host != nil {
		hooks.Clock = host
	}
	client, err := embedded.Open(engine.WithHooks(t.Context(), hooks), address,
		embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: silent(), Tracer: tracer}})
	must(t, err)
	t.Cleanup(func() { must(t, client.Close(context.WithoutCancel(t.Context()))) })
	if w.Client = client; !overHTTP {
		return w
	}
	on, _ := inprocess.BackendOf(client)
	s, err := server.New(on, server.Config{Open: true, Logger: silent(), Tracer: tracer})
	must(t, err)
	listener := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.Drain()
		listener.Close()
	})
	w.Client, err = flowfabric.Connect(listener.URL, flowfabric.ConnectConfig{Tracer: tracer})
	must(t, err)
	t.Cleanup(func() { must(t, w.Client.Close(context.WithoutCancel(t.Context()))) })
	return w
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(part []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(part)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// work runs a worker until the test ends.
func (w *world) work(register func(*flowfabric.Worker)) {
	w.t.Helper()
	worker := flowfabric.NewWorker(w.Client, flowfabric.WorkerConfig{Logger: slog.New(slog.NewTextHandler(w.log, nil))})
	register(worker)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		for { // a worker waits for its claims for up to 2 s of its clock, which may be one that only the test turns
			select {
			case err := <-done:
				must(w.t, err)
				return
			case <-time.After(10 * time.Millisecond):
				if w.host != nil {
					w.host.TurnTo(w.host.Now().Add(time.Second))
				}
			}
		}
	})
}

// wait returns when the execution has ended. Its span may end a moment later.
func (w *world) wait(id flowfabric.ID) *flowfabric.Execution {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	x, err := w.Wait(ctx, id)
	must(w.t, err)
	return x
}

// eventually waits for a condition.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			w.t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// kept is a span that has ended.
type kept = sdktrace.ReadOnlySpan

// find lists the ended spans of a name with these attributes, given as pairs.
func (w *world) find(name string, pairs ...string) []kept {
	var found []kept
	for _, s := range w.seen.Ended() {
		fits := s.Name() == name
		for i := 0; i < len(pairs); i += 2 {
			fits = fits && attr(s, pairs[i]) == pairs[i+1]
		}
		if fits {
			found = append(found, s)
		}
	}
	return found
}

// one waits for the one span of a name with these attributes.
func (w *world) one(name string, pairs ...string) kept {
	w.t.Helper()
	var found []kept
	w.eventually("a span "+name+" "+strings.Join(pairs, " "), func() bool {
		found = w.find(name, pairs...)
		return len(found) > 0
	})
	if len(found) > 1 {
		w.t.Fatalf("%d spans %s %v", len(found), name, pairs)
	}
	return found[0]
}

// attr is an attribute as text; "" when it is not there.
func attr(s kept, name string) string {
	for _, a := range s.Attributes() {
		if a.Key == attribute.Key(name) {
			return a.Value.String()
		}
	}
	return ""
}

// under reports whether a span is below another one, however far.
func (w *world) under(s kept, above trace.SpanContext) bool {
	parents := map[trace.SpanID]trace.SpanID{}
	for _, other := range w.seen.Started() {
		parents[other.SpanContext().SpanID()] = other.Parent().SpanID()
	}
	for at := s.Parent().SpanID(); at.IsValid(); at = parents[at] {
		if at == above.SpanID() {
			return s.SpanContext().TraceID() == above.TraceID()
		}
	}
	return false
}

// linked reports whether a span has a link to another one.
func linked(s kept, to trace.SpanContext) bool {
	for _, l := range s.Links() {
		if l.SpanContext.SpanID() == to.SpanID() && l.SpanContext.TraceID() == to.TraceID() {
			return true
		}
	}
	return false
}
