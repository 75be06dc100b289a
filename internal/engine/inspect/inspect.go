// Package inspect looks at a store without changing it: it explains what an execution waits for, examines whether an installation is well, and
// compares what is stored twice.
package inspect

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/eventlog"
	"github.com/flowfabric/flowfabric/internal/engine/flows"
)

// Inspector looks at the store of an engine.
type Inspector struct {
	*flows.Graphs
	Events *eventlog.Reader
	// JobsRunning returns how the bulk jobs stand that are not done. It must not be nil.
	JobsRunning func(ctx context.Context) (RunningJobs, error)
}

// RunningJobs are the bulk jobs that are not done.
type RunningJobs struct {
	Count       int
	Oldest      base.UUID
	Since       base.Time // its start
	Done, Total int       // of the oldest
}
