package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/service"
)

// keyed gives a command whose repeat the engine would not know, neither by its fence nor by the key of a request, one before its first
// try.
func (e embeddedWork) keyed(ctx context.Context, item *WorkItem) *WorkItem {
	if item.Override && item.RequestKey == "" {
		own := *item
		own.RequestKey = e.client.requestKey(ctx)
		return &own
	}
	if item.Op != OpUsage && e.client.keyedRequest(ctx) {
		return item
	}
	return item.keyed(e.client.clock)
}

// keyedRequest reports whether the call belongs to a request with a key, by which the engine knows its repeats (U13).
func (e *embedded) keyedRequest(ctx context.Context) bool {
	p, ok := principal.From(ctx)
	return ok && p.RequestKey != ""
}

func (e embeddedWork) newWaitpoint(ctx context.Context, id core.GivenID, fence core.Fence, w *NewWaitpoint) (WorkAnswer, error) {
	if w == nil {
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "there is no waitpoint to make").At("waitpoint", "say what it is")
	}
	cmd := core.CreateWaitpointCommand{Fence: fence, Key: w.Key, ExpiresInMS: span(w.ExpiresIn), IdempotencyKey: w.IdempotencyKey}
	var err error
	if cmd.WaitpointID, err = uuidOf("waitpoint_id", w.ID); err != nil {
		return WorkAnswer{}, err
	}
	made, err := e.client.engine.CreateWaitpoint(ctx, e.client.asWorker(ctx), id, cmd)
	if err != nil {
		return WorkAnswer{}, err
	}
	return WorkAnswer{Waitpoints: []Waitpoint{e.client.issued(&made.Waitpoint, made.Standing, made.Token)}}, nil
}

func (e embeddedWork) suspend(ctx context.Context, id core.GivenID, fence core.Fence, item *WorkItem) (WorkAnswer, error) {
	s := item.Suspension
	if s == nil {
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "there is nothing to wait for").At("suspension", "say what it is")
	}
	cmd, err := s.core(fence)
	if err != nil {
		return WorkAnswer{}, err
	}
	cmd.Usage = item.Usage.Amounts
	a, err := e.client.engine.Suspend(ctx, e.client.asWorker(ctx), id, cmd)
	if err != nil {
		return WorkAnswer{}, err
	}
	answer := WorkAnswer{Outcome: outcomeSuspended, SuspensionID: a.SuspensionID.String(), TimeoutAt: a.TimeoutAt.Std(), Late: a.Late}
	if a.Satisfied {
		answer.Outcome = outcomeSatisfied
		answer.Resume = &Resume{SuspensionID: answer.SuspensionID, Cause: string(a.Cause), Signals: each(a.Signals, service.SignalOf)}
	}
	for i := range a.Waitpoints {
		answer.Waitpoints = append(answer.Waitpoints, e.client.issued(&a.Waitpoints[i], a.Standings[i], a.Tokens[i]))
	}
	return answer, nil
}
