package crash_test

import (
	"context"
	"errors"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// Victims work under a quota and a budget, with room for all of them: each execution holds a slot, reserves and reports.
const (
	limitsName = "limits"
	unit       = "units"
)

// limited attaches a submission.
func limited(key string) flowfabric.SubmitOptions {
	return flowfabric.SubmitOptions{
		IdempotencyKey: key, Quotas: []api.QuotaUse{{Quota: limitsName}}, BudgetIDs: []string{limitsName}, Estimate: map[string]int64{unit: 3},
	}
}

// putLimits makes them, or finds them.
func putLimits(ctx context.Context, client *flowfabric.Client) error {
	_, quota := client.Quotas().Put(ctx, limitsName, api.QuotaSettings{ConcurrencyLimit: 100})
	_, budget := client.Budgets().Create(ctx, api.Budget{Name: limitsName, Dimensions: map[string]api.BudgetLimits{unit: {Hard: 100_000}}})
	return errors.Join(quota, budget)
}

// report reports one unit, once for each execution however often it is begun.
func report(ctx context.Context, t *flowfabric.Task) error {
	_, err := t.ReportUsage(ctx, flowfabric.Usage{Amounts: map[string]int64{unit: 1}, DedupKey: "once"})
	return err
}

// checkLimits looks at what is counted once everything is over: no slot and no reservation is left of those who were killed (SI7, BI2),
// each execution was booked once (I9), and a recount finds the same (S42).
func checkLimits(ctx context.Context, t *testing.T, client *flowfabric.Client) {
	t.Helper()
	count, err := client.Executions().Count(ctx, ops.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	budget, err := client.Budgets().Get(ctx, limitsName)
	if err != nil {
		t.Fatal(err)
	}
	if n := budget.Dimensions[unit]; n.Used != int64(count.Total) || n.Reserved != 0 || n.Overrun != 0 || budget.LiveHolds != 0 {
		t.Errorf("I9, BI2: %+v and %d holds after %d executions", n, budget.LiveHolds, count.Total)
	}
	quota, err := client.Quotas().Get(ctx, limitsName)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range quota.Keys {
		if key.Slots != 0 || key.Blocked != 0 {
			t.Errorf("SI7: %+v", key)
		}
	}
	if found, err := client.Admin().Integrity(ctx); err != nil || !found.OK {
		t.Errorf("S42: %+v, %v", found, err)
	}
}
