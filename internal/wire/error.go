package wire

import "github.com/flowfabric/flowfabric/internal/jsonx"

// Codes of requests that cannot be read (U5, U25), in addition to those of jsonx.
const (
	CodeInvalidHandle   = "invalid_handle"
	CodeUnsupportedType = "unsupported_media_type"
)

// Error is one invalid part of a request. Server and client convert it into their own error type. Field is a JSON pointer,
// query.name, header.Name or path.name; "" if there is none.
type Error = jsonx.Error

// Errors are all errors of a request, in their order in the request. It is never empty when returned as an error.
type Errors = jsonx.Errors

// invalidHandle is the code for a lease that cannot be read (W6).
func invalidHandle(detail, hint string) *Error {
	return &Error{Code: CodeInvalidHandle, Detail: detail, Hint: hint}
}
