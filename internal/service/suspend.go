package service

import (
	"cmp"
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) suspends() {
	on(s, wire.SuspendExecution, s.suspend)
	on(s, wire.CreateWaitpoint, s.createWaitpoint)
}

// suspend hands the work back until its condition is satisfied (U71).
func (s *Service) suspend(ctx context.Context, c Caller, r *wire.SuspendRequest) (wire.SuspendAnswer, error) {
	a, err := s.suspendNow(ctx, c, r)
	if err != nil {
		return wire.SuspendAnswer{}, err
	}
	answer := wire.SuspendAnswer{
		Outcome: a.Outcome, SuspensionID: a.SuspensionID, TimeoutAt: wire.TimeOf(a.TimeoutAt), Late: a.Late, Waitpoints: make([]api.SuspendWaitpoint, len(a.Waitpoints)),
	}
	if a.Resume != nil {
		answer.Cause, answer.Signals = a.Resume.Cause, a.Resume.Signals
	}
	for i := range a.Waitpoints {
		answer.Waitpoints[i] = a.Waitpoints[i].Handed()
	}
	return answer, nil
}

// suspendNow returns the answer to a suspend with all details of its waitpoints. A wait without a name is identified by the key
// of the command, unless the engine recognises the request by its own (U13).
func (s *Service) suspendNow(ctx context.Context, c Caller, r *wire.SuspendRequest) (api.WorkAnswer, error) {
	b := &r.Body
	id, fence, err := fenced(r.FencedByID, b.LeaseField)
	if err != nil {
		return api.WorkAnswer{}, err
	}
	cmd, err := suspendCommandOf(&b.SuspendFields)
	if err != nil {
		return api.WorkAnswer{}, err
	}
	cmd.Fence, cmd.Condition, cmd.Usage, cmd.IdempotencyKey = fence, CoreCondition(b.ResumeCondition), b.Usage, b.IdempotencyKey
	if cmd.IdempotencyKey == "" && c.RequestKey == "" {
		cmd.IdempotencyKey = c.Key
	}
	a, err := s.engine.Suspend(ctx, c.worker(), id, cmd)
	if err != nil {
		return api.WorkAnswer{}, err
	}
	return s.suspensionAnswer(&a), nil
}

func suspendCommandOf(f *wire.SuspendFields) (core.SuspendCommand, error) {
	cmd := core.SuspendCommand{
		ReasonCode: f.ReasonCode, TimeoutAt: base.TimeOf(f.TimeoutAt.Time), TimeoutMS: f.TimeoutMS, Behavior: f.TimeoutBehavior,
		ResumeDelayMS: f.ResumeDelayMS, Continuation: payloadGiven(f.Continuation),
	}
	if f.TimeoutMS != nil && *f.TimeoutMS == 0 {
		soonest := base.Millis(1)
		cmd.TimeoutMS = &soonest
	}
	var err error
	if cmd.SuspensionID, err = givenUUID("suspension_id", f.SuspensionID); err != nil {
		return cmd, err
	}
	for _, b := range f.Waitpoints {
		binding, err := bindingOf(b)
		if err != nil {
			return cmd, err
		}
		cmd.Waitpoints = append(cmd.Waitpoints, binding)
	}
	return cmd, nil
}

func bindingOf(b api.Binding) (binding core.Binding, err error) {
	switch {
	case b.UsePending != nil:
		binding.UsePending = true
		binding.ID, err = givenUUID("waitpoint_id", b.UsePending.ID)
	case b.Fresh != nil:
		binding.Key = b.Fresh.Given()
		binding.ID, err = givenUUID("waitpoint_id", b.Fresh.ID)
	}
	return binding, err
}

func (s *Service) suspensionAnswer(a *engine.SuspendAnswer) api.WorkAnswer {
	answer := api.WorkAnswer{Outcome: api.WaitSuspended, SuspensionID: a.SuspensionID.String(), TimeoutAt: a.TimeoutAt.Std(), Late: a.Late}
	if a.Satisfied {
		answer.Outcome = api.WaitAlreadySatisfied
		answer.Resume = &api.Resume{SuspensionID: answer.SuspensionID, Cause: string(a.Cause), Signals: each(a.Signals, SignalOf)}
	}
	for i := range a.Waitpoints {
		answer.Waitpoints = append(answer.Waitpoints, s.issuedWaitpointOf(&a.Waitpoints[i], a.Standings[i], a.Tokens[i]))
	}
	return answer
}

// createWaitpoint makes a waitpoint before work waits at it (U72). A waitpoint without a name is identified by the key of the
// command.
func (s *Service) createWaitpoint(ctx context.Context, c Caller, r *wire.CreateWaitpointRequest) (api.IssuedWaitpoint, error) {
	b := &r.Body
	id, fence, err := fenced(r.FencedByID, b.LeaseField)
	if err != nil {
		return api.IssuedWaitpoint{}, err
	}
	cmd := core.CreateWaitpointCommand{Fence: fence, Key: b.WaitpointKey, ExpiresInMS: b.ExpiresInMS, IdempotencyKey: cmp.Or(b.IdempotencyKey, c.once())}
	if cmd.WaitpointID, err = givenUUID("waitpoint_id", b.WaitpointID); err != nil {
		return api.IssuedWaitpoint{}, err
	}
	return s.shownToken(s.engine.CreateWaitpoint(ctx, c.worker(), id, cmd))
}
