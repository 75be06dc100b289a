// Package metrics is what FlowFabric measures: one table of metrics as data, and the instruments made from it, so that no name,
// label or help is written twice. It knows nothing of what is measured.
package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Other stands for all values of a label beyond those that it may have.
const Other = "_other"

// MaxValues is how many lanes, kinds and namespaces become labels of their own (U199).
const MaxValues = 100

// Type is the kind of a metric.
type Type string

// The types.
const (
	TypeCounter   Type = "counter"
	TypeGauge     Type = "gauge"
	TypeHistogram Type = "histogram"
)

// Place is where a metric is measured.
type Place string

// The places.
const (
	Server Place = "server" // the HTTP server, of its requests
	Engine Place = "engine" // an engine, with or without a server, and its store
	Worker Place = "worker" // the process of a worker
)

// Label is a label of a metric.
type Label struct {
	Name   string
	Values []string // all that it can have; none: they depend on the installation and are bounded
}

// Metric describes a metric. Names and labels are part of the stable contract.
type Metric struct {
	Rule   string // of the specification
	Name   string
	Type   Type
	Place  Place
	Labels []Label
	Help   string
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
}

// Describe is the metric itself, whatever its type.
func (m Metric) Describe() Metric { return m }

// LabelNames are the names of the labels, in order.
func (m Metric) LabelNames() []string {
	var names []string
	for _, l := range m.Labels {
		names = append(names, l.Name)
	}
	return names
}

// Desc is the description of a metric whose samples are made when they are asked for.
func (m Metric) Desc() *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.LabelNames(), nil)
}

// combinations are all label values that the metric can have; none when they depend on the installation. Samples that exist from
// the start let a rate see the first step.
func (m Metric) combinations() [][]string {
	all := [][]string{nil}
	for _, l := range m.Labels {
		var longer [][]string
		for _, head := range all {
			for _, value := range l.Values {
				longer = append(longer, append(slices.Clip(head), value))
			}
		}
		all = longer
	}
	return all
}

// Counter is a metric that only grows.
type Counter struct{ Metric }

// New makes the counters, one for each combination of labels.
func (c Counter) New() *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: c.Name, Help: c.Help}, c.LabelNames())
	for _, values := range c.combinations() {
		v.WithLabelValues(values...)
	}
	return v
}

// Sample is one reading of a counter that is kept elsewhere, made when it is asked for.
func (c Counter) Sample(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, labels...)
}

// Gauge is a metric that goes up and down.
type Gauge struct{ Metric }

// New makes the gauges, one for each combination of labels.
func (g Gauge) New() *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: g.Name, Help: g.Help}, g.LabelNames())
	for _, values := range g.combinations() {
		v.WithLabelValues(values...)
	}
	return v
}

// Sample is one reading of a gauge, made when it is asked for.
func (g Gauge) Sample(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// Histogram is a metric of how values are spread.
type Histogram struct{ Metric }

// New makes the histograms, one for each combination of labels.
func (h Histogram) New() *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: h.Name, Help: h.Help, Buckets: h.Buckets}, h.LabelNames())
	for _, values := range h.combinations() {
		v.WithLabelValues(values...)
	}
	return v
}
