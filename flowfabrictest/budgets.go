package flowfabrictest

import (
	"context"

	"github.com/flowfabric/flowfabric"
)

// Budgets limit what work uses. Its commands survive the death of the process.
func (e *Env) Budgets() flowfabric.Budgets {
	return budgets{e.alive(context.Background()).client.Budgets(), e}
}

type budgets struct {
	flowfabric.Budgets
	env *Env
}

// act makes a change of one budget.
func (b budgets) act(ctx context.Context, do func(ctx context.Context, c flowfabric.Budgets) (*flowfabric.BudgetStatus, error)) (*flowfabric.BudgetStatus, error) {
	return again(ctx, b.env, func(ctx context.Context, c flowfabric.Client) (*flowfabric.BudgetStatus, error) {
		return do(ctx, c.Budgets())
	})
}

func (b budgets) keyed(a []flowfabric.AdminAction) []flowfabric.AdminAction {
	return keyed(b.env, a, func(a *flowfabric.AdminAction) *string { return &a.RequestKey })
}

func (b budgets) Create(ctx context.Context, definition flowfabric.Budget, a ...flowfabric.AdminAction) (*flowfabric.BudgetStatus, error) {
	a = b.keyed(a)
	return b.act(ctx, func(ctx context.Context, c flowfabric.Budgets) (*flowfabric.BudgetStatus, error) {
		return c.Create(ctx, definition, a...)
	})
}

func (b budgets) Update(ctx context.Context, budget string, u flowfabric.BudgetUpdate, a ...flowfabric.AdminAction) (*flowfabric.BudgetStatus, error) {
	a = b.keyed(a)
	return b.act(ctx, func(ctx context.Context, c flowfabric.Budgets) (*flowfabric.BudgetStatus, error) {
		return c.Update(ctx, budget, u, a...)
	})
}

func (b budgets) Close(ctx context.Context, budget string, a ...flowfabric.AdminAction) (*flowfabric.BudgetStatus, error) {
	a = b.keyed(a)
	return b.act(ctx, func(ctx context.Context, c flowfabric.Budgets) (*flowfabric.BudgetStatus, error) {
		return c.Close(ctx, budget, a...)
	})
}

func (b budgets) Reopen(ctx context.Context, budget string, a ...flowfabric.AdminAction) (*flowfabric.BudgetStatus, error) {
	a = b.keyed(a)
	return b.act(ctx, func(ctx context.Context, c flowfabric.Budgets) (*flowfabric.BudgetStatus, error) {
		return c.Reopen(ctx, budget, a...)
	})
}

func (b budgets) Reset(ctx context.Context, budget string, a ...flowfabric.AdminAction) (*flowfabric.BudgetStatus, error) {
	a = b.keyed(a)
	return b.act(ctx, func(ctx context.Context, c flowfabric.Budgets) (*flowfabric.BudgetStatus, error) {
		return c.Reset(ctx, budget, a...)
	})
}

func (b budgets) Delete(ctx context.Context, budget string, a ...flowfabric.AdminAction) error {
	a = b.keyed(a)
	b.env.Settle() // what names it is found by what follows the log
	_, err := again(ctx, b.env, func(ctx context.Context, c flowfabric.Client) (flowfabric.None, error) {
		return flowfabric.None{}, c.Budgets().Delete(ctx, budget, a...)
	})
	return err
}

// Charge is known by its key, so that a second try does not count again.
func (b budgets) Charge(ctx context.Context, budget string, charge flowfabric.Charge) (flowfabric.UsageReceipt, error) {
	minted := charge.DedupKey == ""
	if minted {
		charge.DedupKey = b.env.mintKey()
	}
	receipt, err := again(ctx, b.env, func(ctx context.Context, c flowfabric.Client) (flowfabric.UsageReceipt, error) {
		return c.Budgets().Charge(ctx, budget, charge)
	})
	receipt.Repeated = receipt.Repeated && !minted
	return receipt, err
}

func (b budgets) ReleaseSpend(ctx context.Context, budget string, execution flowfabric.ID, a ...flowfabric.AdminAction) (map[string]int64, error) {
	a = b.keyed(a)
	return again(ctx, b.env, func(ctx context.Context, c flowfabric.Client) (map[string]int64, error) {
		return c.Budgets().ReleaseSpend(ctx, budget, execution, a...)
	})
}
