package examples

import (
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// executions are those of a lane, oldest first, with everything that Get shows.
func executions(t *testing.T, c *flowfabric.Client, lane string) []*flowfabric.Execution {
	t.Helper()
	var all []*flowfabric.Execution
	options := ops.ListOptions{Filter: ops.Filter{Lane: []string{lane}}, Order: ops.CreatedAsc}
	for listed, err := range c.Executions().List(t.Context(), options) {
		if err != nil {
			t.Fatal(err)
		}
		x, err := c.Get(t.Context(), listed.ID)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// only is the one execution of a lane.
func only(t *testing.T, c *flowfabric.Client, lane string) *flowfabric.Execution {
	t.Helper()
	all := executions(t, c, lane)
	if len(all) != 1 {
		t.Fatalf("%d executions in lane %s, want one", len(all), lane)
	}
	return all[0]
}

// events are the kinds of events of an execution, in order.
func events(t *testing.T, c *flowfabric.Client, id flowfabric.ID) []string {
	t.Helper()
	page, err := c.Events().Read(t.Context(), ops.ReadOptions{After: api.FromStart, EventFilter: ops.EventFilter{ExecutionID: id}})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, event := range page.Events {
		kinds = append(kinds, event.Kind)
	}
	return kinds
}

// wantEvents fails the test on another course of events, written with blanks between the kinds.
func wantEvents(t *testing.T, c *flowfabric.Client, id flowfabric.ID, want string) {
	t.Helper()
	if got := events(t, c, id); !slices.Equal(got, strings.Fields(want)) {
		t.Errorf("events of %s:\n%q, want\n%q", id, got, strings.Fields(want))
	}
}

// categories are those of the failed attempts of an execution.
func categories(t *testing.T, c *flowfabric.Client, id flowfabric.ID) []string {
	t.Helper()
	attempts, err := c.Executions().Attempts(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range attempts {
		if a.Failure != nil {
			all = append(all, a.Failure.Category)
		}
	}
	return all
}
