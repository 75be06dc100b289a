package wire

import "strconv"

// The codes of a request that cannot be read (U5, U25).
const (
	CodeInvalidJSON     = "invalid_json"
	CodeBatchTooLarge   = "batch_too_large"
	CodeUnknownField    = "unknown_field"
	CodeMissingField    = "missing_field"
	CodeInvalidArgument = "invalid_argument"
	CodeInvalidHandle   = "invalid_handle"
	CodeUnsupportedType = "unsupported_media_type"
)

// Error is one fault of a request. Server and client turn it into their own error type.
type Error struct {
	Code   string
	Field  string // JSON pointer, query.name, header.Name or path.name; "" when no field is at fault
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

// Errors are all faults of a request, in the order in which they stand there. It is never empty when it is returned as an error.
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

// orNil keeps an empty list from becoming an error.
func (all Errors) orNil() error {
	if len(all) == 0 {
		return nil
	}
	return all
}

// invalidHandle is a lease that cannot be read (W6).
func invalidHandle(detail, hint string) *Error {
	return &Error{Code: CodeInvalidHandle, Detail: detail, Hint: hint}
}

// invalid is an argument that cannot be read.
func invalid(detail, hint string) *Error {
	return &Error{Code: CodeInvalidArgument, Detail: detail, Hint: hint}
}
