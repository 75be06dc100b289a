package flowfabric

import "github.com/flowfabric/flowfabric/api"

// Status is the stored status of an execution.
type Status = api.Status

// The statuses. Succeeded, failed, cancelled, expired and skipped are terminal.
const (
	StatusReady     = api.StatusReady
	StatusDelayed   = api.StatusDelayed
	StatusBlocked   = api.StatusBlocked
	StatusGranted   = api.StatusGranted
	StatusRunning   = api.StatusRunning
	StatusSuspended = api.StatusSuspended
	StatusSucceeded = api.StatusSucceeded
	StatusFailed    = api.StatusFailed
	StatusCancelled = api.StatusCancelled
	StatusExpired   = api.StatusExpired
	StatusSkipped   = api.StatusSkipped
)

// Execution is an execution as readers see it. Absent times are the zero time.
type Execution = api.Execution

// Failure describes why an attempt failed.
type Failure = api.Failure

// Progress is the progress last reported by the worker.
type Progress = api.Progress
