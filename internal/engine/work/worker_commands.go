package work

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// Complete ends the execution as succeeded (L89).
func (e *Work) Complete(ctx context.Context, c txn.Caller, id base.GivenID, f core.Fence, result *core.Payload) (core.CompleteAnswer, error) {
	return e.CompleteWith(ctx, c, id, core.Completion{Fence: f, Result: result})
}

// CompleteWith is Complete for a command that may say what was used (B16).
func (e *Work) CompleteWith(ctx context.Context, c txn.Caller, id base.GivenID, cmd core.Completion) (core.CompleteAnswer, error) {
	var answer core.CompleteAnswer
	one, err := e.newComplete(c, id, cmd, &answer)
	if err == nil {
		err = e.OnExecution(ctx, one)
	}
	if err == nil && answer.Repeated {
		c.Again()
	}
	return txn.Answered(&answer, err)
}

// Ending is one of several completions.
type Ending struct {
	ID base.GivenID
	core.Completion
}

// CompleteItem is the answer to one of them: an answer or an error.
type CompleteItem struct {
	core.CompleteAnswer
	Err error
}

// CompleteMany is CompleteWith for executions that ended together, each with its own answer: they share a commit. An execution that a
// user's own transaction has just submitted is not found.
func (e *Work) CompleteMany(ctx context.Context, c txn.Caller, all []Ending) []CompleteItem {
	items := make([]CompleteItem, len(all))
	answers := make([]core.CompleteAnswer, len(all)) // the answer of a command whose caller gave up may still be written
	var cmds []txn.Command
	var at []int
	for i := range all {
		one, err := e.newComplete(c, all[i].ID, all[i].Completion, &answers[i])
		if items[i].Err = err; err == nil {
			cmds, at = append(cmds, one), append(at, i)
		}
	}
	for n, err := range e.DoAll(ctx, cmds) {
		i := at[n]
		if items[i].Err = err; err != nil {
			continue
		}
		if items[i].CompleteAnswer = answers[i]; answers[i].Repeated {
			c.Again()
		}
	}
	return items
}

// newComplete checks a completion.
func (e *Work) newComplete(c txn.Caller, id base.GivenID, cmd core.Completion, answer *core.CompleteAnswer) (*txn.OnOne, error) {
	if err := cmd.Fence.Validate(); err != nil {
		return nil, err
	}
	if err := core.CheckUsage(cmd.Usage); err != nil {
		return nil, err
	}
	result, tooLarge, err := e.checkPayload("result", cmd.Result)
	if err != nil {
		return nil, err
	}
	return &txn.OnOne{
		Op: "complete", Caller: c, ID: id, Fence: &cmd.Fence,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (_ bool, err error) {
			c.AsWorker(x, fx)
			*answer, err = x.Complete(fx, core.Completion{Fence: cmd.Fence, Result: result, Usage: cmd.Usage, Recorded: rec, TooLarge: tooLarge})
			return !answer.Repeated, err
		},
	}, nil
}

// checkPayload bounds a result (L6) and fills in its content type. It returns in tooLarge why this process does not store it: the first try of a
// repeat may have reached one that did (L117).
func (e *Work) checkPayload(field string, p *core.Payload) (_ *core.Payload, tooLarge, err error) {
	if p == nil {
		return nil, nil, nil
	}
	checked := *p
	txn.SetDefault(&checked.ContentType, base.DefaultContentType)
	if err := base.CheckContentType(field+"_content_type", checked.ContentType); err != nil {
		return nil, nil, err
	}
	if err := AnySize.CheckPayload(field, len(checked.Data)); err != nil {
		return nil, nil, err
	}
	checked.Size = len(checked.Data)
	if checked.Data == nil {
		checked.Data = []byte{}
	}
	return &checked, e.Cfg.Limits.CheckPayload(field, len(checked.Data)), nil
}

// CompleteOverride completes a running execution on an operator's word (L37).
func (e *Work) CompleteOverride(ctx context.Context, c txn.Caller, id base.GivenID, result *core.Payload, op txn.Operator) (core.CompleteAnswer, error) {
	result, tooLarge, err := e.checkPayload("result", result)
	if err != nil {
		return core.CompleteAnswer{}, err
	}
	var answer core.CompleteAnswer
	err = e.Operate(ctx, c, id, txn.Operation{
		Name: "complete_override", Op: op, Args: result, Answer: &answer,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			answer, err = x.Complete(fx, core.Completion{Override: true, Result: result, TooLarge: tooLarge})
			return true, err
		},
	})
	return txn.Answered(&answer, err)
}

