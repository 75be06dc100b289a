package core

// startWall arms the timer of the holds of wall_ms when a lease begins (B17).
func (x *Execution) startWall() {
	x.WallHoldAt = 0
	if x.Reservation != nil {
		x.WallHoldAt = x.wallEnds(x.Lease.AcquiredAt)
	}
}

// wallEnds is when the first hold of wall_ms is used up that lasts beyond a moment; absent: there is none. A hold is as long as the
// lease may run on it: nothing is drawn from it before the exit.
func (x *Execution) wallEnds(beyond Time) (first Time) {
	for i := range x.Reservation.Holds {
		if end := x.wallEnd(i); end > beyond {
			first = earliest(first, end)
		}
	}
	return first
}

func (x *Execution) wallEnd(hold int) Time {
	return x.Lease.AcquiredAt.Add(x.Reservation.Holds[hold].Remaining[WallMS])
}

func (x *Execution) wallDue() Time {
	if x.Status != Running {
		return 0
	}
	return x.WallHoldAt
}

// endWall extends the holds of wall_ms that are used up by what they were, or by what is left (B17). Where nothing is left, that is a
// hard breach; if the lease goes on, what it runs beyond becomes overrun at its exit.
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

func (l *bill) extendWall(fx *Effects, a *account, due Time) {
	budget := l.books.settled(fx, a.budget)
	if budget == nil || budget.Dimensions[WallMS] == nil || budget.Dimensions[WallMS].Hard == nil {
		return // it limits the time no longer, or cannot say
	}
	budget = l.books.own(a.budget)
	d := budget.Dimensions[WallMS]
	step := d.wallStep(l.x.Policy.Estimate)
	more := min(step, max(d.room(0), 0))
	if late := fx.settling.Sub(due); late > step && more == step {
		more = min(late/step*step+step, d.room(0)) // as often as it would have been by now
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

// wallStep is by how much a hold is extended: by the amount that it began with.
func (d *BudgetDimension) wallStep(estimate map[string]int64) int64 {
	if amount, given := estimate[WallMS]; given && amount > 0 {
		return amount
	}
	if d.DefaultReserve != nil && *d.DefaultReserve > 0 {
		return *d.DefaultReserve
	}
	return defaultWallReserve
}
