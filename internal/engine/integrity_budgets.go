package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// checkBudgets compares what budgets have reserved with what grants and leases hold of them (BI2), and the marks that holders are found
// by with both.
func (e *Engine) checkBudgets(ctx context.Context) ([]Difference, error) {
	return lasting(ctx, e.wrongBudgets)
}

// heldAmounts is what is held of budgets, by what an administrator reads: budget:<id> counts the holders, budget:<id>/<dimension> the
// amounts, hold:<budget>/<execution> the marks.
type heldAmounts map[string]int64

func (e *Engine) wrongBudgets(ctx context.Context) (map[string]Difference, error) {
	held, marked := heldAmounts{}, heldAmounts{}
	err := e.eachStatus(ctx, []core.Status{core.Running, core.Granted}, func(_ core.Status, _ []core.UUID, loaded *store.Loaded) error {
		for _, x := range loaded.Executions {
			held.of(x)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = e.eachDoc(ctx, docBudget, func(doc *store.Doc) {
		if b, err := decodeBudget(doc); err == nil {
			marked.budget(b)
		}
	})
	if err == nil {
		err = e.eachDoc(ctx, docBudgetHold, func(doc *store.Doc) { marked["hold:"+doc.Key]++ })
	}
	if err != nil {
		return nil, err
	}
	wrong := map[string]Difference{}
	for _, keys := range []heldAmounts{held, marked} {
		for key := range keys {
			if held[key] != marked[key] {
				wrong[key] = Difference{What: checkBudgets, Key: key, Stored: marked[key], Found: held[key]}
			}
		}
	}
	return wrong, nil
}

// of adds what an execution holds.
func (h heldAmounts) of(x *core.Execution) {
	if x.Reservation == nil {
		return
	}
	for i := range x.Reservation.Holds {
		one := &x.Reservation.Holds[i]
		key := core.BudgetKey(one.Budget)
		h[key]++
		h["hold:"+holdRef(one.Budget, x.ID.UUID).Key]++
		for dimension, amount := range one.Remaining {
			h[key+"/"+dimension] += amount
		}
	}
}

// budget adds what a budget says that is held of it.
func (h heldAmounts) budget(b *core.Budget) {
	key := core.BudgetKey(b.ID)
	h[key] += b.LiveHolds
	for name, d := range b.Dimensions {
		h[key+"/"+name] += d.Reserved
	}
}

// eachDoc walks the small records of one kind that no execution owns.
func (e *Engine) eachDoc(ctx context.Context, kind store.DocKind, look func(doc *store.Doc)) error {
	for scan := (store.Scan{Kind: kind, Limit: integrityBatch}); ; {
		loaded, err := e.store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return publicFault(err)
		}
		docs := loaded.Scanned[0]
		for i := range docs {
			look(&docs[i])
		}
		if len(docs) < scan.Limit {
			return nil
		}
		scan.After = docs[len(docs)-1].Key
	}
}
