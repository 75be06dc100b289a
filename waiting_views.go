package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// uuidGiven parses a required id; invalid_id.
func uuidGiven(field, text string) (base.UUID, error) {
	id, ok := base.ParseUUID(text)
	if !ok {
		return id, newError(base.CodeInvalidID, "%s is not a UUID", base.QuoteID(text)).At(field, "give it as it was shown")
	}
	return id, nil
}

// span converts an optional duration; nil means unset.
func span(d time.Duration) *base.Millis {
	if d == 0 {
		return nil
	}
	ms := millis(d)
	return &ms
}
