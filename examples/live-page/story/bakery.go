package story

import (
	"context"
	_ "embed"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/examples/llm"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// Bake is the work that the page follows.
const Bake flowfabric.Kind[string, string] = "bake"

// page is the whole page. It needs no library and no build.
//
//go:embed page.html
var page []byte

// recipe is what the worker does, and what a model dictates to it meanwhile.
var recipe = []struct{ doing, dictation string }{
	{"mixing", "Beat butter and sugar, melt the chocolate, fold in the whites of six eggs. "},
	{"baking", "Bake it for an hour, and leave it until it is cold. "},
	{"icing", "Warm the apricot jam, spread it, and pour the icing over the cake."},
}

// lease is that of the worker processes: short, so that a takeover does not take long.
const lease = time.Second

// The pause of the model after each word: in the worker processes, which people look at and the story kills, and in the worker that
// ends the story.
const (
	slow  = 200 * time.Millisecond
	quick = 40 * time.Millisecond
)

// newWorker bakes. What the model dictates goes to the stream of the attempt, word by word.
func newWorker(s *stage.Stage, client *flowfabric.Client, pause, ttl time.Duration) *flowfabric.Worker {
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, LeaseTTL: ttl, Logger: s.Log})
	flowfabric.Handle(w, Bake, func(ctx context.Context, t *flowfabric.Task, cake string) (string, error) {
		out := t.Stream(ctx)
		for i, step := range recipe {
			if err := t.Progress(ctx, 10+30*i, step.doing); err != nil {
				return "", err
			}
			if _, err := llm.Recite(ctx, step.dictation, pause, out); err != nil {
				return "", err
			}
		}
		return cake + " is ready", out.Flush()
	})
	return w
}

// bakery serves the page, and has a worker process that can be killed.
type bakery struct {
	*stage.Stage
	client *flowfabric.Client
	server string // address of the API

	mu      sync.Mutex
	process *exec.Cmd // nil: there is none
}

// routes are the page, the buttons on it, and what the page reads.
func (b *bakery) routes(ctx context.Context) (http.Handler, error) {
	reads, err := b.reads()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // a browser that went away needs none
	})
	mux.HandleFunc("POST /runs", func(w http.ResponseWriter, r *http.Request) {
		run, err := b.bake(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		http.Redirect(w, r, "/?run="+string(run.ID()), http.StatusSeeOther)
	})
	mux.HandleFunc("POST /kill", func(w http.ResponseWriter, _ *http.Request) {
		b.kill()
		if err := b.start(ctx); err != nil { // the worker is none of this request's
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	for _, what := range []string{"", "/events", "/stream"} {
		mux.Handle("GET /flowfabric/v1/executions/{id}"+what, http.StripPrefix("/flowfabric", reads))
	}
	return mux, nil
}

// reads passes on to the server what the page asks. The key stays here.
func (b *bakery) reads() (http.Handler, error) {
	to, err := url.Parse(b.server)
	if err != nil {
		return nil, err
	}
	quiet := slog.NewLogLogger(b.Log.Handler(), slog.LevelDebug) // browsers come and go
	return &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: quiet, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Del("Origin") // the page is this program's: to the server the caller is the program
		if b.Key != "" {
			r.Out.Header.Set("Authorization", "Bearer "+b.Key)
		}
	}}, nil
}

// bake submits a cake.
func (b *bakery) bake(ctx context.Context) (*flowfabric.Run[string], error) {
	return Bake.Submit(ctx, b.client, "sacher", flowfabric.SubmitOptions{Lane: b.Name})
}

// start starts a worker process, unless there is one.
func (b *bakery) start(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil {
		return nil
	}
	process := b.AgainOn(ctx, b.server)
	if err := process.Start(); err != nil {
		return err
	}
	b.process = process
	return nil
}

// kill kills the worker process.
func (b *bakery) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil {
		_ = b.process.Process.Kill() // it may have ended
		_ = b.process.Wait()         // it was killed
		b.process = nil
	}
}
