package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// onOne is a worker's command on one execution.
type onOne struct {
	op     string
	caller Caller
	id     base.GivenID
	fence  *core.Fence // of a lease-ending command: its recorded answer may be wanted (L34)
	held   *core.Fence // of a command that keeps the lease
	act    func(u *Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (changed bool, err error)
}

func (o *onOne) Name() string { return o.op }

func (o *onOne) Want(w *store.Want, _ bool) { w.Executions = append(w.Executions, o.id.UUID) }

func (o *onOne) Target() base.UUID { return o.id.UUID }

// More loads the lease history entry of a fence that is not the current lease's.
func (o *onOne) More(u *Tx, w *store.Want) {
	if o.fence == nil {
		return
	}
	ent, err := u.Find(o.caller, o.id)
	if err != nil || !ent.Exec.NeedsRecord(*o.fence) {
		return
	}
	if u.doubted = u.doubted || ent.assumed(); !ent.assumed() {
		w.History = append(w.History, store.HistoryRef{ID: o.id.UUID, Epoch: o.fence.Epoch})
	}
}

func (o *onOne) Decide(u *Tx) error {
	return u.on(o.caller, o.id, func(x *core.Execution, fx *core.Effects) (bool, error) {
		var rec *core.LeaseRecord
		if o.fence != nil {
			rec = u.record(x.ID.UUID, o.fence.Epoch)
		}
		return o.act(u, x, fx, rec)
	})
}

// onExecution runs a command on one execution. An execution that a user's own transaction has just submitted is adopted first (L88).
func (e *Engine) onExecution(ctx context.Context, cmd *onOne) error {
	err := e.Do(ctx, cmd)
	if base.CodeOf(err) == base.CodeExecutionNotFound && e.appeared(ctx, cmd.id.UUID) {
		return e.Do(ctx, cmd)
	}
	return err
}

// asWorker is the caller as the actor of a worker's command.
func (c Caller) asWorker(x *core.Execution, fx *core.Effects) {
	fx.Actor.Type = "worker"
	if x.Attempt != nil && x.Attempt.WorkerID != "" {
		fx.Actor.ID = x.Attempt.WorkerID
	}
}

// Complete ends the execution as succeeded (L89).
func (e *Engine) Complete(ctx context.Context, c Caller, id base.GivenID, f core.Fence, result *core.Payload) (core.CompleteAnswer, error) {
	return e.CompleteWith(ctx, c, id, core.Completion{Fence: f, Result: result})
}

// CompleteWith is Complete for a command that may say what was used (B16).
func (e *Engine) CompleteWith(ctx context.Context, c Caller, id base.GivenID, cmd core.Completion) (core.CompleteAnswer, error) {
	var answer core.CompleteAnswer
	one, err := e.newComplete(c, id, cmd, &answer)
	if err == nil {
		err = e.onExecution(ctx, one)
	}
	if err == nil && answer.Repeated {
		c.Again()
	}
	return answered(&answer, err)
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
func (e *Engine) CompleteMany(ctx context.Context, c Caller, all []Ending) []CompleteItem {
	items := make([]CompleteItem, len(all))
	answers := make([]core.CompleteAnswer, len(all)) // the answer of a command whose caller gave up may still be written
	var cmds []command
	var at []int
	for i := range all {
		one, err := e.newComplete(c, all[i].ID, all[i].Completion, &answers[i])
		if items[i].Err = err; err == nil {
			cmds, at = append(cmds, one), append(at, i)
		}
	}
	for n, err := range e.doAll(ctx, cmds) {
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
func (e *Engine) newComplete(c Caller, id base.GivenID, cmd core.Completion, answer *core.CompleteAnswer) (*onOne, error) {
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
	return &onOne{
		op: "complete", caller: c, id: id, fence: &cmd.Fence,
		act: func(_ *Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (_ bool, err error) {
			c.asWorker(x, fx)
			*answer, err = x.Complete(fx, core.Completion{Fence: cmd.Fence, Result: result, Usage: cmd.Usage, Recorded: rec, TooLarge: tooLarge})
			return !answer.Repeated, err
		},
	}, nil
}

// checkPayload bounds a result (L6) and fills in its content type. It returns in tooLarge why this process does not store it: the first try of a
// repeat may have reached one that did (L117).
func (e *Engine) checkPayload(field string, p *core.Payload) (_ *core.Payload, tooLarge, err error) {
	if p == nil {
		return nil, nil, nil
	}
	checked := *p
	setDefault(&checked.ContentType, base.DefaultContentType)
	if err := base.CheckContentType(field+"_content_type", checked.ContentType); err != nil {
		return nil, nil, err
	}
	if err := anySize.CheckPayload(field, len(checked.Data)); err != nil {
		return nil, nil, err
	}
	checked.Size = len(checked.Data)
	if checked.Data == nil {
		checked.Data = []byte{}
	}
	return &checked, e.Cfg.Limits.CheckPayload(field, len(checked.Data)), nil
}

// CompleteOverride completes a running execution on an operator's word (L37).
func (e *Engine) CompleteOverride(ctx context.Context, c Caller, id base.GivenID, result *core.Payload, op Operator) (core.CompleteAnswer, error) {
	result, tooLarge, err := e.checkPayload("result", result)
	if err != nil {
		return core.CompleteAnswer{}, err
	}
	var answer core.CompleteAnswer
	err = e.operate(ctx, c, id, operation{
		name: "complete_override", op: op, args: result, answer: &answer,
		act: func(_ *Tx, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			answer, err = x.Complete(fx, core.Completion{Override: true, Result: result, TooLarge: tooLarge})
			return true, err
		},
	})
	return answered(&answer, err)
}

// Fail ends the attempt as failed; the policy decides whether a retry follows (L90..L94).
func (e *Engine) Fail(ctx context.Context, c Caller, id base.GivenID, cmd core.FailCommand) (core.FailAnswer, error) {
	if err := cmd.Fence.Validate(); err != nil {
		return core.FailAnswer{}, err
	}
	if err := cmd.Normalize(); err != nil {
		return core.FailAnswer{}, err
	}
	var answer core.FailAnswer
	err := e.onExecution(ctx, &onOne{
		op: "fail", caller: c, id: id, fence: &cmd.Fence,
		act: func(_ *Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (_ bool, err error) {
			c.asWorker(x, fx)
			command := cmd
			command.Recorded = rec
			answer, err = x.Fail(fx, command)
			return !answer.Repeated, err
		},
	})
	if err == nil && answer.Repeated {
		c.Again()
	}
	return answered(&answer, err)
}

// FailOverride fails a running execution on an operator's word (L37).
func (e *Engine) FailOverride(ctx context.Context, c Caller, id base.GivenID, cmd core.FailCommand, op Operator) (core.FailAnswer, error) {
	if err := cmd.Normalize(); err != nil {
		return core.FailAnswer{}, err
	}
	cmd.Override = true
	var answer core.FailAnswer
	err := e.operate(ctx, c, id, operation{
		name: "fail_override", op: op, args: cmd, answer: &answer,
		act: func(_ *Tx, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			answer, err = x.Fail(fx, cmd)
			return true, err
		},
	})
	return answered(&answer, err)
}

// Delay hands the execution back until a moment (L95).
func (e *Engine) Delay(ctx context.Context, c Caller, id base.GivenID, f core.Fence, until base.Time) (core.LeaveAnswer, error) {
	return e.DelayWith(ctx, c, id, core.DelayCommand{Fence: f, Until: until}, nil)
}

// DelayFor hands the execution back for a while, which is counted by the store's clock (U70).
func (e *Engine) DelayFor(ctx context.Context, c Caller, id base.GivenID, f core.Fence, d base.Millis) (core.LeaveAnswer, error) {
	return e.DelayWith(ctx, c, id, core.DelayCommand{Fence: f}, &d)
}

// DelayWith is Delay for a command that may say what was used (B16). after is in place of its moment, counted by the store's clock;
// nil: the moment counts.
func (e *Engine) DelayWith(ctx context.Context, c Caller, id base.GivenID, cmd core.DelayCommand, after *base.Millis) (core.LeaveAnswer, error) {
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
	err := e.onExecution(ctx, &onOne{
		op: "delay", caller: c, id: id, fence: &cmd.Fence,
		act: func(u *Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (_ bool, err error) {
			command := cmd
			if command.Recorded = rec; after != nil {
				command.Until = u.Now.Add(*after)
			}
			if err := base.CheckAhead("until", command.Until, u.Now); err != nil {
				return false, err
			}
			c.asWorker(x, fx)
			answer, err = x.Delay(fx, command)
			return !answer.Repeated, err
		},
	})
	if err == nil && answer.Repeated {
		c.Again()
	}
	return answered(&answer, err)
}

// Release hands the execution back for another worker, without using anything up (L98).
func (e *Engine) Release(ctx context.Context, c Caller, id base.GivenID, f core.Fence, reason string) (core.LeaveAnswer, error) {
	if err := f.Validate(); err != nil {
		return core.LeaveAnswer{}, err
	}
	if err := base.CheckReason("reason", reason); err != nil {
		return core.LeaveAnswer{}, err
	}
	var answer core.LeaveAnswer
	err := e.onExecution(ctx, &onOne{
		op: "release", caller: c, id: id, fence: &f,
		act: func(_ *Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (_ bool, err error) {
			c.asWorker(x, fx)
			answer, err = x.Release(fx, core.ReleaseCommand{Fence: f, Reason: reason, Recorded: rec})
			return !answer.Repeated, err
		},
	})
	if err == nil && answer.Repeated {
		c.Again()
	}
	return answered(&answer, err)
}

// Progress records how far the worker is (L99).
func (e *Engine) Progress(ctx context.Context, c Caller, id base.GivenID, f core.Fence, percent *int, message *string) error {
	if err := f.Validate(); err != nil {
		return err
	}
	if err := base.CheckProgress(percent, message); err != nil {
		return err
	}
	return e.onExecution(ctx, &onOne{
		op: "progress", caller: c, id: id, held: &f,
		act: func(_ *Tx, x *core.Execution, fx *core.Effects, _ *core.LeaseRecord) (bool, error) {
			c.asWorker(x, fx)
			return true, x.ReportProgress(fx, f, percent, message)
		},
	})
}
