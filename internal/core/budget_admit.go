package core

import (
	"math"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// defaultWallReserve is the amount of wall_ms that is reserved by default (B17).
const defaultWallReserve = base.Minute

// most returns how much may be used and reserved in total: the effective hard limit, or the largest number.
func (d *BudgetDimension) most() int64 {
	if d.Hard == nil {
		return math.MaxInt64
	}
	return AddAmounts(AddAmounts(*d.Hard, d.Raised), d.Carried)
}

// room returns what is left for a holder that has already reserved own of it (B20).
func (d *BudgetDimension) room(own int64) int64 { return d.most() - d.Used - (d.Reserved - own) }

// AddAmounts adds two amounts and saturates at 64 bits instead of wrapping (B1).
func AddAmounts(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// need returns how much an execution reserves of a dimension (B9, B17). For limited time it is never 0: without a hold the exhaustion of the limit
// would not be noticed.
func (d *BudgetDimension) need(name string, estimate map[string]int64) int64 {
	timed := name == WallMS && d.Hard != nil
	if amount, given := estimate[name]; given && (amount > 0 || !timed) {
		return amount
	}
	switch {
	case d.DefaultReserve != nil && (*d.DefaultReserve > 0 || !timed):
		return *d.DefaultReserve
	case timed:
		return min(defaultWallReserve, max(d.room(0), 0))
	default:
		return 0
	}
}

// at returns the budget as the due resets would leave it. Nothing is changed.
func (b *Budget) at(now base.Time) *Budget {
	if !b.NextResetAt.Reached(now) {
		return b
	}
	aside := NewBooks()
	aside.Add(b)
	return aside.settled(&Effects{Now: now}, b.ID)
}

// Admits returns nil if every budget of the set has room for x (B9), else a refusal that names the first one without room (B11). A budget that is
// not in the books is unreadable and refuses (S45). Nothing is changed.
func (b *Books) Admits(x *Execution, set []base.UUID, estimate map[string]int64, now base.Time) *Refusal {
	for _, id := range set {
		budget := b.Get(id)
		if budget == nil {
			return unreadable(WaitingForBudget, BudgetKey(id), now)
		}
		if refusal := budget.at(now).admits(estimate); refusal != nil {
			return refusal
		}
	}
	return nil
}

func (b *Budget) admits(estimate map[string]int64) *Refusal {
	refusal := &Refusal{Reason: WaitingForBudget, Key: BudgetKey(b.ID), NextFree: b.NextResetAt}
	if b.Closed {
		o := base.NewObject(32)
		o.Str("state", BudgetClosed)
		refusal.Detail, refusal.NextFree = o.Done(), 0
		return refusal
	}
	for _, name := range b.dimensionNames() {
		d := b.Dimensions[name]
		need := d.need(name, estimate)
		if d.Hard != nil {
			need = max(need, 1)
		}
		if room := d.room(0); need > room {
			o := base.NewObject(160)
			o.Str("dimension", name)
			o.Num("need", need)
			o.Num("available", room)
			o.Moment("next_reset_at", b.NextResetAt)
			refusal.Detail = o.Done()
			if d.Hard == nil || need > *d.Hard-d.Reserved { // a reset leaves reservations unchanged (B36)
				refusal.NextFree = 0
			}
			return refusal
		}
	}
	return nil
}

// Reserve charges the grant or lease that x is about to get to the budgets of the set, which have admitted it (B10, B13). It must be called before
// the acquisition.
func (b *Books) Reserve(fx *Effects, x *Execution, set []base.UUID, estimate map[string]int64) {
	b.hold(fx, x, set, func(budget *Budget) map[string]int64 { return budget.reserve(estimate) })
}

// hold charges x to the budgets of the set; take returns what to reserve of each.
func (b *Books) hold(fx *Effects, x *Execution, set []base.UUID, take func(*Budget) map[string]int64) {
	var reservation Reservation
	if x.Reservation != nil {
		reservation = *x.Reservation
	}
	reservation.Holds = make([]BudgetHold, 0, len(set))
	for _, id := range set {
		hold := BudgetHold{Budget: id}
		if b.settled(fx, id) != nil {
			budget := b.own(id)
			hold.Remaining = take(budget)
			budget.LiveHolds++
		}
		reservation.Holds = append(reservation.Holds, hold)
	}
	x.Reservation = &reservation
}

// reserve takes what is needed of each dimension, but never more than is left.
func (b *Budget) reserve(estimate map[string]int64) map[string]int64 {
	var amounts map[string]int64
	for name, d := range b.Dimensions {
		need := min(d.need(name, estimate), max(d.room(0), 0))
		if need <= 0 {
			continue
		}
		d.Reserved += need
		if amounts == nil {
			amounts = map[string]int64{}
		}
		amounts[name] = need
	}
	return amounts
}
