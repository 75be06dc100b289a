package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// keyed gives a command whose repeat the engine would not know by its fence a key before its first try.
func (e embeddedWork) keyed(ctx context.Context, item *WorkItem) *WorkItem {
	if item.Override && item.RequestKey == "" {
		own := *item
		own.RequestKey = e.client.requestKey(ctx)
		return &own
	}
	return item.keyed(e.client.clock)
}

// fencedBy is what the request of a command under a lease begins with; invalid_id.
func fencedBy(item *WorkItem) (wire.FencedByID, wire.LeaseField, error) {
	lease, err := leaseRef(item.Lease, item.ID)
	return wire.FencedByID{ByID: wire.ByID{ID: string(item.ID)}}, wire.LeaseField{Lease: lease}, err
}

func (e embeddedWork) newWaitpoint(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	path, lease, err := fencedBy(item)
	w := item.Waitpoint
	switch {
	case err != nil:
		return WorkAnswer{}, err
	case w == nil:
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "there is no waitpoint to make").At("waitpoint", "say what it is")
	}
	request := &wire.CreateWaitpointRequest{FencedByID: path}
	request.Body.LeaseField, request.Body.WaitpointKey, request.Body.IdempotencyKey = lease, w.Key, w.IdempotencyKey
	request.Body.ExpiryFields = wire.ExpiryFields{ExpiresInMS: span(w.ExpiresIn), WaitpointID: w.ID}
	made, err := transport.Call(ctx, e.client, wire.CreateWaitpoint, request, transport.Options{})
	if err != nil {
		return WorkAnswer{}, err
	}
	return WorkAnswer{Waitpoints: []Waitpoint{made.Concealed()}}, nil
}

func (e embeddedWork) suspend(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	path, lease, err := fencedBy(item)
	s := item.Suspension
	switch {
	case err != nil:
		return WorkAnswer{}, err
	case s == nil:
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "there is nothing to wait for").At("suspension", "say what it is")
	}
	if err := s.Continuation.Problem("continuation"); err != nil {
		return WorkAnswer{}, err
	}
	request := &wire.SuspendRequest{FencedByID: path}
	b := &request.Body
	b.LeaseField, b.ResumeCondition, b.SuspendFields, b.IdempotencyKey, b.Usage = lease, s.Until, s.fields(), s.Key, item.Usage.Amounts
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
