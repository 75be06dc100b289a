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

// OpenSuspension is the summary of an open wait; Executions.Suspension returns all of it.
type OpenSuspension = api.OpenSuspension

// BoundWaitpoint is a waitpoint that belongs to a suspension.
type BoundWaitpoint = api.BoundWaitpoint

// StateVector describes the state of an execution in seven parts.
type StateVector = api.StateVector

// Attempt is one attempt at an execution. Its index counts from 0 over the lifetime of the execution.
type Attempt = api.Attempt

// Interruption is why an attempt was interrupted.
type Interruption = api.Interruption

// Lineage says which run or attempt an attempt follows.
type Lineage = api.Lineage

// Lease is the right of one worker to run an execution. ID, Epoch and AttemptID form its fence: a command that carries all three
// is accepted only while the lease is current.
type Lease = api.Lease

// Failure describes why an attempt failed.
type Failure = api.Failure

// Cancellation says who cancelled an execution and why.
type Cancellation = api.Cancellation

// Hold is an operator's hold.
type Hold = api.Hold

// Retained protects a finished execution from retention and deletion.
type Retained = api.Retained

// Progress is the progress last reported by the worker.
type Progress = api.Progress

// IssuedGrant is an outstanding grant: who may claim the execution with its key. The key itself is never shown.
type IssuedGrant = api.IssuedGrant

// EndedLease is the lease that ended most recently.
type EndedLease = api.EndedLease

// LeaseRecord is one entry of the lease history.
type LeaseRecord = api.LeaseRecord

// StepRecord is the remembered result of a step.
type StepRecord = api.StepRecord
