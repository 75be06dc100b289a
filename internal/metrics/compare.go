package metrics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Compare tells which metrics of a place a collector does not have, and which of ours it has that are not of the table.
func Compare(place Place, c prometheus.Collector) error {
	want := map[string]string{}
	for _, m := range All() {
		if m.Place == place {
			want[m.Desc().String()] = m.Name
		}
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	var problems []error
	for desc := range descs {
		if _, known := want[desc.String()]; !known && strings.Contains(desc.String(), `fqName: "ff_`) {
			problems = append(problems, fmt.Errorf("%s is not in the table, or there twice", desc))
		}
		delete(want, desc.String())
	}
	for _, name := range slices.Sorted(maps.Values(want)) {
		problems = append(problems, fmt.Errorf("%s is in the table alone", name))
	}
	return errors.Join(problems...)
}
