package flowfabric

import (
	"errors"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// problemOf shows why an item was refused; nil when it was not.
func problemOf(err error) *wire.Problem {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(publicError(err), &e) {
		e = newError(core.CodeTimeout, "the call ended before the answer came: %w", err)
	}
	problem := e.Problem()
	if !strings.HasPrefix(problem.Field, "/") && !strings.HasPrefix(problem.Field, "header.") { // the rules call an argument by its name (U11)
		problem.Field = wire.Pointer(problem.Field)
	}
	return problem
}

// refusalFrom is the reverse of problemOf.
func refusalFrom(p *wire.Problem) error {
	if p == nil {
		return nil
	}
	return p.Err()
}

// unreadable is an answer, or a file with one, that is not in the form of the API.
func unreadable(err error) error {
	return newError(core.CodeInvalidJSON, "this is not the JSON of the API: %w", err)
}
