package flowfabric

import (
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Error is a refusal or a failure with a stable code. docs/errors.md lists the codes.
type Error = api.Error

// One sentinel for each class of codes, for errors.Is.
var (
	ErrInvalid         = api.ErrInvalid
	ErrUnauthenticated = api.ErrUnauthenticated
	ErrForbidden       = api.ErrForbidden
	ErrNotFound        = api.ErrNotFound
	ErrConflict        = api.ErrConflict
	ErrState           = api.ErrState
	ErrFenced          = api.ErrFenced
	ErrGrant           = api.ErrGrant
	ErrGone            = api.ErrGone
	ErrAdmission       = api.ErrAdmission
	ErrLimited         = api.ErrLimited
	ErrInternal        = api.ErrInternal
	ErrNotImplemented  = api.ErrNotImplemented
	ErrUnavailable     = api.ErrUnavailable
	// ErrOutcomeUnknown means that it is not known whether the command took effect. The same call may be made again.
	ErrOutcomeUnknown = api.ErrOutcomeUnknown
)

// The causes of the end of a handler's context, as context.Cause returns them.
var (
	ErrLeaseLost      = errors.New("flowfabric: the lease is lost")
	ErrLeaseRevoked   = errors.New("flowfabric: the lease was revoked")
	ErrCancelled      = errors.New("flowfabric: the execution was cancelled")
	ErrDeadline       = errors.New("flowfabric: the execution is past its deadline")
	ErrAttemptTimeout = errors.New("flowfabric: the attempt is past its timeout")
	ErrBudgetExceeded = errors.New("flowfabric: a budget is exceeded") // also returned by Task.ReportUsage
	ErrShuttingDown   = errors.New("flowfabric: the worker is shutting down")
)

// ErrParked is returned by the calls of a Task that hand the work back for a while. The handler returns it, wrapped or not, and
// is called again from its start when the work continues.
var ErrParked = errors.New("flowfabric: the work is parked")

// ErrAlreadySatisfied is returned by Task.Suspend when the wait is over already; TrySuspend returns its signals.
var ErrAlreadySatisfied error = &Error{Class: base.CodeAlreadySatisfied.Info().Class, Code: string(base.CodeAlreadySatisfied), Message: "the wait is passed"}

// ErrNoSignal means that a wait ended without the expected signal: by its timeout, or because an operator resumed the work.
var ErrNoSignal = errors.New("flowfabric: the wait ended without a signal")

// How an execution ended without success. Test an ExecutionError for them with errors.Is.
var (
	ErrExecutionFailed    = errors.New("flowfabric: the execution failed")
	ErrExecutionCancelled = errors.New("flowfabric: the execution was cancelled")
	ErrExecutionExpired   = errors.New("flowfabric: the execution expired")
	ErrExecutionSkipped   = errors.New("flowfabric: the execution was skipped")
)

// ExecutionError reports that an execution whose result was requested did not succeed.
type ExecutionError struct {
	ID      ID
	Status  Status
	Reason  string
	Failure *Failure // nil when nothing failed
}

// Error returns the end of the execution and its cause.
func (e *ExecutionError) Error() string {
	text := fmt.Sprintf("flowfabric: execution %s %s (%s)", e.ID, e.Status, e.Reason)
	if e.Failure != nil {
		text += ": " + e.Failure.Message
	}
	return text
}

// Is matches the sentinel of the status.
func (e *ExecutionError) Is(target error) bool {
	switch e.Status {
	case StatusFailed:
		return target == ErrExecutionFailed
	case StatusCancelled:
		return target == ErrExecutionCancelled
	case StatusExpired:
		return target == ErrExecutionExpired
	case StatusSkipped:
		return target == ErrExecutionSkipped
	default:
		return false
	}
}

// CodeOf returns the code of the first Error that err wraps, or "" if there is none.
func CodeOf(err error) string { return api.CodeOf(err) }

// Retryable reports whether the same call, unchanged, may succeed later.
func Retryable(err error) bool { return api.Retryable(err) }

// RetryDelay returns how long to wait before repeating the call; 0 if the error does not say.
func RetryDelay(err error) time.Duration { return api.RetryDelay(err) }

// publicError converts an error of the engine to an Error. The error of the caller's context is returned unchanged.
func publicError(err error) error { return api.AsError(err) }
