package flowfabric

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/api"
)

// ReportUsage reports usage, before or after it is spent, and books it against all budgets that apply. A report that would exceed
// a hard limit is refused as a whole and changes nothing: the error is then ErrBudgetExceeded, with the receipt filled. If the
// action of the budget suspended the work the error is ErrParked, which the handler returns: it is called again from its start
// once the request is approved. Exceeded soft limits, and hard limits exceeded by usage that was spent already, are reported only
// in the receipt.
//
// With a DedupKey the report counts once in all calls of the handler; a report that was booked before does not breach a limit
// again. If the action failed or cancelled the work, its context ends with ErrBudgetExceeded.
//
// Codes: invalid_usage, reserved_dimension, amount_out_of_range, idempotency_conflict when the key was used for other amounts,
// stale_lease, lease_expired, lease_revoked, execution_not_active.
func (t *Task) ReportUsage(ctx context.Context, u Usage) (api.UsageReceipt, error) {
	if ctx.Err() != nil {
		return api.UsageReceipt{}, context.Cause(ctx)
	}
	u, minted := keyedUsage(u, t.runner.clock) // all tries count as one report
	answer, err := t.keepUntilAnswered(ctx, api.WorkItem{Op: api.OpUsage, Usage: u})
	if err != nil {
		return api.UsageReceipt{}, err
	}
	receipt := *answer.Usage
	switch {
	case receipt.Repeated() && minted:
		return receipt.First(), nil // the action of the first report was taken then
	case receipt.Repeated():
		return receipt, nil
	}
	return receipt, t.breached(&receipt)
}

// breached ends the task if the action of a breach has ended the lease, and returns the error for the handler.
func (t *Task) breached(r *api.UsageReceipt) error {
	switch r.Action {
	case api.ActionSuspended:
		t.park()
		return ErrParked
	case api.ActionFailed, api.ActionCancelled:
		t.lose(ErrBudgetExceeded)
	}
	if r.Applied {
		return nil
	}
	return fmt.Errorf("%w: %d of %s are used and %d reserved, %d more do not fit into %d of budget %s",
		ErrBudgetExceeded, r.Used, r.Dimension, r.Reserved, r.Attempted, r.Hard, r.Budget)
}

// park ends a task whose lease was given back by a command. Its context does not end: the handler returns on its own.
func (t *Task) park() { t.state.CompareAndSwap(taskRuns, taskEnded) }

// Remaining returns what the work may still report against its budgets, as of the claim: by budget id and dimension, for
// dimensions with a hard limit.
func (t *Task) Remaining() map[string]map[string]int64 { return t.claimed.Remaining }
