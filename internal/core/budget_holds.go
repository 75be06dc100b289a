package core

import (
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// ChargedTo lists the budgets that the grant or lease of x is charged to, and those of a lapsed lease whose holder may still report (L36). They
// must be loaded and locked with x.
func (x *Execution) ChargedTo() []base.UUID {
	var ids []base.UUID
	if x.Reservation != nil {
		for i := range x.Reservation.Holds {
			ids = append(ids, x.Reservation.Holds[i].Budget)
		}
	}
	if x.LastLease == nil {
		return ids
	}
	for _, id := range x.LastLease.Budgets {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// chargedTo reports whether the present grant or lease is charged to the budget.
func (x *Execution) chargedTo(budget base.UUID) bool {
	return x.Reservation != nil && slices.ContainsFunc(x.Reservation.Holds, func(h BudgetHold) bool { return h.Budget == budget })
}

// accounts returns what the lease of x is charged to, with copies of its holds for this command to draw from: the previous reservation may be part
// of a snapshot. A late command gets the set of the lapsed lease, without holds (B16).
func (x *Execution) accounts(late bool) []account {
	if late {
		return accountsOf(x.LastLease.Budgets)
	}
	if x.Reservation == nil || len(x.Reservation.Holds) == 0 {
		return nil
	}
	own := *x.Reservation
	own.Holds = slices.Clone(own.Holds)
	accounts := make([]account, len(own.Holds))
	for i := range own.Holds {
		hold := &own.Holds[i]
		hold.Remaining = maps.Clone(hold.Remaining)
		accounts[i] = account{hold.Budget, hold.Remaining}
	}
	x.Reservation = &own
	return accounts
}

func accountsOf(set []base.UUID) []account {
	accounts := make([]account, len(set))
	for i, id := range set {
		accounts[i].budget = id
	}
	return accounts
}

// spend books the usage reported by a command that ends or leaves the run (B16). The usage has happened, so it is never refused, and a breach does
// not act on the run, which has ended as far as the budget is concerned (B28).
func (x *Execution) spend(fx *Effects, usage map[string]int64, late bool) {
	if len(usage) == 0 {
		return
	}
	x.meter(usage)
	x.bookSpent(fx, usage, late, false)
}

// spendOn is spend for a command after which the run continues: a breach acts on the run, unless the lease is already lost (B28).
func (x *Execution) spendOn(fx *Effects, usage map[string]int64, late bool) {
	if len(usage) == 0 {
		return
	}
	x.meter(usage)
	x.bookSpent(fx, usage, late, !late)
}

// bookSpent books reported usage. act reports whether a breach may act on the reporter.
func (x *Execution) bookSpent(fx *Effects, usage map[string]int64, late, act bool) {
	accounts := x.accounts(late)
	if len(accounts) == 0 {
		return
	}
	l := bill{books: fx.Books, x: x, accounts: accounts, usage: usage}
	l.book(fx)
	l.breach(fx, act)
}

// settleLease books the time of a lease that ends, and ends its holds (B14, B15, B17). For a lost lease it returns the budgets to which the holder
// may still report.
func (x *Execution) settleLease(fx *Effects, e exit, held base.Millis) (set []base.UUID) {
	x.WallHoldAt = 0
	if x.Reservation == nil {
		return nil
	}
	if e.end == EndExpired && !e.state.Final() {
		for i := range x.Reservation.Holds {
			set = append(set, x.Reservation.Holds[i].Budget)
		}
	}
	if held > 0 {
		x.bookSpent(fx, map[string]int64{WallMS: held}, false, false)
	}
	x.endHolds(fx, e.end == EndExpired || e.end == EndRevoked)
	return set
}

// endHolds ends what the grant or lease has reserved. It is given back or, for a lost lease, booked as used if the budget is defined that way.
func (x *Execution) endHolds(fx *Effects, lost bool) {
	if x.Reservation == nil {
		return
	}
	for _, hold := range x.Reservation.Holds {
		if fx.Books.settled(fx, hold.Budget) == nil {
			continue // an unreadable budget cannot be booked in; its holds are counted when it is repaired
		}
		budget := fx.Books.own(hold.Budget)
		if lost && budget.OnLeaseLoss == OnLossForfeit {
			x.forfeit(fx, budget, hold.Remaining)
		} else {
			fx.Books.giveBack(budget, hold.Remaining)
		}
		budget.LiveHolds = max(budget.LiveHolds-1, 0)
	}
	x.Reservation = nil
}

// forfeit books the rest of a hold as used (B15). It always fits, because the reservation makes room for it.
func (x *Execution) forfeit(fx *Effects, budget *Budget, amounts map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if d := budget.Dimensions[name]; d != nil {
			d.Reserved -= amounts[name]
			fx.Books.use(fx, x, budget, name, amounts[name])
		}
	}
}
