// Package work does what clients, workers and operators ask of single executions: it submits them, also in users' own transactions, ends them under
// leases, keeps their steps, changes them for operators, lists and counts them. It keeps the records of lanes and of worker instances, too.
//
// Where to start reading: submit.go (one submission as a command), inbox.go (submissions in the inbox),
// outcome.go (outcomes in it), worker_commands.go and leases.go (commands under
// a lease), lanes.go, workers.go.
package work

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
)

// Work is what clients, workers and operators do with single executions: it creates them, ends them under leases, and keeps the records of lanes and of
// worker instances.
type Work struct {
	*waits.Waits
	Ready  readyBounds
	Drains *drains
	Fleet  workerBounds

	inbox ingester
}

// New makes the room of work, and registers it with the kernel.
func New(e *waits.Waits) *Work {
	w := &Work{Waits: e, Drains: newDrains(), inbox: ingester{lock: txn.NewCallLock()}}
	w.Ready.e = w
	w.Fleet.e = w
	e.OnInbox(w.ingestAll)
	e.OnOutcomes(w.outcomesOf)
	e.OnReborn(w.Drains.ForgetAll)
	e.OnReborn(w.Fleet.forget)
	e.OnStart(w.startRetention)
	e.OnTimer(txn.TimerWorkers, txn.TimerRule{Label: "worker", Do: w.sweepWorkers, Together: true})
	on := func(kind txn.TaskKind, do func(context.Context, TaskArgs) error) {
		txn.OnTask(e.Engine, kind, func(ctx context.Context, t *txn.FollowUp[TaskArgs]) error { return do(ctx, t.Args) })
	}
	on(taskCountLane, w.countLane)
	on(taskRefileLane, w.refileLane)
	return w
}

// TaskArgs are the arguments of the follow-up work of lanes, and of a shorter retention.
type TaskArgs struct {
	Lane string `json:"lane,omitempty"`

	Retention *core.RetentionByStatus `json:"retention,omitempty"` // the retention of the lane, or the default, before the change
	Default   *core.RetentionByStatus `json:"default,omitempty"`   // the default now
	Cursor    string                  `json:"cursor,omitempty"`    // of the scan of the lane: done up to here
}
