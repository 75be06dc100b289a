package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// getExecution returns an execution: for a summary only its record, else with payloads that are small enough. If it is to wait,
// it returns once the execution has ended or the wait is over (U37).
func (s *Service) getExecution(ctx context.Context, c Caller, r *wire.GetExecutionRequest) (api.Execution, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.Execution{}, err
	}
	view, err := s.viewOf(ctx, c, id, r.WaitFields)
	switch {
	case err != nil:
		return api.Execution{}, err
	case r.View == wire.ViewSummary:
		return *ExecutionOf(view), nil
	}
	return s.withPayloads(ctx, c, view)
}

// viewOf reads an execution, or waits for its end.
func (s *Service) viewOf(ctx context.Context, c Caller, id base.GivenID, f wire.WaitFields) (view engine.View, err error) {
	wait, _, err := f.Wait()
	switch {
	case err != nil:
		return view, base.Invalid("wait_ms", "a wait is not negative")
	case wait == 0:
		view, err = s.engine.Describe(ctx, c.client(), id)
	default:
		view, err = s.engine.Wait(ctx, c.client(), id, wait)
	}
	if err != nil {
		return view, err
	}
	if wait != 0 && !view.Execution.Status.Terminal() {
		if err := s.cfg.closed(); err != nil {
			return view, err
		}
	}
	return view, c.checkSubmitter(view.Execution.Submitter())
}

// getState returns only the status (U38).
func (s *Service) getState(ctx context.Context, c Caller, r *wire.ByID) (wire.ExecutionState, error) {
	x, err := s.getExecution(ctx, c, &wire.GetExecutionRequest{ByID: *r, View: wire.ViewSummary})
	return wire.ExecutionState{Status: string(x.Status), PublicState: x.PublicState}, err
}

// checkSubmitter refuses to return the work of another principal to a caller that is restricted to its own (U122).
func (c *Caller) checkSubmitter(of core.Submitter) error {
	if !c.OwnWork || of.Is(core.Submitter{Name: c.Name, KeyID: c.KeyID}) {
		return nil
	}
	return base.Errorf(base.CodeRoleRequired, "another principal submitted it")
}

// InlinePayload is the size up to which payloads are loaded with an execution (U10).
const InlinePayload = 64 << 10

// withPayloads returns the execution with the payloads that are small enough.
func (s *Service) withPayloads(ctx context.Context, c Caller, view engine.View) (api.Execution, error) {
	x := FullExecutionOf(view)
	id := view.Execution.ID.Given()
	if m := view.Execution.Member; m != nil && m.Inputs {
		inputs, err := s.engine.Inputs(ctx, c.client(), id)
		if err != nil {
			return api.Execution{}, err
		}
		x.Inputs = some(inputs, NamedInputOf)
	}
	if x.Input.Data == nil && x.Input.Size() <= InlinePayload {
		input, err := s.engine.Input(ctx, c.client(), id)
		if err != nil {
			return api.Execution{}, err
		}
		x.Input = PayloadOf(input)
	}
	if x.HasResult && x.Result.Data == nil && x.Result.Size() <= InlinePayload {
		result, err := s.engine.Result(ctx, c.client(), id)
		if err != nil && base.CodeOf(err).Info().Class != classState { // the execution may have been replayed in between
			return api.Execution{}, err
		}
		if result != nil {
			x.Result = PayloadOf(*result)
		}
	}
	return *x, nil
}

// classState is the class of codes for actions that the current status does not permit.
const classState = "state"

// FullExecutionOf converts a record completely, except payloads and named inputs that it does not contain.
func FullExecutionOf(view engine.View) *api.Execution {
	x := ExecutionOf(view)
	x.Policy, x.Budgets = PolicyOf(view.Execution), BudgetsOf(view.Execution)
	_, x.RetryOrigin = view.Execution.Retry()
	if trace := view.Execution.Trace; trace != nil {
		x.Traceparent = trace.Parent
	}
	return x
}
