// Package bulk runs bulk jobs: durable jobs that apply one action to many executions, in batches (L137, L138).
package bulk

import (
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Jobs starts, runs and shows bulk jobs.
type Jobs struct {
	*flows.Graphs
	items *metrics.Counters
}

// New registers bulk jobs with an engine that has not started.
func New(e *flows.Graphs) *Jobs {
	jobs := &Jobs{Graphs: e, items: e.NewCounter(metrics.BulkItems)}
	e.OnTimer(timerJobs, txn.TimerRule{Label: "bulk", Do: jobs.sweepJobs, Long: true})
	e.CountRemoved(docJob, "bulk_job")
	e.WakesOn("bulk.finished", jobOf)
	e.CountPending(followupBulk, store.Scan{Kind: docJob}, func(doc *store.Doc) bool {
		j, err := decodeJob(doc)
		return err == nil && j.State == "running"
	})
	return jobs
}

// countItems counts what a batch of a job did.
func (e *Jobs) countItems(action string, done, refused int) {
	for outcome, n := range map[string]int{"done": done, "refused": refused} {
		if n > 0 { // a series that has counted nothing is not shown
			e.items.With(action, outcome).Add(int64(n))
		}
	}
}
