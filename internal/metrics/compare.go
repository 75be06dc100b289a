package metrics

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Compare returns the metrics of a place that a collector lacks, and those it has that are not in the table.
func Compare(place Place, c Collector) error {
	want := map[string]Metric{}
	for _, m := range All() {
		if m.Place == place {
			want[m.Name] = m
		}
	}
	var problems []error
	for _, family := range c.Collect() {
		if m := want[family.Name]; strings.HasPrefix(family.Name, "ff_") && !reflect.DeepEqual(m, family.Metric) {
			problems = append(problems, fmt.Errorf("%s is not in the table, or twice", family.Name))
		}
		delete(want, family.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		problems = append(problems, fmt.Errorf("%s is only in the table", name))
	}
	return errors.Join(problems...)
}
