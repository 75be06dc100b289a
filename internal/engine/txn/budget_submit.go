package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// planBudgets plans the budgets of the policy. An error is returned to the caller only once it is known that the submit is no duplicate (L80).
func (s *submit) planBudgets(ctx context.Context) (err error) {
	scope := core.BudgetScope{Type: core.ScopeExecution, Value: s.id.UUID.String()}
	s.budgets, err = s.e.planOwn(ctx, s.s.Namespace, scope, s.s.Policy.Budgets)
	return err
}

// noBudgets refuses budgets, which a submission in a user's own transaction cannot create (L88).
func (s *submit) noBudgets() error {
	if len(s.s.Policy.Budgets) == 0 {
		return nil
	}
	return base.Errorf(base.CodeInvalidPolicy, "budgets are not made in a transaction of the caller").WithField("budgets").
		WithHint("create them first and name them in budget_ids")
}

// behind locks the budgets above those that the submit makes.
func (s *submit) behind(u *Tx, w *store.Want) { s.budgets.behind(u, w) }

func (s *submitAll) behind(u *Tx, w *store.Want) {
	for _, cmd := range s.cmds {
		cmd.behind(u, w)
	}
}

// checkBudgets checks whether all budgets of the policy can be created: an error of one is an error of the policy.
func (s *submit) checkBudgets(u *Tx, taken takenBudgets) error {
	i, err := s.budgets.check(u, taken)
	if err == nil || base.CodeOf(err) == base.CodeBudgetAlreadyExists {
		return err
	}
	at := budgetPlace(i)
	if base.CodeOf(err) == base.CodeBudgetNotFound {
		at += ".parent"
	}
	return base.Errorf(base.CodeInvalidPolicy, "%w", err).WithField(at)
}

// makeBudgets creates the budgets of the policy, which checkBudgets has passed.
func (s *submit) makeBudgets(u *Tx, x *core.Execution) {
	s.budgets.make(u, s.caller, func(b *core.Budget) { x.AddBudget(b) })
}

// leaveBudgets adds follow-up work for the budgets of an execution that is removed.
func (u *Tx) leaveBudgets(x *core.Execution) {
	for i := range x.Budgets {
		if x.Budgets[i].Scope == core.ScopeExecution {
			u.addTask(task{Kind: taskLeaveBudget, Budget: x.Budgets[i].ID})
		}
	}
}

// leaveLater is after which time a budget is checked again whose execution was removed and that others need.
const leaveLater = base.Hour

// leaveBudget deletes a budget whose execution was removed, as soon as it is not needed any more: other budgets may be below it, or name it (B5).
func (e *Engine) leaveBudget(ctx context.Context, t task) error {
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
func (e *Engine) leave(ctx context.Context, t task, b *core.Budget, named bool, mark *removalMark) error {
	cmd := &budgetCommand{
		op: opDeleteBudget, caller: EngineCaller, budget: b.Entry(),
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
	cmd.act = func(u *Tx, fx *core.Effects) (bool, error) {
		b := u.books.Get(t.Budget)
		switch {
		case b == nil || u.scopeOf(b) != nil || len(cmd.graphs) > 0 && u.flow(cmd.graphs[0]) != nil:
			return false, nil
		case named || b.LiveHolds > 0 || u.hasBelow(b.ID, cmd.scanned):
			u.addTaskAt(t, u.Now.Add(leaveLater))
			return false, nil
		}
		if err := fx.Books.Delete(fx, b.ID, core.DeleteFacts{}); err != nil {
			return false, err
		}
		if err := mark.take(u); err != nil {
			return false, err
		}
		u.forgetBudget(b, nil)
		return true, nil
	}
	return e.Do(ctx, cmd)
}
