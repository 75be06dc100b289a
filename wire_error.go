package flowfabric

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// problemOf shows why an item was refused; nil when it was not.
func problemOf(err error) *wire.Problem { return api.ProblemOf(err) }

// refusalFrom is the reverse of problemOf.
func refusalFrom(p *wire.Problem) error { return p.Refusal() }

// unreadable is an answer, or a file with one, that is not in the form of the API.
func unreadable(err error) error {
	return newError(core.CodeInvalidJSON, "this is not the JSON of the API: %w", err)
}
