package engine

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ownBudget is a budget that a submit makes with its execution (B3).
type ownBudget struct {
	definition core.BudgetDefinition
	id         core.UUID
	parent     core.UUID   // zero: none
	locks      []core.UUID // the parent
}

// planBudgets gives the budgets of the policy their ids and names, and finds those above them. A fault is told once it is known that
// the submit is no duplicate (L80).
func (s *submit) planBudgets(ctx context.Context) error {
	for i, d := range s.s.Policy.Budgets {
		own := ownBudget{definition: d, id: d.ID}
		if own.id.IsZero() {
			own.id = s.e.mint()
		}
		if d.Name == "" {
			own.definition.Name = fmt.Sprintf("%s/%d", s.id.UUID, i)
		}
		own.definition.Scope = core.BudgetScope{Type: core.ScopeExecution, Value: s.id.UUID.String()}
		if d.Parent != "" {
			parent, err := s.e.findBudget(ctx, engineCaller, BudgetRef{s.s.Namespace, d.Parent})
			switch {
			case core.CodeOf(err) == core.CodeBudgetNotFound || err == nil && parent.Namespace != s.s.Namespace:
				s.unplanned = unknownParent(i, d.Parent)
			case err != nil:
				return err
			}
			own.parent, own.locks = parent.ID, []core.UUID{parent.ID}
		}
		s.budgets = append(s.budgets, own)
	}
	return nil
}

func unknownParent(i int, name string) error {
	return core.Errorf(core.CodeInvalidPolicy, "no budget %q", name).WithField(fmt.Sprintf("budgets[%d].parent", i))
}

// noBudgets refuses what a submission in a user's own transaction cannot make (L88).
func (s *submit) noBudgets() error {
	if len(s.s.Policy.Budgets) == 0 {
		return nil
	}
	return core.Errorf(core.CodeInvalidPolicy, "budgets are not made in a transaction of the caller").WithField("budgets").
		WithHint("create them first and name them in budget_ids")
}

// behind locks the budgets above those that the submit makes. Whether ids and names are free is looked up with care only: one that is
// taken makes the insert fail.
func (s *submit) behind(u *unit, w *store.Want) {
	for i := range s.budgets {
		own := &s.budgets[i]
		u.wantBudgets(w, own.locks)
		if !own.definition.ID.IsZero() {
			u.wantDoc(w, budgetGoneRef(own.id))
		}
		if u.careful {
			u.wantDoc(w, budgetRef(own.id))
			u.wantDoc(w, budgetNameRef(s.s.Namespace, own.definition.Name))
		}
	}
}

func (s *submitAll) behind(u *unit, w *store.Want) {
	for _, cmd := range s.cmds {
		cmd.behind(u, w)
	}
}

// checkBudgets tells whether all budgets of the policy can be made.
func (s *submit) checkBudgets(u *unit) error {
	if len(s.budgets) == 0 {
		return nil
	}
	if s.unplanned != nil {
		return s.unplanned
	}
	names := map[string]bool{}
	for i := range s.budgets {
		own := &s.budgets[i]
		at := fmt.Sprintf("budgets[%d]", i)
		if names[own.definition.Name] || u.budgetTaken(own.id, s.s.Namespace, own.definition.Name) {
			return core.Errorf(core.CodeBudgetAlreadyExists, "a budget has this name or id").WithField(at + ".name")
		}
		if u.doc(budgetGoneRef(own.id)) != nil {
			return idUsedBefore().WithField(at + ".budget_id")
		}
		names[own.definition.Name] = true
		parent := u.books.Get(own.parent)
		if parent == nil && !own.parent.IsZero() {
			return unknownParent(i, own.definition.Parent)
		}
		if _, err := core.NewBudget(&core.Effects{Now: u.now}, s.s.Namespace, &own.definition, own.id, parent); err != nil {
			return core.Errorf(core.CodeInvalidPolicy, "%w", err).WithField(at)
		}
	}
	return nil
}

// makeBudgets makes the budgets of the policy, which checkBudgets has passed.
func (s *submit) makeBudgets(u *unit, x *core.Execution) {
	if len(s.budgets) == 0 {
		return
	}
	if u.books == nil {
		u.books = core.NewBooks()
	}
	fx := u.effects(s.caller)
	for i := range s.budgets {
		own := &s.budgets[i]
		if made, err := u.makeBudget(fx, s.s.Namespace, &own.definition, own.id, own.parent); err == nil {
			x.AddBudget(made)
		}
	}
	u.keep(fx)
}

// leaveBudgets has the budgets looked at that were for an execution which goes.
func (u *unit) leaveBudgets(x *core.Execution) {
	for i := range x.Budgets {
		if x.Budgets[i].Scope == core.ScopeExecution {
			u.addTask(task{Kind: taskLeaveBudget, Budget: x.Budgets[i].ID})
		}
	}
}

// leaveLater is when a budget whose execution is gone and that others need is looked at again.
const leaveLater = core.Hour

// leaveBudget deletes a budget whose execution is gone, once nobody needs it any more: others may be below it, or name it (B5).
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

// leave is leaveBudget once it is known who names the budget.
func (e *Engine) leave(ctx context.Context, t task, b *core.Budget, named bool, mark *removalMark) error {
	cmd := &budgetCommand{
		op: opDeleteBudget, caller: engineCaller, budget: b.Entry(),
		scans: []store.Scan{{Kind: docBudgetChild, Prefix: budgetPrefix(b.ID), Limit: 1}},
	}
	if scoped, ok := scopedTo(&b.Scope); ok {
		cmd.executions = []core.UUID{scoped}
	} else if flow, ok := scopedToFlow(&b.Scope); ok {
		cmd.graphs = []core.UUID{flow}
	} else {
		return nil
	}
	if mark != nil {
		cmd.docs = append(cmd.docs, removalRef(mark.key))
	}
	cmd.act = func(u *unit, fx *core.Effects) (bool, error) {
		b := u.books.Get(t.Budget)
		switch {
		case b == nil || u.scopeOf(b) != nil || len(cmd.graphs) > 0 && u.flow(cmd.graphs[0]) != nil:
			return false, nil
		case named || b.LiveHolds > 0 || len(u.scanned[cmd.scanned]) > 0:
			u.addTaskAt(t, u.now.Add(leaveLater))
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
	return e.do(ctx, cmd)
}
