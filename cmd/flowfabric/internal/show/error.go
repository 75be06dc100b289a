package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric"
)

// The exit codes (U158).
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitInvalid     = 2
	ExitNotFound    = 3
	ExitRefused     = 4
	ExitForbidden   = 5
	ExitTimeout     = 6
	ExitUnavailable = 7
	ExitUnsuccess   = 8
	ExitInterrupted = 130
)

var (
	// ErrInterrupted is the cause of a context that a signal ended.
	ErrInterrupted = errors.New("interrupted")
	// ErrTimeout is the cause of a context that --timeout ended.
	ErrTimeout = errors.New("waited too long")
)

// Exit is an error that only carries an exit code: what it means has been told.
type Exit int

// Error names the code.
func (e Exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Invalid is bad input: a field, what is wrong with it, what to do.
func Invalid(field, hint, format string, args ...any) error {
	return &flowfabric.Error{Code: "invalid_argument", Class: "invalid", Field: field, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// classExits maps the classes of refusals to exit codes.
var classExits = []struct {
	class error
	code  int
}{
	{flowfabric.ErrInvalid, ExitInvalid},
	{flowfabric.ErrNotFound, ExitNotFound},
	{flowfabric.ErrUnauthenticated, ExitForbidden},
	{flowfabric.ErrForbidden, ExitForbidden},
	{flowfabric.ErrConflict, ExitRefused},
	{flowfabric.ErrState, ExitRefused},
	{flowfabric.ErrFenced, ExitRefused},
	{flowfabric.ErrGrant, ExitRefused},
	{flowfabric.ErrGone, ExitRefused},
	{flowfabric.ErrAdmission, ExitUnavailable},
	{flowfabric.ErrLimited, ExitUnavailable},
	{flowfabric.ErrUnavailable, ExitUnavailable},
}

// ExitCode is the code with which the program ends after err.
func ExitCode(err error) int {
	var exit Exit
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &exit):
		return int(exit)
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.Is(err, ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	}
	var ended *flowfabric.ExecutionError
	if errors.As(err, &ended) {
		return ExitUnsuccess
	}
	for _, row := range classExits {
		if errors.Is(err, row.class) {
			return row.code
		}
	}
	return ExitFailed
}

// Error tells what went wrong: lines for people, or the problem object.
func Error(w io.Writer, err error, asJSON bool) {
	var exit Exit
	if err == nil || errors.As(err, &exit) {
		return
	}
	refusal := asRefusal(err)
	if asJSON {
		if data, err := json.Marshal(refusal); err == nil {
			fmt.Fprintf(w, "%s\n", data)
			return
		}
	}
	fmt.Fprintf(w, "flowfabric: %s\n", Visible(refusal.Message))
	for _, line := range []struct{ name, text string }{{"field", refusal.Field}, {"hint", hintFor(refusal)}, {"request", refusal.RequestID}} {
		if line.text != "" {
			fmt.Fprintf(w, "  %s: %s\n", line.name, Visible(line.text))
		}
	}
}

// hintFor is the hint of a refusal, or what the page of its code advises. Bad input is told by its field and needs no general advice.
func hintFor(refusal *flowfabric.Error) string {
	if refusal.Hint != "" || refusal.Class == "invalid" {
		return refusal.Hint
	}
	all := flowfabric.Codes()
	i := slices.IndexFunc(all, func(c flowfabric.CodeInfo) bool { return c.Code == refusal.Code })
	if i < 0 || all[i].Advice == "" {
		return ""
	}
	advice := strings.TrimSuffix(all[i].Advice, ".")
	return strings.ToLower(advice[:1]) + advice[1:]
}

// asRefusal finds the refusal in an error, or makes one of it.
func asRefusal(err error) *flowfabric.Error {
	var refusal *flowfabric.Error
	switch {
	case errors.Is(err, ErrInterrupted):
		return &flowfabric.Error{Class: "unavailable", Message: "interrupted"}
	case errors.Is(err, ErrTimeout):
		return &flowfabric.Error{Code: "timeout", Class: "unavailable", Message: "not done within --timeout", Retryable: true, Hint: "what was sent may still happen; give more time"}
	case errors.As(err, &refusal):
		return refusal
	default:
		return &flowfabric.Error{Class: "internal", Message: err.Error()} // without a code: the message of "internal" is not shown
	}
}
