package txn

import (
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// Claims gives work to workers: claims that wait, grants, and claims of one execution.
type Claims struct {
	*Engine
	picker *picker
}

// NewClaims makes the room of claims. It becomes the dispatcher of the kernel.
func NewClaims(e *Engine) *Claims {
	c := &Claims{Engine: e}
	c.picker = newPicker(c)
	e.UseDispatcher(c.picker)
	e.OnPhases(Phases{Committed: func(u *Tx) { c.picker.sawWorkers(u.Changes.PutDocs) }})
	e.OnCommits(Listener{Heard: c.picker.hear, Read: c.picker.hearLeases, Missed: c.picker.missed})
	e.OnReborn(c.picker.forgetAll)
	e.OnGauge(func() metrics.Family { return metrics.ClaimWaiters.Reading(float64(c.picker.waiters())) })
	e.OnTimer(timerClaims, c.sweepClaims)
	return c
}
