package limits

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// OwnBudgets are budgets that a submit creates with its execution or its flow (B3).
type OwnBudgets struct {
	namespace string
	List      []OwnBudget
}

// OwnBudget is one of them.
type OwnBudget struct {
	Definition core.BudgetDefinition
	ID         base.UUID
	parent     base.UUID // zero: none
	Orphan     error     // the budget above it does not exist
}

// PlanOwn gives budgets of that scope their ids and names, and finds those above them.
func (e *Admission) PlanOwn(ctx context.Context, namespace string, scope core.BudgetScope, definitions []core.BudgetDefinition) (OwnBudgets, error) {
	own := OwnBudgets{namespace: namespace}
	for i, d := range definitions {
		b := OwnBudget{Definition: d, ID: d.ID}
		if b.ID.IsZero() {
			b.ID = e.Mint()
		}
		if d.Name == "" {
			b.Definition.Name = fmt.Sprintf("%s/%d", scope.Value, i)
		}
		b.Definition.Scope = scope
		if d.Parent != "" {
			parent, err := e.FindBudget(ctx, txn.EngineCaller, BudgetRef{namespace, d.Parent})
			switch {
			case base.CodeOf(err) == base.CodeBudgetNotFound || err == nil && parent.Namespace != namespace:
				b.Orphan = core.BudgetNotFound(d.Parent).WithField(BudgetPlace(i) + ".parent")
			case err != nil:
				return OwnBudgets{}, err
			default:
				b.parent = parent.ID
			}
		}
		own.List = append(own.List, b)
	}
	return own, nil
}

// BudgetPlace returns the field of a policy in which its i-th budget stands.
func BudgetPlace(i int) string { return fmt.Sprintf("budgets[%d]", i) }

// Behind locks the budgets above. Whether ids and names are free is looked up only in a careful try: otherwise one that is taken makes the insert
// fail.
func (o *OwnBudgets) Behind(u *txn.Tx, w *store.Want) {
	for i := range o.List {
		own := &o.List[i]
		if !own.parent.IsZero() {
			WantBudgets(u, w, []base.UUID{own.parent})
		}
		if !own.Definition.ID.IsZero() {
			wantDoc(u, w, budgetGoneRef(own.ID))
		}
		if u.Careful {
			WantBudgets(u, w, []base.UUID{own.ID}) // other commands may need it: it exists if this is a repeat
			wantDoc(u, w, budgetNameRef(o.namespace, own.Definition.Name))
		}
	}
}

// TakenBudgets are the names and ids of budgets that a request makes.
type TakenBudgets map[any]bool

// Check returns an error if one of them cannot be created, given the names and ids that are taken already, and its index. Codes:
// budget_already_exists, budget_not_found, invalid_budget.
func (o *OwnBudgets) Check(u *txn.Tx, taken TakenBudgets) (place int, err error) {
	for i := range o.List {
		own := &o.List[i]
		parent := u.Accounts.Get(own.parent)
		switch {
		case own.Orphan != nil:
			return i, own.Orphan
		case !own.Definition.ID.IsZero() && (taken[own.ID] || budgetIDTaken(u, own.ID)):
			return i, base.Errorf(base.CodeBudgetAlreadyExists, "a budget has this id").WithField(BudgetPlace(i) + ".budget_id")
		case taken[own.Definition.Name] || taken[own.ID] || budgetTaken(u, own.ID, o.namespace, own.Definition.Name):
			return i, base.Errorf(base.CodeBudgetAlreadyExists, "a budget has this name or id").WithField(BudgetPlace(i) + ".name")
		case u.Doc(budgetGoneRef(own.ID)) != nil:
			return i, idUsedBefore().WithField(BudgetPlace(i) + ".budget_id")
		case parent == nil && !own.parent.IsZero():
			return i, core.BudgetNotFound(own.Definition.Parent).WithField(BudgetPlace(i) + ".parent")
		}
		taken[own.Definition.Name], taken[own.ID] = true, true
		if _, err := core.NewBudget(&core.Effects{Now: u.Now}, o.namespace, &own.Definition, own.ID, parent); err != nil {
			return i, core.AtPlace(err, BudgetPlace(i))
		}
	}
	return 0, nil
}

// Make creates the budgets, which check has passed, and calls made for each.
func (o *OwnBudgets) Make(u *txn.Tx, c txn.Caller, made func(*core.Budget)) {
	if len(o.List) == 0 {
		return
	}
	if u.Accounts == nil {
		u.Accounts = core.NewBudgetSet()
	}
	fx := u.Effects(c)
	for i := range o.List {
		own := &o.List[i]
		if b, err := makeBudget(u, fx, o.namespace, &own.Definition, own.ID, own.parent); err == nil {
			made(b)
		}
	}
	u.Keep(fx)
}
