package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// LeaveTx leaves a worker's command in a transaction on the database of the store.
func (s *Service) LeaveTx(ctx context.Context, c Caller, tx any, item *api.WorkItem, look bool) (api.WorkAnswer, error) {
	o, err := OutcomeOf(item, look)
	if err != nil {
		return api.WorkAnswer{}, err
	}
	a, err := s.engine.LeaveTx(ctx, c.worker(), tx, o)
	return OutcomeAnswer(a), err
}

// OutcomeOf converts a command that is left in a transaction; look: a step is only looked for.
func OutcomeOf(item *api.WorkItem, look bool) (engine.TxOutcome, error) {
	id, fence, err := fenced(fencedBy(item), wire.LeaseField{})
	if err != nil {
		return engine.TxOutcome{}, err
	}
	o := engine.TxOutcome{ID: id, Fence: fence, Look: look}
	switch item.Op {
	case api.OpComplete:
		o.Op, o.Result = engine.OutcomeComplete, payloadGiven(item.Result)
	case api.OpStep:
		result := CorePayload(item.Result)
		o.Op, o.Step, o.Result = engine.OutcomeStep, item.Step, &result
	case api.OpSuspend:
		wait := item.Suspension
		if wait == nil {
			return o, wire.NoSuspensionGiven()
		}
		if err := wait.Continuation.Problem("continuation"); err != nil {
			return o, err
		}
		fields := wire.SuspendFieldsOf(wait)
		cmd, err := suspendCommandOf(&fields)
		if err != nil {
			return o, err
		}
		cmd.Condition, cmd.IdempotencyKey = CoreCondition(wait.Until), wait.Key
		o.Op, o.Suspend = engine.OutcomeSuspend, &cmd
	default:
		return o, base.Invalid("op", "%q cannot be done inside a transaction", item.Op)
	}
	return o, nil
}

// OutcomeAnswer converts the answer; it has an outcome only if nothing was written.
func OutcomeAnswer(a engine.TxOutcomeAnswer) api.WorkAnswer {
	switch {
	case a.Step != nil:
		record := StepOf(*a.Step)
		return api.WorkAnswer{Outcome: "exists", Step: &record}
	case !a.Over.IsZero():
		return api.WorkAnswer{Outcome: api.WaitAlreadySatisfied, SuspensionID: a.Over.String()}
	default:
		return api.WorkAnswer{}
	}
}
