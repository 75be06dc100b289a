package flowfabric

import "github.com/flowfabric/flowfabric/api"

// Status is the one stored status of an execution.
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

// Execution is one piece of work as a reader sees it. Absent moments are the zero time.
type Execution = api.Execution

// OpenSuspension is a wait that has not ended, in short; Executions.Suspension has all of it.
type OpenSuspension = api.OpenSuspension

// BoundWaitpoint is a waitpoint of a suspension.
type BoundWaitpoint = api.BoundWaitpoint

// StateVector is the state of an execution in seven parts.
type StateVector = api.StateVector

// Attempt is one attempt at an execution. Its index counts from 0 over the whole life of the execution.
type Attempt = api.Attempt

// Interruption is why an attempt stopped for a while.
type Interruption = api.Interruption

// Lineage says what an attempt follows.
type Lineage = api.Lineage

// Lease is the right of one worker to run an execution. ID, Epoch and AttemptID are its fence: what a worker sends with all
// three is accepted only while the lease is the current one.
type Lease = api.Lease

// Failure is what went wrong in an attempt.
type Failure = api.Failure

// Cancellation says who cancelled and why.
type Cancellation = api.Cancellation

// Hold is an operator's hold.
type Hold = api.Hold

// Retained keeps a finished execution from retention and deletion.
type Retained = api.Retained

// Progress is what the worker last reported.
type Progress = api.Progress

// IssuedGrant is a grant that is out: who may claim the execution with its key. The key itself is shown to nobody.
type IssuedGrant = api.IssuedGrant

// EndedLease is the lease that ended last.
type EndedLease = api.EndedLease

// LeaseRecord is one entry of the lease history.
type LeaseRecord = api.LeaseRecord

// StepRecord is the remembered result of a step.
type StepRecord = api.StepRecord
