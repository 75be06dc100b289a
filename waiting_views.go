package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
)

// uuidOf parses an id that may be left out; invalid_id.
func uuidOf(field, text string) (core.UUID, error) {
	if text == "" {
		return core.UUID{}, nil
	}
	return uuidGiven(field, text)
}

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

// core is the command that suspends under a lease.
func (s *Suspension) core(fence core.Fence) (core.SuspendCommand, error) {
	cmd := core.SuspendCommand{
		Fence: fence, Condition: service.CoreCondition(s.Until), ReasonCode: s.ReasonCode, TimeoutAt: core.TimeOf(s.TimeoutAt), TimeoutMS: span(s.Timeout),
		Behavior: string(s.OnTimeout), ResumeDelayMS: millis(s.ResumeDelay), IdempotencyKey: s.Key,
	}
	var err error
	if cmd.SuspensionID, err = uuidOf("suspension_id", s.ID); err != nil {
		return cmd, err
	}
	for _, b := range s.Waitpoints {
		binding := core.Binding{UsePending: b.Pending, Key: textGiven(b.Key, b.emptyKey)}
		if binding.ID, err = uuidOf("waitpoint_id", b.WaitpointID); err != nil {
			return cmd, err
		}
		cmd.Waitpoints = append(cmd.Waitpoints, binding)
	}
	if err := s.Continuation.Problem("continuation"); err != nil {
		return cmd, err
	}
	if !s.Continuation.IsNothing() {
		continuation := service.CorePayload(s.Continuation)
		cmd.Continuation = &continuation
	}
	return cmd, nil
}

// issued shows a waitpoint with its token and its address.
func (e *embedded) issued(w *core.Waitpoint, s engine.Standing, t core.Token) Waitpoint {
	return e.service.IssuedWaitpointOf(w, s, t)
}

// The outcomes of commands about waits.
const (
	outcomeSuspended = "suspended"
	outcomeSatisfied = "already_satisfied"
)

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
