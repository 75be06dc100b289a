package metrics

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Compare tells which metrics of a place a collector does not have, and which of ours it has that are not of the table.
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
			problems = append(problems, fmt.Errorf("%s is not in the table, or there twice", family.Name))
		}
		delete(want, family.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		problems = append(problems, fmt.Errorf("%s is in the table alone", name))
	}
	return errors.Join(problems...)
}
