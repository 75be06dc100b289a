package txn

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ownBudgets are budgets that a submit creates with its execution or its flow (B3).
type ownBudgets struct {
	namespace string
	list      []ownBudget
}

// ownBudget is one of them.
type ownBudget struct {
	definition core.BudgetDefinition
	id         base.UUID
	parent     base.UUID // zero: none
	orphan     error     // the budget above it does not exist
}

// planOwn gives budgets of that scope their ids and names, and finds those above them.
func (e *Engine) planOwn(ctx context.Context, namespace string, scope core.BudgetScope, definitions []core.BudgetDefinition) (ownBudgets, error) {
	own := ownBudgets{namespace: namespace}
	for i, d := range definitions {
		b := ownBudget{definition: d, id: d.ID}
		if b.id.IsZero() {
			b.id = e.Mint()
		}
		if d.Name == "" {
			b.definition.Name = fmt.Sprintf("%s/%d", scope.Value, i)
		}
		b.definition.Scope = scope
		if d.Parent != "" {
			parent, err := e.findBudget(ctx, EngineCaller, BudgetRef{namespace, d.Parent})
			switch {
			case base.CodeOf(err) == base.CodeBudgetNotFound || err == nil && parent.Namespace != namespace:
				b.orphan = core.BudgetNotFound(d.Parent).WithField(budgetPlace(i) + ".parent")
			case err != nil:
				return ownBudgets{}, err
			default:
				b.parent = parent.ID
			}
		}
		own.list = append(own.list, b)
	}
	return own, nil
}

func budgetPlace(i int) string { return fmt.Sprintf("budgets[%d]", i) }

// behind locks the budgets above. Whether ids and names are free is looked up only in a careful try: otherwise one that is taken makes the insert
// fail.
func (o *ownBudgets) behind(u *Tx, w *store.Want) {
	for i := range o.list {
		own := &o.list[i]
		if !own.parent.IsZero() {
			u.wantBudgets(w, []base.UUID{own.parent})
		}
		if !own.definition.ID.IsZero() {
			u.wantDoc(w, budgetGoneRef(own.id))
		}
		if u.careful {
			u.wantBudgets(w, []base.UUID{own.id}) // other commands may need it: it exists if this is a repeat
			u.wantDoc(w, budgetNameRef(o.namespace, own.definition.Name))
		}
	}
}

// takenBudgets are the names and ids of budgets that a request makes.
type takenBudgets map[any]bool

// check returns an error if one of them cannot be created, given the names and ids that are taken already, and its index. Codes:
// budget_already_exists, budget_not_found, invalid_budget.
func (o *ownBudgets) check(u *Tx, taken takenBudgets) (place int, err error) {
	for i := range o.list {
		own := &o.list[i]
		parent := u.books.Get(own.parent)
		switch {
		case own.orphan != nil:
			return i, own.orphan
		case !own.definition.ID.IsZero() && (taken[own.id] || u.budgetIDTaken(own.id)):
			return i, base.Errorf(base.CodeBudgetAlreadyExists, "a budget has this id").WithField(budgetPlace(i) + ".budget_id")
		case taken[own.definition.Name] || taken[own.id] || u.budgetTaken(own.id, o.namespace, own.definition.Name):
			return i, base.Errorf(base.CodeBudgetAlreadyExists, "a budget has this name or id").WithField(budgetPlace(i) + ".name")
		case u.Doc(budgetGoneRef(own.id)) != nil:
			return i, idUsedBefore().WithField(budgetPlace(i) + ".budget_id")
		case parent == nil && !own.parent.IsZero():
			return i, core.BudgetNotFound(own.definition.Parent).WithField(budgetPlace(i) + ".parent")
		}
		taken[own.definition.Name], taken[own.id] = true, true
		if _, err := core.NewBudget(&core.Effects{Now: u.Now}, o.namespace, &own.definition, own.id, parent); err != nil {
			return i, core.AtPlace(err, budgetPlace(i))
		}
	}
	return 0, nil
}

// make creates the budgets, which check has passed, and calls made for each.
func (o *ownBudgets) make(u *Tx, c Caller, made func(*core.Budget)) {
	if len(o.list) == 0 {
		return
	}
	if u.books == nil {
		u.books = core.NewBooks()
	}
	fx := u.effects(c)
	for i := range o.list {
		own := &o.list[i]
		if b, err := u.makeBudget(fx, o.namespace, &own.definition, own.id, own.parent); err == nil {
			made(b)
		}
	}
	u.keep(fx)
}
