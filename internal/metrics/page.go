package metrics

import (
	"fmt"
	"strings"
)

// pageHead is the handwritten part of docs/metrics.md.
const pageHead = `# Metrics

<!-- Generated from internal/metrics by make docs. -->

Metrics are always on, in the text format of Prometheus. A server shows all of them at ` + "`/metrics`" + `, with ` + "`go_*` and, on Linux, `process_*`" + `; a
program that opens an engine itself serves those of the engine with ` + "`client.Metrics()`" + `; those of a worker's process come from
the worker. A program with a registry of its own registers them there with the module ` + "`flowfabricprom`" + `: ` + "`flowfabricprom.New(client)`" + ` and
` + "`flowfabricprom.NewWorker(worker)`" + ` are collectors for the Prometheus client library. Names and labels are stable.

Labels are bounded: the first ` + "100" + ` lanes, kinds, namespaces and failure categories that a process sees get their own value,
all others share ` + "`_other`" + `. Ids are never labels. Counters start at 0 with the process, so sums over processes are correct. Gauges that
come from the store (executions, oldest ready, workers, follow-ups, bytes) are read on request and cached for some seconds; every
process on a store reports the same value, so use one of them, not the sum.

A key for some namespaces sees only these: ` + "`ff_executions`, `ff_oldest_ready_seconds`, `ff_budget_ratio` and `ff_budget_reserved`" + ` for the work and the budgets in
them. Everything else requires a key for all namespaces (` + "`*`" + `), or ` + "`--metrics-open`" + `.
`

// pageParts are the sections of the page, in order.
var pageParts = []struct {
	place Place
	title string
}{
	{Server, "The HTTP server"}, {Engine, "Engine and store"}, {Worker, "The process of a worker"},
}

// Page is docs/metrics.md.
func Page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, part := range pageParts {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", part.title)
		for _, m := range All() {
			if m.Place == part.place {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labelText(m.Labels), m.Help)
			}
		}
	}
	return b.String()
}

// labelText lists labels, with their values where those are known.
func labelText(labels []Label) string {
	var all []string
	for _, l := range labels {
		text := "`" + l.Name + "`"
		if len(l.Values) > 0 {
			text += " (" + strings.Join(l.Values, ", ") + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
