package base

import (
	"errors"
	"fmt"
)

// Error is a refusal or a failure with a stable code (L142, W3). It is the only error type that leaves the engine.
type Error struct {
	Code         Code
	Message      string         // one sentence for people
	Field        string         // the argument at fault, "" if there is none
	Hint         string         // what to do
	RetryAfterMS Millis         // 0: unknown
	Details      map[string]any // facts that explain the refusal
	cause        error
}

// Errorf makes an error of that code. %w keeps the cause for errors.Is and errors.As; it is not shown to callers in other processes.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Invalid is the refusal of one argument (L6).
func Invalid(field, format string, args ...any) *Error {
	return Errorf(CodeInvalidArgument, format, args...).WithField(field)
}

// Error shows code and message.
func (e *Error) Error() string {
	if e.Field != "" {
		return string(e.Code) + ": " + e.Field + ": " + e.Message
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Is compares codes.
func (e *Error) Is(target error) bool {
	var other *Error
	return errors.As(target, &other) && other.Code == e.Code
}

// WithField names the argument at fault.
func (e *Error) WithField(field string) *Error { e.Field = field; return e }

// WithHint sets the text that states what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithRetryAfter states when a repeat may succeed.
func (e *Error) WithRetryAfter(ms Millis) *Error { e.RetryAfterMS = ms; return e }

// With adds a fact that explains the refusal.
func (e *Error) With(name string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[name] = value
	return e
}

// DetailHeld is the detail of a refused renewal that says that a transaction holds the execution.
const DetailHeld = "held"

// CodeOf returns the code of err, internal if it has none, "" if err is nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// CheckRevision compares the revision that a caller expects with the present one: precondition_failed (U17). A nil expectation always passes.
func CheckRevision(expected *int64, present int64) error {
	if expected == nil || *expected == present {
		return nil
	}
	return Errorf(CodePreconditionFailed, "the revision is %d, not %d", present, *expected).
		WithField("revision").With("revision", present).WithHint("read it again and decide anew")
}
