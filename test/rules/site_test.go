package rules

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/server/apitest"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

// sites are the servers that tests share, by store. A store of its own for each of them would cost more than all that they ask.
var sites = map[string]*site{
	"sqlite":   {address: func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "app.db") }},
	"postgres": {address: func(t testing.TB) string { return cluster.Again(t).URL }},
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(shared{m})) }

// shared ends the servers after the tests, and holds that nothing was miscounted by all of them together.
type shared struct{ tests pgtest.Tests }

func (s shared) Run() int {
	code := s.tests.Run()
	for name, at := range sites {
		if at.serving == nil {
			continue
		}
		report, err := at.client.Admin().Integrity(context.Background())
		if err != nil || !report.OK {
			fmt.Fprintf(os.Stderr, "%s is not sound: %v %+v\n", name, err, report.Differences)
			code = 1
		}
		at.close()
		for _, fault := range at.faults {
			fmt.Fprintf(os.Stderr, "%s: %s\n", name, fault)
			code = 1
		}
	}
	return code
}

// site is a server on a store, opened by the first test that asks for it.
type site struct {
	address func(t testing.TB) string
	once    sync.Once
	*serving
	ends   []func()
	faults []string // told after the tests
}

// lasting is a test whose things are kept until the site is closed.
type lasting struct {
	testing.TB
	at *site
}

func (l lasting) Cleanup(f func())         { l.at.ends = append(l.at.ends, f) }
func (l lasting) Context() context.Context { return context.WithoutCancel(l.TB.Context()) }

// Errorf keeps what went wrong: the test may be over by then.
func (l lasting) Errorf(format string, args ...any) {
	l.at.faults = append(l.at.faults, fmt.Sprintf(format, args...))
}

func (l lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *site) of(t testing.TB) *serving {
	s.once.Do(func() {
		l := lasting{t, s}
		s.serving = serve(l, s.address(l), engine.Hooks{})
	})
	if s.serving == nil {
		t.Fatal("the server did not start")
	}
	return s.serving
}

func (s *site) close() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
}

// serving is a server that listens.
type serving struct {
	client *flowfabric.Client
	url    string
	http   *http.Client
	routes *apitest.Routes
	last   atomic.Int64 // namespace that was given to a test
}

// tester may do everything everywhere.
var tester = server.Key{ID: "tester", Name: "tester", Roles: []string{"read", "submit", "work", "operate", "admin"}, Namespaces: []string{"*"}}

// serve serves a store until the test ends.
func serve(t testing.TB, address string, hooks engine.Hooks) *serving {
	t.Helper()
	hooks.UnsafeDurability = true
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	client, err := embedded.Open(cluster.Keeping(engine.WithHooks(t.Context(), hooks), address), address, embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: logger}})
	if err != nil {
		t.Fatal(err)
	}
	on, _ := inprocess.BackendOf(client)
	s, err := server.New(on, server.Config{Logger: logger, Login: func(*http.Request) (*server.Key, error) { return &tester, nil }})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(s.Handler())
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(func() {
		s.Drain()
		transport.CloseIdleConnections()
		listener.Close()
		if err := client.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	up := &serving{client: client, url: listener.URL, http: &http.Client{Transport: transport}}
	document.once.Do(func() { document.routes = up.described(t) })
	if document.routes == nil {
		t.Fatal("the document could not be read")
	}
	up.routes = document.routes
	return up
}

// document is what servers that are configured as these are serve as their description: to write it costs as much as many tests.
var document struct {
	once   sync.Once
	routes *apitest.Routes
}

// described is the document that the server serves.
func (s *serving) described(t testing.TB) *apitest.Routes {
	t.Helper()
	got, err := s.http.Get(s.url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := apitest.ReadRoutes(text)
	if err != nil {
		t.Fatal(err)
	}
	return routes
}
