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
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/hint"
)

// Exit codes (U158).
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
	ErrTimeout = errors.New("timed out")
)

// Exit is an error that only carries an exit code; its message was printed before.
type Exit int

// Error names the code.
func (e Exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Invalid is bad input: the field, the problem and a hint.
func Invalid(field, hint, format string, args ...any) error {
	return &flowfabric.Error{Code: "invalid_argument", Class: "invalid", Field: field, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// classExits maps classes of errors to exit codes.
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

// ExitCode returns the exit code of the program for err.
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

// Words are those of a command for what a refusal names in the words of HTTP.
type Words interface {
	// Field returns the flag for a field; a field for which there is none is returned unchanged.
	Field(field string) string
	// Flag returns the flag for an argument; "" if there is none.
	Flag(argument string) string
}

// Error prints an error as lines for people, in the words of a command, or as the problem object. words may be nil.
func Error(w io.Writer, err error, asJSON bool, words Words) {
	var exit Exit
	if err == nil || errors.As(err, &exit) {
		return
	}
	refusal := asRefusal(err)
	if asJSON {
		if data, err := json.Marshal(refusal); err == nil {
			fmt.Fprintf(w, "%s\n", visibleJSON(data))
			return
		}
	}
	problem := refusal.Problem()
	if problem.Detail = refusal.Message; words != nil {
		problem.Field = words.Field(problem.Field)
	}
	fmt.Fprintf(w, "flowfabric: %s\n", Visible(sentence(problem)))
	for _, line := range []struct{ name, text string }{{"field", problem.Field}, {"hint", hintFor(problem, words)}, {"request", problem.RequestID}} {
		if line.text != "" {
			fmt.Fprintf(w, "  %s: %s\n", line.name, Visible(line.text))
		}
	}
}

// sentence is the detail of a problem, with the field as its subject if it has none.
func sentence(problem *api.Problem) string {
	first, _, _ := strings.Cut(problem.Detail, " ")
	if problem.Field != "" && slices.Contains([]string{"is", "must", "has", "needs"}, first) {
		return problem.Field + " " + problem.Detail
	}
	return problem.Detail
}

// hintFor returns the hint of an error, or the advice for its code, in the words of a command. Errors about bad input name the field and
// need no general advice.
func hintFor(problem *api.Problem, words Words) string {
	text := problem.Hint
	if text == "" && problem.Class != "invalid" {
		text = adviceFor(problem.Code)
	}
	return hint.Command(text, func(name string) string {
		if words == nil {
			return ""
		}
		return words.Flag(name)
	}, func(fact string) string {
		if value, known := problem.Current[fact]; known {
			return fmt.Sprint(value)
		}
		return ""
	})
}

// adviceFor returns what to do about a code, as a hint.
func adviceFor(code string) string {
	all := api.Codes()
	i := slices.IndexFunc(all, func(c api.CodeInfo) bool { return c.Code == code })
	if i < 0 || all[i].Advice == "" {
		return ""
	}
	advice := strings.TrimSuffix(all[i].Advice, ".")
	return strings.ToLower(advice[:1]) + advice[1:]
}

// asRefusal returns the refusal in an error, or converts the error.
func asRefusal(err error) *flowfabric.Error {
	var refusal *flowfabric.Error
	switch {
	case errors.Is(err, ErrInterrupted):
		return &flowfabric.Error{Class: "unavailable", Message: "interrupted"}
	case errors.Is(err, ErrTimeout):
		return &flowfabric.Error{Code: "timeout", Class: "unavailable", Message: "--timeout has passed", Retryable: true, Hint: "the request may still take effect; use a longer --timeout"}
	case errors.As(err, &refusal):
		return refusal
	default:
		return &flowfabric.Error{Class: "internal", Message: err.Error()} // without a code: the text for "internal" is not shown
	}
}