// Fail ends the attempt as failed; the policy decides whether a retry follows (L90..L94).
func (e *Work) Fail(ctx context.Context, c txn.Caller, id base.GivenID, cmd core.FailCommand) (core.FailAnswer, error) {
	if err := cmd.Fence.Validate(); err != nil {
		return core.FailAnswer{}, err
	}
	if err := cmd.Normalize(); err != nil {
		return core.FailAnswer{}, err
	}
	var answer core.FailAnswer
	err := e.OnExecution(ctx, &txn.OnOne{
		Op: "fail", Caller: c, ID: id, Fence: &cmd.Fence,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (_ bool, err error) {
			c.AsWorker(x, fx)
			command := cmd
			command.Recorded = rec
			answer, err = x.Fail(fx, command)
			return !answer.Repeated, err
		},
	})
	if err == nil && answer.Repeated {
		c.Again()
	}
	return txn.Answered(&answer, err)
}

// FailOverride fails a running execution on an operator's word (L37).
func (e *Work) FailOverride(ctx context.Context, c txn.Caller, id base.GivenID, cmd core.FailCommand, op txn.Operator) (core.FailAnswer, error) {
	if err := cmd.Normalize(); err != nil {
		return core.FailAnswer{}, err
	}
	cmd.Override = true
	var answer core.FailAnswer
	err := e.Operate(ctx, c, id, txn.Operation{
		Name: "fail_override", Op: op, Args: cmd, Answer: &answer,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			answer, err = x.Fail(fx, cmd)
			return true, err
		},
	})
	return txn.Answered(&answer, err)
}

// Delay hands the execution back until a moment (L95).
func (e *Work) Delay(ctx context.Context, c txn.Caller, id base.GivenID, f core.Fence, until base.Time) (core.LeaveAnswer, error) {
	return e.DelayWith(ctx, c, id, core.DelayCommand{Fence: f, Until: until}, nil)
}

// DelayFor hands the execution back for a while, which is counted by the store's clock (U70).
func (e *Work) DelayFor(ctx context.Context, c txn.Caller, id base.GivenID, f core.Fence, d base.Millis) (core.LeaveAnswer, error) {
	return e.DelayWith(ctx, c, id, core.DelayCommand{Fence: f}, &d)
}

// DelayWith is Delay for a command that may say what was used (B16). after is in place of its moment, counted by the store's clock;
// nil: the moment counts.
func (e *Work) DelayWith(ctx context.Context, c txn.Caller, id base.GivenID, cmd core.DelayCommand, after *base.Millis) (core.LeaveAnswer, error) {
	if after != nil && (*after < 0 || *after > base.MaxAhead) {
		return core.LeaveAnswer{}, base.Invalid("delay_ms", "must be in 0..%d", base.MaxAhead)
	}
	if err := cmd.Fence.Validate(); err != nil {
		return core.LeaveAnswer{}, err
	}
	if err := core.CheckUsage(cmd.Usage); err != nil {
		return core.LeaveAnswer{}, err
	}
	var answer core.LeaveAnswer
	err := e.OnExecution(ctx, &txn.OnOne{
		Op: "delay", Caller: c, ID: id, Fence: &cmd.Fence,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (_ bool, err error) {
			command := cmd
			if command.Recorded = rec; after != nil {
				command.Until = u.Now.Add(*after)
			}
			if err := base.CheckAhead("until", command.Until, u.Now); err != nil {
				return false, err
			}
			c.AsWorker(x, fx)
			answer, err = x.Delay(fx, command)
			return !answer.Repeated, err
		},
	})
	if err == nil && answer.Repeated {
		c.Again()
	}
	return txn.Answered(&answer, err)
}

// Release hands the execution back for another worker, without using anything up (L98).
func (e *Work) Release(ctx context.Context, c txn.Caller, id base.GivenID, f core.Fence, reason string) (core.LeaveAnswer, error) {
	if err := f.Validate(); err != nil {
		return core.LeaveAnswer{}, err
	}
	if err := base.CheckReason("reason", reason); err != nil {
		return core.LeaveAnswer{}, err
	}
	var answer core.LeaveAnswer
	err := e.OnExecution(ctx, &txn.OnOne{
		Op: "release", Caller: c, ID: id, Fence: &f,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (_ bool, err error) {
			c.AsWorker(x, fx)
			answer, err = x.Release(fx, core.ReleaseCommand{Fence: f, Reason: reason, Recorded: rec})
			return !answer.Repeated, err
		},
	})
	if err == nil && answer.Repeated {
		c.Again()
	}
	return txn.Answered(&answer, err)
}

// Progress records how far the worker is (L99).
func (e *Work) Progress(ctx context.Context, c txn.Caller, id base.GivenID, f core.Fence, percent *int, message *string) error {
	if err := f.Validate(); err != nil {
		return err
	}
	if err := base.CheckProgress(percent, message); err != nil {
		return err
	}
	return e.OnExecution(ctx, &txn.OnOne{
		Op: "progress", Caller: c, ID: id, Held: &f,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects, _ *core.LeaseRecord) (bool, error) {
			c.AsWorker(x, fx)
			return true, x.ReportProgress(fx, f, percent, message)
		},
	})
}
