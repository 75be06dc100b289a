// Package flowfabricprom registers the metrics of FlowFabric in a Prometheus registry. It is for programs that embed an engine or run a
// worker and already serve /metrics with the Prometheus client library:
//
//	prometheus.MustRegister(flowfabricprom.New(client), flowfabricprom.NewWorker(worker))
//
// It is a module of its own, so that programs without Prometheus do not depend on its client library.
package flowfabricprom

import (
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// ErrRemote is reported by the collector of a client whose engine runs in a server: scrape the server's /metrics instead.
var ErrRemote = errors.New("flowfabricprom: the engine does not run in this process: scrape its server's /metrics")

// New returns a collector for the metrics of the engine of a client. The engine must run in this process; for a client made by
// flowfabric.Connect, registration and every scrape fail with ErrRemote.
func New(c *flowfabric.Client) prometheus.Collector { return newCollector(c.Metrics()) }

// NewWorker returns a collector for the metrics of a worker, wherever the engine runs. It can be registered before, during and
// after Run. Two workers of one process have the same metrics: wrap the registerer with a label that distinguishes them.
func NewWorker(w *flowfabric.Worker) prometheus.Collector { return newCollector(w.Metrics()) }

func newCollector(handler http.Handler) prometheus.Collector {
	source, local := handler.(metrics.Gatherer)
	if !local {
		return remote{}
	}
	return collector{source}
}

// collector exports the metrics of a Gatherer.
type collector struct{ source metrics.Gatherer }

// Describe sends the description of every metric, including those without readings.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	seen := map[string]bool{}
	for _, family := range c.source.Collect() {
		if !seen[family.Name] {
			seen[family.Name] = true
			out <- describe(&family)
		}
	}
}

// Collect sends the current readings.
func (c collector) Collect(out chan<- prometheus.Metric) {
	families, err := c.source.Gather()
	if err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for i := range families {
		desc := describe(&families[i])
		for _, sample := range families[i].Samples {
			metric, err := reading(desc, &families[i], sample)
			if err != nil {
				metric = prometheus.NewInvalidMetric(desc, err)
			}
			out <- metric
		}
	}
}

func describe(f *metrics.Family) *prometheus.Desc {
	labels := make([]string, len(f.Labels))
	for i, label := range f.Labels {
		labels[i] = label.Name
	}
	return prometheus.NewDesc(f.Name, f.Help, labels, nil)
}

// reading converts one sample.
func reading(desc *prometheus.Desc, f *metrics.Family, s metrics.Sample) (prometheus.Metric, error) {
	switch f.Type {
	case metrics.TypeCounter:
		return prometheus.NewConstMetric(desc, prometheus.CounterValue, s.Value, s.Labels...)
	case metrics.TypeGauge:
		return prometheus.NewConstMetric(desc, prometheus.GaugeValue, s.Value, s.Labels...)
	case metrics.TypeHistogram:
		buckets := make(map[float64]uint64, len(f.Buckets))
		for i, bound := range f.Buckets {
			if !math.IsInf(bound, 1) { // the library adds +Inf
				buckets[bound] = uint64(s.Points[i])
			}
		}
		return prometheus.NewConstHistogram(desc, uint64(s.Count), s.Value, buckets, s.Labels...)
	case metrics.TypeSummary:
		quantiles := make(map[float64]float64, len(f.Buckets))
		for i, quantile := range f.Buckets {
			quantiles[quantile] = s.Points[i]
		}
		return prometheus.NewConstSummary(desc, uint64(s.Count), s.Value, quantiles, s.Labels...)
	default:
		return nil, fmt.Errorf("flowfabricprom: %s has the unknown type %q", f.Name, f.Type)
	}
}

// remote is the collector of an engine in another process.
type remote struct{}

// Describe fails the registration.
func (remote) Describe(out chan<- *prometheus.Desc) { out <- prometheus.NewInvalidDesc(ErrRemote) }

// Collect fails the scrape.
func (remote) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(ErrRemote), ErrRemote)
}
