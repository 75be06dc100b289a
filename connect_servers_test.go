package flowfabric_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/ops"
)

// mortal is a server that a test can kill: its listener and its connections close, as when its process dies.
type mortal struct {
	*httptest.Server
	calls atomic.Int64 // but for greetings
	fails atomic.Pointer[func(w http.ResponseWriter, r *http.Request, serve http.Handler)]
	dead  atomic.Bool
}

func (m *mortal) kill() {
	m.dead.Store(true)
	_ = m.Listener.Close()
	m.CloseClientConnections()
}

// startMortal serves the engine of a client.
func startMortal(t testing.TB, c *flowfabric.Client) *mortal {
	t.Helper()
	s := must[*server.Server](t)(server.New(backend(c), server.Config{Open: true, Logger: silent()}))
	m := &mortal{}
	handler := s.Handler()
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.dead.Load() {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path != "/healthz" {
			m.calls.Add(1)
		}
		if fail := m.fails.Load(); fail != nil {
			(*fail)(w, r, handler)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Drain()
		m.Close()
	})
	return m
}

// pair are two servers of one store; on Postgres each has an engine of its own.
type pair struct {
	*world
	a, b *mortal
}

// onPairs runs a test with two servers of one store, and a client that has the addresses of both.
func onPairs(t *testing.T, test func(t *testing.T, p *pair, client *flowfabric.Client)) {
	t.Helper()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := address(t)
			first := openWorld(t, url, engine.Hooks{})
			second := first
			if name == "postgres" {
				second = openWorld(t, url, engine.Hooks{})
			}
			p := &pair{world: first, a: startMortal(t, first.Client), b: startMortal(t, second.Client)}
			test(t, p, connect(t, p.a.URL+", "+p.b.URL, flowfabric.ConnectConfig{}))
		})
	}
}

// inUse returns the server that a client uses, and the other one.
func (p *pair) inUse(t testing.TB, client *flowfabric.Client) (used, other *mortal) {
	t.Helper()
	before := p.a.calls.Load()
	must[flowfabric.Page[*api.Lane]](t)(client.Lanes().Page(inTime(t)))
	if p.a.calls.Load() > before {
		return p.a, p.b
	}
	return p.b, p.a
}

func TestU132_a_worker_whose_server_dies_goes_on_at_another(t *testing.T) {
	t.Parallel()
	onPairs(t, func(t *testing.T, p *pair, _ *flowfabric.Client) {
		ctx := inTime(t)
		// Only the pause before a move is short: a call that waited for a back-off would wait beyond the end of the test.
		never := flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: 1000 * time.Hour}}
		client := connect(t, p.a.URL+", "+p.b.URL, flowfabric.ConnectConfig{Retry: never})
		working := &world{Client: client}
		working.work(t, flowfabric.WorkerConfig{Concurrency: 4}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
		})
		if got, err := must[*flowfabric.Run[int]](t)(double.Submit(ctx, client, 4)).Result(ctx); got != 8 || err != nil {
			t.Fatalf("%d, %v", got, err)
		}
		used, _ := p.inUse(t, client)
		used.kill()
		began := time.Now()
		if got, err := must[*flowfabric.Run[int]](t)(double.Submit(ctx, client, 5)).Result(ctx); got != 10 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
		t.Logf("work goes on %s after the server died", time.Since(began))
	})
}

func TestU15_a_command_of_unknown_outcome_is_repeated_at_another_server_under_its_key(t *testing.T) {
	t.Parallel()
	onPairs(t, func(t *testing.T, p *pair, client *flowfabric.Client) {
		ctx := inTime(t)
		used, other := p.inUse(t, client)
		die := func(_ http.ResponseWriter, r *http.Request, serve http.Handler) {
			serve.ServeHTTP(httptest.NewRecorder(), r) // it is carried out, and no answer comes
			used.dead.Store(true)
			panic(http.ErrAbortHandler)
		}
		used.fails.Store(&die)
		before := other.calls.Load()
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, client, 3))
		if run.Duplicate() || other.calls.Load() == before {
			t.Errorf("duplicate %v, %d calls at the other server", run.Duplicate(), other.calls.Load()-before)
		}
		if n := must[api.Count](t)(p.Executions().Count(ctx, ops.Filter{})); n.Total != 1 {
			t.Errorf("%d executions, want 1", n.Total)
		}
	})
}

