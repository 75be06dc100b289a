package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/hint"
)

// Error is a refusal or a failure with a stable code. docs/errors.md lists the codes.
type Error struct {
	Code      string // stable; match on it
	Class     string // group of codes: invalid, not_found, conflict, state, fenced, ...
	Message   string // one sentence for people
	Field     string // the invalid argument; "" if none
	Hint      string // what to do
	RequestID string
	// Retryable reports that the same call, unchanged, may succeed later.
	Retryable bool
	// RetryAfter is when to retry; 0: unknown.
	RetryAfter time.Duration
	// Current holds facts that explain the refusal: status, lease_epoch, limit, ...
	Current map[string]any
	// Errors lists all invalid arguments if there are several; Code, Field, Message and Hint are those of the first.
	Errors []FieldError

	cause  error
	asSent string // Hint in the words of HTTP, if they differ
}

// FieldError is one of several invalid arguments.
type FieldError struct {
	Field   string
	Code    string
	Message string
	Hint    string
}

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
	// ErrOutcomeUnknown means that it is not known whether the command took effect. The same call may be made again.
	ErrOutcomeUnknown error = &Error{Class: "unavailable", Code: string(base.CodeTimeout), Message: "the outcome is unknown"}
)

// Errorf returns an error with a code of docs/errors.md; %w keeps the cause for errors.Is and errors.As.
func Errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	info := base.Code(code).Info()
	return &Error{Code: code, Class: info.Class, Retryable: info.Retryable, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Error returns code, field and message.
func (e *Error) Error() string {
	switch {
	case e.Code == "":
		return "flowfabric: " + e.Class
	case e.Field != "":
		return "flowfabric: " + e.Code + ": " + e.Field + ": " + e.Message
	default:
		return "flowfabric: " + e.Code + ": " + e.Message
	}
}

// Unwrap returns the cause within this process, if any.
func (e *Error) Unwrap() error { return e.cause }

// Is compares codes if target has one, else classes.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	if !ok {
		return false
	}
	if t.Code != "" {
		return t.Code == e.Code
	}
	return t.Class != "" && t.Class == e.Class
}

// At sets the invalid argument and the hint, and returns e.
func (e *Error) At(field, text string) *Error {
	e.Field = field
	e.setHint(text)
	return e
}

// setHint sets the hint, which is given in the words of HTTP.
func (e *Error) setHint(text string) {
	e.Hint, e.asSent = hint.Go(text), ""
	if e.Hint != text {
		e.asSent = text
	}
}

// sentHint returns the hint in the words of HTTP.
func (e *Error) sentHint() string {
	if e.asSent != "" && e.Hint == hint.Go(e.asSent) {
		return e.asSent
	}
	return e.Hint // it was set later
}

// CodeOf returns the code of the first Error that err wraps, or "".
func CodeOf(err error) string {
	var e *Error
	if err != nil && errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Retryable reports whether the same call, unchanged, may succeed later.
func Retryable(err error) bool {
	var e *Error
	return err != nil && errors.As(err, &e) && e.Retryable
}

// RetryDelay returns how long to wait before the same call; 0 if unknown.
func RetryDelay(err error) time.Duration {
	var e *Error
	if err != nil && errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// AsError converts errors of the engine into an Error. An Error, and the error of the caller's context, are returned unchanged;
// any other error becomes internal.
func AsError(err error) error {
	if err == nil {
		return nil
	}
	var public *Error
	if errors.As(err, &public) {
		return err
	}
	var e *base.Error
	if !errors.As(err, &e) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return Errorf(string(base.CodeInternal), "internal error: %w", err)
	}
	info := e.Code.Info()
	refusal := &Error{
		Code: string(e.Code), Class: info.Class, Retryable: info.Retryable,
		Message: e.Message, Field: e.Field,
		RetryAfter: time.Duration(e.RetryAfterMS) * time.Millisecond, Current: e.Details, cause: err,
	}
	refusal.setHint(e.Hint)
	return refusal
}

// Within prefixes the field of a refusal with its place in the request: nodes[3] and lane become nodes[3].lane. Other errors are
// returned unchanged.
func Within(place string, err error) error {
	var refusal *Error
	if !errors.As(AsError(err), &refusal) {
		return err
	}
	named := *refusal
	switch {
	case named.Field == "":
		named.Field = place
	case place != "":
		named.Field = place + "." + named.Field
	}
	return &named
}
