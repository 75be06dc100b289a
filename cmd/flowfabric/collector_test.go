package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

type collectorKey struct{}

// spans are the names of the spans that the collector of a script got.
type spans struct {
	mu    sync.Mutex
	names []string
}

// startCollector listens for spans: COLLECTOR is then where.
func startCollector(ts *testscript.TestScript, _ bool, _ []string) {
	got := ts.Value(collectorKey{}).(*spans)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request otlp.TracesData // a request has that form; its own type would bring all of gRPC
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			http.Error(w, "not spans", http.StatusBadRequest)
			return
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		for _, about := range request.GetResourceSpans() {
			for _, scope := range about.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					got.names = append(got.names, span.GetName())
				}
			}
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("COLLECTOR", server.URL)
}

// collected wants a span of each name, or with ! none at all, and forgets all of them. A server sends the last ones before it ends.
func collected(ts *testscript.TestScript, neg bool, args []string) {
	got := ts.Value(collectorKey{}).(*spans)
	got.mu.Lock()
	defer got.mu.Unlock()
	if neg && len(got.names) > 0 {
		ts.Fatalf("there are spans: %q", got.names)
	}
	for _, name := range args {
		if !slices.Contains(got.names, name) {
			ts.Fatalf("no span %q in %q", name, got.names)
		}
	}
	got.names = nil
}
