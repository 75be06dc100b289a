package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
)

// uuidGiven parses an id that must be there; invalid_id.
func uuidGiven(field, text string) (core.UUID, error) {
	id, ok := core.ParseUUID(text)
	if !ok {
		return id, newError(core.CodeInvalidID, "%s is not a UUID", core.QuoteID(text)).At(field, "give it as it was shown")
	}
	return id, nil
}

// span is a duration that may be left out; nil: it was.
func span(d time.Duration) *core.Millis {
	if d == 0 {
		return nil
	}
	ms := millis(d)
	return &ms
}
