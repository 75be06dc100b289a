package flowfabric

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/calls"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/ops"
)

// Commands inside a transaction of the handler's own, on the database of the store: see postgres.CompleteTx, postgres.StepTx and
// postgres.SuspendTx. The transaction locks the execution, so that the lease can be neither renewed nor lost while it is open.
//
// Once an ending was left in a transaction, only the database knows whether that was committed. When the handler returns, the
// worker therefore sends a failure under the same lease: it is refused if the transaction was committed, because the lease has ended
// then; and it is true if it was not.

// categoryNotCommitted is the category of an attempt whose ending was left in a transaction that was not committed (U144).
const categoryNotCommitted = "not_committed"

var errNotCommitted = errors.New("the handler returned, but the transaction with its ending was not committed")

// CompleteIn is for packages of this module, see postgres.CompleteTx.
func (t *Task) CompleteIn(ctx context.Context, leave transport.LeaveTx, result any) error {
	_, err := t.leaveIn(ctx, leave, api.WorkItem{Op: api.OpComplete, Result: encode(result)}, false)
	return err
}

// SuspendIn is for packages of this module, see postgres.SuspendTx.
func (t *Task) SuspendIn(ctx context.Context, leave transport.LeaveTx, s Suspension) (*Resume, error) {
	if s.Key == "" {
		return nil, calls.Refuse(base.CodeInvalidArgument, "the wait has no key").At("Key", "name it, so that it is known when the handler runs again")
	}
	s.Key = t.waits.next(s.Key)
	answer, err := t.leaveIn(ctx, leave, api.WorkItem{Op: api.OpSuspend, Suspension: &s}, false)
	if err != nil || answer.Outcome != api.WaitAlreadySatisfied {
		return nil, err
	}
	return t.waitOver(ctx, answer.SuspensionID, s.Continuation)
}

// waitOver returns how a wait ended that is over, with its signals.
func (t *Task) waitOver(ctx context.Context, suspension string, continuation Payload) (*Resume, error) {
	resume := &Resume{SuspensionID: suspension, Continuation: continuation}
	executions := t.runner.client.Executions()
	for wait, err := range executions.Suspensions(ctx, t.claimed.ID) {
		if err != nil {
			return nil, err
		}
		if wait.ID == suspension {
			resume.Cause = wait.Cause
		}
	}
	for signal, err := range executions.Signals(ctx, t.claimed.ID, ops.SignalQuery{SuspensionID: suspension}) {
		if err != nil {
			return nil, err
		}
		resume.Signals = append(resume.Signals, signal)
	}
	return resume, nil
}

// StepIn is for packages of this module, see postgres.StepTx.
func StepIn[T any](ctx context.Context, t *Task, leave transport.LeaveTx, name string, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	name = t.steps.next(name)
	item := api.WorkItem{Op: api.OpStep, Step: name}
	known, err := t.leaveIn(ctx, leave, item, true)
	if err != nil {
		return none, err
	}
	if known.Step != nil {
		return decode[T](known.Step.Result)
	}
	ctx, span := t.startStep(ctx, name)
	code := categoryPanic // unless it returns
	defer func() { span.end(code) }()
	value, err := do(context.WithValue(ctx, inTx{}, true))
	if err == nil {
		item.Result = encode(value)
		_, err = t.leaveIn(ctx, leave, item, false)
	}
	if code = stepCode(err); err != nil {
		return none, err
	}
	return value, nil
}

// inTx marks the context of a step that runs inside a transaction.
type inTx struct{}

// checkOutsideTx refuses a call of a task from a step that runs inside a transaction: it would wait for the transaction, which waits for the step.
func checkOutsideTx(ctx context.Context) error {
	if ctx.Value(inTx{}) == nil {
		return nil
	}
	return calls.Refuse(base.CodeInvalidArgument, "the transaction of the step holds the execution").
		At("", "call it before or after the transaction, not in the function of StepTx")
}

// leaveIn leaves a command in a transaction of the handler, or only looks whether it was done already.
func (t *Task) leaveIn(ctx context.Context, leave transport.LeaveTx, item api.WorkItem, look bool) (api.WorkAnswer, error) {
	if ctx.Err() != nil {
		return api.WorkAnswer{}, context.Cause(ctx)
	}
	if err := t.goneBy(); err != nil {
		return api.WorkAnswer{}, err
	}
	item.ID, item.Lease = t.claimed.ID, t.claimed.Lease
	if err := item.Result.Problem("result"); err != nil {
		return api.WorkAnswer{}, err
	}
	if item.Op != api.OpStep {
		if err := t.settleStreamIn(ctx); err != nil {
			return api.WorkAnswer{}, err
		}
	}
	t.joined.Store(true)
	answer, err := leave(ctx, t.runner.client.conn, item, look)
	if err != nil {
		if t.left.Load() == nil { // otherwise it may be because of what was left before
			t.heed(err)
		}
		return api.WorkAnswer{}, err
	}
	if !look && item.Op != api.OpStep && answer.Outcome == "" {
		t.left.Store(&item.Op)
	}
	return answer, nil
}

// confirm ends a task whose ending was left in a transaction.
func (r *runner) confirm(ctx context.Context, t *Task, span activity, took int64, result error) {
	ending := t.ending(Payload{}, result)
	if result == nil || errors.Is(result, ErrParked) {
		ending = api.WorkItem{Op: api.OpFail, Class: classTransient, Category: categoryNotCommitted, Message: errNotCommitted.Error()}
	}
	ending.ID, ending.Lease = t.claimed.ID, t.claimed.Lease
	answer := r.sendUntilAnswered(ctx, t, ending)
	t.state.CompareAndSwap(taskEnding, taskEnded)
	t.state.CompareAndSwap(taskEnding, taskEnded)
	switch cause := causeOf(answer.Err); {
	case answer.Err == nil:
		t.handled(took, outcomeOf(ending.Op))
		if ending.Category == categoryNotCommitted {
			t.Logger().Warn("flowfabric: the handler returned, but the transaction with its ending was not committed")
		}
	case errors.Is(cause, ErrLeaseLost):
		ending, answer = api.WorkItem{Op: *t.left.Load()}, api.WorkAnswer{}
		t.handled(took, outcomeOf(ending.Op))
	default:
		t.handled(took, outcomeWithout(cause))
		t.Logger().Warn("flowfabric: it is not known whether the transaction with the ending was committed", "error", answer.Err)
	}
	endHandler(span, ending, answer)
}
