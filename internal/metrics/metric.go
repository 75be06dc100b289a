// Package metrics is what FlowFabric measures: one table of metrics as data, and the instruments made from it, so that no name,
// label or help is written twice. It knows nothing of what is measured.
package metrics

import "slices"

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
	TypeSummary   Type = "summary" // of Go's runtime alone
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
	// Buckets are the upper bounds of a histogram, or the quantiles of a summary.
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

// Gauge is a metric that goes up and down.
type Gauge struct{ Metric }

// Histogram is a metric of how values are spread.
type Histogram struct{ Metric }
