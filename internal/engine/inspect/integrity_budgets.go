package inspect

import (
	"context"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// checkBudgets compares what budgets have reserved with what grants and leases hold of them (BI2), and the marks that holders are found
// by with both.
func (e *Inspector) checkBudgets(ctx context.Context) ([]Difference, error) {
	return e.lasting(ctx, counterCheck{walk: e.wrongBudgets, subject: budgetOfHeld, concerns: func(x *core.Execution) []string {
		subjects := []string{}
		for _, budget := range append(x.ChargedTo(), limits.BudgetsOf(e.Dict.Now(), x)...) {
			subjects = append(subjects, budget.String())
		}
		return subjects
	}})
}

// budgetOfHeld returns the budget that a key of heldAmounts belongs to.
func budgetOfHeld(key string) string {
	_, rest, _ := strings.Cut(key, ":")
	budget, _, _ := strings.Cut(rest, "/")
	return budget
}

// heldAmounts is what is held of budgets, by what an administrator reads: budget:<id> counts the holders, budget:<id>/<dimension> the
// amounts, hold:<budget>/<execution> the marks.
type heldAmounts map[string]int64

// wrongBudgets compares budgets and marks. Charges change what is held, and the log does not name them.
func (e *Inspector) wrongBudgets(ctx context.Context) (wrong map[string]Difference, holders map[base.UUID]int64, err error) {
	held, marked := heldAmounts{}, heldAmounts{}
	holders = map[base.UUID]int64{}
	err = e.eachStatus(ctx, []core.Status{core.Running, core.Granted}, func(_ core.Status, _ []base.UUID, loaded *store.Loaded) error {
		for _, x := range loaded.Executions {
			if x.Reservation != nil {
				held.of(x)
				holders[x.ID.UUID] = x.Version
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	err = e.eachDoc(ctx, limits.DocBudget, func(doc *store.Doc) {
		if b, err := limits.DecodeBudget(doc); err == nil {
			marked.budget(b)
		}
	})
	if err == nil {
		err = e.eachDoc(ctx, limits.DocBudgetHold, func(doc *store.Doc) { marked["hold:"+doc.Key]++ })
	}
	if err != nil {
		return nil, nil, err
	}
	wrong = map[string]Difference{}
	for _, keys := range []heldAmounts{held, marked} {
		for key := range keys {
			if held[key] != marked[key] {
				wrong[key] = Difference{What: checkBudgets, Key: key, Stored: marked[key], Found: held[key]}
			}
		}
	}
	return wrong, holders, nil
}

// of adds what an execution holds.
func (h heldAmounts) of(x *core.Execution) {
	for i := range x.Reservation.Holds {
		one := &x.Reservation.Holds[i]
		key := core.BudgetKey(one.Budget)
		h[key]++
		h["hold:"+limits.HoldRef(one.Budget, x.ID.UUID).Key]++
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
func (e *Inspector) eachDoc(ctx context.Context, kind store.DocKind, look func(doc *store.Doc)) error {
	for scan := (store.Scan{Kind: kind, Limit: integrityBatch}); ; {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return txn.PublicFault(err)
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
