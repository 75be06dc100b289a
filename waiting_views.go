package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/service"
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

// outcomeSatisfied is the outcome of a suspend whose wait is passed.
const outcomeSatisfied = "already_satisfied"

// resumeOf is what whoever goes on is told of the wait; nil when there was none.
func resumeOf(o *core.Observation) *Resume {
	if o == nil {
		return nil
	}
	resume := &Resume{SuspensionID: o.ID.String(), Cause: string(o.Cause), Signals: each(o.Signals, service.SignalOf)}
	if o.Continuation != nil {
		resume.Continuation = service.PayloadOf(*o.Continuation)
	}
	return resume
}
