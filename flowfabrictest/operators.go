package flowfabrictest

import (
	"context"

	"github.com/flowfabric/flowfabric"
)

// Operate is what operators do. Its commands survive the death of the process.
func (e *Env) Operate() flowfabric.Operate {
	return operate{e.alive(context.Background()).client.Operate(), e}
}

// Lanes steers the lanes. Its commands survive the death of the process.
func (e *Env) Lanes() flowfabric.Lanes { return flowfabric.NewLanes(e) }

// Workers shows and steers the fleet. Its commands survive the death of the process.
func (e *Env) Workers() flowfabric.Workers { return flowfabric.NewWorkers(e) }

// Admin is what administrators do. Its commands survive the death of the process.
func (e *Env) Admin() flowfabric.Admin { return flowfabric.NewAdmin(e) }

type operate struct {
	flowfabric.Operate
	env *Env
}

// act makes a command on one execution.
func (o operate) act(ctx context.Context, do func(ctx context.Context, c flowfabric.Operate) (*flowfabric.Execution, error)) (*flowfabric.Execution, error) {
	return again(ctx, o.env, func(ctx context.Context, c flowfabric.Client) (*flowfabric.Execution, error) {
		return do(ctx, c.Operate())
	})
}

func (o operate) actions(a []flowfabric.Action) []flowfabric.Action {
	return keyed(o.env, a, func(a *flowfabric.Action) *string { return &a.RequestKey })
}

func (o operate) Replay(ctx context.Context, id flowfabric.ID, how ...flowfabric.ReplayOptions) (*flowfabric.Execution, error) {
	how = keyed(o.env, how, func(r *flowfabric.ReplayOptions) *string { return &r.RequestKey })
	return o.act(ctx, func(ctx context.Context, c flowfabric.Operate) (*flowfabric.Execution, error) {
		return c.Replay(ctx, id, how...)
	})
}

func (o operate) SetPriority(ctx context.Context, id flowfabric.ID, priority int, a ...flowfabric.Action) (*flowfabric.Execution, error) {
	a = o.actions(a)
	return o.act(ctx, func(ctx context.Context, c flowfabric.Operate) (*flowfabric.Execution, error) {
		return c.SetPriority(ctx, id, priority, a...)
	})
}

func (o operate) Hold(ctx context.Context, id flowfabric.ID, a ...flowfabric.Action) (*flowfabric.Execution, error) {
	a = o.actions(a)
	return o.act(ctx, func(ctx context.Context, c flowfabric.Operate) (*flowfabric.Execution, error) {
		return c.Hold(ctx, id, a...)
	})
}

func (o operate) ReleaseHold(ctx context.Context, id flowfabric.ID, a ...flowfabric.Action) (*flowfabric.Execution, error) {
	a = o.actions(a)
	return o.act(ctx, func(ctx context.Context, c flowfabric.Operate) (*flowfabric.Execution, error) {
		return c.ReleaseHold(ctx, id, a...)
	})
}

func (o operate) Revoke(ctx context.Context, id flowfabric.ID, how ...flowfabric.RevokeOptions) (flowfabric.Revocation, error) {
	how = keyed(o.env, how, func(r *flowfabric.RevokeOptions) *string { return &r.RequestKey })
	return again(ctx, o.env, func(ctx context.Context, c flowfabric.Client) (flowfabric.Revocation, error) {
		return c.Operate().Revoke(ctx, id, how...)
	})
}

func (o operate) Claim(ctx context.Context, id flowfabric.ID, how ...flowfabric.OperatorClaim) (*flowfabric.Claimed, error) {
	how = keyed(o.env, how, func(r *flowfabric.OperatorClaim) *string { return &r.RequestKey })
	return again(ctx, o.env, func(ctx context.Context, c flowfabric.Client) (*flowfabric.Claimed, error) {
		return c.Operate().Claim(ctx, id, how...)
	})
}

func (o operate) Resume(ctx context.Context, id flowfabric.ID, how ...flowfabric.ResumeOptions) (*flowfabric.Execution, error) {
	how = keyed(o.env, how, func(r *flowfabric.ResumeOptions) *string { return &r.RequestKey })
	return o.act(ctx, func(ctx context.Context, c flowfabric.Operate) (*flowfabric.Execution, error) {
		return c.Resume(ctx, id, how...)
	})
}

func (o operate) Approve(ctx context.Context, id flowfabric.ID, a flowfabric.Approve) (flowfabric.SignalReceipt, error) {
	if a.RequestKey == "" {
		a.RequestKey = o.env.mintKey()
	}
	return again(ctx, o.env, func(ctx context.Context, c flowfabric.Client) (flowfabric.SignalReceipt, error) {
		return c.Operate().Approve(ctx, id, a)
	})
}

func (o operate) Retain(ctx context.Context, id flowfabric.ID, how flowfabric.RetainOptions) (*flowfabric.Execution, error) {
	if how.RequestKey == "" {
		how.RequestKey = o.env.mintKey()
	}
	return o.act(ctx, func(ctx context.Context, c flowfabric.Operate) (*flowfabric.Execution, error) {
		return c.Retain(ctx, id, how)
	})
}

func (o operate) EndRetain(ctx context.Context, id flowfabric.ID, a ...flowfabric.Action) (*flowfabric.Execution, error) {
	a = o.actions(a)
	return o.act(ctx, func(ctx context.Context, c flowfabric.Operate) (*flowfabric.Execution, error) {
		return c.EndRetain(ctx, id, a...)
	})
}

func (o operate) Delete(ctx context.Context, id flowfabric.ID, a ...flowfabric.Action) error {
	a = o.actions(a)
	_, err := o.act(ctx, func(ctx context.Context, c flowfabric.Operate) (*flowfabric.Execution, error) {
		return nil, c.Delete(ctx, id, a...)
	})
	return err
}

func (o operate) Bulk(ctx context.Context, r flowfabric.BulkRequest) (*flowfabric.BulkJob, error) {
	if r.RequestKey == "" {
		r.RequestKey = o.env.mintKey()
	}
	o.env.Settle() // a job reads what follows the log
	return again(ctx, o.env, func(ctx context.Context, c flowfabric.Client) (*flowfabric.BulkJob, error) {
		return c.Operate().Bulk(ctx, r)
	})
}

// Quotas limit when work starts. Its commands survive the death of the process.
func (e *Env) Quotas() flowfabric.Quotas { return flowfabric.NewQuotas(e) }

// Budgets limit what work uses. Its commands survive the death of the process.
func (e *Env) Budgets() flowfabric.Budgets { return flowfabric.NewBudgets(e) }
