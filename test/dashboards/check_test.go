package dashboards

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

// ofPrometheus are labels that Prometheus adds to everything that it reads.
var ofPrometheus = []string{"instance", "job"}

// tableOf finds a series in the table of metrics, with the labels that it has. A histogram has three series.
func tableOf(name string) (m metrics.Metric, labels []string, found bool) {
	for _, m := range metrics.All() {
		labels := append(m.LabelNames(), ofPrometheus...)
		switch {
		case m.Type != metrics.TypeHistogram && name == m.Name, m.Type == metrics.TypeHistogram && (name == m.Name+"_sum" || name == m.Name+"_count"):
			return m, labels, true
		case m.Type == metrics.TypeHistogram && name == m.Name+"_bucket":
			return m, append(labels, "le"), true
		}
	}
	return m, nil, false
}

var legendLabel = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// named finds what a query names that the table does not have.
func named(q query) []string {
	all, err := selectors(q.expr)
	if err != nil {
		return []string{q.place + ": " + err.Error()}
	}
	var wrong []string
	for _, s := range all {
		m, labels, found := tableOf(s.name)
		if !found {
			wrong = append(wrong, fmt.Sprintf("%s: %s is no metric", q.place, s.name))
			continue
		}
		used := slices.Clone(s.groups)
		for _, m := range s.matchers {
			used = append(used, m.label)
		}
		for _, label := range used {
			if !slices.Contains(labels, label) {
				wrong = append(wrong, fmt.Sprintf("%s: %s has no label %s", q.place, s.name, label))
			}
		}
		for _, label := range legendLabel.FindAllStringSubmatch(q.legend, -1) {
			if !slices.Contains(s.groups, label[1]) {
				wrong = append(wrong, fmt.Sprintf("%s: it shows %s and does not group by it", q.place, label[1]))
			}
		}
		wrong = append(wrong, values(q, m, s)...)
	}
	return wrong
}

// values finds label values that the table does not know.
func values(q query, m metrics.Metric, s *selector) []string {
	var wrong []string
	for _, label := range m.Labels {
		for _, want := range s.matchers {
			if want.label == label.Name && len(label.Values) > 0 && !slices.ContainsFunc(label.Values, want.matches) {
				wrong = append(wrong, fmt.Sprintf("%s: label %s of %s is never %s %q", q.place, label.Name, s.name, want.op, want.value))
			}
		}
	}
	return wrong
}

// series is a sample with its labels taken apart.
type series struct {
	name   string
	labels map[string]string
	value  float64
}

func (s series) matches(want *selector) bool {
	if s.name != want.name {
		return false
	}
	for _, m := range want.matchers {
		if !m.matches(s.labels[m.label]) {
			return false
		}
	}
	return true
}

// withoutData finds what of a query has no series, or only series that never moved although they count something.
func withoutData(q query, before, after []series) []string {
	all, err := selectors(q.expr)
	if err != nil {
		return []string{q.place + ": " + err.Error()}
	}
	var wrong []string
	for _, s := range all {
		m, _, _ := tableOf(s.name)
		was, is, n := sum(before, s), 0.0, 0
		for _, one := range after {
			if one.matches(s) {
				is += one.value
				n++
			}
		}
		switch {
		case n == 0:
			wrong = append(wrong, fmt.Sprintf("%s: there is no series for %s %v", q.place, s.name, s.matchers))
		case m.Type != metrics.TypeGauge && is <= was && !strings.HasSuffix(s.name, "_sum"):
			wrong = append(wrong, fmt.Sprintf("%s: %s %v did not move", q.place, s.name, s.matchers))
		}
	}
	return wrong
}

func sum(all []series, s *selector) (total float64) {
	for _, one := range all {
		if one.matches(s) {
			total += one.value
		}
	}
	return total
}
