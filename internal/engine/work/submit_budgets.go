package work

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// planBudgets plans the budgets of the policy. An error is returned to the caller only once it is known that the submit is no duplicate (L80).
func (s *Submit) planBudgets(ctx context.Context) (err error) {
	scope := core.BudgetScope{Type: core.ScopeExecution, Value: s.ID.UUID.String()}
	s.Budgets, err = s.e.PlanOwn(ctx, s.S.Namespace, scope, s.S.Policy.Budgets)
	return err
}

// noBudgets refuses budgets, which a submission in a user's own transaction cannot create (L88).
func (s *Submit) noBudgets() error {
	if len(s.S.Policy.Budgets) == 0 {
		return nil
	}
	return base.Errorf(base.CodeInvalidPolicy, "budgets are not made in a transaction of the caller").WithField("budgets").
		WithHint("create them first and name them in `budget_ids`")
}

// Behind locks the budgets above those that the submit makes.
func (s *Submit) Behind(u *txn.Tx, w *store.Want) { s.Budgets.Behind(u, w) }

func (s *submitAll) Behind(u *txn.Tx, w *store.Want) {
	for _, cmd := range s.cmds {
		cmd.Behind(u, w)
	}
}

// CheckBudgets checks whether all budgets of the policy can be created: an error of one is an error of the policy.
func (s *Submit) CheckBudgets(u *txn.Tx, taken limits.TakenBudgets) error {
	i, err := s.Budgets.Check(u, taken)
	if err == nil || base.CodeOf(err) == base.CodeBudgetAlreadyExists {
		return err
	}
	at := limits.BudgetPlace(i)
	if base.CodeOf(err) == base.CodeBudgetNotFound {
		at += ".parent"
	}
	return base.Errorf(base.CodeInvalidPolicy, "%w", err).WithField(at)
}

// makeBudgets creates the budgets of the policy, which checkBudgets has passed.
func (s *Submit) makeBudgets(u *txn.Tx, x *core.Execution) {
	s.Budgets.Make(u, s.caller, func(b *core.Budget) { x.AddBudget(b) })
}

// refer notes what the policy names, and adds to it what the namespace does.
func (s *Submit) refer(ctx context.Context, known *limits.RuleSet, defaults []core.QuotaUse, read limits.DocReader) (err error) {
	s.Refs.Given = s.S.Policy
	if len(defaults) > 0 {
		if s.S.Policy, err = known.AddDefaults(s.S.Policy, defaults); err != nil {
			return err
		}
	}
	if len(s.Refs.Given.BudgetIDs) == 0 {
		return nil
	}
	return s.Refs.FindBudgets(ctx, known, s.S.Namespace, read)
}

// Unresolved reports whether something that the policy names was not found. It must be known whether the submit is a duplicate before it is refused
// (L80): until then it has a class without a number.
func (s *Submit) Unresolved() bool {
	if s.Refs.Resolve(limits.RulesOf(s.e.Dict.Now()), s.S.Namespace) == nil {
		return false
	}
	class := s.Refs.Class(&s.S)
	s.Class = &class
	return true
}
