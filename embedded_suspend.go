package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (e embeddedWork) newWaitpoint(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	w := item.Waitpoint
	if w == nil {
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "there is no waitpoint to make").At("waitpoint", "say what it is")
	}
	request := &wire.CreateWaitpointRequest{FencedByID: item.fencedBy()}
	request.Body.WaitpointKey, request.Body.IdempotencyKey = w.Key, w.IdempotencyKey
	request.Body.ExpiryFields = wire.ExpiryFields{ExpiresInMS: span(w.ExpiresIn), WaitpointID: w.ID}
	made, err := transport.Call(ctx, e.client, wire.CreateWaitpoint, request, transport.Options{})
	if err != nil {
		return WorkAnswer{}, err
	}
	return WorkAnswer{Waitpoints: []Waitpoint{made.Concealed()}}, nil
}

func (e embeddedWork) suspend(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	s := item.Suspension
	if s == nil {
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "there is nothing to wait for").At("suspension", "say what it is")
	}
	if err := s.Continuation.Problem("continuation"); err != nil {
		return WorkAnswer{}, err
	}
	request := &wire.SuspendRequest{FencedByID: item.fencedBy()}
	b := &request.Body
	b.ResumeCondition, b.SuspendFields, b.IdempotencyKey, b.Usage = s.Until, s.fields(), s.Key, item.Usage.Amounts
	a, err := transport.Call(ctx, e.client, wire.SuspendExecution, request, transport.Options{})
	if err != nil {
		return WorkAnswer{}, err
	}
	answer := WorkAnswer{Outcome: a.Outcome, SuspensionID: a.SuspensionID, TimeoutAt: a.TimeoutAt.Time, Late: a.Late}
	if a.Outcome == outcomeSatisfied {
		answer.Resume = &Resume{SuspensionID: a.SuspensionID, Cause: a.Cause, Signals: a.Signals}
	}
	answer.Waitpoints = some(a.Waitpoints, func(w wire.SuspendWaitpoint) Waitpoint { return w.Whole })
	return answer, nil
}
