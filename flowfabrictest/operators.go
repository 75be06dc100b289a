package flowfabrictest

import (
	"context"

	"github.com/flowfabric/flowfabric"
)

// Operate is what operators do. Its commands survive the death of the process.
func (e *Env) Operate() flowfabric.Operate { return flowfabric.NewOperate(e, operate{e}) }

// Lanes steers the lanes. Its commands survive the death of the process.
func (e *Env) Lanes() flowfabric.Lanes { return flowfabric.NewLanes(e) }

// Workers shows and steers the fleet. Its commands survive the death of the process.
func (e *Env) Workers() flowfabric.Workers { return flowfabric.NewWorkers(e) }

// Admin is what administrators do. Its commands survive the death of the process.
func (e *Env) Admin() flowfabric.Admin { return flowfabric.NewAdmin(e) }

// operate has the commands that transports do not carry yet.
type operate struct{ env *Env }

func (o operate) Claim(ctx context.Context, id flowfabric.ID, how ...flowfabric.OperatorClaim) (*flowfabric.Claimed, error) {
	how = keyed(o.env, how, func(r *flowfabric.OperatorClaim) *string { return &r.RequestKey })
	return again(ctx, o.env, func(ctx context.Context, c flowfabric.Client) (*flowfabric.Claimed, error) {
		return c.Operate().Claim(ctx, id, how...)
	})
}

// Quotas limit when work starts. Its commands survive the death of the process.
func (e *Env) Quotas() flowfabric.Quotas { return flowfabric.NewQuotas(e) }

// Budgets limit what work uses. Its commands survive the death of the process.
func (e *Env) Budgets() flowfabric.Budgets { return flowfabric.NewBudgets(e) }
