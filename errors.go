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

// FieldError is one faulty argument of many.
type FieldError = api.FieldError

// One sentinel for each class of codes, for errors.Is.
var (
	ErrInvalid         error = &Error{Class: "invalid"}
	ErrUnauthenticated error = &Error{Class: "unauthenticated"}
	ErrForbidden       error = &Error{Class: "forbidden"}
	ErrNotFound        error = &Error{Class: "not_found"}
	ErrConflict        error = &Error{Class: "conflict"}
	ErrState           error = &Error{Class: "state"}
	ErrFenced          error = &Error{Class: "fenced"}
	ErrGrant           error = &Error{Class: "grant"}
	ErrGone            error = &Error{Class: "gone"}
	ErrAdmission       error = &Error{Class: "admission"}
	ErrLimited         error = &Error{Class: "limited"}
	ErrInternal        error = &Error{Class: "internal"}
	ErrNotImplemented  error = &Error{Class: "not_implemented"}
	ErrUnavailable     error = &Error{Class: "unavailable"}
	// ErrOutcomeUnknown: whether the command happened is not known. The same call may be made again.
	ErrOutcomeUnknown error = &Error{Class: "unavailable", Code: string(base.CodeTimeout), Message: "the outcome is unknown"}
)

// Why a handler's context ended: what context.Cause tells (U143).
var (
	ErrLeaseLost      = errors.New("flowfabric: the lease is lost")
	ErrLeaseRevoked   = errors.New("flowfabric: the lease was revoked")
	ErrCancelled      = errors.New("flowfabric: the execution was cancelled")
	ErrDeadline       = errors.New("flowfabric: the execution is past its deadline")
	ErrAttemptTimeout = errors.New("flowfabric: the attempt is past its timeout")
	ErrBudgetExceeded = errors.New("flowfabric: a budget is exceeded") // also of Task.ReportUsage
	ErrShuttingDown   = errors.New("flowfabric: the worker is shutting down")
)

// ErrParked is returned by the calls of a Task that hand the work back for a while. The handler returns it, wrapped or not, and
// is called again from its start when the work goes on.
var ErrParked = errors.New("flowfabric: the work is parked")

// ErrAlreadySatisfied is what Task.Suspend returns when there is nothing to wait for any more: TrySuspend would have passed.
var ErrAlreadySatisfied error = &Error{Class: base.CodeAlreadySatisfied.Info().Class, Code: string(base.CodeAlreadySatisfied), Message: "the wait is passed"}

// ErrNoSignal says that a wait ended without what it waited for: by its timeout, or by an operator who resumed the work.
var ErrNoSignal = errors.New("flowfabric: the wait ended without a signal")

// How an execution ended that did not succeed: what errors.Is finds in an ExecutionError.
var (
	ErrExecutionFailed    = errors.New("flowfabric: the execution failed")
	ErrExecutionCancelled = errors.New("flowfabric: the execution was cancelled")
	ErrExecutionExpired   = errors.New("flowfabric: the execution expired")
	ErrExecutionSkipped   = errors.New("flowfabric: the execution was skipped")
)

// ExecutionError says that an execution whose result was asked for ended otherwise.
type ExecutionError struct {
	ID      ID
	Status  Status
	Reason  string
	Failure *Failure // nil when nothing failed
}

// Error shows how it ended and why.
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

// CodeOf is the code of the first Error that err wraps, "" when it wraps none.
func CodeOf(err error) string { return api.CodeOf(err) }

// Retryable reports whether the same call, unchanged, may succeed later.
func Retryable(err error) bool { return api.Retryable(err) }

// RetryDelay says how long to wait before the same call; 0 when the error does not know.
func RetryDelay(err error) time.Duration { return api.RetryDelay(err) }

// newError makes an error of that code; %w keeps the cause.
func newError(code base.Code, format string, args ...any) *Error {
	return api.Errorf(string(code), format, args...)
}

// publicError turns what the engine answers into an Error. The end of the caller's context stays what it is.
func publicError(err error) error { return api.AsError(err) }
