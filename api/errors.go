package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Error is a refusal or a failure with a stable code. docs/errors.md lists the codes.
type Error struct {
	Code      string // stable; match on it
	Class     string // group of codes: invalid, not_found, conflict, state, fenced, ...
	Message   string // one sentence for people
	Field     string // the argument at fault, "" when none is
	Hint      string // what to do
	RequestID string
	// Retryable: the same call, unchanged, may succeed later.
	Retryable bool
	// RetryAfter says when; 0: unknown.
	RetryAfter time.Duration
	// Current holds facts that explain the refusal: status, lease_epoch, limit, ...
	Current map[string]any
	// Errors lists all faulty arguments where there are several; Code, Field, Message and Hint are those of the first.
	Errors []FieldError

	cause error
}

// FieldError is one faulty argument of many.
type FieldError struct {
	Field   string
	Code    string
	Message string
	Hint    string
}

// Errorf makes an error of a code of docs/errors.md; %w keeps the cause for errors.Is and errors.As.
func Errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	info := base.Code(code).Info()
	return &Error{Code: code, Class: info.Class, Retryable: info.Retryable, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Error shows code, field and message.
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

// Unwrap returns the cause inside this process, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Is compares codes when target has one, else classes.
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

// At sets the argument at fault and what to do about it, and returns e.
func (e *Error) At(field, hint string) *Error {
	e.Field, e.Hint = field, hint
	return e
}

// CodeOf is the code of the first Error that err wraps, "" when it wraps none.
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

// RetryDelay says how long to wait before the same call; 0 when the error does not know.
func RetryDelay(err error) time.Duration {
	var e *Error
	if err != nil && errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// AsError turns what the engine returns into an Error. An Error, and the end of the caller's context, stay what they are; anything else is
// internal.
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
	return &Error{
		Code: string(e.Code), Class: info.Class, Retryable: info.Retryable,
		Message: e.Message, Field: e.Field, Hint: e.Hint,
		RetryAfter: time.Duration(e.RetryAfterMS) * time.Millisecond, Current: e.Details, cause: err,
	}
}

// Within says in which place of a request the field of a refusal stands: nodes[3] and lane become nodes[3].lane. Other errors stay what
// they are.
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
