// Package metrics declares the metrics of FlowFabric as one table, and the instruments for them, so that no name, label or help
// text is written twice. It does not know what is measured.
package metrics

import "slices"

// Other replaces all values of a label beyond the limit.
const Other = "_other"

// MaxValues is how many lanes, kinds and namespaces get their own label value (U199).
const MaxValues = 100

// Type is the kind of a metric.
type Type string

// The types.
const (
	TypeCounter   Type = "counter"
	TypeGauge     Type = "gauge"
	TypeHistogram Type = "histogram"
	TypeSummary   Type = "summary" // only for Go's runtime
)

// Place is where a metric is measured.
type Place string

// The places.
const (
	Server Place = "server" // requests of the HTTP server
	Engine Place = "engine" // an engine, with or without a server, and its store
	Worker Place = "worker" // a worker process
)

// Label is a label of a metric.
type Label struct {
	Name   string
	Values []string // all possible values; none: they depend on the installation and are bounded
}

// Metric describes a metric. Names and labels are part of the stable contract.
type Metric struct {
	Rule   string // of the specification
	Name   string
	Type   Type
	Place  Place
	Labels []Label
	Help   string
	// Buckets are the upper bounds of a histogram, or the quantiles of a summary.
	Buckets []float64
}

// Describe returns the metric, whatever its type.
func (m Metric) Describe() Metric { return m }

// LabelNames are the names of the labels, in order.
func (m Metric) LabelNames() []string {
	var names []string
	for _, l := range m.Labels {
		names = append(names, l.Name)
	}
	return names
}

// combinations returns all possible label values; none if they depend on the installation. Samples that exist from the start let
// rate() see the first increase.
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

// Gauge is a metric that goes up and down.
type Gauge struct{ Metric }

// Histogram is a metric of the distribution of values.
type Histogram struct{ Metric }
