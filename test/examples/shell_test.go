package examples

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	shell "github.com/flowfabric/flowfabric/examples/shell-worker/story"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/internal/aptget"
)

// shellWorker is the story with the program that these tests have built.
func shellWorker(t *testing.T) stage.Story {
	t.Helper()
	if err := aptget.Need(t.Context(), "curl", "jq"); err != nil {
		t.Fatal(err)
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return stage.Story{Name: "shell-worker", Tell: func(ctx context.Context, s *stage.Stage) error { return shell.Tell(ctx, s, path) }}
}

func TestU245_curl_and_jq_make_a_worker_and_so_does_any_program(t *testing.T) {
	t.Parallel()
	story := shellWorker(t)
	on(t, story, "sqlite", func(t *testing.T) stage.Stage { return stage.Stage{Store: sqliteStore(t)} }, checkShellWorker)
	on(t, story, "postgres", func(t *testing.T) stage.Stage { return stage.Stage{Store: cluster.Database(t)} }, checkShellWorker)
}

func checkShellWorker(t *testing.T, p *place) {
	t.Helper()
	c := p.open(t, "default")
	var results []string
	for _, x := range executions(t, c, p.Name) {
		if x.Kind == string(shell.Upper) {
			results = append(results, string(x.Result.Data))
			continue
		}
		results = append(results, strings.Join(append([]string{string(x.Status)}, categories(t, c, x.ID)...), " "))
		if steps, err := c.Executions().Steps(t.Context(), x.ID); err != nil || len(steps) != 1 || steps[0].AttemptIndex != 0 {
			t.Errorf("%+v, %v", steps, err)
		}
		if x.Progress == nil || *x.Progress.Percent != 10 {
			t.Errorf("progress %+v", x.Progress)
		}
	}
	slices.Sort(results) // those of one millisecond come in any order
	want := []string{"HELLO FROM TR", "failed bad_input", "succeeded", "succeeded", "succeeded out_of_focus"}
	if !slices.Equal(results, want) {
		t.Errorf("%q, want %q", results, want)
	}
}

// passing notes the routes of requests on their way to a server, and what they were answered.
type passing struct {
	next http.Handler

	mu     sync.Mutex
	routes map[string]int // "POST /v1/workers 200": how often
}

var anyID = regexp.MustCompile(`/(executions|waitpoints)/[^/]+`)

func (p *passing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route := r.Method + " " + anyID.ReplaceAllString(r.URL.Path, "/$1/ID") + " "
	p.next.ServeHTTP(&status{w, func(code int) { p.note(route + http.StatusText(code)) }}, r)
}

func (p *passing) note(route string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes[route]++
}

func (p *passing) seen() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.routes)
}

// status notes the status of an answer before anybody has it.
type status struct {
	http.ResponseWriter
	note func(code int)
}

// WriteHeader notes the status. A proxy always calls it.
func (s *status) WriteHeader(code int) { s.note(code); s.ResponseWriter.WriteHeader(code) }

// Unwrap lets the server find what the writer can do.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func TestU59_a_worker_of_curl_and_jq_goes_through_the_whole_life(t *testing.T) {
	t.Parallel()
	story := shellWorker(t)
	noted := &passing{routes: map[string]int{}}
	on(t, story, "server", func(t *testing.T) stage.Stage {
		s := serve(t, sqliteStore(t), "default")
		to, err := url.Parse(s.Server)
		if err != nil {
			t.Fatal(err)
		}
		noted.next = proxyTo(to)
		address, stop, err := stage.Serve(t.Context(), noted)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stop() })
		s.Server = address
		return s
	}, func(t *testing.T, p *place) {
		checkShellWorker(t, p)
		c := p.open(t, "default")
		worker, err := c.Workers().Get(t.Context(), p.Name)
		if err != nil || worker.WorkerID != "shell-worker" || worker.State != "draining" {
			t.Errorf("%+v, %v", worker, err)
		}
		routes := noted.seen()
		for _, want := range []string{
			"POST /v1/workers OK", "POST /v1/work/claim OK", "POST /v1/workers/" + p.Name + "/heartbeat OK",
			"POST /v1/executions/ID/renew OK", "POST /v1/executions/ID/progress OK", "PUT /v1/executions/ID/steps/fetch Created", "PUT /v1/executions/ID/steps/fetch OK",
			"POST /v1/executions/ID/fail OK", "POST /v1/executions/ID/complete OK", "POST /v1/executions/ID/suspend OK", "POST /v1/waitpoints/ID/signals OK",
		} {
			if routes[want] == 0 {
				t.Errorf("no %q among %v", want, routes)
			}
		}
	})
}

// proxyTo passes requests on to a server, below its prefix.
func proxyTo(to *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
	}
}

func TestU249_the_suite_of_a_user_runs_on_postgres_too(t *testing.T) {
	t.Parallel()
	suite := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-run", "two_weeks", "github.com/flowfabric/flowfabric/examples/testing")
	suite.Env = append(os.Environ(), "TEST_STORE="+cluster.Database(t))
	if out, err := suite.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
