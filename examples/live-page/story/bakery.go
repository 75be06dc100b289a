package story

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// Bake is the work that the page follows.
const Bake flowfabric.Kind[string, string] = "bake"

// page is the whole page. It needs no library and no build.
//
//go:embed page.html
var page []byte

// bakery serves the page and does the work.
type bakery struct {
	*stage.Stage
	client *flowfabric.Client
	pace   time.Duration // of the work
}

// routes are the page, the button on it, and what the page reads.
func (b *bakery) routes() (http.Handler, error) {
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
	mux.Handle("GET /flowfabric/v1/executions/{id}", http.StripPrefix("/flowfabric", reads))
	mux.Handle("GET /flowfabric/v1/executions/{id}/events", http.StripPrefix("/flowfabric", reads))
	return mux, nil
}

// reads answers what the page asks: the server inside this program, or the given one, whose key stays here.
func (b *bakery) reads() (http.Handler, error) {
	if b.Server == "" {
		return flowfabrichttp.New(b.client, flowfabrichttp.Config{Open: true, Logger: b.Log})
	}
	to, err := url.Parse(b.Server)
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

// bake hands in a cake.
func (b *bakery) bake(ctx context.Context) (*flowfabric.Run[string], error) {
	return Bake.Submit(ctx, b.client, "sacher", flowfabric.SubmitOptions{Lane: b.Name, Policy: &flowfabric.Policy{
		Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: b.pace}},
	}})
}

// worker bakes. The oven is cold at first, so that there is something to see.
func (b *bakery) worker() *flowfabric.Worker {
	w := flowfabric.NewWorker(b.client, flowfabric.WorkerConfig{Lanes: []string{b.Name}, Logger: b.Log})
	flowfabric.Handle(w, Bake, func(ctx context.Context, t *flowfabric.Task, cake string) (string, error) {
		if t.Attempt().Index == 0 {
			return "", errors.New("the oven is cold")
		}
		for i, doing := range []string{"mixing", "baking", "icing"} {
			if err := t.Progress(ctx, 10+30*i, doing); err != nil {
				return "", err
			}
			select {
			case <-time.After(b.pace):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return cake + " is ready", nil
	})
	return w
}
