package tracing

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a collector that keeps what it gets. A request has the form of TracesData; its own type would bring all of gRPC.
func receiver(t *testing.T, status int) (address string, got <-chan *otlp.TracesData) {
	t.Helper()
	requests := make(chan *otlp.TracesData, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request otlp.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/base/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		requests <- &request
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/base", requests
}

func TestU216_spans_are_sent_by_OTLP_over_HTTP(t *testing.T) {
	t.Parallel()
	address, got := receiver(t, http.StatusOK)
	e, err := Start(t.Context(), Config{Endpoint: address, Sample: 1, Version: "v9", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, span := e.Tracer().Start(t.Context(), api.SpanStart{Name: "ff.command"})
	span.End("")
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent := (<-got).GetResourceSpans()[0]
	if name := sent.GetScopeSpans()[0].GetSpans()[0].GetName(); name != "ff.command" {
		t.Errorf("a span %s", name)
	}
	about := map[string]string{}
	for _, a := range sent.GetResource().GetAttributes() {
		about[a.GetKey()] = a.GetValue().GetStringValue()
	}
	if about["service.name"] != "flowfabric" || about["service.version"] != "v9" {
		t.Errorf("resource %v", about)
	}
}

func TestU196_a_sample_of_nothing_sends_no_trace_that_begins_here(t *testing.T) {
	t.Parallel()
	address, got := receiver(t, http.StatusOK)
	e, err := Start(t.Context(), Config{Endpoint: address, Sample: 0, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	tracer := e.Tracer()
	_, own := tracer.Start(t.Context(), api.SpanStart{Name: "own"})
	own.End("")
	above := tracer.Remote(t.Context(), flowfabric.TraceContext{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	_, child := tracer.Start(above, api.SpanStart{Name: "child"})
	child.End("")
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := (<-got).GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()
	if len(spans) != 1 || spans[0].GetName() != "child" {
		t.Errorf("sent %v", spans)
	}
}

func TestU217_a_collector_that_fails_is_told_once_a_minute(t *testing.T) {
	t.Parallel()
	address, _ := receiver(t, http.StatusBadRequest)
	var log bytes.Buffer
	e, err := Start(t.Context(), Config{Endpoint: address, Sample: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, span := e.Tracer().Start(t.Context(), api.SpanStart{Name: "lost"})
		span.End("")
		if err := e.provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
	p := &patient{SpanExporter: failing{}, log: slog.New(slog.NewTextHandler(&log, nil)), warnedAt: time.Now().Add(-quietFor), lost: 4}
	if err := p.ExportSpans(t.Context(), tracetest.SpanStubs{{Name: "x"}}.Snapshots()); err != nil || !strings.Contains(log.String(), "spans=5") {
		t.Errorf("%v %s", err, log.String())
	}
}

// failing is an exporter that fails.
type failing struct{ sdktrace.SpanExporter }

func (failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return io.ErrUnexpectedEOF
}
