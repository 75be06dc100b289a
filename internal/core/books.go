package core

import (
	"cmp"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Books are the budgets of one transaction, loaded and locked, with the changes of the commands so far. Budgets are changed only here; the engine
// writes the result. A budget is copied before its first change, so that the loaded one stays unchanged and a refused command leaves no trace (see
// Mark).
type Books struct {
	budgets map[base.UUID]book
	gone    map[base.UUID]bool // looked up and not found
	mark    int                // counts the marks: a budget copied since the last one may be changed in place
	undo    []undoBook
	spends  []Spend
	freed   []base.UUID
	epochs  []EpochRecord
	cancels []CancelRunning
}

// book is one loaded budget.
type book struct {
	budget  *Budget // nil: deleted
	mark    int     // when it was copied last
	changed bool
}

// undoBook is the state of a budget before it was replaced.
type undoBook struct {
	id     base.UUID
	before book
	known  bool
}

// Spend is an amount booked as used for an execution, for the ledger (B25). A negative amount is given back.
type Spend struct {
	Budget    base.UUID
	Epoch     int64
	Execution base.UUID
	Dimension string
	Amount    int64
}

// CancelRunning requests the cancellation of everything that holds a lease charged to the budget (B27), except one execution (B28).
type CancelRunning struct {
	Budget base.UUID
	Spare  base.ID // absent: none is spared
}

// NewBooks returns an empty set of budgets.
func NewBooks() *Books { return &Books{budgets: map[base.UUID]book{}} }

// Add adds a loaded budget. A budget that is already there is kept.
func (b *Books) Add(budget *Budget) {
	if _, known := b.budgets[budget.ID]; !known {
		b.budgets[budget.ID] = book{budget: budget, mark: -1}
	}
}

// Miss records that the budget does not exist, as opposed to being unreadable.
func (b *Books) Miss(id base.UUID) {
	if b.gone == nil {
		b.gone = map[base.UUID]bool{}
	}
	b.gone[id] = true
}

// Create adds a budget that this transaction has made.
func (b *Books) Create(budget *Budget) { b.replace(budget.ID, budget) }

// Get returns a budget, or nil if it was not loaded, does not exist or cannot be read. The caller must not change it.
func (b *Books) Get(id base.UUID) *Budget {
	if b == nil {
		return nil
	}
	return b.budgets[id].budget
}

// own returns a budget that may be changed; nil as with Get.
func (b *Books) own(id base.UUID) *Budget {
	budget := b.Get(id)
	if budget == nil {
		return nil
	}
	if known := b.budgets[id]; known.changed && known.mark == b.mark {
		return budget
	}
	budget = budget.clone()
	b.replace(id, budget)
	return budget
}

func (b *Books) replace(id base.UUID, budget *Budget) {
	before, known := b.budgets[id]
	b.undo = append(b.undo, undoBook{id, before, known})
	b.budgets[id] = book{budget: budget, mark: b.mark, changed: true}
}

// BooksMark is a state that Back can restore.
type BooksMark struct{ undo, spends, freed, epochs, cancels int }

// Mark returns the present state.
func (b *Books) Mark() BooksMark {
	if b == nil {
		return BooksMark{}
	}
	b.mark++
	return BooksMark{len(b.undo), len(b.spends), len(b.freed), len(b.epochs), len(b.cancels)}
}

// Back undoes everything since the mark, as for a refused command (L78).
func (b *Books) Back(m BooksMark) {
	if b == nil {
		return
	}
	b.mark++
	for i := len(b.undo) - 1; i >= m.undo; i-- {
		if u := b.undo[i]; u.known {
			b.budgets[u.id] = u.before
		} else {
			delete(b.budgets, u.id)
		}
	}
	b.undo, b.spends, b.freed = b.undo[:m.undo], b.spends[:m.spends], b.freed[:m.freed]
	b.epochs, b.cancels = b.epochs[:m.epochs], b.cancels[:m.cancels]
}

// Changed lists the budgets to write, by id.
func (b *Books) Changed() []*Budget {
	var changed []*Budget
	for _, id := range b.touched() {
		if budget := b.budgets[id].budget; budget != nil {
			changed = append(changed, budget)
		}
	}
	return changed
}

// Deleted lists the budgets to delete, by id.
func (b *Books) Deleted() []base.UUID {
	return slices.DeleteFunc(b.touched(), func(id base.UUID) bool { return b.budgets[id].budget != nil })
}

func (b *Books) touched() []base.UUID {
	if b == nil {
		return nil
	}
	ids := slices.Collect(maps.Keys(b.budgets))
	ids = slices.DeleteFunc(ids, func(id base.UUID) bool { return !b.budgets[id].changed })
	slices.SortFunc(ids, compareUUIDs)
	return ids
}

func compareUUIDs(a, b base.UUID) int { return slices.Compare(a[:], b[:]) }

// Spends lists the amounts booked for executions, summed; sums of zero are omitted.
func (b *Books) Spends() []Spend {
	if b == nil {
		return nil
	}
	sums := map[Spend]int64{}
	for _, spend := range b.spends {
		amount := spend.Amount
		spend.Amount = 0
		sums[spend] += amount
	}
	var spends []Spend
	for spend, amount := range sums {
		if amount != 0 {
			spend.Amount = amount
			spends = append(spends, spend)
		}
	}
	slices.SortFunc(spends, func(a, b Spend) int {
		return cmp.Or(compareUUIDs(a.Budget, b.Budget), cmp.Compare(a.Epoch, b.Epoch), compareUUIDs(a.Execution, b.Execution),
			cmp.Compare(a.Dimension, b.Dimension))
	})
	return spends
}

// Freed lists the budgets that gained room (B33), by id.
func (b *Books) Freed() []base.UUID {
	if b == nil {
		return nil
	}
	return slices.Compact(slices.SortedFunc(slices.Values(b.freed), compareUUIDs))
}

// free records that a budget has more room than before.
func (b *Books) free(id base.UUID) { b.freed = append(b.freed, id) }

// Epochs lists the epochs that resets have closed.
func (b *Books) Epochs() []EpochRecord {
	if b == nil {
		return nil
	}
	return b.epochs
}

// CancelRunning lists the cancellations that budget breaches require.
func (b *Books) CancelRunning() []CancelRunning {
	if b == nil {
		return nil
	}
	return b.cancels
}
