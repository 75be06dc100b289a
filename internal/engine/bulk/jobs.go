// Package bulk runs bulk jobs: durable jobs that apply one action to many executions, in batches (L137, L138).
package bulk

import (
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Jobs starts, runs and shows bulk jobs.
type Jobs struct{ *flows.Graphs }

// New registers bulk jobs with an engine that has not started.
func New(e *flows.Graphs) *Jobs {
	jobs := &Jobs{e}
	e.OnTimer(timerJobs, txn.TimerRule{Label: "bulk", Do: jobs.sweepJobs, Long: true})
	e.CountRemoved(docJob, "bulk_job")
	e.WakesOn("bulk.finished", jobOf)
	e.CountPending(followupBulk, store.Scan{Kind: docJob}, func(doc *store.Doc) bool {
		j, err := decodeJob(doc)
		return err == nil && j.State == "running"
	})
	return jobs
}
