package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// startWall arms the timer for the wall_ms holds when a lease begins (B17).
func (x *Execution) startWall() {
	x.WallHoldAt = 0
	if x.Reservation != nil {
		x.WallHoldAt = x.wallEnds(x.Lease.AcquiredAt)
	}
}

// wallEnds returns when the first hold of wall_ms that lasts beyond the given moment is used up, absent if there is none. The length of a hold is
// the time that the lease may run on it: nothing is drawn from it before the lease ends.
func (x *Execution) wallEnds(beyond base.Time) (first base.Time) {
	for i := range x.Reservation.Holds {
		if end := x.wallEnd(i); end > beyond {
			first = base.Earliest(first, end)
		}
	}
	return first
}

func (x *Execution) wallEnd(hold int) base.Time {
	return x.Lease.AcquiredAt.Add(x.Reservation.Holds[hold].Remaining[WallMS])
}

func (x *Execution) wallDue() base.Time {
	if x.Status != Running {
		return 0
	}
	return x.WallHoldAt
}

// endWall extends the used-up holds of wall_ms by their initial amount, or by what is left (B17). If nothing is left, that is a hard breach; if the
// lease continues, the time beyond becomes overrun when it ends.
func (x *Execution) endWall(fx *Effects) {
	due := x.WallHoldAt
	l := bill{books: fx.Books, x: x, accounts: x.accounts(false)}
	for i := range l.accounts {
		if x.wallEnd(i) == due {
			l.extendWall(fx, &l.accounts[i], due)
		}
	}
	x.WallHoldAt = x.wallEnds(due)
	x.LastMutationAt = fx.Now
	l.breach(fx, true)
}

func (l *bill) extendWall(fx *Effects, a *account, due base.Time) {
	budget := l.books.settled(fx, a.budget)
	if budget == nil || budget.Dimensions[WallMS] == nil || budget.Dimensions[WallMS].Hard == nil {
		return // the budget no longer limits time, or is unreadable
	}
	budget = l.books.own(a.budget)
	d := budget.Dimensions[WallMS]
	step := d.wallStep(l.x.Policy.Estimate)
	more := min(step, max(d.room(0), 0))
	if late := fx.settling.Sub(due); late > step && more == step {
		more = min(late/step*step+step, d.room(0)) // as many extensions as would be due by now
	}
	if more == 0 {
		l.breaches = append(l.breaches, UsageBreach{
			Budget: a.budget, Dimension: WallMS, Used: d.Used, Reserved: d.Reserved, Hard: d.most(), Attempted: step,
		})
		return
	}
	d.Reserved += more
	a.own[WallMS] += more
}

// wallStep returns the amount by which a hold is extended: the amount that it began with.
func (d *BudgetDimension) wallStep(estimate map[string]int64) int64 {
	if amount, given := estimate[WallMS]; given && amount > 0 {
		return amount
	}
	if d.DefaultReserve != nil && *d.DefaultReserve > 0 {
		return *d.DefaultReserve
	}
	return defaultWallReserve
}
