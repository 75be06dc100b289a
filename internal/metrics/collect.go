package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Sample is one reading of a metric.
type Sample struct {
	Labels []string // their values, in the order of the metric's labels
	Value  float64  // of a histogram or summary the sum
	Count  float64  // of values that a histogram or summary has seen
	// Points has one entry a bucket: of a histogram how many values were no higher than the bound, of a summary the quantile.
	Points []float64
}

// Family is a metric with its present readings, which may be none.
type Family struct {
	Metric
	Samples []Sample
}

// Family is the metric without readings.
func (m Metric) Family() Family { return Family{Metric: m} }

// Reading is the metric with one reading, of a counter or gauge.
func (m Metric) Reading(value float64, labels ...string) Family {
	return Family{m, []Sample{{Labels: labels, Value: value}}}
}

// Add adds a reading of a counter or gauge.
func (f *Family) Add(value float64, labels ...string) {
	f.Samples = append(f.Samples, Sample{Labels: labels, Value: value})
}

// Collector is whoever measures. It names every metric that it has, also one without readings. What it returns nobody changes.
type Collector interface {
	Collect() []Family
}

// Gatherer is what flowfabricprom finds behind the public handlers of metrics.
type Gatherer interface {
	Collector
	Gather() ([]Family, error)
}

// Source is the ability of a store to show what it measures, and of a client whose engine runs in this process. It is found by assertion,
// so that the public Client knows nothing of how metrics are gathered.
type Source interface {
	Collector() Collector
}

// NamespaceSource is the ability of a client to show what may be told to those who see some namespaces alone.
type NamespaceSource interface {
	NamespaceCollector(namespaces []string) Collector
}

// Registry are those who measure, as one. It serves what they have, as Prometheus text.
type Registry []Collector

// Collect reads all of them.
func (r Registry) Collect() (all []Family) {
	for _, collector := range r {
		all = append(all, collector.Collect()...)
	}
	return all
}

// Gather reads everything that has readings, by name and labels. An error means that those who measure are programmed wrongly: two of
// them tell the same, or one tells what is not of its metric.
func (r Registry) Gather() ([]Family, error) {
	byName := map[string]*Family{}
	var problems []error
	for _, family := range r.Collect() {
		known := byName[family.Name]
		switch {
		case known == nil:
			family.Samples = slices.Clone(family.Samples) // to be sorted
			byName[family.Name] = &family
		case !reflect.DeepEqual(known.Metric, family.Metric):
			problems = append(problems, fmt.Errorf("%s is two different metrics", family.Name))
		default:
			known.Samples = append(known.Samples, family.Samples...)
		}
	}
	var all []Family
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if family := byName[name]; len(family.Samples) > 0 {
			problems = append(problems, family.sort())
			all = append(all, *family)
		}
	}
	return all, errors.Join(problems...)
}

// sort brings the samples into the order in which they are shown.
func (f *Family) sort() error {
	for _, s := range f.Samples {
		if len(s.Labels) != len(f.Labels) || len(s.Points) != len(f.Buckets) {
			return fmt.Errorf("%s has a sample with %d labels %q and %d points", f.Name, len(s.Labels), s.Labels, len(s.Points))
		}
	}
	order := f.labelOrder()
	slices.SortFunc(f.Samples, func(a, b Sample) int {
		for _, i := range order {
			if c := cmp.Compare(a.Labels[i], b.Labels[i]); c != 0 {
				return c
			}
		}
		return 0
	})
	for i := range f.Samples[1:] {
		if slices.Equal(f.Samples[i].Labels, f.Samples[i+1].Labels) {
			return fmt.Errorf("%s has two samples with the labels %q", f.Name, f.Samples[i].Labels)
		}
	}
	return nil
}

// labelOrder are the places of the labels, sorted by name: so they are shown.
func (f *Family) labelOrder() []int {
	order := make([]int, len(f.Labels))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(f.Labels[a].Name, f.Labels[b].Name) })
	return order
}
