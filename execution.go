package flowfabric

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

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

// fenceOf is the fence of the lease that goes with a command.
func fenceOf(l Lease) (core.Fence, error) {
	fence, err := fenceParts(l)
	return fence, within("lease", err)
}

// fenceParts parses the three parts of the fence; absent ones are for the rules to refuse (fence_required, partial_fence).
func fenceParts(l Lease) (core.Fence, error) {
	fence := core.Fence{Epoch: l.Epoch}
	for _, part := range []struct {
		name string
		text string
		into *base.UUID
	}{{"lease_id", l.ID, &fence.LeaseID}, {"attempt_id", l.AttemptID, &fence.AttemptID}} {
		parsed, ok := base.ParseUUID(part.text)
		if !ok && part.text != "" {
			err := newError(base.CodeInvalidID, "%s is not a UUID", base.QuoteID(part.text))
			return core.Fence{}, err.At(part.name, "hand the lease back as the claim gave it")
		}
		*part.into = parsed
	}
	return fence, nil
}
