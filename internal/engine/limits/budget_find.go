package limits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// FindBudget returns the budget that the caller names. The fields that it returns never change; whether the budget still exists is known only under
// its lock. Codes: budget_not_found, also for a budget of another namespace (W5).
func (e *Admission) FindBudget(ctx context.Context, c txn.Caller, ref BudgetRef) (core.BudgetEntry, error) {
	found, known := RulesOf(e.Dict.Now()).registry.Resolve(ref.Namespace, ref.Budget)
	if !known {
		b, err := e.readBudget(ctx, ref.Namespace, ref.Budget)
		if err != nil {
			return core.BudgetEntry{}, err
		}
		if known = b != nil; known {
			found = b.Entry()
		}
	}
	if !known || !c.Sees(found.Namespace) {
		return core.BudgetEntry{}, core.BudgetNotFound(ref.Budget)
	}
	return found, nil
}

// readBudget reads the record of the budget that has this id, or this name in the namespace; nil: there is none.
func (e *Admission) readBudget(ctx context.Context, namespace, idOrName string) (*core.Budget, error) {
	refs := []store.DocRef{budgetNameRef(namespace, idOrName)}
	id, isID := base.ParseUUID(idOrName)
	if isID {
		refs = append(refs, BudgetDocRef(id))
	}
	docs, err := e.ReadDocs(ctx, refs...)
	if err != nil {
		return nil, err
	}
	if doc, ok := docs[BudgetDocRef(id)]; isID && ok {
		return DecodeBudget(&doc)
	}
	doc, ok := docs[budgetNameRef(namespace, idOrName)]
	if !ok {
		return nil, nil
	}
	if id, err = decodeBudgetName(&doc); err != nil {
		return nil, err
	}
	if docs, err = e.ReadDocs(ctx, BudgetDocRef(id)); err != nil {
		return nil, err
	}
	if doc, ok = docs[BudgetDocRef(id)]; !ok {
		return nil, nil // it was deleted between the two reads
	}
	return DecodeBudget(&doc)
}
