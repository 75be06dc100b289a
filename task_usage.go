package flowfabric

import (
	"context"
	"fmt"
)

// ReportUsage reports what the work uses, before or after it was spent, and books it against all budgets that apply. A report that no
// limit lets pass is refused as a whole and changes nothing: the error is then ErrBudgetExceeded, with the receipt filled. When the
// budget's action suspended the work the error is ErrParked, which the handler returns: it is called again from its start when somebody
// has approved. Soft limits that are passed, and hard ones that were passed by what was spent already, are in the receipt only.
//
// A DedupKey makes the report count once in all calls of the handler; one that was booked before is no breach again. After an action
// that failed or cancelled the work its context ends with ErrBudgetExceeded.
//
// Codes: invalid_usage, reserved_dimension, amount_out_of_range, idempotency_conflict when the key was used for other amounts,
// stale_lease, lease_expired, lease_revoked, execution_not_active.
func (t *Task) ReportUsage(ctx context.Context, u Usage) (UsageReceipt, error) {
	if ctx.Err() != nil {
		return UsageReceipt{}, context.Cause(ctx)
	}
	u, minted := keyedUsage(u, t.runner.clock) // its tries are one report
	answer, err := t.keepUntilAnswered(ctx, WorkItem{Op: OpUsage, Usage: u})
	if err != nil {
		return UsageReceipt{}, err
	}
	receipt := *answer.Usage
	switch {
	case receipt.Repeated() && minted:
		return receipt.First(), nil // what was done about it then is done
	case receipt.Repeated():
		return receipt, nil
	}
	return receipt, t.breached(&receipt)
}

// breached ends the task as the action of a breach has ended the lease, and says what the handler is to know of it.
func (t *Task) breached(r *UsageReceipt) error {
	switch r.Action {
	case ActionSuspended:
		t.park()
		return ErrParked
	case ActionFailed, ActionCancelled:
		t.lose(ErrBudgetExceeded)
	}
	if r.Applied {
		return nil
	}
	return fmt.Errorf("%w: %d of %s are used and %d reserved, %d more do not fit into %d of budget %s",
		ErrBudgetExceeded, r.Used, r.Dimension, r.Reserved, r.Attempted, r.Hard, r.Budget)
}

// park ends a task whose lease a command has given back. Its context goes on: the handler returns by itself.
func (t *Task) park() { t.state.CompareAndSwap(taskRuns, taskEnded) }

// Remaining is what the work may still report of its budgets, as it was when it was claimed: of each dimension with a hard limit, by id
// of the budget.
func (t *Task) Remaining() map[string]map[string]int64 { return t.claimed.Remaining }
