// Package claims gives work to workers: claims that wait, grants, claims of one execution, and the picker that serves them. It is the dispatcher of
// the kernel. How claims find work, and what keeps the order of queues across processes, stands at picker.
package claims

import (
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// Claims gives work to workers: claims that wait, grants, and claims of one execution.
type Claims struct {
	*flows.Graphs
	picker *picker
}

// New makes the room of claims. It becomes the dispatcher of the kernel.
func New(e *flows.Graphs) *Claims {
	c := &Claims{Graphs: e}
	c.picker = newPicker(c)
	e.UseDispatcher(c.picker)
	e.OnPhases(txn.Phases{At: txn.AtGraphs, Committed: func(u *txn.Tx) { c.picker.sawWorkers(u.Changes.PutDocs) }})
	e.OnCommits(txn.Listener{Heard: c.picker.hear, Read: c.picker.hearLeases, Missed: c.picker.missed})
	e.OnReborn(c.picker.forgetAll)
	e.OnGauge(func() metrics.Family { return metrics.ClaimWaiters.Reading(float64(c.picker.waiters())) })
	e.OnTimer(timerClaims, txn.TimerRule{Label: "claim", Do: c.sweepClaims})
	e.CountRemoved(docClaim, "claim")
	return c
}
