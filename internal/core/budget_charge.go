package core

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// ChargeCommand is the command charge or, with an execution, record_spend (B24).
type ChargeCommand struct {
	Budget       base.UUID
	Usage        map[string]int64
	DedupKey     string // "": none
	AlreadySpent bool
	Execution    *Execution    // settled, with the budgets it is charged to in the books; nil: charge
	Known        *UsageReceipt // the receipt stored under the dedup key of this budget; nil: none
}

// Check checks the arguments: invalid_usage, reserved_dimension.
func (c *ChargeCommand) Check() error { return checkReported(c.Usage, c.DedupKey) }

// Charge books usage against a budget and its ancestors, without fence and hold. The receipt must be stored under the dedup key of the budget; nil
// means that nothing needs to be stored. Errors: those of Check, budget_not_found, unknown_dimension, idempotency_conflict, budget_closed,
// amount_out_of_range, corruption of an ancestor.
func (b *Books) Charge(fx *Effects, c ChargeCommand) (UsageOutcome, *UsageReceipt, error) {
	if err := c.Check(); err != nil {
		return UsageOutcome{}, nil, err
	}
	budget := b.settled(fx, c.Budget)
	if budget == nil {
		return UsageOutcome{}, nil, BudgetNotFound(c.Budget.String())
	}
	for _, name := range slices.Sorted(maps.Keys(c.Usage)) {
		if budget.Dimensions[name] == nil {
			return UsageOutcome{}, nil, base.Errorf(base.CodeUnknownDimension, "the budget has no dimension %s", name).WithField(base.FieldUnder("usage", name))
		}
	}
	var execution base.ID
	if c.Execution != nil {
		execution = c.Execution.ID
	}
	fingerprint := usageFingerprint(c.Usage, c.AlreadySpent, execution)
	if known, err := c.Known.repeated(fx.Now, fingerprint); known != nil || err != nil {
		return valueOr(known), nil, err
	}
	outcome, err := b.charge(fx, &c, budget)
	if err != nil {
		return UsageOutcome{}, nil, err
	}
	return outcome, receiptOf(fx.Now, ChargeDedupTime, c.DedupKey, fingerprint, outcome), nil
}

func (b *Books) charge(fx *Effects, c *ChargeCommand, budget *Budget) (UsageOutcome, error) {
	l := bill{books: b, x: c.Execution, accounts: accountsOf(budget.line()), usage: c.Usage}
	for i := range l.accounts {
		if charged := b.settled(fx, l.accounts[i].budget); charged != nil && charged.Closed {
			return UsageOutcome{}, budgetClosed(charged)
		}
	}
	if c.Execution != nil {
		if err := c.Execution.checkMeters(c.Usage); err != nil {
			return UsageOutcome{}, err
		}
	}
	outcome, err := l.settle(fx, c.AlreadySpent, true)
	if err == nil && c.Execution != nil && outcome.Applied && outcome.Action == ActionNone {
		c.Execution.LastMutationAt = base.Later(fx.Now, c.Execution.LastMutationAt)
	}
	return outcome, err
}

// line returns the budget and its ancestors, nearest first.
func (b *Budget) line() []base.UUID { return append([]base.UUID{b.ID}, b.Ancestors...) }

func budgetClosed(b *Budget) *base.Error {
	return base.Errorf(base.CodeBudgetClosed, "budget %q is closed", b.Name).With("budget_id", b.ID.String()).WithHint("reopen it, or charge another")
}

// LedgerRow is what an execution has used of a budget in an epoch, as recorded in the ledger (B25).
type LedgerRow struct {
	Budget base.UUID
	Epoch  int64
	Used   map[string]int64
}

// ReleaseSpend gives back what the ledger of the current epoch holds for an execution: to the budget, and to each ancestor at most what the
// ancestor's own ledger holds (B25). ledger has the rows of the execution under the budget and its ancestors; rows of other epochs are ignored.
// Overrun is not given back. Errors: budget_not_found.
func (b *Books) ReleaseSpend(fx *Effects, id, execution base.UUID, ledger []LedgerRow) (released map[string]int64, err error) {
	budget := b.settled(fx, id)
	if budget == nil {
		return nil, BudgetNotFound(id.String())
	}
	released = map[string]int64{}
	maps.Copy(released, b.rowOf(budget, ledger))
	for _, of := range budget.line() {
		if target := b.settled(fx, of); target != nil {
			b.unspend(target, execution, b.rowOf(target, ledger), released)
		}
	}
	return released, nil
}

// rowOf returns what the ledger holds of the dimensions that the budget has now.
func (b *Books) rowOf(budget *Budget, ledger []LedgerRow) map[string]int64 {
	row := first(ledger, func(r *LedgerRow) bool { return r.Budget == budget.ID && r.Epoch == budget.Epoch })
	used := map[string]int64{}
	for name := range budget.Dimensions {
		if amount := valueOr(row).Used[budget.ledgerName(name)]; amount > 0 {
			used[name] = amount
		}
	}
	return used
}

// ledgerName returns the name of a dimension in the ledger of this epoch. A dimension that was removed and added again starts at 0 (B4), and so
// does its ledger.
func (b *Budget) ledgerName(name string) string {
	if n := b.Removed[name]; n > 0 {
		return name + "/" + strconv.Itoa(n)
	}
	return name
}

// LedgerDimension returns the dimension of a name in the ledger.
func LedgerDimension(name string) string {
	name, _, _ = strings.Cut(name, "/")
	return name
}

// unspend takes at most `most` of a row back from the used amounts.
func (b *Books) unspend(target *Budget, execution base.UUID, row, most map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(most)) {
		d := target.Dimensions[name]
		if d == nil {
			continue
		}
		amount := min(most[name], row[name], d.Used)
		if amount <= 0 {
			continue
		}
		target = b.own(target.ID)
		d = target.Dimensions[name]
		d.Used -= amount
		d.shrink()
		b.spends = append(b.spends, Spend{target.ID, target.Epoch, execution, target.ledgerName(name), -amount})
		b.free(target.ID)
	}
}
