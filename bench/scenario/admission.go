package scenario

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// unit is what executions reserve of their budget: one each.
const unit = "units"

// limits are the budget and the quota that each execution is attached to. Both have room for all, so that what is measured is what it
// costs to look and to count.
type limits struct {
	client        *flowfabric.Client
	budget, quota string
}

// limited makes a budget and a quota under fresh names: a quota belongs to the whole installation.
func (t *trial) limited(ctx context.Context) (*limits, error) {
	name := measure.FreshName()
	l := &limits{client: t.place.client.Client, budget: name, quota: name}
	if _, err := l.client.Quotas().Put(ctx, l.quota, api.QuotaSettings{RateLimit: 1_000_000, ConcurrencyLimit: 1_000_000}); err != nil {
		return nil, err
	}
	_, err := l.client.Budgets().Create(ctx, api.Budget{
		Name: l.budget, Dimensions: map[string]api.BudgetLimits{unit: {Hard: 1_000_000_000, DefaultReserve: 1}},
	})
	if err != nil {
		return nil, errors.Join(err, l.client.Quotas().Delete(ctx, l.quota))
	}
	return l, nil
}

// options attach an execution.
func (l *limits) options(int) flowfabric.SubmitOptions {
	return flowfabric.SubmitOptions{BudgetIDs: []string{l.budget}, Quotas: []api.QuotaUse{{Quota: l.quota}}}
}

// check looks whether everything was given back: nothing may be reserved, held or waited for, once all is over.
func (l *limits) check(ctx context.Context, s *Sample) error {
	budget, err := l.client.Budgets().Get(ctx, l.budget)
	if err != nil {
		return err
	}
	quota, err := l.client.Quotas().Get(ctx, l.quota)
	if err != nil {
		return err
	}
	held, blocked := 0, budget.BlockedExecutions
	for _, key := range quota.Keys {
		held, blocked = held+key.Slots, blocked+key.Blocked
	}
	s.check("budget_reserved", 0, int(budget.Dimensions[unit].Reserved))
	s.check("budget_holds", 0, int(budget.LiveHolds))
	s.check("quota_slots", 0, held)
	s.check("blocked", 0, blocked)
	return nil
}

// remove takes both away.
func (l *limits) remove(ctx context.Context) error {
	return errors.Join(l.client.Budgets().Delete(ctx, l.budget), l.client.Quotas().Delete(ctx, l.quota))
}
