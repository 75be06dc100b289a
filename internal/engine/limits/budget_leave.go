package limits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// LeaveBudgets adds follow-up work for the budgets of an execution that is removed.
func LeaveBudgets(u *txn.Tx, x *core.Execution) {
	for i := range x.Budgets {
		if x.Budgets[i].Scope == core.ScopeExecution {
			u.AddTask(TaskLeaveBudget, TaskArgs{Budget: x.Budgets[i].ID})
		}
	}
}

// leaveLater is after which time a budget is checked again whose execution was removed and that others need.
const leaveLater = base.Hour

// leaveBudget deletes a budget whose execution was removed, as soon as it is not needed any more: other budgets may be below it, or name it (B5).
func (e *Admission) leaveBudget(ctx context.Context, t TaskArgs) error {
	b, err := e.readBudget(ctx, "", t.Budget.String())
	if b == nil || err != nil {
		return err
	}
	entry := b.Entry()
	return e.unlessNamed(ctx, &entry, func(named bool, mark *removalMark) error {
		return e.leave(ctx, t, b, named, mark)
	})
}

// leave is leaveBudget once it is known whether the budget is named.
func (e *Admission) leave(ctx context.Context, t TaskArgs, b *core.Budget, named bool, mark *removalMark) error {
	cmd := &budgetCommand{
		op: opDeleteBudget, caller: txn.EngineCaller, budget: b.Entry(),
		scans: []store.Scan{{Kind: docBudgetChild, Prefix: BudgetPrefix(b.ID), Limit: 1}},
	}
	if scoped, ok := scopedTo(&b.Scope); ok {
		cmd.executions = []base.UUID{scoped}
	} else if flow, ok := scopedToFlow(&b.Scope); ok {
		cmd.graphs = []base.UUID{flow}
	} else {
		return nil
	}
	if mark != nil {
		cmd.docs = append(cmd.docs, removalRef(mark.key))
	}
	cmd.act = func(u *txn.Tx, fx *core.Effects) (bool, error) {
		b := u.Accounts.Get(t.Budget)
		switch {
		case b == nil || scopeOf(u, b) != nil || len(cmd.graphs) > 0 && Of(u).flows.Locked(u, cmd.graphs[0]) != nil:
			return false, nil
		case named || b.LiveHolds > 0 || hasBelow(u, b.ID, cmd.scanned):
			u.AddTaskAt(TaskLeaveBudget, t, u.Now.Add(leaveLater))
			return false, nil
		}
		if err := fx.Budgets.Delete(fx, b.ID, core.DeleteFacts{}); err != nil {
			return false, err
		}
		if err := mark.take(u); err != nil {
			return false, err
		}
		forgetBudget(u, b, nil)
		return true, nil
	}
	return e.Do(ctx, cmd)
}
