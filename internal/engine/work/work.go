// Package work does what clients, workers and operators ask of single executions: it submits them, also in users' own transactions, ends them under
// leases, keeps their steps, changes them for operators, lists and counts them. It keeps the records of lanes and of worker instances, too.
//
// Where to start reading: submit.go (one submission as a command), adopt.go (submissions in the inbox), worker_commands.go and leases.go (commands under
// a lease), lanes.go, workers.go.
package work

import (
	"context"
	"sync"

	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Work is what clients, workers and operators do with single executions: it creates them, ends them under leases, and keeps the records of lanes and of
// worker instances.
type Work struct {
	*waits.Waits
	Ready  readyBounds
	Drains *drains

	adopting sync.Mutex // held while submissions are adopted
}

// New makes the room of work, and registers it with the kernel.
func New(e *waits.Waits) *Work {
	w := &Work{Waits: e, Drains: newDrains()}
	w.Ready.e = w
	e.OnInbox(w.adoptAll)
	e.OnReborn(w.Drains.ForgetAll)
	e.OnStart(w.startRetention)
	e.OnTimer(txn.TimerWorkers, w.sweepWorkers)
	e.OnTask(txn.TaskCountLane, func(ctx context.Context, _ store.DocRef, t txn.FollowUp) error { return w.countLane(ctx, t) })
	e.OnTask(txn.TaskRefileLane, func(ctx context.Context, _ store.DocRef, t txn.FollowUp) error { return w.refileLane(ctx, t) })
	return w
}
