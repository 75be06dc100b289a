package core

import (
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// account is a budget that usage is booked to, and what the reporter has reserved of it (B22); nil if nothing.
type account struct {
	budget base.UUID
	own    map[string]int64
}

// bill is one usage report while it is booked to the accounts of a set.
type bill struct {
	books    *Books
	x        *Execution // the execution that it is booked for; nil: a charge without execution
	accounts []account  // in the order of B8
	usage    map[string]int64
	breaches []UsageBreach // of hard limits
	soft     []UsageBreach
}

// each calls do for every dimension of the usage that an account of the set defines, in the order of B23.
func (l *bill) each(fx *Effects, do func(a *account, budget *Budget, dimension string, delta int64)) {
	names := slices.Sorted(maps.Keys(l.usage))
	for i := range l.accounts {
		a := &l.accounts[i]
		budget := l.books.settled(fx, a.budget)
		if budget == nil {
			continue
		}
		for _, name := range names {
			if budget.Dimensions[name] != nil {
				do(a, budget, name, l.usage[name])
			}
		}
	}
}

// check checks whether everything fits (B20). What does not fit is recorded as a breach; nothing is booked. Errors: amount_out_of_range if only the
// range of numbers is exceeded.
func (l *bill) check(fx *Effects) (err error) {
	l.each(fx, func(a *account, budget *Budget, name string, delta int64) {
		d := budget.Dimensions[name]
		switch {
		case delta <= d.room(a.own[name]):
		case d.Hard == nil && err == nil:
			err = outOfRange(name)
		case d.Hard != nil:
			l.breaches = append(l.breaches, UsageBreach{
				Budget: a.budget, Dimension: name, Used: d.Used, Reserved: d.Reserved, Hard: d.most(), Attempted: delta,
			})
		}
	})
	return err
}

// book books what fits as used and the rest as overrun (B21). The reporter's own hold is drawn first (B22).
func (l *bill) book(fx *Effects) {
	l.each(fx, func(a *account, budget *Budget, name string, delta int64) {
		budget = l.books.own(budget.ID)
		d := budget.Dimensions[name]
		fit := min(delta, d.room(a.own[name]))
		if draw := min(delta, a.own[name]); draw > 0 {
			d.Reserved -= draw
			if a.own[name] -= draw; a.own[name] == 0 {
				delete(a.own, name)
			}
		}
		l.books.use(fx, l.x, budget, name, fit)
		if over := delta - fit; over > 0 {
			d.Overrun = AddAmounts(d.Overrun, over)
			l.breaches = append(l.breaches, UsageBreach{
				Budget: a.budget, Dimension: name, Used: d.Used, Reserved: d.Reserved, Hard: d.most(), Attempted: delta, Overrun: over,
			})
		}
		if d.Soft != nil && d.Used > *d.Soft {
			l.soft = append(l.soft, UsageBreach{Budget: a.budget, Dimension: name, Used: d.Used, Reserved: d.Reserved, Soft: *d.Soft})
		}
	})
}

// use is the only place where used grows. It emits an event each time the soft limit is passed (B32).
func (b *Books) use(fx *Effects, x *Execution, budget *Budget, name string, amount int64) {
	d := budget.Dimensions[name]
	before := d.Used
	d.Used += amount
	d.shrink()
	if x != nil && amount > 0 {
		b.spends = append(b.spends, Spend{budget.ID, budget.Epoch, x.ID.UUID, budget.ledgerName(name), amount})
	}
	if d.Soft != nil && before <= *d.Soft && d.Used > *d.Soft {
		budget.SoftBreaches++
		budget.EpochSoft++
		budget.emitSoftBreach(fx, x, name)
	}
}

// shrink reduces the carried part of a raise to what is still needed (B36).
func (d *BudgetDimension) shrink() {
	if d.Carried > 0 {
		d.Carried = min(d.Carried, max(d.Used+d.Reserved-AddAmounts(*d.Hard, d.Raised), 0))
	}
}

// giveBack returns what is left of a hold to the budget.
func (b *Books) giveBack(budget *Budget, amounts map[string]int64) {
	for name, amount := range amounts {
		if d := budget.Dimensions[name]; d != nil && amount > 0 {
			d.Reserved -= amount
			d.shrink()
			b.free(budget.ID)
		}
	}
}

// remaining returns what may still be reported of each dimension with a hard limit (B23).
func (l *bill) remaining() map[base.UUID]map[string]int64 {
	var left map[base.UUID]map[string]int64
	for i := range l.accounts {
		a := &l.accounts[i]
		budget := l.books.Get(a.budget)
		if budget == nil {
			continue
		}
		for name, d := range budget.Dimensions {
			if d.Hard == nil {
				continue
			}
			if left == nil {
				left = map[base.UUID]map[string]int64{}
			}
			if left[a.budget] == nil {
				left[a.budget] = map[string]int64{}
			}
			left[a.budget][name] = max(d.room(a.own[name]), 0)
		}
	}
	return left
}

// missing is the refusal of a report under a budget that is not in the books: an unreadable budget must not count as unlimited (B3). For a late
// report, a budget that was deleted after its lease had lapsed is no error: nothing is left to book in.
func (l *bill) missing(late bool) error {
	if late && l.books != nil {
		l.accounts = slices.DeleteFunc(l.accounts, func(a account) bool { return l.books.Get(a.budget) == nil && l.books.gone[a.budget] })
	}
	for i := range l.accounts {
		if l.books.Get(l.accounts[i].budget) == nil {
			return base.Errorf(base.CodeCorruption, "budget %s cannot be read", l.accounts[i].budget).With("record", BudgetKey(l.accounts[i].budget))
		}
	}
	return nil
}
