package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// DropFound is the last step of DeleteBudget, once it is known that nobody names the budget.
func (e *Engine) DropFound(ctx context.Context, c Caller, ref BudgetRef) error {
	found, err := e.findBudget(ctx, c, ref)
	if err != nil {
		return err
	}
	return e.dropFound(ctx, c, ref, found, AdminAction{}, false, nil)
}

// SpreadBudget is the follow-up work of a budget that reaches a flow.
func (e *Engine) SpreadBudget(ctx context.Context, flow, budget base.UUID) error {
	return e.spreadBudget(ctx, flow, budget)
}

// InLedger reports whether a record is a row of a budget's ledger.
func InLedger(ref store.DocRef) bool { return ref.Kind == docLedger }
