// Package engine puts the kernel and its rooms together.
package engine

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/bulk"
	"github.com/flowfabric/flowfabric/internal/engine/claims"
	"github.com/flowfabric/flowfabric/internal/engine/eventlog"
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/inspect"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/streams"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/engine/webhooks"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Engine runs commands against a store. Many engines, in many processes, may run on one shared store.
type Engine struct {
	*txn.Engine
	*eventlog.Reader
	*streams.Streams
	*admin.Admin
	*webhooks.Webhooks
	*limits.Admission
	*waits.Waits
	*work.Work
	*flows.Graphs
	*claims.Claims
	*inspect.Inspector
	*bulk.Jobs
}

// Open starts an engine with all its rooms on a migrated store. The store outlives it. Each of before is called with the engine before it starts.
// Codes of the signing keys: seed_conflict, master_key_required, master_key_mismatch.
func Open(ctx context.Context, st store.Store, cfg Config, before ...func(*Engine)) (*Engine, error) {
	kernel, err := txn.New(ctx, st, cfg)
	if err != nil {
		return nil, err
	}
	events, frames := eventlog.New(kernel), streams.New(kernel)
	admin, err := admin.New(ctx, kernel)
	if err != nil {
		return nil, errors.Join(err, kernel.Close(context.WithoutCancel(ctx)))
	}
	outgoing := webhooks.New(admin, events)
	limited := limits.New(admin)
	waiting := waits.New(limited)
	tasks := work.New(waiting)
	graphs := flows.New(tasks)
	served := claims.New(graphs)
	jobs := bulk.New(graphs)
	e := &Engine{kernel, events, frames, admin, outgoing, limited, waiting, tasks, graphs, served, &inspect.Inspector{Graphs: graphs, Events: events, JobsRunning: jobs.Running}, jobs}
	for _, prepare := range before {
		prepare(e)
	}
	if err := kernel.Start(ctx); err != nil {
		return nil, err
	}
	return e, nil
}
