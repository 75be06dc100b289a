package flowfabricprom_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabricprom"
	"github.com/flowfabric/flowfabric/sqlite"
)

var greet = flowfabric.Kind[string, string]("greet")

// open returns a client with an engine of its own that has run one execution, and the worker that ran it.
func open(t *testing.T) (*flowfabric.Client, *flowfabric.Worker) {
	t.Helper()
	client, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "prom.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{})
	flowfabric.Handle(worker, greet, func(_ context.Context, _ *flowfabric.Task, name string) (string, error) { return "hello " + name, nil })
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(running) }()
	run, err := greet.Submit(t.Context(), client, "world")
	if err == nil {
		_, err = run.Result(t.Context())
	}
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	return client, worker
}

// page is a text of metrics, taken apart.
type page struct {
	about  map[string]string // HELP and TYPE lines by metric
	values map[string]float64
}

func parse(t *testing.T, text string) page {
	t.Helper()
	p := page{map[string]string{}, map[string]float64{}}
	for line := range strings.Lines(text) {
		if words := strings.SplitN(line, " ", 4); words[0] == "#" {
			p.about[words[1]+" "+words[2]] = words[3]
			continue
		}
		at := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		p.values[line[:at]] = value
	}
	return p
}

func served(t *testing.T, handler http.Handler) page {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return parse(t, answer.Body.String())
}

// gathered is what a strict registry has of a collector. Its text must satisfy the linter of the library, too.
func gathered(t *testing.T, c prometheus.Collector) page {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return parse(t, text.String())
}

func TestU211_a_registry_of_the_program_shows_what_our_own_handlers_show(t *testing.T) {
	t.Parallel()
	client, worker := open(t)
	for _, c := range []struct {
		name      string
		handler   http.Handler
		collector prometheus.Collector
		certain   map[string]float64
	}{
		{"engine", client.Metrics(), flowfabricprom.New(client), map[string]float64{
			`ff_submitted_total{lane="default",namespace="default"}`: 1, `ff_ended_total{lane="default",status="succeeded"}`: 1,
			`ff_run_seconds_count{kind="greet",lane="default"}`: 1, `ff_run_seconds_bucket{kind="greet",lane="default",le="+Inf"}`: 1,
		}},
		{"worker", worker.Metrics(), flowfabricprom.NewWorker(worker), map[string]float64{
			`ff_worker_handler_seconds_count{kind="greet",outcome="succeeded"}`: 1, `ff_worker_tasks{kind="greet"}`: 0,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before, got, after := served(t, c.handler), gathered(t, c.collector), served(t, c.handler)
			for series, value := range c.certain {
				if got.values[series] != value || before.values[series] != value {
					t.Errorf("%s: %v, want %v; the handler shows %v", series, got.values[series], value, before.values[series])
				}
			}
			for line, about := range before.about {
				if got.about[line] != about {
					t.Errorf("%s: %q, want %q", line, got.about[line], about)
				}
			}
			for series, least := range before.values {
				value, found := got.values[series]
				name, _, _ := strings.Cut(series, "{")
				if gauge := before.about["TYPE "+name] == "gauge\n"; !found || !gauge && (value < least || value > after.values[series]) {
					t.Errorf("%s: %v (%v), before %v, after %v", series, value, found, least, after.values[series])
				}
			}
		})
	}
}

func TestU211_two_workers_of_a_process_are_told_apart_by_a_label_of_the_program(t *testing.T) {
	t.Parallel()
	client, first := open(t)
	registry := prometheus.NewPedanticRegistry()
	for name, worker := range map[string]*flowfabric.Worker{"first": first, "second": flowfabric.NewWorker(client, flowfabric.WorkerConfig{})} {
		if err := prometheus.WrapRegistererWith(prometheus.Labels{"worker": name}, registry).Register(flowfabricprom.NewWorker(worker)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
	if err := registry.Register(flowfabricprom.New(client)); err != nil {
		t.Errorf("the engine beside them: %v", err)
	}
}

func TestU211_an_engine_that_runs_elsewhere_is_refused(t *testing.T) {
	t.Parallel()
	client, err := flowfabric.Connect("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	if err := prometheus.NewRegistry().Register(flowfabricprom.New(client)); !errors.Is(err, flowfabricprom.ErrRemote) {
		t.Errorf("registered: %v", err)
	}
	metrics := make(chan prometheus.Metric, 1)
	flowfabricprom.New(client).Collect(metrics)
	if err := (<-metrics).Write(nil); !errors.Is(err, flowfabricprom.ErrRemote) {
		t.Errorf("collected: %v", err)
	}
}
