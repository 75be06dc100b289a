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
	Labels []string // values, in the order of the metric's labels
	Value  float64  // of a histogram or summary: the sum
	Count  float64  // of a histogram or summary: the number of values
	// Points has one entry per bucket: for a histogram the number of values up to the bound, for a summary the quantile.
	Points []float64
}

// Family is a metric with its current readings, which may be none.
type Family struct {
	Metric
	Samples []Sample
}

// Family returns the metric without readings.
func (m Metric) Family() Family { return Family{Metric: m} }

// Reading returns the metric with one reading, for a counter or gauge.
func (m Metric) Reading(value float64, labels ...string) Family {
	return Family{m, []Sample{{Labels: labels, Value: value}}}
}

// Add adds a reading of a counter or gauge.
func (f *Family) Add(value float64, labels ...string) {
	f.Samples = append(f.Samples, Sample{Labels: labels, Value: value})
}

// Collector returns readings. It returns every metric that it has, even those without readings. The result must not be changed.
type Collector interface {
	Collect() []Family
}

// Gatherer is implemented by the public metrics handlers, for flowfabricprom.
type Gatherer interface {
	Collector
	Gather() ([]Family, error)
}

// Source is implemented by stores with metrics.
type Source interface {
	Collector() Collector
}

// Registry combines collectors and serves their readings as Prometheus text.
type Registry []Collector

// Collect returns the readings of all collectors.
func (r Registry) Collect() (all []Family) {
	for _, collector := range r {
		all = append(all, collector.Collect()...)
	}
	return all
}

// Gather returns all readings, ordered by name and labels. An error is a bug in a collector: two return the same sample, or a
// sample does not match its metric.
func (r Registry) Gather() ([]Family, error) {
	byName := map[string]*Family{}
	var problems []error
	for _, family := range r.Collect() {
		known := byName[family.Name]
		switch {
		case known == nil:
			family.Samples = slices.Clone(family.Samples) // before sorting
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

// sort sorts the samples by their labels.
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

// labelOrder returns the indexes of the labels, ordered by name.
func (f *Family) labelOrder() []int {
	order := make([]int, len(f.Labels))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(f.Labels[a].Name, f.Labels[b].Name) })
	return order
}
