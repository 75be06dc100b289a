package jsonx

import (
	"errors"
	"strconv"
)

// The codes of a text that cannot be read (U5, U25).
const (
	CodeInvalidJSON     = "invalid_json"     // it is not JSON
	CodeBatchTooLarge   = "batch_too_large"  // a list or map has too many elements
	CodeUnknownField    = "unknown_field"    // an object has a field that its type does not know
	CodeMissingField    = "missing_field"    // an object lacks a field that its type requires
	CodeInvalidArgument = "invalid_argument" // a value is not what its type reads
)

// Error is one fault of a text. Callers turn it into their own type of error.
type Error struct {
	Code   string
	Field  string // JSON pointer, or what the caller puts there; "" when no field is at fault
	Detail string // one sentence for people, without a value that could be a secret
	Hint   string // what to do; "" when there is nothing to say
	Limit  int    // how many there may be at the most; 0 when there is no such bound
}

// Error shows code, field and detail.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Code + ": " + e.Detail
	}
	return e.Code + ": " + e.Field + ": " + e.Detail
}

// Errors are all faults of a text, in their order there. It is never empty when it is returned as an error.
type Errors []*Error

// Error shows the first fault and how many follow.
func (all Errors) Error() string {
	if len(all) == 1 {
		return all[0].Error()
	}
	return all[0].Error() + " (and " + strconv.Itoa(len(all)-1) + " more)"
}

// Unwrap lets errors.As find the first *Error.
func (all Errors) Unwrap() []error {
	list := make([]error, len(all))
	for i, e := range all {
		list[i] = e
	}
	return list
}

// OrNil returns nil in place of an empty list.
func (all Errors) OrNil() error {
	if len(all) == 0 {
		return nil
	}
	return all
}

// Invalid returns an invalid_argument: a value that cannot be read. The hint may be empty.
func Invalid(detail, hint string) *Error {
	return &Error{Code: CodeInvalidArgument, Detail: detail, Hint: hint}
}

// AsError returns the first *Error in an error, or an invalid_argument if there is none; nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Invalid("the value cannot be read", "")
}
