package docs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/pagetest"
)

// statusMeanings say what a status means to people.
var statusMeanings = map[core.Status]string{
	core.Ready: "a worker can claim it now", core.Delayed: "it cannot start before `delay_until`", core.Blocked: "something else must happen first",
	core.Granted: "it is reserved for one worker, for at most 60 seconds", core.Running: "a worker holds the lease",
	core.Suspended: "it waits for an external event", core.Succeeded: "ended", core.Failed: "ended", core.Cancelled: "ended",
	core.Expired: "ended: its deadline passed, or its wait timed out", core.Skipped: "ended: its dependencies in the flow can no longer be met",
}

func TestU264_the_concepts_list_every_status_and_reason(t *testing.T) {
	t.Parallel()
	const path, begin, end = root + "/docs/concepts.md", "internal/core. -->\n", "<!-- End -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatal("the marks of the table are missing")
	}
	var table strings.Builder
	table.WriteString("| Status | Reasons | `public_state` | Meaning |\n|---|---|---|---|\n")
	for _, status := range core.Statuses() {
		var reasons []string
		for _, reason := range core.ReasonsOf(status) {
			if reason != core.ReasonNone {
				reasons = append(reasons, "`"+reason.String()+"`")
			}
		}
		if statusMeanings[status] == "" {
			t.Errorf("%s has no meaning", status)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", status, strings.Join(reasons, ", "), publicStatesOf(status), statusMeanings[status])
	}
	pagetest.Same(t, path, before+begin+table.String()+end+after, *update)
}

// publicStatesOf are the public states that executions of a status can have.
func publicStatesOf(status core.Status) string {
	var found []string
	for _, word := range core.PublicStates() {
		f := core.Filter{PublicState: []string{word}}
		conditions, _ := f.States()
		if slices.ContainsFunc(conditions, func(c core.StateCondition) bool { return c.Status == status }) {
			found = append(found, "`"+word+"`")
		}
	}
	return strings.Join(found, ", ")
}
