package wire

import "github.com/flowfabric/flowfabric/internal/jsonx"

// The codes of requests that cannot be read (U5, U25), beside those of jsonx.
const (
	CodeInvalidHandle   = "invalid_handle"
	CodeUnsupportedType = "unsupported_media_type"
)

// Error is one fault of a request. Server and client turn it into their own error type. Its field is a JSON pointer, query.name,
// header.Name or path.name; "" when no field is at fault.
type Error = jsonx.Error

// Errors are all faults of a request, in the order in which they stand there. It is never empty when it is returned as an error.
type Errors = jsonx.Errors

// invalidHandle is a lease that cannot be read (W6).
func invalidHandle(detail, hint string) *Error {
	return &Error{Code: CodeInvalidHandle, Detail: detail, Hint: hint}
}