func TestU132_waits_and_feeds_resume_at_another_server(t *testing.T) {
	t.Parallel()
	onPairs(t, func(t *testing.T, p *pair, client *flowfabric.Client) {
		ctx := inTime(t)
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, client, 3))
		waited, followed := make(chan error, 1), make(chan []string, 1)
		go func() {
			_, err := client.Wait(ctx, run.ID())
			waited <- err
		}()
		used, _ := p.inUse(t, client)
		started := make(chan struct{})
		go func() {
			var kinds []string
			for event, err := range client.Events().Follow(ctx, ops.ReadOptions{After: api.FromStart, EventFilter: ops.EventFilter{ExecutionID: run.ID()}}) {
				if err != nil {
					t.Errorf("Follow: %v", err)
					break
				}
				if kinds = append(kinds, event.Kind); len(kinds) == 1 {
					close(started)
				}
				if event.Kind == "execution.completed" {
					break
				}
			}
			followed <- kinds
		}()
		receive(t, started)
		used.kill()
		must[*flowfabric.Execution](t)(p.Client.Cancel(ctx, run.ID(), "enough"))
		if err := receive(t, waited); err != nil {
			t.Errorf("Wait: %v", err)
		}
		if kinds := receive(t, followed); !slices.Equal(kinds, []string{"execution.submitted", "execution.cancel_requested", "execution.completed"}) {
			t.Errorf("followed %q", kinds)
		}
	})
}

// A server that is stopped, or whose machine is gone, keeps its connections and answers nothing.
func TestU132_a_server_that_falls_silent_is_left(t *testing.T) {
	t.Parallel()
	onPairs(t, func(t *testing.T, p *pair, client *flowfabric.Client) {
		ctx := inTime(t)
		used, _ := p.inUse(t, client)
		thaw := make(chan struct{})
		t.Cleanup(func() { close(thaw) })
		freeze := func(http.ResponseWriter, *http.Request, http.Handler) {
			<-thaw // it does not even notice that the client has gone
			panic(http.ErrAbortHandler)
		}
		used.fails.Store(&freeze)
		began := time.Now()
		must[*flowfabric.Run[int]](t)(double.Submit(ctx, client, 3))
		t.Logf("submitted %s after the server fell silent", time.Since(began))
		if n := must[api.Count](t)(p.Executions().Count(ctx, ops.Filter{})); n.Total != 1 {
			t.Errorf("%d executions, want 1", n.Total)
		}
	})
}

func TestU132_servers_of_two_installations_are_refused(t *testing.T) {
	t.Parallel()
	one, two := openSQLite(t, engine.Hooks{}), openSQLite(t, engine.Hooks{})
	a, b := startMortal(t, one.Client), startMortal(t, two.Client)
	client := connect(t, a.URL+","+b.URL, flowfabric.ConnectConfig{})
	for range 2 {
		_, err := double.Submit(inTime(t), client, 1)
		if flowfabric.CodeOf(err) != "wrong_database" || !strings.Contains(err.Error(), a.URL) || !strings.Contains(err.Error(), b.URL) {
			t.Errorf("%v, want wrong_database with both addresses", err)
		}
	}
	if n := a.calls.Load() + b.calls.Load(); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

// One that could not be greeted at first refuses what is meant for another installation.
func TestU132_a_server_of_another_installation_that_comes_later_carries_nothing_out(t *testing.T) {
	t.Parallel()
	ctx := inTime(t)
	one, two := openSQLite(t, engine.Hooks{}), openSQLite(t, engine.Hooks{})
	a, b := startMortal(t, one.Client), startMortal(t, two.Client)
	b.dead.Store(true)
	client := connect(t, a.URL+","+b.URL, flowfabric.ConnectConfig{})
	must[*flowfabric.Run[int]](t)(double.Submit(ctx, client, 1))
	b.dead.Store(false)
	a.kill()
	_, err := double.Submit(ctx, client, 2)
	for flowfabric.CodeOf(err) == "store_unavailable" && ctx.Err() == nil { // until the one that could not be greeted is tried again
		_, err = double.Submit(ctx, client, 2)
	}
	if flowfabric.CodeOf(err) != "wrong_database" || !strings.Contains(err.Error(), b.URL) {
		t.Errorf("%v, want wrong_database with %s", err, b.URL)
	}
	if n := must[api.Count](t)(two.Executions().Count(ctx, ops.Filter{})); n.Total != 0 {
		t.Errorf("%d executions in the other installation", n.Total)
	}
}

func TestU132_a_bad_address_in_a_list_is_refused(t *testing.T) {
	t.Parallel()
	for _, servers := range []string{
		"", ",", "https://a,", ",https://a", "https://a,,https://b", "https://a,b", "https://a,ftp://b", "https://a,https://a/", "https://a,https://u:p@b", "https://a https://b",
		"https://a?x=1,https://b", strings.Repeat("https://a,", 3) + "https://b",
	} {
		if _, err := flowfabric.Connect(servers); flowfabric.CodeOf(err) != "invalid_argument" || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: %v, want invalid_argument", servers, err)
		}
	}
	client, err := flowfabric.Connect("https://a/ff/ , https://b:1")
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close(t.Context())
}
